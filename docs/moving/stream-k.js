// Tiles in waves, and divided by stream-K: what each CTA computes, for as many tiles and CTAs as one
// likes. In place of stream-k.svg.
"use strict";

(() => {
    const { k_iterations: K, fewest_ctas: FEWEST, of_ctas: DIVISIONS } = MOVING.stream_k;
    const [LEFT, WIDTH, ROW] = [70, 860, 24];

    /** The tiles of each CTA where a tile is never divided. */
    function inWaves(tiles, ctas) {
        return Array.from({ length: ctas }, (_, cta) => {
            const segments = [];
            for (let tile = cta; tile < tiles; tile += ctas) segments.push({ tile, from: 0, to: K });
            return segments;
        });
    }

    /** The same by stream-K: tiles in waves, then k-iterations `begins[cta] .. begins[cta + 1]`. */
    function divided(tiles, ctas) {
        const [waves, begins] = DIVISIONS[ctas - FEWEST][tiles - 1];
        return inWaves(waves * ctas, ctas).map((segments, cta) => {
            for (let at = begins[cta]; at < begins[cta + 1];) {
                const tile = Math.floor(at / K);
                const to = Math.min(begins[cta + 1] - tile * K, K);
                segments.push({ tile: waves * ctas + tile, from: at - tile * K, to });
                at = tile * K + to;
            }
            return segments;
        });
    }

    const length = (segments) => segments.reduce((sum, one) => sum + one.to - one.from, 0);

    /** A row for each CTA; returns the time that the last one takes. */
    function draw(svg, top, title, ctas, scale) {
        const time = Math.max(...ctas.map(length));
        const used = ctas.reduce((sum, segments) => sum + length(segments), 0);
        const percent = Math.round((100 * used) / (time * ctas.length));
        add(svg, "text", { x: 16, y: top, class: "head" },
            `${title}: ${time} k-iterations, ${percent} % of the CTAs' time used`);
        ctas.forEach((segments, cta) => {
            const y = top + 10 + cta * ROW;
            add(svg, "text", { x: 16, y: y + 15, class: "small" }, `CTA ${cta}`);
            add(svg, "rect", { x: LEFT, y, width: time * scale, height: ROW - 4, class: "idle" });
            let x = LEFT;
            for (const { tile, from, to } of segments) {
                const width = (to - from) * scale;
                const style = to - from === K ? "whole" : "segment";
                add(svg, "rect", { x, y, width, height: ROW - 4, class: style });
                if (width > 14) {
                    add(svg, "text", { x: x + width / 2, y: y + 15, class: "small middle" }, tile);
                }
                x += width;
            }
        });
    }

    moving("stream-k", "Tiles in waves, and divided by stream-K", (figure) => {
        const controls = add(figure, "div");
        const show = () => {
            const [count, n] = [tiles.get(), ctas.get()];
            const [plain, even] = [inWaves(count, n), divided(count, n)];
            const longest = Math.max(...plain.map(length), ...even.map(length));
            const scale = Math.min((WIDTH - LEFT - 16) / longest, 22);
            const height = 40 + n * ROW;
            svg.setAttribute("viewBox", `0 0 ${WIDTH} ${2 * height + 10}`);
            svg.replaceChildren();
            draw(svg, 24, "one tile a CTA and wave", plain, scale);
            draw(svg, 24 + height, "stream-K", even, scale);
            const split = new Set(even.flat().filter((one) => one.to - one.from < K).map((one) => one.tile));
            note.textContent = split.size === 0
                ? "The last wave is full: no tile is divided."
                : `Divided: ${split.size} ${split.size === 1 ? "tile" : "tiles"} (orange). Its CTAs store partial sums, ` +
                  "and a second kernel adds them.";
        };
        const tiles = slider(controls, "tiles", [1, DIVISIONS[0].length, 11], () => show());
        const ctas = slider(controls, "CTAs", [FEWEST, FEWEST + DIVISIONS.length - 1, 4], () => show());
        const svg = sheet(figure, WIDTH, 300, "What each CTA computes");
        const note = add(figure, "figcaption");
        show();
    });
})();

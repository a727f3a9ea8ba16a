// A ring of stages with two mbarriers each, turn by turn, as the simulator ran it. In place of
// mbarrier.svg.
"use strict";

(() => {
    const { stages, who, turns, spans, arrivals } = MOVING.ring;
    const [STAGE, LEFT, WIDTH] = [230, 16, 16 + 3 * 230 + 154];
    /** Who arrives in a phase: at `full` the producer and the bytes, at `empty` both consumers. */
    const ARRIVE = { full: [0, 1], empty: [2, 3] };

    /** The phase of a barrier at a turn, and who has arrived in it. */
    function phase(barrier, stage, turn) {
        const past = arrivals.filter((one) =>
            one.barrier === barrier && one.stage === stage && one.turn <= turn);
        const number = Math.floor(past.length / 2);
        return { number, parity: number % 2, arrived: past.slice(2 * number).map((one) => one.who) };
    }

    /** What one of them does at a turn. */
    function action(one, turn) {
        return spans.find((span) => span.who === one && span.from <= turn && turn < span.to);
    }

    /** What a stage holds at a turn. */
    function content(stage, turn) {
        const at = (what) => spans.filter((span) =>
            span.what === what && span.iteration % stages === stage && span.from <= turn);
        const copied = at("copies").pop();
        if (copied === undefined) return { text: "nothing yet", class: "cell" };
        const tile = copied.iteration;
        if (turn < copied.to) return { text: `tile ${tile} arrives`, class: "copies" };
        const readers = at("multiplies").filter((span) => span.iteration === tile);
        const reading = readers.filter((span) => turn < span.to).map((span) => span.who - 2);
        if (reading.length > 0) {
            return { text: `tile ${tile}, read by ${reading.join(" and ")}`, class: "multiplies" };
        }
        if (readers.length === 2) return { text: `tile ${tile}, has been read`, class: "cell" };
        return { text: `tile ${tile} is there`, class: "landed" };
    }

    /** What one of them does, in words. */
    function words(one, span) {
        if (span === undefined) return one === 1 ? "has nothing to copy" : "has finished";
        const stage = span.iteration % stages;
        const round = Math.floor(span.iteration / stages);
        const wait = one === 0
            ? `waits: empty[${stage}], parity ${(round + 1) % 2}`
            : `waits: full[${stage}], parity ${round % 2}`;
        return {
            waits: wait,
            requests: `requests tile ${span.iteration}`,
            copies: `copies tile ${span.iteration}`,
            multiplies: `multiplies tile ${span.iteration}`,
        }[span.what];
    }

    function draw(svg, turn) {
        svg.replaceChildren();
        for (let stage = 0; stage < stages; stage++) {
            const x = LEFT + stage * (STAGE + 16);
            add(svg, "text", { x, y: 20, class: "head" }, `stage ${stage}`);
            const { text, class: style } = content(stage, turn);
            add(svg, "rect", { x, y: 30, width: STAGE, height: 44, class: style });
            add(svg, "text", { x: x + STAGE / 2, y: 57, class: "middle" }, text);
            Object.keys(ARRIVE).forEach((barrier, i) => {
                const { number, parity, arrived } = phase(barrier, stage, turn);
                const y = 84 + i * 40;
                add(svg, "rect", { x, y, width: STAGE, height: 34, class: `parity${parity}` });
                add(svg, "text", { x: x + 8, y: y + 22 }, `${barrier}: phase ${number}, parity ${parity}`);
                ARRIVE[barrier].forEach((one, place) => {
                    const has = arrived.includes(one);
                    const cx = x + STAGE - 40 + place * 24;
                    add(svg, "circle", { cx, cy: y + 17, r: 9, class: has ? "arrived" : "missing" });
                });
            });
        }
        who.forEach((name, one) => {
            const y = 196 + one * 26;
            const span = action(one, turn);
            add(svg, "text", { x: LEFT, y }, name);
            const style = span === undefined ? "cell" : span.what;
            add(svg, "rect", { x: LEFT + 104, y: y - 16, width: 18, height: 20, class: style });
            add(svg, "text", { x: LEFT + 134, y }, words(one, span));
        });
    }

    moving("mbarrier", "A ring of stages and the phases of its barriers", (figure) => {
        const controls = add(figure, "div");
        const turn = slider(controls, "turn", [0, turns, 4], () => draw(svg, turn.get()));
        player(controls, turn, 600);
        const svg = sheet(figure, WIDTH, 290, "Stages, barriers, and what each warpgroup does");
        add(figure, "figcaption", {},
            "A circle fills when one has arrived: at full the producer and the bytes, at empty the two " +
            "consumers. The second arrival ends the phase, and the parity changes. A wait for parity p " +
            "returns while the current phase has the other parity.");
        turn.set(4);
    });
})();

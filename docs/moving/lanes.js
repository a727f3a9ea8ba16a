// Lanes to sectors and banks: which bytes the lanes of a warp access, one lane after the other, and
// what that costs. In place of coalescing.svg, banks.svg and swizzle.svg.
"use strict";

(() => {
    const [LEFT, CELL, WIDTH] = [60, 24, 60 + 32 * 24 + 16];
    const COLOURS = ["#dbe8fb", "#fde7cf", "#dff2dc", "#e9d5f0", "#8fb8f0", "#f5b267", "#9dd495", "#d3a6e0"];

    /** The words of four bytes that a lane accesses. */
    function words(access, lane) {
        const first = access.addresses[lane] / 4;
        return Array.from({ length: access.bytes / 4 }, (_, i) => first + i);
    }

    /** The cost of the first `lanes`: distinct sectors, or the most words of one bank. */
    function cost(access, lanes) {
        const all = new Set();
        for (let lane = 0; lane < lanes; lane++) words(access, lane).forEach((word) => all.add(word));
        const inBank = Array(32).fill(0);
        all.forEach((word) => inBank[word % 32]++);
        const sectors = new Set([...all].map((word) => Math.floor(word / 8)));
        return { inBank, sectors, cycles: Math.max(...inBank) };
    }

    function draw(svg, access, lanes) {
        svg.replaceChildren();
        const isShared = access.memory === "shared";
        // Only rows of 128 bytes that are accessed at all.
        const all = access.addresses.flatMap((_, lane) => words(access, lane));
        const rows = [...new Set(all.map((word) => Math.floor(word / 32)))].sort((a, b) => a - b);
        const height = rows.length > 8 ? 9 : 24;
        const bottom = 30 + rows.length * height;
        svg.setAttribute("viewBox", `0 0 ${WIDTH} ${bottom + 70}`);
        const { inBank, sectors, cycles } = cost(access, lanes);
        add(svg, "text", { x: LEFT, y: 18, class: "small" },
            isShared ? "bank 0" : "sector 0, then 1, 2 and 3 of each 128 bytes");
        if (isShared) add(svg, "text", { x: WIDTH - 16, y: 18, class: "small end" }, "bank 31");
        rows.forEach((row, i) => {
            const y = 30 + i * height;
            if (height > 9 || i % 8 === 0) {
                add(svg, "text", { x: 8, y: y + 12, class: "small" }, `+${row * 128}`);
            }
            for (let sector = 0; sector < 4 && !isShared; sector++) {
                const fetched = sectors.has(row * 4 + sector);
                add(svg, "rect", { x: LEFT + sector * 8 * CELL, y, width: 8 * CELL, height,
                    class: fetched ? "fetched" : "cell" });
            }
            for (let column = 0; column < 32 && isShared; column++) {
                add(svg, "rect", { x: LEFT + column * CELL, y, width: CELL, height, class: "cell" });
            }
        });
        for (let lane = 0; lane < lanes; lane++) {
            for (const word of words(access, lane)) {
                const y = 30 + rows.indexOf(Math.floor(word / 32)) * height;
                const x = LEFT + (word % 32) * CELL;
                const current = lane === lanes - 1 ? " current" : "";
                add(svg, "rect", { x, y, width: CELL, height, fill: COLOURS[lane % 8],
                    class: `word${current}` });
                if (height > 9) {
                    add(svg, "text", { x: x + CELL / 2, y: y + 16, class: "small middle" }, lane);
                }
            }
        }
        if (isShared) {
            inBank.forEach((count, bank) => {
                const x = LEFT + bank * CELL + CELL / 2;
                const style = count > 1 ? "conflict middle" : "small middle";
                add(svg, "text", { x, y: bottom + 20, class: style }, count);
            });
            add(svg, "text", { x: 8, y: bottom + 20, class: "small" }, "words");
        }
        const used = new Set(all.slice(0, lanes * access.bytes / 4)).size * 4;
        const sum = isShared
            ? `${lanes} lanes: ${cycles} ${cycles === 1 ? "cycle" : "cycles"}, the most words in one bank`
            : `${lanes} lanes: ${sectors.size} sectors of 32 bytes, ${used} of ${sectors.size * 32} bytes used`;
        add(svg, "text", { x: LEFT, y: bottom + 50, class: "head" }, sum);
    }

    function build(first) {
        return (figure) => {
            const controls = add(figure, "div");
            const choice = add(add(controls, "label", {}, "Access "), "select");
            MOVING.lanes.forEach((access, i) => add(choice, "option", { value: i }, access.name));
            choice.value = MOVING.lanes.findIndex((access) => access.name === first);
            const access = () => MOVING.lanes[choice.value];
            const lanes = slider(controls, "lanes", [0, 32, 32], () => draw(svg, access(), lanes.get()));
            player(controls, lanes, 150);
            const svg = sheet(figure, WIDTH, 200, "The bytes that the lanes access");
            const note = add(figure, "figcaption");
            const show = () => {
                const { addresses, note: text } = access();
                note.textContent = text;
                lanes.limit(addresses.length);
                lanes.set(addresses.length);
            };
            choice.addEventListener("change", show);
            show();
        };
    }

    const label = "Lanes of a warp, and the sectors and banks that they access";
    moving("coalescing", label, build("naive-1d reads A"));
    moving("banks", label, build("vectorized reads B"));
    moving("swizzle", label, build("warpgroup, with the 128-byte swizzle"));
})();

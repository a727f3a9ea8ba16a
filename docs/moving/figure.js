// What the figures that move have in common. Each takes the place of a still picture of the page,
// which remains where there are no scripts. All controls are a page's own (select, range, button):
// keyboard and touch work as everywhere.
"use strict";

/** Calls `build(figure)` with an empty figure in place of each picture of that name on the page. */
function moving(picture, label, build) {
    for (const still of document.querySelectorAll(`img[src$="pictures/${picture}.svg"]`)) {
        // The book shows a picture twice in its paragraph: small, and large once it is clicked.
        const place = still.closest("p") ?? still;
        if (!place.isConnected) continue;
        const figure = document.createElement("figure");
        figure.className = "moving";
        figure.setAttribute("aria-label", label);
        place.replaceWith(figure);
        build(figure);
    }
}

/** Adds an element, of HTML, or of SVG if its parent is. */
function add(parent, name, attributes = {}, text = "") {
    const inSvg = name === "svg" || parent.namespaceURI.endsWith("svg");
    const space = inSvg ? "http://www.w3.org/2000/svg" : "http://www.w3.org/1999/xhtml";
    const element = document.createElementNS(space, name);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    element.textContent = text;
    return parent.appendChild(element);
}

/** An empty drawing, which scales with the page. */
function sheet(figure, width, height, label) {
    return add(figure, "svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": label });
}

/** A slider with its name and its value; `changed` is called when it moves. */
function slider(parent, name, [least, most, value], changed) {
    const label = add(parent, "label", {}, `${name} `);
    const input = add(label, "input", { type: "range", min: least, max: most, step: 1 });
    const shown = add(label, "output", {}, value);
    input.value = value;
    input.addEventListener("input", () => {
        shown.textContent = input.value;
        changed();
    });
    return {
        get: () => Number(input.value),
        set: (next) => {
            input.value = next;
            shown.textContent = input.value;
            changed();
        },
        limit: (largest) => { input.max = largest; },
        largest: () => Number(input.max),
    };
}

/** A button that moves the slider on, a step each `milliseconds`, to its end. */
function player(parent, slider, milliseconds) {
    const button = add(parent, "button", { type: "button" }, "Play");
    let timer = null;
    const stop = () => {
        clearInterval(timer);
        timer = null;
        button.textContent = "Play";
    };
    button.addEventListener("click", () => {
        if (timer !== null) return stop();
        if (slider.get() === slider.largest()) slider.set(0);
        button.textContent = "Pause";
        timer = setInterval(() => {
            if (slider.get() === slider.largest()) return stop();
            slider.set(slider.get() + 1);
        }, milliseconds);
    });
}

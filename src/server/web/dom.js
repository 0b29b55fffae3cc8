// SPDX-License-Identifier: MIT
// Makes elements. Text is always set as text, so nothing that a program printed can become markup.

// make("button", {class: "main", onclick: run}, "Run", …)
export function make(name, attributes, ...children) {
    const element = document.createElement(name);
    for (const [key, value] of Object.entries(attributes || {})) {
        if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
        else if (value === true) element.setAttribute(key, "");
        else if (value !== false && value !== null && value !== undefined) element.setAttribute(key, value);
    }
    element.append(...children.filter((child) => child !== null && child !== undefined));
    return element;
}

let fields = 0;

// A control with its label.
export function field(label, control) {
    control.id = control.id || `field-${++fields}`;
    return make("div", { class: "field" }, make("label", { for: control.id }, label), control);
}

export function pairs(object) {
    const list = make("dl");
    for (const [name, value] of Object.entries(object))
        if (value !== undefined && value !== null && value !== "") list.append(make("dt", null, name), make("dd", null, value instanceof Node ? value : String(value)));
    return list;
}

export function statusClass(status) {
    if (status === "ok") return "good";
    return status === "running" || status === "queued" ? "warn" : "bad";
}

// The sequences that colour a terminal's text mean nothing here.
export function withoutEscapes(text) {
    return text.replace(/\x1b\[[0-9;?]*[ -/]*[@-~]|\x1b[@-Z\\-_]/g, "");
}

// Calls the function now and every so often, until the view is left. A page in the background does not ask.
export function every(milliseconds, view, callback) {
    callback();
    const timer = setInterval(() => {
        if (!view.isConnected) clearInterval(timer);
        else if (!document.hidden) callback();
    }, milliseconds);
}

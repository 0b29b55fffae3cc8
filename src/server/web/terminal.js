// SPDX-License-Identifier: MIT
// A terminal in the page: draws a Screen, turns keys into what programs expect, and speaks with a command of a sandbox.
import { bytesOf, call, stream } from "./api.js";
import { make } from "./dom.js";
import { Screen } from "./screen.js";

const HISTORY_MAX = 1000; // lines
const PASTE_MAX = 1 << 20; // bytes that one request can send
const SETTLE = 150; // milliseconds without a change of the size
const LEVELS = [0, 95, 135, 175, 215, 255];
const ARROWS = { ArrowUp: "A", ArrowDown: "B", ArrowRight: "C", ArrowLeft: "D", Home: "H", End: "F" };
const KEYS = { Enter: "\r", Backspace: "\x7f", Tab: "\t", Escape: "\x1b", F1: "\x1bOP", F2: "\x1bOQ", F3: "\x1bOR", F4: "\x1bOS" };
const NUMBERED = { Insert: 2, Delete: 3, PageUp: 5, PageDown: 6, F5: 15, F6: 17, F7: 18, F8: 19, F9: 20, F10: 21, F11: 23, F12: 24 };
const BUTTONS = [["Esc", "Escape"], ["Tab", "Tab"], ["↑", "ArrowUp"], ["↓", "ArrowDown"], ["←", "ArrowLeft"], ["→", "ArrowRight"]];
const FILLER = "\u200b"; // stands in the input, so that a phone's keyboard has something to delete

// The first 16 colours are in the style sheet.
function colour(value) {
    if (typeof value === "string") return value;
    if (value < 16) return `var(--term-${value})`;
    if (value >= 232) return `rgb(${[0, 0, 0].fill(8 + 10 * (value - 232)).join(",")})`;
    const cube = value - 16;
    return `rgb(${[Math.floor(cube / 36), Math.floor(cube / 6) % 6, cube % 6].map((part) => LEVELS[part]).join(",")})`;
}

// The 16 colours are made to be read on the terminal's background. As a background each is halfway to that, so that they can be read on it too.
function backColour(value) {
    return typeof value === "number" && value < 16 ? `color-mix(in srgb, ${colour(value)} 50%, var(--term-back))` : colour(value);
}

function paint(span, style) {
    let fore = style.fore === undefined ? null : colour(style.bold && style.fore < 8 ? style.fore + 8 : style.fore);
    let back = style.back === undefined ? null : backColour(style.back);
    if (back && style.fore === 0) fore = "var(--term-black)";
    if (style.inverse) [fore, back] = [back || "var(--term-back)", fore || "var(--term-text)"];
    if (fore) span.style.color = fore;
    if (back) span.style.backgroundColor = back;
    for (const name of ["bold", "dim", "italic", "underline", "strike", "hidden"]) if (style[name]) span.classList.add(`term-${name}`);
}

// Cells of the same style share an element. Wide letters have one each, as fonts do not give them just two cells.
function drawLine(element, line, cursor) {
    const parts = [];
    for (let i = 0; i < line.letters.length; i++) {
        const [letter, style, at] = [line.letters[i], line.styles[i], i === cursor];
        const wide = line.letters[i + 1] === "";
        const before = parts.at(-1);
        if (letter === "") continue;
        if (before && before.style === style && !before.alone && !wide && !at) before.text += letter;
        else parts.push({ text: letter, style, wide, at, alone: wide || at });
    }
    const last = parts.at(-1);
    if (last && !last.alone && last.style.back === undefined && !last.style.inverse && !last.style.underline) last.text = last.text.trimEnd();
    element.replaceChildren(...parts.map((part) => {
        const span = make("span", { class: [part.wide && "term-wide", part.at && "term-cursor"].filter(Boolean).join(" ") || null }, part.text);
        paint(span, part.style);
        return span;
    }));
    if (parts.length === 0 || (parts.length === 1 && last.text === "")) element.textContent = " "; // so that it is as high as others
}

// What a key sends, or "" if it is not the terminal's.
function keySequence(event, modes) {
    const { key } = event;
    const modifier = 1 + (event.shiftKey ? 1 : 0) + (event.altKey ? 2 : 0) + (event.ctrlKey ? 4 : 0);
    if (ARROWS[key]) return modifier > 1 ? `\x1b[1;${modifier}${ARROWS[key]}` : `\x1b${modes.keys ? "O" : "["}${ARROWS[key]}`;
    if (NUMBERED[key]) return modifier > 1 ? `\x1b[${NUMBERED[key]};${modifier}~` : `\x1b[${NUMBERED[key]}~`;
    if (KEYS[key]) return (event.altKey ? "\x1b" : "") + KEYS[key];
    if (key.length !== 1) return "";
    if (event.ctrlKey) return (event.altKey ? "\x1b" : "") + controlLetter(key);
    return event.altKey ? `\x1b${key}` : "";
}

function controlLetter(key) {
    if (key === " ") return "\0";
    return /^[a-z@[\\\]^_]$/i.test(key) ? String.fromCharCode(key.toUpperCase().charCodeAt(0) & 31) : "";
}

export class Terminal {
    screen = new Screen(24, 80);
    past = make("div");
    now = make("div", { class: "term-now" });
    input = make("textarea", { class: "term-input", rows: 1, autocapitalize: "off", autocomplete: "off", autocorrect: "off", spellcheck: "false",
        "aria-label": "Terminal. Shift and Tab leave it." });
    box = make("div", { class: "terminal" }, this.past, this.now, this.input);
    control = make("button", { "aria-pressed": "false", onclick: () => this.hold(this.control.getAttribute("aria-pressed") !== "true") }, "Ctrl");
    keys = make("div", { class: "term-keys", role: "group", "aria-label": "Keys that a phone does not have" }, this.control,
        ...BUTTONS.map(([label, key]) => make("button", { "aria-label": key, onclick: () => this.press(key) }, label)));
    status = make("span", { role: "status", class: "quiet" });
    controller = null;
    base = ""; // of the requests about the command
    waiting = ""; // input that is not sent yet
    sending = false;
    answers = false; // whether the program's questions are answered

    constructor() {
        this.element = make("div", null, this.keys, this.box);
        this.screen.reply = (text) => { if (this.answers) this.send(text); };
        this.input.value = FILLER;
        this.input.addEventListener("keydown", (event) => this.key(event));
        this.input.addEventListener("input", (event) => { if (!event.isComposing) this.typed(); });
        this.input.addEventListener("compositionend", () => this.typed());
        this.input.addEventListener("paste", (event) => this.paste(event));
        this.box.addEventListener("click", () => { if (getSelection().isCollapsed) this.input.focus({ preventScroll: true }); });
        this.observer = new ResizeObserver(() => this.settle());
        this.observer.observe(this.box);
        this.draw();
    }

    // ---- the command ----

    // Starts a program in a sandbox, here.
    start(sandbox, request) {
        this.answers = true;
        this.measure();
        const value = { ...request, pty: true, rows: this.screen.rows, cols: this.screen.columns };
        return this.follow(sandbox, "POST", `/sandboxes/${sandbox}/commands?stream=1&encoding=base64`, value);
    }

    // Shows a program that runs already. Questions in its old output were answered, so it gets answers only after something was typed.
    connect(sandbox, pid) {
        this.answers = false;
        return this.follow(sandbox, "GET", `/sandboxes/${sandbox}/commands/${pid}?stream=1&encoding=base64`);
    }

    async follow(sandbox, method, path, value) {
        this.leave();
        const controller = this.controller = new AbortController();
        const decoder = new TextDecoder();
        this.screen.reset();
        this.past.replaceChildren();
        this.status.textContent = "connecting …";
        try {
            const command = await stream(method, path, value, (name, data) => {
                if (name === "start") this.begin(sandbox, JSON.parse(data));
                else if (name === "pty") this.print(decoder.decode(bytesOf(data), { stream: true }));
                else if (name === "gap") this.print("\r\n[output was lost]\r\n");
                else if (name === "end") return JSON.parse(data);
            }, controller.signal);
            this.tell(`ended: ${command.result ? command.result.status : ""} ${command.result ? command.result.exit_code : ""}`);
        } catch (error) {
            if (error.name === "AbortError") return;
            this.tell(error.message);
        }
        this.base = "";
    }

    begin(sandbox, command) {
        this.base = `/sandboxes/${sandbox}/commands/${command.pid}`;
        this.tell(`connected to ${command.argv.join(" ").slice(0, 60)}`);
        this.sent = "";
        this.fit();
    }

    // The command goes on.
    leave() {
        if (this.controller) this.controller.abort();
        this.controller = null;
        this.base = this.waiting = "";
    }

    close() {
        this.leave();
        this.observer.disconnect();
    }

    tell(text) {
        this.status.textContent = text;
    }

    // One request at a time, so that the order stays; what is typed meanwhile goes with the next.
    async send(text) {
        this.waiting += text;
        if (this.sending || !this.base) return;
        this.sending = true;
        while (this.waiting && this.base) {
            const piece = this.waiting.slice(0, PASTE_MAX / 4);
            this.waiting = this.waiting.slice(piece.length);
            await call("POST", `${this.base}/stdin`, { data: piece }).catch((error) => this.tell(error.message));
        }
        this.sending = false;
    }

    // ---- keys ----

    key(event) {
        if (event.isComposing || event.metaKey || (event.key === "Tab" && event.shiftKey)) return;
        if (event.shiftKey && (event.key === "PageUp" || event.key === "PageDown")) {
            this.box.scrollTop += (event.key === "PageUp" ? -1 : 1) * this.box.clientHeight;
            event.preventDefault();
            return;
        }
        const copies = event.ctrlKey && (event.shiftKey || (event.key === "c" && !getSelection().isCollapsed));
        const text = copies && event.key.length === 1 ? "" : keySequence(event, this.screen.modes);
        if (!text) return;
        event.preventDefault();
        this.enter(text);
    }

    // A button for a key.
    press(key) {
        this.enter(keySequence({ key }, this.screen.modes));
        this.input.focus({ preventScroll: true });
    }

    hold(on) {
        this.control.setAttribute("aria-pressed", on);
        if (on) this.input.focus({ preventScroll: true });
    }

    // Letters, from whatever keyboard.
    typed() {
        const { value } = this.input;
        this.input.value = FILLER;
        if (value === "") this.enter("\x7f");
        let text = value.replaceAll(FILLER, "").replaceAll("\n", "\r");
        if (text && this.control.getAttribute("aria-pressed") === "true") {
            text = controlLetter(text[0]) + text.slice(1);
            this.hold(false);
        }
        if (text) this.enter(text);
    }

    // Escape sequences in a text that comes from elsewhere would end the bracket, or be commands.
    paste(event) {
        event.preventDefault();
        const text = event.clipboardData.getData("text/plain").slice(0, PASTE_MAX / 4).replace(/\r?\n/g, "\r").replace(/[^\t\r\x20-\x7e\u00a0-\u{10ffff}]/gu, "");
        this.enter(this.screen.modes.paste ? `\x1b[200~${text}\x1b[201~` : text);
    }

    enter(text) {
        this.answers = true;
        this.box.scrollTop = this.box.scrollHeight;
        this.send(text);
    }

    // ---- the size ----

    measure() {
        const probe = make("span", { class: "term-probe" }, "M".repeat(20));
        this.now.append(probe);
        const { width, height } = probe.getBoundingClientRect();
        probe.remove();
        if (width === 0) return;
        const style = getComputedStyle(this.box);
        const inner = this.box.clientWidth - parseFloat(style.paddingLeft) - parseFloat(style.paddingRight);
        const tall = this.box.clientHeight - parseFloat(style.paddingTop) - parseFloat(style.paddingBottom);
        const columns = Math.max(10, Math.min(500, Math.floor(inner / (width / 20) + .01)));
        const rows = Math.max(3, Math.min(200, Math.floor(tall / height + .01)));
        if (rows === this.screen.rows && columns === this.screen.columns) return;
        this.screen.resize(rows, columns);
        this.plan();
    }

    settle() {
        clearTimeout(this.timer);
        this.timer = setTimeout(() => this.fit(), SETTLE);
    }

    fit() {
        this.measure();
        const size = `${this.screen.rows}x${this.screen.columns}`;
        if (!this.base || size === this.sent) return;
        this.sent = size;
        call("POST", `${this.base}/resize`, { rows: this.screen.rows, cols: this.screen.columns }).catch((error) => this.tell(error.message));
    }

    // ---- drawing ----

    print(text) {
        this.screen.write(text);
        this.plan();
    }

    plan() {
        if (this.planned) return;
        this.planned = true;
        requestAnimationFrame(() => {
            this.planned = false;
            this.draw();
        });
    }

    draw() {
        const atEnd = this.box.scrollTop + this.box.clientHeight >= this.box.scrollHeight - 8;
        const added = this.screen.takeHistory().slice(-HISTORY_MAX).map((line) => {
            const element = make("div");
            drawLine(element, line, -1);
            return element;
        });
        this.past.append(...added);
        while (this.past.childElementCount > HISTORY_MAX) this.past.firstElementChild.remove();
        while (this.now.childElementCount > this.screen.rows) this.now.lastElementChild.remove();
        while (this.now.childElementCount < this.screen.rows) this.now.append(make("div"));
        this.screen.lines.forEach((line, row) => {
            drawLine(this.now.children[row], line, this.screen.modes.cursor && row === this.screen.row ? this.screen.column : -1);
        });
        if (atEnd) this.box.scrollTop = this.box.scrollHeight;
    }
}

// SPDX-License-Identifier: MIT
// The screen of a terminal: takes what a program printed, and knows which letters then stand where. It draws nothing.
// It follows xterm as far as shells, editors and pagers need it. Everything that it keeps is bounded, whatever is printed.
const PARAMETERS_MAX = 32;
const NUMBER_MAX = 9999;
const MARKS_MAX = 8; // combining marks on one letter
const HISTORY_MAX = 1000; // lines that left the screen at its top
const PLAIN = Object.freeze({});
const LINES = "◆▒␉␌␍␊°±␤␋┘┐┌└┼⎺⎻─⎼⎽├┤┴┬│≤≥π≠£·"; // for ` to ~ in the character set of line drawing
const MARK = /^[\p{M}\u200b-\u200d\ufe00-\ufe0f]$/u;
const WIDE = [[0x1100, 0x115f], [0x2e80, 0x303e], [0x3041, 0xa4cf], [0xac00, 0xd7a3], [0xf900, 0xfaff], [0xfe30, 0xfe6f],
    [0xff00, 0xff60], [0xffe0, 0xffe6], [0x1f300, 0x1f64f], [0x1f680, 0x1f6ff], [0x1f900, 0x1f9ff], [0x20000, 0x3fffd]];
const FLAGS = { 1: ["bold", true], 2: ["dim", true], 3: ["italic", true], 4: ["underline", true], 7: ["inverse", true], 8: ["hidden", true], 9: ["strike", true],
    23: ["italic", false], 24: ["underline", false], 27: ["inverse", false], 28: ["hidden", false], 29: ["strike", false] };

function width(letter) {
    const code = letter.codePointAt(0);
    return code >= 0x1100 && WIDE.some(([first, last]) => code >= first && code <= last) ? 2 : 1;
}

function bounded(value, least, most) {
    return Math.max(least, Math.min(most, value));
}

// A line has a letter and a style in each cell; the second cell of a wide letter is "".
class Line {
    constructor(columns, style) {
        this.letters = new Array(columns).fill(" ");
        this.styles = new Array(columns).fill(style);
    }

    fill(from, to, style) {
        this.letters.fill(" ", from, to);
        this.styles.fill(style, from, to);
    }

    resize(columns) {
        const missing = Math.max(0, columns - this.letters.length);
        this.letters = this.letters.slice(0, columns).concat(new Array(missing).fill(" "));
        this.styles = this.styles.slice(0, columns).concat(new Array(missing).fill(PLAIN));
    }
}

export class Screen {
    reply = () => {}; // is given the answers to questions of the program

    constructor(rows, columns) {
        [this.rows, this.columns] = [rows, columns];
        this.reset();
    }

    reset() {
        this.history = []; // lines since they were last taken by the one who draws
        this.lines = this.#empty();
        this.main = null; // the lines of the main screen, while the alternate one is shown
        this.saved = { row: 0, column: 0, style: PLAIN };
        this.state = this.#text;
        this.softReset();
        [this.row, this.column] = [0, 0];
    }

    softReset() {
        this.style = PLAIN;
        [this.top, this.bottom] = [0, this.rows - 1];
        this.modes = { wrap: true, cursor: true, insert: false, origin: false, keys: false, paste: false };
        this.sets = [false, false]; // whether G0 and G1 are line drawing
        this.set = 0;
        this.wrapNext = false;
    }

    write(text) {
        for (const letter of text) this.state(letter);
    }

    resize(rows, columns) {
        for (const line of [...this.lines, ...(this.main || [])]) line.resize(columns);
        this.columns = columns;
        // What is above the cursor leaves at the top, so that the cursor's line stays.
        const gone = Math.max(0, this.row + 1 - rows);
        if (!this.main) for (let i = 0; i < gone; i++) this.#remember(this.lines[i]);
        this.lines = this.#fit(this.lines.slice(gone), rows);
        if (this.main) this.main = this.#fit(this.main, rows);
        this.rows = rows;
        [this.top, this.bottom] = [0, rows - 1];
        this.row = bounded(this.row - gone, 0, rows - 1);
        this.column = bounded(this.column, 0, columns - 1);
        this.wrapNext = false;
    }

    takeHistory() {
        return this.history.splice(0);
    }

    #fit(lines, rows) {
        const kept = lines.slice(0, rows);
        while (kept.length < rows) kept.push(new Line(this.columns, PLAIN));
        return kept;
    }

    #empty() {
        return Array.from({ length: this.rows }, () => new Line(this.columns, PLAIN));
    }

    #remember(line) {
        this.history.push(line);
        if (this.history.length > 2 * HISTORY_MAX) this.history.splice(0, this.history.length - HISTORY_MAX);
    }

    // Erased cells have the colour of the background in force.
    #blank() {
        return this.style.back === undefined ? PLAIN : { back: this.style.back };
    }

    // ---- states: each takes one letter ----

    #text(letter) {
        if (letter >= " " && letter !== "\x7f") {
            if (letter < "\x80" || letter > "\x9f") this.#put(letter);
        } else if (letter === "\x1b") this.state = this.#escape;
        else this.#control(letter);
    }

    #control(letter) {
        if (letter === "\r") this.#move(this.row, 0);
        else if (letter === "\n" || letter === "\v" || letter === "\f") this.#down();
        else if (letter === "\b") this.#move(this.row, this.column - 1);
        else if (letter === "\t") this.#move(this.row, (this.column & ~7) + 8);
        else if (letter === "\x0e") this.set = 1;
        else if (letter === "\x0f") this.set = 0;
    }

    #escape(letter) {
        this.state = this.#text;
        if (letter === "[") {
            this.parameters = [0];
            this.prefix = this.between = "";
            this.state = this.#sequence;
        } else if ("]PX^_".includes(letter)) this.state = this.#string;
        else if ("()*+".includes(letter)) {
            this.chosen = letter;
            this.state = this.#chooseSet;
        } else if ("#% ".includes(letter)) this.state = this.#skipOne;
        else ESCAPES[letter]?.(this);
    }

    #chooseSet(letter) {
        if (this.chosen === "(") this.sets[0] = letter === "0";
        else if (this.chosen === ")") this.sets[1] = letter === "0";
        this.state = this.#text;
    }

    #skipOne() {
        this.state = this.#text;
    }

    // Titles, clipboard requests and the like: nothing of them is kept or obeyed.
    #string(letter) {
        if (letter === "\x07" || letter === "\x18" || letter === "\x1a") this.state = this.#text;
        else if (letter === "\x1b") this.state = this.#stringEnd;
    }

    #stringEnd(letter) {
        if (letter === "\\") this.state = this.#text;
        else this.#escape(letter);
    }

    #sequence(letter) {
        const last = this.parameters.length - 1;
        if (letter >= "0" && letter <= "9") this.parameters[last] = Math.min(NUMBER_MAX, this.parameters[last] * 10 + Number(letter));
        else if (letter === ";" || letter === ":") {
            if (this.parameters.length < PARAMETERS_MAX) this.parameters.push(0);
        } else if (letter >= "<" && letter <= "?") this.prefix = letter;
        else if (letter >= " " && letter <= "/") this.between = letter;
        else if (letter === "\x1b") this.state = this.#escape;
        else if (letter < " ") this.#control(letter);
        else {
            this.state = this.#text;
            if (letter >= "@" && letter <= "~") SEQUENCES[this.prefix + this.between + letter]?.(this, this.parameters, Math.max(1, this.parameters[0]));
        }
    }

    // ---- letters and the cursor ----

    #put(given) {
        if (given >= "\u0300" && MARK.test(given)) return this.#addMark(given);
        const letter = this.sets[this.set] && given >= "`" && given <= "~" ? LINES[given.charCodeAt(0) - 96] : given;
        const cells = Math.min(width(letter), this.columns);
        if (this.modes.wrap && (this.wrapNext || this.column + cells > this.columns)) {
            this.column = 0;
            this.#down();
        }
        this.column = Math.min(this.column, this.columns - cells);
        if (this.modes.insert) this.insertCells(cells);
        const line = this.lines[this.row];
        this.#splitWide(line, this.column);
        this.#splitWide(line, this.column + cells);
        for (let i = 0; i < cells; i++) {
            line.letters[this.column + i] = i === 0 ? letter : "";
            line.styles[this.column + i] = this.style;
        }
        this.last = given;
        this.wrapNext = this.column + cells >= this.columns;
        this.column = Math.min(this.column + cells, this.columns - 1);
    }

    // A wide letter of which one half is overwritten loses the other one too.
    #splitWide(line, column) {
        if (line.letters[column] === "") line.letters[column] = line.letters[column - 1] = " ";
    }

    #addMark(mark) {
        const { letters } = this.lines[this.row];
        let at = this.wrapNext ? this.column : this.column - 1;
        while (at > 0 && letters[at] === "") at--;
        if (at >= 0 && [...letters[at]].length <= MARKS_MAX) letters[at] += mark;
    }

    #move(row, column) {
        this.row = bounded(row, 0, this.rows - 1);
        this.column = bounded(column, 0, this.columns - 1);
        this.wrapNext = false;
    }

    // By so many rows; the margins stop a cursor that is between them.
    step(rows) {
        const [top, bottom] = [this.row < this.top ? 0 : this.top, this.row > this.bottom ? this.rows - 1 : this.bottom];
        this.#move(bounded(this.row + rows, top, bottom), this.column);
    }

    // To numbers that begin with 1, below the top margin if the program wants that.
    place(row, column) {
        if (this.modes.origin) this.#move(Math.min(this.top + row - 1, this.bottom), column - 1);
        else this.#move(row - 1, column - 1);
    }

    toColumn(column) {
        this.#move(this.row, column);
    }

    toRow(row) {
        this.place(row, this.column + 1);
    }

    #down() {
        this.wrapNext = false;
        if (this.row === this.bottom) this.scroll(1);
        else if (this.row < this.rows - 1) this.row++;
    }

    newLine() {
        this.#down();
        this.column = 0;
    }

    index() {
        this.#down();
    }

    reverseIndex() {
        if (this.row === this.top) this.scroll(-1);
        else this.#move(this.row - 1, this.column);
    }

    save() {
        this.saved = { row: this.row, column: this.column, style: this.style };
    }

    restore() {
        this.style = this.saved.style;
        this.#move(this.saved.row, this.saved.column);
    }

    // ---- erasing and moving ----

    // Moves the lines between the margins up, or down if the count is negative; `from` takes the place of the top margin.
    scroll(count, from = this.top) {
        const times = Math.min(Math.abs(count), this.bottom - from + 1);
        for (let i = 0; i < times; i++) {
            const [gone] = this.lines.splice(count > 0 ? from : this.bottom, 1);
            this.lines.splice(count > 0 ? this.bottom : from, 0, new Line(this.columns, this.#blank()));
            if (count > 0 && from === 0 && !this.main) this.#remember(gone);
        }
    }

    // Inserts lines at the cursor, or deletes them if the count is negative.
    insertLines(count) {
        if (this.row >= this.top && this.row <= this.bottom) this.scroll(-count, this.row);
        this.toColumn(0);
    }

    eraseScreen(how) {
        const whole = how >= 2;
        for (let row = 0; row < this.rows; row++)
            if (whole || (how === 0 ? row > this.row : row < this.row)) this.lines[row].fill(0, this.columns, this.#blank());
        if (!whole) this.eraseLine(how);
    }

    eraseLine(how) {
        this.lines[this.row].fill(how === 0 ? this.column : 0, how === 1 ? this.column + 1 : this.columns, this.#blank());
        this.wrapNext = false;
    }

    eraseCells(count) {
        this.lines[this.row].fill(this.column, this.column + count, this.#blank());
    }

    insertCells(count) {
        this.#shift(0, Math.min(count, this.columns - this.column));
    }

    deleteCells(count) {
        this.#shift(Math.min(count, this.columns - this.column), 0);
    }

    // Removes cells at the cursor or adds blank ones there; at the end of the line the same number comes or goes.
    #shift(removed, added) {
        const line = this.lines[this.row], blank = this.#blank();
        line.letters.splice(this.column, removed, ...new Array(added).fill(" "));
        line.styles.splice(this.column, removed, ...new Array(added).fill(blank));
        for (let i = 0; i < removed; i++) {
            line.letters.push(" ");
            line.styles.push(blank);
        }
        line.letters.length = line.styles.length = this.columns;
    }

    repeat(count) {
        for (let i = 0; this.last && i < Math.min(count, this.columns * this.rows); i++) this.#put(this.last);
    }

    setMargins(top, bottom) {
        const last = bottom === 0 ? this.rows : Math.min(bottom, this.rows);
        if (Math.max(1, top) >= last) return;
        [this.top, this.bottom] = [Math.max(1, top) - 1, last - 1];
        this.place(1, 1);
    }

    // ---- modes, colours, questions ----

    setModes(numbers, on) {
        const names = { 1: "keys", 6: "origin", 7: "wrap", 25: "cursor", 2004: "paste" };
        for (const number of numbers) {
            if (names[number]) this.modes[names[number]] = on;
            if (number === 6) this.place(1, 1);
            if (number === 47 || number === 1047 || number === 1049) this.#alternate(on, number === 1049);
        }
    }

    #alternate(on, withCursor) {
        if (on === Boolean(this.main)) return;
        if (on) {
            if (withCursor) this.save();
            this.main = this.lines;
            this.lines = this.#empty();
        } else {
            this.lines = this.main;
            this.main = null;
            if (withCursor) this.restore();
        }
        [this.top, this.bottom] = [0, this.rows - 1];
    }

    setStyle(numbers) {
        let style = { ...this.style };
        for (let i = 0; i < numbers.length; i++) {
            const number = numbers[i], tens = Math.floor(number / 10), unit = number % 10;
            if (number === 0) style = {};
            else if (number === 22) style.bold = style.dim = false;
            else if (FLAGS[number]) style[FLAGS[number][0]] = FLAGS[number][1];
            else if (number === 38 || number === 48) {
                const taken = numbers[i + 1] === 5 ? 2 : 4;
                style[number === 38 ? "fore" : "back"] = taken === 2 ? numbers[i + 2] & 255 : `rgb(${numbers.slice(i + 2, i + 5).map((part) => part & 255).join(",")})`;
                i += taken;
            } else if (number === 39) style.fore = undefined;
            else if (number === 49) style.back = undefined;
            else if (tens === 3 || tens === 9) style.fore = unit + (tens === 9 ? 8 : 0);
            else if (tens === 4 || tens === 10) style.back = unit + (tens === 10 ? 8 : 0);
        }
        this.style = Object.keys(style).some((name) => style[name] !== undefined && style[name] !== false) ? Object.freeze(style) : PLAIN;
    }

    answer(question) {
        if (question === 5) this.reply("\x1b[0n");
        else if (question === 6) this.reply(`\x1b[${this.row + 1 - (this.modes.origin ? this.top : 0)};${this.column + 1}R`);
    }
}

const ESCAPES = {
    7: (s) => s.save(), 8: (s) => s.restore(), D: (s) => s.index(), E: (s) => s.newLine(), M: (s) => s.reverseIndex(), c: (s) => s.reset(),
};

// By prefix and final letter: the screen, the parameters, and the first of them but at least 1.
const SEQUENCES = {
    A: (s, p, n) => s.step(-n), B: (s, p, n) => s.step(n), e: (s, p, n) => s.step(n),
    C: (s, p, n) => s.toColumn(s.column + n), a: (s, p, n) => s.toColumn(s.column + n), D: (s, p, n) => s.toColumn(s.column - n),
    E: (s, p, n) => { s.step(n); s.toColumn(0); }, F: (s, p, n) => { s.step(-n); s.toColumn(0); },
    G: (s, p, n) => s.toColumn(n - 1), "`": (s, p, n) => s.toColumn(n - 1), d: (s, p, n) => s.toRow(n),
    H: (s, p, n) => s.place(n, Math.max(1, p[1] || 0)), f: (s, p, n) => s.place(n, Math.max(1, p[1] || 0)),
    I: (s, p, n) => s.toColumn((s.column & ~7) + 8 * n), Z: (s, p, n) => s.toColumn(((s.column + 7) & ~7) - 8 * n),
    J: (s, p) => s.eraseScreen(p[0]), K: (s, p) => s.eraseLine(p[0]), X: (s, p, n) => s.eraseCells(Math.min(n, s.columns - s.column)),
    L: (s, p, n) => s.insertLines(n), M: (s, p, n) => s.insertLines(-n), "@": (s, p, n) => s.insertCells(n), P: (s, p, n) => s.deleteCells(n),
    S: (s, p, n) => s.scroll(n), T: (s, p, n) => s.scroll(-n), b: (s, p, n) => s.repeat(n),
    m: (s, p) => s.setStyle(p), r: (s, p) => s.setMargins(p[0], p[1] || 0), s: (s) => s.save(), u: (s) => s.restore(),
    h: (s, p) => { if (p.includes(4)) s.modes.insert = true; }, l: (s, p) => { if (p.includes(4)) s.modes.insert = false; },
    "?h": (s, p) => s.setModes(p, true), "?l": (s, p) => s.setModes(p, false),
    n: (s, p) => s.answer(p[0]), c: (s) => s.reply("\x1b[?62;22c"), ">c": (s) => s.reply("\x1b[>0;10;0c"), "!p": (s) => s.softReset(),
};

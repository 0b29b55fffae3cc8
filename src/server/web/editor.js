// SPDX-License-Identifier: MIT
// A text field that shows its words in colours: a transparent text area over a coloured copy.
import { make } from "./dom.js";

const C_COMMENTS = "\\/\\/[^\\n]*|\\/\\*[\\s\\S]*?(?:\\*\\/|$)";
const HASH_COMMENTS = "#[^\\n]*";
const DASH_COMMENTS = "--[^\\n]*";
const C_WORDS = "auto break case char const continue default do double else enum extern float for goto if inline int long register return short signed sizeof static struct switch typedef union unsigned void volatile while";

// For each language: how comments look, and its keywords.
const LANGUAGES = {
    python: [HASH_COMMENTS, "and as assert async await break class continue def del elif else except False finally for from global if import in is lambda None nonlocal not or pass raise return True try while with yield"],
    node: [C_COMMENTS, "async await break case catch class const continue default delete do else export extends false finally for function if import in instanceof let new null of return static super switch this throw true try typeof undefined var void while yield"],
    bash: [HASH_COMMENTS, "case do done elif else esac export fi for function if in local return set then until while"],
    c: [C_COMMENTS, C_WORDS],
    "c++": [C_COMMENTS, `${C_WORDS} bool catch class constexpr delete explicit false friend namespace new nullptr operator private protected public template this throw true try typename using virtual`],
    go: [C_COMMENTS, "break case chan const continue default defer else fallthrough false for func go goto if import interface map nil package range return select struct switch true type var"],
    java: [C_COMMENTS, "abstract boolean break byte case catch char class const continue default do double else enum extends false final finally float for if implements import instanceof int interface long new null package private protected public return short static super switch this throw throws true try var void while"],
    rust: [C_COMMENTS, "as async await break const continue crate else enum extern false fn for if impl in let loop match mod move mut pub ref return self static struct super trait true type unsafe use where while"],
    ruby: [HASH_COMMENTS, "and begin break case class def do else elsif end ensure false for if in module next nil not or redo rescue retry return self super then true undef unless until when while yield"],
    php: [`${C_COMMENTS}|${HASH_COMMENTS}`, "array as break case catch class const continue default do echo else elseif extends false finally for foreach function if implements interface namespace new null private protected public return static switch throw true try use while"],
    perl: [HASH_COMMENTS, "die do else elsif eval for foreach if last local my next our package print return sub undef unless until use while"],
    lua: [DASH_COMMENTS, "and break do else elseif end false for function goto if in local nil not or repeat return then true until while"],
    r: [HASH_COMMENTS, "break else FALSE for function if in NA next NULL repeat return TRUE while"],
    sqlite: [DASH_COMMENTS, "AND AS BY CREATE DELETE DISTINCT DROP FROM GROUP HAVING INSERT INTO JOIN LEFT LIMIT NOT NULL ON OR ORDER PRIMARY KEY SELECT SET TABLE UPDATE VALUES WHERE WITH"],
};
const STRINGS = "\"(?:\\\\[\\s\\S]|[^\"\\\\\\n])*\"?|'(?:\\\\[\\s\\S]|[^'\\\\\\n])*'?|`(?:\\\\[\\s\\S]|[^`\\\\])*`?";
const LONG_STRINGS = "\"\"\"[\\s\\S]*?(?:\"\"\"|$)|'''[\\s\\S]*?(?:'''|$)";
const COLOURED_MAX = 200000; // longer texts stay without colours

function pattern(language) {
    const [comments, words] = LANGUAGES[language] || ["(?!)", ""];
    const flags = language === "sqlite" ? "gi" : "g";
    const strings = language === "python" ? `${LONG_STRINGS}|${STRINGS}` : STRINGS;
    return new RegExp(`(?<comment>${comments})|(?<string>${strings})|(?<number>\\b\\d[\\w.]*)|(?<keyword>\\b(?:${words.replaceAll(" ", "|") || "(?!)"})\\b)`, flags);
}

// Returns the text as nodes, with spans for what has a colour.
export function colour(text, language) {
    const nodes = [];
    let end = 0;
    if (text.length <= COLOURED_MAX) {
        for (const match of text.matchAll(pattern(language))) {
            if (!match[0]) continue;
            const [kind] = Object.entries(match.groups).find(([, value]) => value !== undefined);
            nodes.push(text.slice(end, match.index), make("span", { class: kind }, match[0]));
            end = match.index + match[0].length;
        }
    }
    nodes.push(text.slice(end));
    return nodes;
}

export class Editor {
    #copy = make("pre", { "aria-hidden": "true" });
    #area = make("textarea", { class: "code", spellcheck: "false", autocapitalize: "off", autocomplete: "off", wrap: "off", "aria-label": "Code. Tab indents; press Escape first to leave the field with Tab" });
    #language = "";
    #leaving = false;

    constructor() {
        this.element = make("div", { class: "editor" }, this.#copy, this.#area);
        this.#area.addEventListener("input", () => this.#draw());
        this.#area.addEventListener("scroll", () => this.#copy.scrollTo(this.#area.scrollLeft, this.#area.scrollTop));
        this.#area.addEventListener("keydown", (event) => this.#key(event));
    }

    get value() {
        return this.#area.value;
    }

    set value(text) {
        this.#area.value = text;
        this.#draw();
    }

    set language(name) {
        this.#language = name;
        this.#draw();
    }

    #draw() {
        this.#copy.replaceChildren(...colour(this.#area.value, this.#language), "\n");
        this.#copy.scrollTo(this.#area.scrollLeft, this.#area.scrollTop);
    }

    // Tab indents, unless Escape was pressed before: then it goes to the next field.
    #key(event) {
        if (event.key === "Escape") {
            this.#leaving = true;
        } else if (event.key === "Tab" && !event.shiftKey && !event.ctrlKey && !this.#leaving) {
            event.preventDefault();
            this.#area.setRangeText("    ", this.#area.selectionStart, this.#area.selectionEnd, "end");
            this.#draw();
        } else if (event.key !== "Shift") {
            this.#leaving = false;
        }
    }
}

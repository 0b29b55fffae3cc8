// SPDX-License-Identifier: MIT
// The view to run code in.
import { call, execute } from "./api.js";
import { field, make, pairs, statusClass, withoutEscapes } from "./dom.js";
import { Editor } from "./editor.js";

const SAMPLES = {
    python: "import platform\n\nprint(\"hello from Python\", platform.python_version())\n",
    node: "console.log(\"hello from Node\", process.version);\n",
    bash: "echo \"hello from Bash $BASH_VERSION\"\n",
    c: "#include <stdio.h>\n\nint main(void)\n{\n    puts(\"hello from C\");\n}\n",
    "c++": "#include <iostream>\n\nint main()\n{\n    std::cout << \"hello from C++\\n\";\n}\n",
    go: "package main\n\nimport \"fmt\"\n\nfunc main() {\n\tfmt.Println(\"hello from Go\")\n}\n",
    java: "class Main {\n    public static void main(String[] args) {\n        System.out.println(\"hello from Java\");\n    }\n}\n",
    rust: "fn main() {\n    println!(\"hello from Rust\");\n}\n",
    ruby: "puts \"hello from Ruby #{RUBY_VERSION}\"\n",
    php: "<?php\necho \"hello from PHP \", PHP_VERSION, \"\\n\";\n",
    perl: "print \"hello from Perl $^V\\n\";\n",
    lua: "print(\"hello from \" .. _VERSION)\n",
    r: "cat(\"hello from\", R.version.string, \"\\n\")\n",
    sqlite: "SELECT 'hello from SQLite ' || sqlite_version();\n",
};
const OUTPUT_MAX = 1 << 20; // more is not shown

// What was typed stays when another view is looked at.
const state = { language: "", code: {}, stdin: "", timeout: "", memory: "" };

// For the list of executions: shows old code here.
export function openCode(language, code) {
    state.language = language;
    state.code[language] = code;
    location.hash = "#run";
}

class RunView {
    editor = new Editor();
    languages = make("select", { onchange: () => this.choose(this.languages.value) });
    stdin = make("textarea", { rows: 3, oninput: () => { state.stdin = this.stdin.value; } });
    timeout = make("input", { size: 6, placeholder: "default", oninput: () => { state.timeout = this.timeout.value; } });
    memory = make("input", { type: "number", min: 8, placeholder: "default", oninput: () => { state.memory = this.memory.value; } });
    start = make("button", { class: "main", onclick: () => this.run() }, "Run");
    stop = make("button", { disabled: true, onclick: () => this.controller.abort() }, "Stop");
    output = make("pre", { class: "output", tabindex: 0, role: "log", "aria-label": "Output" });
    summary = make("div", { role: "status" });
    controller = null;

    constructor() {
        const left = make("div", null,
            make("div", { class: "row" }, field("Language", this.languages), field("Time limit", this.timeout), field("Memory, MiB", this.memory), this.start, this.stop),
            this.editor.element,
            field("Standard input", this.stdin));
        const right = make("div", null, make("h2", null, "Output"), this.output, this.summary);
        this.element = make("div", { class: "halves" }, left, right);
        this.element.addEventListener("keydown", (event) => this.key(event));
        this.editor.element.addEventListener("input", () => { state.code[state.language] = this.editor.value; });
        [this.stdin.value, this.timeout.value, this.memory.value] = [state.stdin, state.timeout, state.memory];
    }

    async load() {
        const { runtimes } = await call("GET", "/runtimes");
        const usable = runtimes.filter((runtime) => runtime.available && !runtime.agent);
        this.languages.replaceChildren(...usable.map((runtime) => make("option", { value: runtime.name }, runtime.version ? `${runtime.name} ${runtime.version}` : runtime.name)));
        if (usable.length === 0) this.summary.replaceChildren(make("p", { class: "bad" }, "No language is available. See Server for what is missing."));
        else this.choose(usable.some((runtime) => runtime.name === state.language) ? state.language : usable[0].name);
    }

    choose(language) {
        state.language = this.languages.value = language;
        this.editor.language = language;
        this.editor.value = state.code[language] ?? SAMPLES[language] ?? "";
    }

    key(event) {
        if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey)) return;
        event.preventDefault();
        if (!this.start.disabled) this.run();
    }

    request() {
        const request = { language: state.language, code: this.editor.value };
        if (state.stdin) request.stdin = state.stdin;
        if (state.timeout) request.timeout = /^\d+$/.test(state.timeout) ? `${state.timeout}s` : state.timeout;
        if (state.memory) request.limits = { memory_mb: Number(state.memory) };
        return request;
    }

    async run() {
        this.controller = new AbortController();
        this.output.replaceChildren();
        this.shown = 0;
        this.busy(true);
        this.summary.replaceChildren(make("p", { class: "warn" }, "running …"));
        try {
            this.finish(await execute(this.request(), (stream, text) => this.print(stream, text), this.controller.signal));
        } catch (error) {
            const text = error.name === "AbortError" ? "stopped" : error.message;
            this.summary.replaceChildren(make("p", { class: "bad" }, text));
        }
        this.busy(false);
    }

    busy(running) {
        this.start.disabled = running;
        this.stop.disabled = !running;
    }

    print(stream, text) {
        const room = OUTPUT_MAX - this.shown;
        if (room <= 0) return;
        this.shown += text.length;
        const atEnd = this.output.scrollTop + this.output.clientHeight >= this.output.scrollHeight - 4;
        const cut = text.length > room ? `${text.slice(0, room)}\n[the rest is not shown]` : text;
        this.output.append(make("span", { class: stream }, withoutEscapes(cut)));
        if (atEnd) this.output.scrollTop = this.output.scrollHeight;
    }

    finish(result) {
        const usage = result.resource_usage || {};
        const cut = Object.entries(result.truncated || {}).filter(([, is]) => is).map(([name]) => name);
        this.summary.replaceChildren(pairs({
            Status: make("span", { class: statusClass(result.status) }, result.status),
            "Exit code": result.exit_code,
            Message: result.message,
            Duration: result.duration,
            "CPU time": usage.cpu_time_ms === undefined ? "" : `${usage.cpu_time_ms} ms`,
            Memory: usage.memory_peak_mb === undefined ? "" : `${usage.memory_peak_mb} MiB`,
            "Cut off": cut.join(", "),
            Events: eventList(result.security_events),
            "Not enforced": (result.unenforced || []).join("; "),
        }));
    }
}

export function eventList(events) {
    if (!events || events.length === 0) return "";
    return make("ul", null, ...events.map((event) => make("li", { class: event.severity === "low" ? "" : "warn" }, `${event.severity}: ${event.type}: ${event.detail}`)));
}

export function view() {
    const run = new RunView();
    run.ready = run.load();
    return run;
}

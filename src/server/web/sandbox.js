// SPDX-License-Identifier: MIT
// One sandbox: its state, a terminal, its commands with their output, and its files.
import { bytesOf, call, stream } from "./api.js";
import { every, field, make, pairs, statusClass, withoutEscapes } from "./dom.js";
import { FilesPanel } from "./files.js";
import { Terminal } from "./terminal.js";

const PERIOD = 3000;
const OUTPUT_MAX = 1 << 20; // more is not shown

// For a field in which a bare number means seconds.
export function duration(text) {
    return /^\d+$/.test(text) ? `${text}s` : text;
}

export function stateClass(state) {
    return state === "running" ? "good" : "warn";
}

export function timeLeft(seconds) {
    const [hours, minutes] = [Math.floor(seconds / 3600), Math.floor(seconds / 60) % 60];
    if (hours > 0) return `${hours} h ${minutes} min`;
    return minutes > 0 ? `${minutes} min ${seconds % 60} s` : `${seconds} s`;
}

export function memory(sandbox, metrics) {
    const limit = `${sandbox.limits.memory_mb} MiB`;
    return metrics && metrics.memory_bytes > 0 ? `${(metrics.memory_bytes / (1 << 20)).toFixed(1)} of ${limit}` : `at most ${limit}`;
}

function network(sandbox) {
    if (!sandbox.network) return "none";
    return sandbox.allow.length > 0 ? sandbox.allow.join(", ") : "all public hosts";
}

// The commands of a sandbox, a line to run one, and the output of one.
class CommandsPanel {
    line = make("input", { class: "code", size: 30, placeholder: "ls -l", spellcheck: "false", autocapitalize: "off" });
    rows = make("tbody");
    title = make("h3", { hidden: true });
    output = make("pre", { class: "output", tabindex: 0, hidden: true, role: "log", "aria-label": "Output of the command" });
    summary = make("div", { role: "status" });
    controller = null;

    constructor(id, openTerminal) {
        this.id = id;
        this.openTerminal = openTerminal;
        const head = ["Command", "State", ""].map((name) => make("th", { scope: "col" }, name));
        this.heading = make("h2", { tabindex: -1 }, "Commands");
        this.element = make("section", { "aria-label": "Commands" }, this.heading,
            make("form", { class: "row", onsubmit: (event) => { event.preventDefault(); this.run(); } }, field("Run a line", this.line), make("button", null, "Run")),
            make("div", { class: "scroll short" }, make("table", null, make("thead", null, make("tr", null, ...head)), this.rows)),
            this.title, this.output, this.summary);
    }

    async look() {
        const { commands } = await call("GET", `/sandboxes/${this.id}/commands`);
        const focused = document.activeElement && document.activeElement.dataset.command;
        this.rows.replaceChildren(...commands.toReversed().map((command) => this.row(command)));
        if (commands.length === 0) this.rows.append(make("tr", null, make("td", { colspan: 3, class: "quiet" }, "none")));
        if (focused) this.rows.querySelector(`[data-command="${CSS.escape(focused)}"]`)?.focus();
    }

    row(command) {
        const words = command.argv.length === 3 && command.argv[1] === "-c" ? command.argv[2] : command.argv.join(" ");
        const button = (label, action) => make("button", { "data-command": `${label}-${command.pid}`, "aria-label": `${label}: command ${command.pid}`, onclick: action }, label);
        return make("tr", null,
            make("td", { class: "code" }, words.length > 80 ? `${words.slice(0, 80)}…` : words),
            make("td", { class: command.running ? "good" : "quiet" }, command.running ? "running" : "ended"),
            make("td", { class: "buttons" },
                command.running && command.pty ? button("Terminal", () => this.openTerminal(command.pid)) : button("Show", () => this.show(command.pid, words)),
                command.running ? button("End", () => this.end(command.pid)) : null));
    }

    async run() {
        const words = this.line.value;
        if (!words.trim()) return;
        try {
            const { pid } = await call("POST", `/sandboxes/${this.id}/commands`, { cmd: words, background: true });
            this.line.value = "";
            this.show(pid, words);
        } catch (error) {
            this.fail(error);
        }
        await this.look();
    }

    async end(pid) {
        await call("DELETE", `/sandboxes/${this.id}/commands/${pid}`).catch((error) => this.fail(error));
        await this.look();
    }

    fail(error) {
        this.summary.replaceChildren(make("p", { class: "bad" }, error.message));
    }

    // Output that is kept, then what comes, up to the end of the command.
    async show(pid, words) {
        this.close();
        const controller = this.controller = new AbortController();
        const decoders = { stdout: new TextDecoder(), stderr: new TextDecoder(), pty: new TextDecoder() };
        this.title.textContent = words;
        this.output.replaceChildren();
        this.summary.replaceChildren();
        this.title.hidden = this.output.hidden = false;
        this.shown = 0;
        try {
            const command = await stream("GET", `/sandboxes/${this.id}/commands/${pid}?stream=1&encoding=base64`, undefined, (name, data) => {
                if (name === "end") return JSON.parse(data);
                if (name === "gap") this.print("stderr", "\n[output was lost]\n");
                else if (decoders[name]) this.print(name, decoders[name].decode(bytesOf(data), { stream: true }));
            }, controller.signal);
            this.finish(command.result || {});
        } catch (error) {
            if (error.name !== "AbortError") this.fail(error);
        }
    }

    print(name, text) {
        const room = OUTPUT_MAX - this.shown;
        if (room <= 0) return;
        this.shown += text.length;
        const atEnd = this.output.scrollTop + this.output.clientHeight >= this.output.scrollHeight - 4;
        this.output.append(make("span", { class: name }, withoutEscapes(text.slice(0, room))));
        if (atEnd) this.output.scrollTop = this.output.scrollHeight;
    }

    finish(result) {
        const usage = result.resource_usage || {};
        this.summary.replaceChildren(pairs({
            Status: result.status && make("span", { class: statusClass(result.status) }, result.status),
            "Exit code": result.exit_code,
            Message: result.message,
            Duration: result.duration,
            Memory: usage.memory_peak_mb === undefined ? "" : `${usage.memory_peak_mb} MiB`,
        }));
        this.look().catch(() => {});
    }

    close() {
        if (this.controller) this.controller.abort();
    }
}

export class SandboxView {
    name = make("h2");
    facts = make("div");
    pause = make("button", { onclick: () => this.act("POST", this.state === "paused" ? "/resume" : "/pause") }, "Pause");
    timeout = make("input", { size: 5, value: "1h" });
    extend = make("button", { onclick: () => this.act("POST", "/timeout", { timeout: duration(this.timeout.value) }) }, "Set the deadline");
    end = make("button", { onclick: () => this.finish() }, "End");
    program = make("input", { class: "code", size: 12, value: "/bin/bash", spellcheck: "false", autocapitalize: "off" });
    problem = make("p", { class: "bad", role: "alert" });
    terminal = new Terminal();

    constructor(id) {
        this.id = id;
        this.path = `/sandboxes/${encodeURIComponent(id)}`;
        this.commands = new CommandsPanel(encodeURIComponent(id), (pid) => this.connect(pid));
        this.files = new FilesPanel(encodeURIComponent(id));
        const skip = make("button", { class: "skip", onclick: () => this.commands.heading.focus() }, "Skip the terminal");
        this.element = make("div", null,
            make("p", null, make("a", { href: "#sandboxes" }, "All sandboxes")),
            this.name, this.facts,
            make("div", { class: "row" }, this.pause, field("Time from now", this.timeout), this.extend, this.end),
            this.problem,
            make("section", { "aria-label": "Terminal" },
                make("h2", null, "Terminal"),
                make("form", { class: "row", onsubmit: (event) => { event.preventDefault(); this.open(); } },
                    field("Program", this.program), make("button", { class: "main" }, "Open a terminal"), this.terminal.status),
                skip, this.terminal.element),
            make("div", { class: "halves" }, this.commands.element, this.files.element));
    }

    async load() {
        await this.look();
        await Promise.all([this.commands.look(), this.files.look()].map((part) => part.catch((error) => this.fail(error))));
        every(PERIOD, this.element, () => this.refresh());
    }

    // What a view leaves running, when another one takes its place.
    close() {
        this.terminal.close();
        this.commands.close();
    }

    async look() {
        const [sandbox, metrics] = await Promise.all([call("GET", this.path), call("GET", `${this.path}/metrics`).catch(() => null)]);
        this.state = sandbox.state;
        this.pause.textContent = sandbox.state === "paused" ? "Resume" : "Pause";
        this.name.textContent = sandbox.name || `Sandbox ${sandbox.id}`;
        this.facts.replaceChildren(pairs({
            Id: sandbox.id,
            State: make("span", { class: stateClass(sandbox.state) }, sandbox.state),
            Runtime: sandbox.language,
            "Ends in": timeLeft(sandbox.seconds_left),
            Memory: memory(sandbox, metrics),
            Processes: metrics && metrics.pids > 0 ? `${metrics.pids} of ${metrics.pids_limit}` : `at most ${sandbox.limits.pids_limit}`,
            Network: network(sandbox),
            "Not enforced": (sandbox.unenforced || []).join("; "),
        }));
    }

    async refresh() {
        try {
            await Promise.all([this.look(), this.state === "running" ? this.commands.look() : null]);
        } catch (error) {
            if (error.status === 404 || error.status === 410) this.gone(error);
        }
    }

    gone(error) {
        this.fail(error);
        this.facts.replaceChildren();
        for (const button of this.element.querySelectorAll("button, input")) button.disabled = true;
    }

    fail(error) {
        this.problem.textContent = error.message;
    }

    async act(method, path, value) {
        this.problem.textContent = "";
        try {
            await call(method, this.path + path, value);
            await this.look();
        } catch (error) {
            this.fail(error);
        }
    }

    async finish() {
        try {
            await call("DELETE", this.path);
            location.hash = "#sandboxes";
        } catch (error) {
            this.fail(error);
        }
    }

    open() {
        const argv = this.program.value.split(/\s+/).filter(Boolean);
        this.terminal.start(encodeURIComponent(this.id), { argv });
        this.terminal.input.focus();
    }

    connect(pid) {
        this.terminal.connect(encodeURIComponent(this.id), pid);
        this.terminal.input.focus();
    }
}

// SPDX-License-Identifier: MIT
// The view of sandboxes: the list of them, and a form for a new one. One of them is shown by sandbox.js.
import { call } from "./api.js";
import { every, field, make } from "./dom.js";
import * as sandbox from "./sandbox.js";

const METRICS_MAX = 20; // how many sandboxes are asked for their memory each time
const PERIOD = 4000;

class SandboxesView {
    language = make("select");
    label = make("input", { maxlength: 128, size: 12, placeholder: "none" });
    timeout = make("input", { size: 6, placeholder: "default" });
    network = make("select", null, make("option", { value: "" }, "none"), make("option", { value: "some" }, "these hosts"), make("option", { value: "all" }, "all public hosts"));
    hosts = make("input", { size: 24, placeholder: "pypi.org *.example.com", spellcheck: "false" });
    hostsField = field("Hosts", this.hosts);
    problem = make("p", { class: "bad", role: "alert" });
    rows = make("tbody");

    constructor() {
        const head = ["Name", "Runtime", "State", "Ends in", "Memory", "Commands", ""].map((name) => make("th", { scope: "col" }, name));
        this.network.addEventListener("change", () => this.chooseNetwork());
        this.chooseNetwork();
        this.element = make("div", null,
            make("form", { class: "row", onsubmit: (event) => { event.preventDefault(); this.create(); } },
                field("Runtime", this.language), field("Name", this.label), field("Time", this.timeout), field("Network", this.network), this.hostsField,
                make("button", { class: "main" }, "Create")),
            this.problem,
            make("div", { class: "scroll" }, make("table", null, make("thead", null, make("tr", null, ...head)), this.rows)));
    }

    async load() {
        const { runtimes } = await call("GET", "/runtimes");
        const usable = runtimes.filter((runtime) => runtime.available && !runtime.agent);
        this.language.replaceChildren(...usable.map((runtime) => make("option", { value: runtime.name, selected: runtime.name === "bash" }, runtime.name)));
        await this.look();
        every(PERIOD, this.element, () => this.look().catch(() => {}));
    }

    chooseNetwork() {
        this.hostsField.hidden = this.network.value !== "some";
    }

    request() {
        const request = { language: this.language.value };
        if (this.label.value) request.name = this.label.value;
        if (this.timeout.value) request.timeout = sandbox.duration(this.timeout.value);
        if (this.network.value) request.network = true;
        if (this.network.value === "some") request.allow = this.hosts.value.split(/[\s,]+/).filter(Boolean);
        return request;
    }

    async create() {
        this.problem.textContent = "";
        try {
            const created = await call("POST", "/sandboxes", this.request());
            location.hash = `#sandboxes/${created.id}`;
        } catch (error) {
            this.problem.textContent = error.message;
        }
    }

    async look() {
        const { sandboxes } = await call("GET", "/sandboxes");
        const metrics = await Promise.all(sandboxes.slice(0, METRICS_MAX).map((row) => call("GET", `/sandboxes/${row.id}/metrics`).catch(() => null)));
        const focused = document.activeElement && document.activeElement.dataset.id;
        this.rows.replaceChildren(...sandboxes.map((row, i) => this.row(row, metrics[i])));
        if (sandboxes.length === 0) this.rows.append(make("tr", null, make("td", { colspan: 7, class: "quiet" }, "none")));
        if (focused) this.rows.querySelector(`[data-id="${CSS.escape(focused)}"]`)?.focus();
    }

    row(row, metrics) {
        return make("tr", null,
            make("td", null, make("a", { href: `#sandboxes/${row.id}`, "data-id": row.id }, row.name || row.id)),
            make("td", null, row.language),
            make("td", { class: sandbox.stateClass(row.state) }, row.state),
            make("td", { class: "whole" }, sandbox.timeLeft(row.seconds_left)),
            make("td", { class: "whole" }, sandbox.memory(row, metrics)),
            make("td", null, row.commands),
            make("td", null, make("button", { "aria-label": `End ${row.name || row.id}`, "data-id": `end-${row.id}`, onclick: () => this.end(row.id) }, "End")));
    }

    async end(id) {
        this.problem.textContent = "";
        await call("DELETE", `/sandboxes/${id}`).catch((error) => { this.problem.textContent = error.message; });
        await this.look();
    }
}

export function view(id) {
    const shown = id ? new sandbox.SandboxView(id) : new SandboxesView();
    shown.ready = shown.load();
    return shown;
}

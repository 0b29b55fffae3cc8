// SPDX-License-Identifier: MIT
// The view of current and past executions.
import { call } from "./api.js";
import { every, field, make, pairs, statusClass, withoutEscapes } from "./dom.js";
import { colour } from "./editor.js";
import { eventList, openCode } from "./run.js";

const STATUSES = ["", "running", "ok", "error", "timeout", "cpu_timeout", "oom", "killed", "output_limit", "setup_failed", "lost", "blocked"];
const PAGE = 50;

class ExecutionsView {
    status = make("select", { onchange: () => this.first() }, ...STATUSES.map((name) => make("option", { value: name }, name || "all")));
    language = make("select", { onchange: () => this.first() }, make("option", { value: "" }, "all"));
    rows = make("tbody");
    more = make("button", { onclick: () => this.next(), hidden: true }, "Older ones");
    detail = make("section", { "aria-label": "One execution" });
    pages = []; // of the list, each with its `next`

    constructor() {
        const head = ["Began", "Language", "Status", "Exit", "Duration", "Events", ""].map((name) => make("th", { scope: "col" }, name));
        this.element = make("div", null,
            make("div", { class: "row" }, field("Status", this.status), field("Language", this.language)),
            make("div", { class: "halves" },
                make("div", { class: "scroll" }, make("table", null, make("thead", null, make("tr", null, ...head)), this.rows), this.more),
                this.detail));
    }

    async load() {
        const { runtimes } = await call("GET", "/runtimes");
        this.language.append(...runtimes.map((runtime) => make("option", { value: runtime.name }, runtime.name)));
        await this.first();
        // Later pages stay as they are; the newest one is read again.
        every(3000, this.element, () => { if (this.pages.length === 1) this.first().catch(() => {}); });
    }

    query(cursor) {
        const query = new URLSearchParams({ limit: PAGE });
        if (this.status.value) query.set("status", this.status.value);
        if (this.language.value) query.set("language", this.language.value);
        if (cursor) query.set("cursor", cursor);
        return `/executions?${query}`;
    }

    async first() {
        this.pages = [await call("GET", this.query())];
        this.draw();
    }

    async next() {
        this.pages.push(await call("GET", this.query(this.pages.at(-1).next)));
        this.draw();
    }

    draw() {
        const focused = document.activeElement && document.activeElement.dataset.id;
        const found = this.pages.flatMap((page) => page.executions);
        this.rows.replaceChildren(...found.map((execution) => this.row(execution)));
        if (found.length === 0) this.rows.append(make("tr", null, make("td", { colspan: 7, class: "quiet" }, "none")));
        this.more.hidden = !this.pages.at(-1).next || this.pages.at(-1).executions.length < PAGE;
        if (focused) this.rows.querySelector(`[data-id="${focused}"]`)?.focus();
    }

    row(execution) {
        const events = (execution.security_events || []).length;
        return make("tr", null,
            make("td", null, new Date(execution.created_at).toLocaleString()),
            make("td", null, execution.language),
            make("td", { class: statusClass(execution.status) }, execution.status),
            make("td", null, execution.exit_code ?? ""),
            make("td", null, execution.duration ?? ""),
            make("td", { class: events ? "warn" : "" }, events || ""),
            make("td", null, make("button", { "data-id": execution.id, "aria-label": `Show ${execution.id}`, onclick: () => this.show(execution.id) }, "Show")));
    }

    async show(id) {
        try {
            this.draw_detail(await call("GET", `/executions/${id}`));
        } catch (error) {
            this.detail.replaceChildren(make("p", { class: "bad" }, error.message));
        }
    }

    async kill(id) {
        try {
            await call("DELETE", `/executions/${id}`);
        } catch (error) {
            if (error.status !== 404) throw error;
        }
        await this.show(id);
    }

    draw_detail(execution) {
        const usage = execution.resource_usage || {};
        const part = (title, text, language) => text ? [make("h2", null, title), make("pre", { tabindex: 0 }, ...(language ? colour(text, language) : [withoutEscapes(text)]))] : [];
        this.detail.replaceChildren(
            make("div", { class: "row" },
                execution.code === undefined ? null : make("button", { onclick: () => openCode(execution.language, execution.code) }, "Open in Run"),
                execution.status === "running" ? make("button", { onclick: () => this.kill(execution.id) }, "End it") : null),
            pairs({
                Id: execution.id,
                Status: make("span", { class: statusClass(execution.status) }, execution.status),
                Message: execution.message,
                Language: execution.language,
                Began: execution.started_at,
                Ended: execution.ended_at,
                Duration: execution.duration,
                "Exit code": execution.exit_code,
                Signal: execution.signal,
                "CPU time": usage.cpu_time_ms === undefined ? "" : `${usage.cpu_time_ms} ms`,
                Memory: usage.memory_peak_mb === undefined ? "" : `${usage.memory_peak_mb} MiB`,
                Client: execution.client,
                Network: execution.network ? "yes" : "no",
                Events: eventList(execution.security_events),
            }),
            ...part("Code", execution.code, execution.language),
            ...part("Output", execution.output),
            ...part("Standard error", execution.stderr));
    }
}

export function view() {
    const list = new ExecutionsView();
    list.ready = list.load();
    return list;
}

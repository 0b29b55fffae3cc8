// SPDX-License-Identifier: MIT
// The files of a sandbox: directories, the text of a file, upload and download.
import { call, callBytes } from "./api.js";
import { field, make } from "./dom.js";

const PIECE = 4 << 20; // bytes in one request; server.max_body is 8 MiB by default
const VIEW_MAX = 200000; // bytes of a file that are shown
const DOWNLOAD_MAX = 1 << 30;

export class FilesPanel {
    path = make("input", { class: "code", size: 24, value: "/workspace", spellcheck: "false", autocapitalize: "off" });
    rows = make("tbody");
    problem = make("p", { role: "status" });
    title = make("h3", { hidden: true });
    content = make("pre", { class: "output", tabindex: 0, hidden: true, "aria-label": "Content of the file" });
    chosen = make("input", { type: "file", multiple: true, onchange: () => this.upload() });

    constructor(id) {
        this.id = id;
        const head = ["Name", "Size", ""].map((name) => make("th", { scope: "col" }, name));
        this.element = make("section", { "aria-label": "Files" }, make("h2", null, "Files"),
            make("form", { class: "row", onsubmit: (event) => { event.preventDefault(); this.open(this.path.value); } },
                field("Directory", this.path), make("button", null, "List"), field("Upload to it", this.chosen)),
            this.problem,
            make("div", { class: "scroll short" }, make("table", null, make("thead", null, make("tr", null, ...head)), this.rows)),
            this.title, this.content);
    }

    address(path, more) {
        return `/sandboxes/${this.id}/files?${new URLSearchParams({ path, ...more })}`;
    }

    async look() {
        const { entries, truncated } = await call("GET", this.address(this.path.value, { list: 1 }));
        const found = entries.sort((one, other) => one.type.localeCompare(other.type) || one.name.localeCompare(other.name));
        this.rows.replaceChildren(...found.map((entry) => this.row(entry)));
        if (this.path.value !== "/") this.rows.prepend(make("tr", null, make("td", { class: "code" }, this.link("..", () => this.open(this.above()))), make("td"), make("td")));
        this.problem.textContent = truncated ? "There are more than are shown." : "";
    }

    above() {
        return this.path.value.replace(/\/*[^/]*\/*$/, "") || "/";
    }

    link(name, action, label) {
        return make("button", { class: "link", "aria-label": label || name, onclick: action }, name);
    }

    row(entry) {
        const opens = entry.type === "directory" ? () => this.open(entry.path) : () => this.show(entry);
        const name = entry.type === "directory" ? `${entry.name}/` : entry.target ? `${entry.name} → ${entry.target}` : entry.name;
        const plain = entry.type === "other";
        return make("tr", null,
            make("td", { class: "code" }, plain ? name : this.link(name, opens)),
            make("td", null, entry.type === "file" ? entry.size : ""),
            make("td", { class: "buttons" },
                entry.type === "file" ? make("button", { "aria-label": `Download ${entry.name}`, onclick: () => this.download(entry) }, "Download") : null));
    }

    // Runs something that can fail; what is wrong is told.
    async attempt(action) {
        this.problem.textContent = "";
        this.problem.className = "";
        try {
            await action();
        } catch (error) {
            this.problem.className = "bad";
            this.problem.textContent = error.message;
        }
    }

    open(path) {
        this.path.value = path;
        return this.attempt(() => this.look());
    }

    show(entry) {
        return this.attempt(async () => {
            const bytes = await callBytes("GET", this.address(entry.path, { length: VIEW_MAX }));
            const text = new TextDecoder().decode(bytes);
            this.title.textContent = entry.path;
            this.content.textContent = text.includes("\0") ? "This is not a text." : text + (entry.size > VIEW_MAX ? "\n[the rest is not shown]" : "");
            this.title.hidden = this.content.hidden = false;
        });
    }

    download(entry) {
        return this.attempt(async () => {
            if (entry.size > DOWNLOAD_MAX) throw new Error("The file is too large for this page; use the API.");
            const parts = [];
            for (let offset = 0; offset < entry.size; offset += PIECE) parts.push(await callBytes("GET", this.address(entry.path, offset > 0 ? { offset, length: PIECE } : { length: PIECE })));
            const url = URL.createObjectURL(new Blob(parts, { type: "application/octet-stream" }));
            make("a", { href: url, download: entry.name }).click();
            setTimeout(() => URL.revokeObjectURL(url), 60000);
        });
    }

    // In pieces, as the body of a request is limited.
    upload() {
        return this.attempt(async () => {
            for (const file of this.chosen.files) {
                const path = `${this.path.value.replace(/\/+$/, "")}/${file.name}`;
                for (let offset = 0; offset === 0 || offset < file.size; offset += PIECE)
                    await callBytes("PUT", this.address(path, offset > 0 ? { append: 1 } : {}), file.slice(offset, offset + PIECE));
            }
            this.chosen.value = "";
            await this.look();
        });
    }
}

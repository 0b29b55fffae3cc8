// SPDX-License-Identifier: MIT
// The view of the API: what openapi.json describes, with a form to try each request.
import { call, send } from "./api.js";
import { field, make } from "./dom.js";

const EXAMPLES = { execute: { language: "python", code: "print('hello')" } };
EXAMPLES.executeStream = EXAMPLES.execute;
const ANSWER_MAX = 200000;

class Operation {
    answer = make("pre", { hidden: true, tabindex: 0, "aria-live": "polite" });
    inputs = new Map();
    body = null;

    constructor(method, path, description) {
        this.method = method;
        this.path = path;
        const form = make("form", { onsubmit: (event) => { event.preventDefault(); this.try(); } });
        for (const parameter of description.parameters || []) {
            const input = make("input", { placeholder: parameter.required ? "required" : "", required: Boolean(parameter.required), title: parameter.description || "" });
            this.inputs.set(parameter, input);
            form.append(field(`${parameter.name} (${parameter.in})`, input));
        }
        if (description.requestBody) {
            const example = EXAMPLES[description.operationId] || {};
            this.body = make("textarea", { rows: 6, spellcheck: "false" });
            this.body.value = JSON.stringify(example, null, 2);
            form.append(field("Body", this.body));
        }
        form.append(make("p", null, make("button", { class: "main" }, "Send")));
        this.element = make("details", null,
            make("summary", null, make("span", { class: "method" }, method), `${path} `, make("span", { class: "quiet" }, description.summary || "")),
            make("p", null, description.description || ""), form, this.answer);
    }

    address() {
        const query = new URLSearchParams();
        let path = this.path;
        for (const [parameter, input] of this.inputs) {
            if (parameter.in === "path") path = path.replace(`{${parameter.name}}`, encodeURIComponent(input.value));
            else if (parameter.in === "query" && input.value) query.set(parameter.name, input.value);
        }
        return query.size > 0 ? `${path}?${query}` : path;
    }

    headers() {
        const found = {};
        for (const [parameter, input] of this.inputs)
            if (parameter.in === "header" && input.value) found[parameter.name] = input.value;
        return found;
    }

    async try() {
        this.answer.hidden = false;
        this.answer.textContent = "…";
        try {
            const response = await send(this.method, this.address(), this.body ? this.body.value : undefined, undefined, this.headers());
            const text = await response.text();
            this.answer.textContent = `${response.status} ${response.statusText}\n\n${Operation.pretty(text).slice(0, ANSWER_MAX)}`;
        } catch (error) {
            this.answer.textContent = error.message;
        }
    }

    static pretty(text) {
        try {
            return JSON.stringify(JSON.parse(text), null, 2);
        } catch {
            return text;
        }
    }
}

export function view() {
    const element = make("div");
    const ready = call("GET", "/openapi.json").then((api) => {
        element.append(make("p", { class: "quiet" }, `${api.info.title} ${api.info.version}. Requests below are sent with the API key of this page.`));
        const groups = new Map(api.tags.map((tag) => [tag.name, make("section", null, make("h2", null, tag.name), make("p", { class: "quiet" }, tag.description))]));
        for (const [path, methods] of Object.entries(api.paths))
            for (const [method, description] of Object.entries(methods))
                groups.get(description.tags[0]).append(new Operation(method.toUpperCase(), path, description).element);
        element.append(...groups.values());
    });
    return { element, ready };
}

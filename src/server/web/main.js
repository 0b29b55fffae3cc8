// SPDX-License-Identifier: MIT
// Chooses the view by the fragment of the address, and keeps the API key.
import { apiKey, setApiKey } from "./api.js";
import * as executions from "./executions.js";
import * as explorer from "./explorer.js";
import * as run from "./run.js";
import * as sandboxes from "./sandboxes.js";
import * as server from "./server.js";

const VIEWS = { "#run": run, "#executions": executions, "#sandboxes": sandboxes, "#server": server, "#api": explorer };
const place = document.getElementById("view");
const notice = document.getElementById("notice");
const key = document.getElementById("key");
let shown = null;

function tell(text) {
    notice.textContent = text;
    notice.hidden = !text;
}

function explain(error) {
    if (error.status === 401) {
        tell("The server wants an API key.");
        key.focus();
    } else {
        tell(error.message);
    }
}

// What follows a slash, as in #sandboxes/ID, is for the view.
function show() {
    const [wanted, part] = location.hash.split("/");
    const name = VIEWS[wanted] ? wanted : "#run";
    for (const link of document.querySelectorAll("nav a")) {
        if (link.getAttribute("href") === name) link.setAttribute("aria-current", "page");
        else link.removeAttribute("aria-current");
    }
    tell("");
    if (shown && shown.close) shown.close();
    shown = VIEWS[name].view(part);
    place.replaceChildren(shown.element);
    shown.ready.catch(explain);
}

document.getElementById("key-form").addEventListener("submit", (event) => {
    event.preventDefault();
    setApiKey(key.value.trim());
    show();
});
window.addEventListener("hashchange", () => {
    show();
    place.focus();
});
window.addEventListener("unhandledrejection", (event) => explain(event.reason));
key.value = apiKey();
show();

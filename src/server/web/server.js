// SPDX-License-Identifier: MIT
// The view of the server: charts from /metrics, health, runtimes and the configuration.
import { call } from "./api.js";
import { every, make, pairs } from "./dom.js";

const SAMPLES = 90;
const PERIOD = 2000;

// Reads the text format of Prometheus: name → [{labels, value}].
export function readMetrics(text) {
    const found = new Map();
    for (const line of text.split("\n")) {
        const match = /^([a-zA-Z_:][\w:]*)(?:\{(.*)\})? (\S+)$/.exec(line);
        if (!match) continue;
        if (!found.has(match[1])) found.set(match[1], []);
        found.get(match[1]).push({ labels: match[2] || "", value: Number(match[3]) });
    }
    return found;
}

function sum(metrics, name, label = "") {
    return (metrics.get(name) || []).filter((row) => row.labels.includes(label)).reduce((total, row) => total + row.value, 0);
}

// Each chart: a title, and how its number is found. A rate is the change of a counter in a second.
const CHARTS = [
    { title: "Executions running", read: (m) => sum(m, "sandbox_active_executions") },
    { title: "Executions waiting", read: (m) => sum(m, "sandbox_queue_depth") },
    { title: "Executions a second", rate: true, read: (m) => sum(m, "sandbox_executions_total") },
    { title: "HTTP requests a second", rate: true, read: (m) => sum(m, "brigd_http_requests_total") },
    { title: "Prepared jails", read: (m) => sum(m, "sandbox_pool_ready") },
    { title: "Memory of brigd, MiB", read: (m) => sum(m, "process_resident_memory_bytes") / (1 << 20) },
];

class Chart {
    #points = [];
    #before = null;
    #number = make("strong", null, "–");
    #line = document.createElementNS("http://www.w3.org/2000/svg", "polyline");

    constructor(row) {
        this.row = row;
        const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
        svg.setAttribute("viewBox", `0 0 ${SAMPLES - 1} 40`);
        svg.setAttribute("preserveAspectRatio", "none");
        svg.setAttribute("aria-hidden", "true");
        svg.append(this.#line);
        this.element = make("div", { class: "card" }, make("span", { class: "quiet" }, row.title), this.#number, svg);
    }

    add(metrics, now) {
        let value = this.row.read(metrics);
        if (this.row.rate) {
            const before = this.#before;
            this.#before = { value, now };
            if (!before || now === before.now) return;
            value = Math.max(0, (value - before.value) * 1000 / (now - before.now)); // a restart begins at 0
        }
        this.#points.push(value);
        this.#points.splice(0, Math.max(0, this.#points.length - SAMPLES));
        this.#draw(value);
    }

    #draw(value) {
        const most = Math.max(1, ...this.#points), first = SAMPLES - this.#points.length;
        this.#number.textContent = value.toFixed(value % 1 === 0 || value >= 100 ? 0 : 1);
        this.#line.setAttribute("points", this.#points.map((point, i) => `${first + i},${38 - 36 * point / most}`).join(" "));
    }
}

class ServerView {
    health = make("div");
    charts = CHARTS.map((row) => new Chart(row));
    runtimes = make("tbody");
    config = make("pre", { tabindex: 0 });

    constructor() {
        const head = ["Language", "Version", "Other names", "Available"].map((name) => make("th", { scope: "col" }, name));
        this.element = make("div", null,
            make("div", { class: "cards" }, ...this.charts.map((chart) => chart.element)),
            make("h2", null, "Health"), this.health,
            make("h2", null, "Languages"), make("div", { class: "scroll" }, make("table", null, make("thead", null, make("tr", null, ...head)), this.runtimes)),
            make("h2", null, "Configuration"), this.config);
    }

    async load() {
        const { runtimes } = await call("GET", "/runtimes");
        this.runtimes.replaceChildren(...runtimes.map((runtime) => make("tr", null,
            make("td", null, runtime.name), make("td", null, runtime.version || ""), make("td", null, runtime.aliases.join(", ")),
            make("td", { class: runtime.available ? "good" : "quiet" }, runtime.available ? "yes" : runtime.reason))));
        this.config.textContent = await call("GET", "/config").catch((error) => error.message);
        every(PERIOD, this.element, () => this.look().catch(() => {}));
    }

    async look() {
        const metrics = readMetrics(await call("GET", "/metrics"));
        for (const chart of this.charts) chart.add(metrics, performance.now());
        // An unhealthy server answers 503, with the same text.
        const health = await call("GET", "/health").catch((error) => ({ status: error.message }));
        const words = (value) => Object.entries(value).map(([name, part]) => `${name} ${part}`).join(", ");
        this.health.replaceChildren(pairs(Object.fromEntries(
            Object.entries(health).map(([name, value]) => [name, value && typeof value === "object" ? words(value) : value]))));
    }
}

export function view() {
    const server = new ServerView();
    server.ready = server.load();
    return server;
}

// SPDX-License-Identifier: MIT
// Requests to brigd. The API key is kept for this tab only, and sent as a header, so no other page can use it.
const KEY = "brigd-api-key";
const BASE = new URL("..", import.meta.url);

export function apiKey() {
    return sessionStorage.getItem(KEY) || "";
}

export function setApiKey(value) {
    if (value) sessionStorage.setItem(KEY, value);
    else sessionStorage.removeItem(KEY);
}

// What the server answered instead of a result.
export class ApiError extends Error {
    constructor(status, body) {
        super((body && (body.error || body.message)) || `the server answered with status ${status}`);
        this.status = status;
        this.code = body && body.code;
    }
}

export async function send(method, path, body, signal, more) {
    const headers = { ...more };
    if (apiKey()) headers["X-API-Key"] = apiKey();
    if (body !== undefined) headers["Content-Type"] = body instanceof Blob ? "application/octet-stream" : "application/json";
    return fetch(new URL(path.replace(/^\//, ""), BASE), { method, headers, body, signal, credentials: "omit" });
}

async function fail(response) {
    let body = null;
    try {
        body = await response.json();
    } catch { /* an answer that is no JSON */ }
    throw new ApiError(response.status, body);
}

export async function call(method, path, value, signal) {
    const response = await send(method, path, value === undefined ? undefined : JSON.stringify(value), signal);
    if (!response.ok) await fail(response);
    const type = response.headers.get("Content-Type") || "";
    return type.startsWith("application/json") ? response.json() : response.text();
}

// Splits server-sent events into {event, data}.
class EventReader {
    #rest = "";

    take(text) {
        const blocks = (this.#rest + text).split("\n\n");
        this.#rest = blocks.pop();
        return blocks.map(EventReader.#parse).filter((event) => event.event);
    }

    static #parse(block) {
        const found = { event: "", data: [] };
        for (const line of block.split("\n")) {
            if (line.startsWith("event: ")) found.event = line.slice(7);
            else if (line.startsWith("data: ")) found.data.push(line.slice(6));
        }
        return { event: found.event, data: found.data.join("\n") };
    }
}

export function bytesOf(base64) {
    return Uint8Array.from(atob(base64), (letter) => letter.charCodeAt(0));
}

// A request that sends, or is answered with, the content of a file.
export async function callBytes(method, path, body, signal) {
    const response = await send(method, path, body, signal);
    if (!response.ok) await fail(response);
    return response.arrayBuffer();
}

// Sends a request that is answered with server-sent events, and gives each of them to onEvent(name, data), up to the first for which that returns something.
export async function stream(method, path, value, onEvent, signal) {
    const response = await send(method, path, value === undefined ? undefined : JSON.stringify(value), signal);
    if (!response.ok) await fail(response);
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    const events = new EventReader();
    for (;;) {
        const { value: text, done } = await reader.read();
        if (done) throw new Error("the connection ended before the result came");
        for (const event of events.take(text)) {
            if (event.event === "error") throw new ApiError(0, JSON.parse(event.data));
            const result = onEvent(event.event, event.data);
            if (result !== undefined) return result;
        }
    }
}

// Runs code; calls onOutput(stream, text) as output arrives, and returns the result.
export function execute(request, onOutput, signal) {
    const decoders = { stdout: new TextDecoder(), stderr: new TextDecoder() };
    return stream("POST", "/execute/stream?encoding=base64", request, (name, data) => {
        if (name === "done") return JSON.parse(data);
        if (decoders[name]) onOutput(name, decoders[name].decode(bytesOf(data), { stream: true }));
    }, signal);
}

// SPDX-License-Identifier: MIT
// Uses the clients of Piston as their documents show it, with another server. Prints TAP.
import assert from "node:assert/strict";
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const modules = process.argv[2];
const require = createRequire(pathToFileURL(`${modules}/package.json`));
const server = process.env.SERVER;
const { PistonClient, NodePistonClient } = require("piston-api-client");
const { piston } = await import(pathToFileURL(`${modules}/node_modules/piston-client/index.js`));
const WebSocket = require("ws");

let count = 0, failed = 0;
async function test(name, body) {
    count++;
    try {
        await body();
        console.log(`ok ${count} - ${name}`);
    } catch (error) {
        failed++;
        console.log(`not ok ${count} - ${name}\n${String(error.stack).replace(/^/gm, "# ")}`);
    }
}

for (const Client of [PistonClient, NodePistonClient]) {
    const client = new Client({ server, cacheTime: 1 });
    await test(`piston-api-client, ${Client.name}: runtimes`, async () => {
        const runtimes = await client.runtimes();
        assert.equal(runtimes.success, true);
        assert.ok(runtimes.data.find((one) => one.language === "javascript").aliases.includes("node-js"));
    });
    await test(`piston-api-client, ${Client.name}: execute`, async () => {
        const result = await client.execute({
            language: "node-js", version: "*", files: [{ content: "console.log(process.argv.slice(2))" }],
            args: ["Hello", "World"],
        });
        assert.equal(result.success, true);
        assert.equal(result.data.run.stdout, "[ 'Hello', 'World' ]\n");
        assert.equal(result.data.language, "javascript");
    });
    await test(`piston-api-client, ${Client.name}: a pinned version, two stages`, async () => {
        const { data } = await client.execute({
            language: "c++", version: "10.2.0", stdin: "7",
            files: [{ name: "main.cpp", content: "#include <iostream>\nint main() { int x; std::cin >> x; std::cout << x * 6; }" }],
        });
        assert.equal(data.run.output, "42");
        assert.equal(data.compile.code, 0);
    });
}

const other = piston({ server });
await test("piston-client, which sends no Content-Type: execute", async () => {
    const result = await other.execute("python", "import sys; print(sys.argv[1:])");
    assert.equal(result.run.output, "['1', '2', '3']\n");
});
await test("piston-client: an error", async () => {
    const result = await other.execute("python", { version: "3.9.4", files: [] });
    assert.equal(result.message, "files must include at least one utf8 encoded file");
});

// As the command line program of Piston does it.
await test("ws: an interactive program", async () => {
    const messages = await new Promise((resolve, reject) => {
        const socket = new WebSocket(`${server.replace("http", "ws")}/api/v2/connect`), found = [];
        socket.on("open", () => socket.send(JSON.stringify({
            type: "init", language: "python", version: "*", args: [], compile_timeout: 10000, run_timeout: 3000,
            files: [{ name: "a.py", content: "print(input('name: '))", encoding: "utf8" }],
        })));
        socket.on("message", (data) => {
            const message = JSON.parse(data.toString());
            found.push(message);
            if (message.data === "name: ") socket.send(JSON.stringify({ type: "data", stream: "stdin", data: "Ada\n" }));
        });
        socket.on("close", (code, reason) => resolve([...found, [code, reason.toString()]]));
        socket.on("error", reject);
    });
    assert.deepEqual(messages.at(-1), [4999, "Job Completed"]);
    assert.deepEqual(messages.at(-2), { type: "exit", stage: "run", code: 0, signal: null });
    assert.equal(messages.filter((m) => m.type === "data").map((m) => m.data).join(""), "name: Ada\n");
});

console.log(`1..${count}`);
process.exit(failed ? 1 : 0);

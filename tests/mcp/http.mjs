// SPDX-License-Identifier: MIT
// POST /mcp of brigd with the clients of the official SDKs: http.mjs URL KEY FOLDER, where FOLDER has node_modules. Prints
// TAP. Run by tests/mcp/run.
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import assert from 'node:assert';

const [, , SERVER, KEY, MODULES] = process.argv;
const require = createRequire(join(MODULES, 'here.js'));
const load = name => import(pathToFileURL(require.resolve(name)).href);

const v1 = await load('@modelcontextprotocol/sdk/client/index.js');
const v1http = await load('@modelcontextprotocol/sdk/client/streamableHttp.js');
const v2 = await load('@modelcontextprotocol/client');

const INFO = { name: 'brig-test', version: '1' };
const options = { requestInit: { headers: { Authorization: `Bearer ${KEY}` } } };
const endpoint = new URL('/mcp', SERVER);

async function connectV1() {
    const client = new v1.Client(INFO, { capabilities: {} });
    await client.connect(new v1http.StreamableHTTPClientTransport(endpoint, options));
    return client;
}

function connectV2(mode) {
    return async () => {
        const client = new v2.Client(INFO, { capabilities: {}, ...(mode && { versionNegotiation: { mode } }) });
        await client.connect(new v2.StreamableHTTPClientTransport(endpoint, options));
        return client;
    };
}

const CLIENTS = {
    'SDK 1': [connectV1, '2025-11-25'],
    'SDK 2, default': [connectV2(), '2025-11-25'],
    'SDK 2, legacy': [connectV2('legacy'), '2025-11-25'],
    'SDK 2, auto': [connectV2('auto'), '2026-07-28'],
    'SDK 2, pinned': [connectV2({ pin: '2026-07-28' }), '2026-07-28'],
};

const more = (client, given) => client instanceof v1.Client ? [undefined, given] : [given];

async function tools(connect) {
    const client = await connect();
    const listed = (await client.listTools()).tools.map(tool => tool.name);
    assert.deepEqual(listed, ['run_code', 'run_command', 'sandbox_create', 'sandbox_close', 'file_read', 'file_write',
        'file_list']);
    const seen = [];
    const call = (name, given, extra) => client.callTool({ name, arguments: given }, ...more(client, extra));
    const result = await call('run_code', { language: 'python', code: 'import time\nprint("one", flush=True)\n' +
        'time.sleep(1)\nprint("two")' }, { onprogress: report => seen.push(report.message) });
    assert.equal(result.structuredContent.stdout, 'one\ntwo\n');
    assert.equal(result.isError, false);
    assert.ok(seen.some(message => message.includes('one')), `progress: ${JSON.stringify(seen)}`);
    const failed = await call('run_command', { command: 'exit 7' });
    assert.equal(failed.isError, true);
    assert.equal(failed.structuredContent.exit_code, 7);
    const { sandbox_id } = (await call('sandbox_create', { ttl_s: 60 })).structuredContent;
    await call('file_write', { sandbox_id, path: 'sdk.txt', content: 'hello\n' });
    assert.equal((await call('file_read', { sandbox_id, path: 'sdk.txt' })).structuredContent.content, 'hello\n');
    const list = await call('file_list', { sandbox_id });
    assert.ok(list.structuredContent.entries.some(entry => entry.path.endsWith('sdk.txt')));
    const ran = await call('run_command', { sandbox_id, command: 'cat sdk.txt' });
    assert.equal(ran.structuredContent.stdout, 'hello\n');
    await call('sandbox_close', { sandbox_id });
    assert.equal((await call('file_list', { sandbox_id })).isError, true);
    await assert.rejects(call('no_such_tool', {}));
    await client.close();
}

async function cancels(connect) {
    const client = await connect();
    const { sandbox_id } = (await client.callTool({ name: 'sandbox_create', arguments: {} })).structuredContent;
    const stop = new AbortController();
    const running = client.callTool({ name: 'run_command', arguments: { sandbox_id, command: 'sleep 600' } },
        ...more(client, { signal: stop.signal }));
    const commands = async () => {
        const url = new URL(`/sandboxes/${sandbox_id}/commands`, SERVER);
        const found = (await (await fetch(url, options.requestInit)).json()).commands;
        return found.filter(command => command.running).length;
    };
    while (await commands() === 0)
        await new Promise(resolve => setTimeout(resolve, 20));
    stop.abort();
    await assert.rejects(running);
    while (await commands() > 0) // the run ends, too
        await new Promise(resolve => setTimeout(resolve, 20));
    await client.callTool({ name: 'sandbox_close', arguments: { sandbox_id } });
    await client.close();
}

let number = 0;
let failures = 0;
async function test(name, run) {
    number++;
    try {
        await run();
        console.log(`ok ${number} ${name}`);
    } catch (error) {
        failures++;
        console.log(`not ok ${number} ${name}`);
        console.log(String(error.stack).replace(/^/gm, '# '));
    }
}

for (const [kind, [connect, version]] of Object.entries(CLIENTS)) {
    await test(`${kind}: the version is ${version}`, async () => {
        const client = await connect();
        if (client instanceof v2.Client) // the other line cannot tell
            assert.equal(client.getNegotiatedProtocolVersion(), version);
        assert.equal(client.getServerVersion().name, 'brig');
        await client.close();
    });
    await test(`${kind}: every tool works`, () => tools(connect));
    await test(`${kind}: a call can be cancelled`, () => cancels(connect));
}
console.log(`1..${number}`);
process.exit(failures ? 1 : 0);

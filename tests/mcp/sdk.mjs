// SPDX-License-Identifier: MIT
// brig mcp with the clients of the official SDKs: sdk.mjs BRIG PROJECT FOLDER, where FOLDER has node_modules. Prints TAP.
// Run by tests/mcp/run.
import { readFileSync, existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import assert from 'node:assert';

const [, , BRIG, PROJECT, MODULES] = process.argv;
const require = createRequire(join(MODULES, 'here.js'));
const load = name => import(pathToFileURL(require.resolve(name)).href);

const v1 = await load('@modelcontextprotocol/sdk/client/index.js');
const v1stdio = await load('@modelcontextprotocol/sdk/client/stdio.js');
const v1types = await load('@modelcontextprotocol/sdk/types.js');
const v2 = await load('@modelcontextprotocol/client');
const v2stdio = await load('@modelcontextprotocol/client/stdio');

const INFO = { name: 'brig-test', version: '1' };
const server = { command: BRIG, args: ['mcp'], cwd: PROJECT, stderr: 'ignore', env: { ...process.env } };

// Each kind of client: a connected one, which answers a question with `answer` if that is given.
async function connectV1(answer) {
    const client = new v1.Client(INFO, { capabilities: answer ? { elicitation: {} } : {} });
    if (answer)
        client.setRequestHandler(v1types.ElicitRequestSchema, request => answer(request.params));
    await client.connect(new v1stdio.StdioClientTransport(server));
    return client;
}

function connectV2(mode) {
    return async answer => {
        const client = new v2.Client(INFO, {
            capabilities: answer ? { elicitation: { form: {} } } : {},
            ...(mode && { versionNegotiation: { mode } }),
        });
        if (answer)
            client.setRequestHandler('elicitation/create', request => answer(request.params));
        await client.connect(new v2stdio.StdioClientTransport(server));
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

async function tools(connect) {
    const client = await connect();
    const listed = (await client.listTools()).tools.map(tool => tool.name);
    assert.deepEqual(listed, ['run_code', 'run_command', 'file_read', 'file_write', 'file_list', 'diff',
        'apply', 'reset']);
    const seen = [];
    const result = await client.callTool(
        { name: 'run_code', arguments: { language: 'python', code: 'import time\nprint("one", flush=True)\n' +
            'time.sleep(1)\nprint("two")' } },
        ...(client instanceof v1.Client ? [undefined] : []), { onprogress: report => seen.push(report.message) });
    assert.equal(result.structuredContent.stdout, 'one\ntwo\n');
    assert.equal(result.isError, false);
    assert.ok(seen.some(message => message.includes('one')), `progress: ${JSON.stringify(seen)}`);
    const failed = await client.callTool({ name: 'run_command', arguments: { command: 'exit 7' } });
    assert.equal(failed.isError, true);
    assert.equal(failed.structuredContent.exit_code, 7);
    await client.callTool({ name: 'file_write', arguments: { path: 'sdk.txt', content: 'hello\n' } });
    const read = await client.callTool({ name: 'file_read', arguments: { path: 'sdk.txt' } });
    assert.equal(read.structuredContent.content, 'hello\n');
    const list = await client.callTool({ name: 'file_list', arguments: {} });
    assert.ok(list.structuredContent.entries.some(entry => entry.path === 'sdk.txt'));
    const diff = await client.callTool({ name: 'diff', arguments: {} });
    assert.match(diff.structuredContent.diff, /\+hello/);
    assert.ok(!existsSync(join(PROJECT, 'sdk.txt')));
    const applied = await client.callTool({ name: 'apply', arguments: {} });
    assert.equal(applied.structuredContent.status, 'user_must_apply');
    await client.callTool({ name: 'reset', arguments: {} });
    await client.close();
}

async function confirms(connect, number) {
    const name = `confirmed-${number}.txt`;
    let question;
    let answers = ['decline', 'accept'];
    const client = await connect(params => {
        question = params;
        const action = answers.shift();
        return action === 'accept' ? { action, content: {} } : { action };
    });
    await client.callTool({ name: 'file_write', arguments: { path: name, content: 'yes\n' } });
    let result = await client.callTool({ name: 'apply', arguments: {} });
    assert.equal(result.structuredContent.status, 'declined');
    assert.ok(!existsSync(join(PROJECT, name)));
    assert.match(question.message, new RegExp(name));
    result = await client.callTool({ name: 'apply', arguments: {} });
    assert.equal(result.structuredContent.status, 'applied', JSON.stringify(result));
    assert.equal(readFileSync(join(PROJECT, name), 'utf8'), 'yes\n');
    await client.close();
}

async function cancels(connect) {
    const client = await connect();
    const stop = new AbortController();
    setTimeout(() => stop.abort(), 500);
    const options = { signal: stop.signal };
    await assert.rejects(client.callTool({ name: 'run_command', arguments: { command: 'sleep 600' } },
        ...(client instanceof v1.Client ? [undefined] : []), options));
    const result = await client.callTool({ name: 'run_command', arguments: { command: 'echo still here' } });
    assert.equal(result.structuredContent.stdout, 'still here\n');
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
    await test(`${kind}: the user confirms an apply`, () => confirms(connect, number));
    await test(`${kind}: a call can be cancelled`, () => cancels(connect));
}
console.log(`1..${number}`);
process.exit(failures ? 1 : 0);

// SPDX-License-Identifier: MIT
// The unchanged npm package `e2b` against brigd, told by E2B_API_URL, E2B_SANDBOX_URL and E2B_API_KEY. Prints TAP.
// Usage: client.mjs DIRECTORY, where DIRECTORY has node_modules.
import assert from 'node:assert/strict'
import http from 'node:http'
import { createRequire } from 'node:module'
import path from 'node:path'

const require = createRequire(path.join(path.resolve(process.argv[2]), 'package.json'))
const { CommandExitError, FileType, FilesystemEventType, InvalidArgumentError, NotFoundError, Sandbox,
  SandboxNotFoundError, TimeoutError, AuthenticationError } = require('e2b')

const tests = []
const test = (name, body) => tests.push([name, body])
let sandbox

async function wait(condition, what) {
  for (let i = 0; i < 600; i++) {
    const value = await condition()
    if (value) return value
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
  throw new Error(`waited for ${what} in vain`)
}

async function collect(paginator) {
  const found = []
  while (paginator.hasNext) found.push(...await paginator.nextItems())
  return found
}

// ---- the control interface ----

test('a sandbox is created, and is running', async () => {
  sandbox = await Sandbox.create({ metadata: { app: 'tests & more', user: 'ä=1' }, envs: { GREETING: 'hello' },
    timeoutMs: 120_000 })
  assert.ok(await sandbox.isRunning())
  const info = await sandbox.getInfo()
  assert.equal(info.sandboxId, sandbox.sandboxId)
  assert.equal(info.templateId, 'base')
  assert.deepEqual(info.metadata, { app: 'tests & more', user: 'ä=1' })
  assert.equal(info.state, 'running')
  assert.ok(info.endAt.getTime() - info.startedAt.getTime() > 100_000)
  assert.ok(info.cpuCount >= 1 && info.memoryMB > 0)
})

test('the deadline can be moved', async () => {
  await sandbox.setTimeout(600_000)
  const info = await sandbox.getInfo()
  assert.ok(info.endAt.getTime() > Date.now() + 500_000)
})

test('another client connects to it, which does not shorten its time', async () => {
  const other = await Sandbox.connect(sandbox.sandboxId, { timeoutMs: 10_000 })
  assert.equal((await other.commands.run('echo $GREETING')).stdout, 'hello\n')
  assert.ok((await sandbox.getInfo()).endAt.getTime() > Date.now() + 500_000)
})

test('lists have pages, and select by metadata, state and time', async () => {
  const more = await Promise.all(['a', 'b', 'c'].map((name) => Sandbox.create({ metadata: { page: name, set: 'x y' } })))
  const ids = more.map((one) => one.sandboxId)
  const all = await collect(Sandbox.list({ limit: 2 }))
  assert.deepEqual(new Set(all.map((one) => one.sandboxId)), new Set([...ids, sandbox.sandboxId]))
  const first = await Sandbox.list({ limit: 2 }).nextItems()
  assert.equal(first.length, 2)
  const found = await collect(Sandbox.list({ query: { metadata: { set: 'x y' } } }))
  assert.deepEqual(new Set(found.map((one) => one.sandboxId)), new Set(ids))
  assert.equal((await collect(Sandbox.list({ query: { metadata: { set: 'x y', page: 'b' } } }))).length, 1)
  assert.equal((await collect(Sandbox.list({ query: { metadata: { app: 'tests & more', user: 'ä=1' } } }))).length, 1)
  await more[0].pause()
  const paused = await collect(Sandbox.list({ query: { state: ['paused'] } }))
  assert.deepEqual(paused.map((one) => one.sandboxId), [ids[0]])
  assert.equal((await collect(Sandbox.list({ query: { state: ['running', 'paused'] } }))).length, 4)
  for (const one of more) assert.ok(await one.kill())
})

test('a paused sandbox is not running, and goes on when a client connects', async () => {
  const one = await Sandbox.create()
  const ticking = await one.commands.run('while sleep 0.05; do echo tick; done', { background: true })
  assert.ok(await one.pause())
  assert.equal(await one.pause(), false)
  assert.equal((await one.getInfo()).state, 'paused')
  assert.equal(await one.isRunning(), false)
  const again = await Sandbox.connect(one.sandboxId)
  assert.ok(await again.isRunning())
  let ticks = 0
  const handle = await again.commands.connect(ticking.pid, { onStdout: () => { ticks++ } })
  await wait(() => ticks > 2, 'ticks')
  await handle.kill()
  await one.kill()
})

test('metrics have one sample', async () => {
  const [sample] = await sandbox.getMetrics()
  assert.ok(sample.timestamp instanceof Date && sample.memTotal > 0 && sample.cpuCount >= 1)
})

test('sandboxes that do not exist are not found', async () => {
  assert.equal(await Sandbox.kill('nonesuch'), false)
  assert.equal(await Sandbox.kill('00000000-0000-4000-8000-000000000000'), false)
  await assert.rejects(Sandbox.connect('00000000-0000-4000-8000-000000000000'), SandboxNotFoundError)
  await assert.rejects(Sandbox.getInfo('nonesuch'), SandboxNotFoundError)
  await assert.rejects(Sandbox.create('no-such-template'), /404/)
})

test('a wrong key is refused', async () => {
  await assert.rejects(Sandbox.create({ apiKey: 'e2b_0000000000000000000000000000000000000000' }), AuthenticationError)
  assert.equal(await Sandbox.kill(sandbox.sandboxId, { apiKey: process.env.OTHER_KEY }), false)
  assert.deepEqual(await collect(Sandbox.list({ apiKey: process.env.OTHER_KEY })), [])
})

// ---- commands ----

test('a command gives its output and exit code', async () => {
  const result = await sandbox.commands.run('echo out; echo err >&2; id -un; pwd')
  assert.deepEqual([result.exitCode, result.stdout, result.stderr], [0, 'out\nuser\n/home/user\n', 'err\n'])
  await assert.rejects(sandbox.commands.run('echo x; exit 3'), (error) =>
    error instanceof CommandExitError && error.exitCode === 3 && error.stdout === 'x\n' && /exit status 3/.test(error.message))
})

test('a command has a directory, variables and a user', async () => {
  const options = { cwd: '/tmp', envs: { A: 'b c' }, user: 'root' }
  assert.equal((await sandbox.commands.run('pwd; echo "$A"; echo $HOME', options)).stdout, '/tmp\nb c\n/home/user\n')
  await sandbox.files.makeDir('below')
  assert.equal((await sandbox.commands.run('pwd', { cwd: 'below' })).stdout, '/home/user/below\n')
  await assert.rejects(sandbox.commands.run('pwd', { cwd: '/nonesuch' }), InvalidArgumentError)
  await assert.rejects(sandbox.commands.run('pwd', { user: 'somebody' }), AuthenticationError)
})

test('output comes as it is written', async () => {
  const seen = []
  const handle = await sandbox.commands.run('echo 1; read x; echo "2 $x" >&2', { background: true, stdin: true,
    onStdout: (text) => seen.push(text), onStderr: (text) => seen.push(text) })
  await wait(() => seen.length === 1, 'the first line')
  await sandbox.commands.sendStdin(handle.pid, 'word\n')
  await handle.wait()
  assert.deepEqual(seen, ['1\n', '2 word\n'])
})

test('standard input is sent and closed', async () => {
  const handle = await sandbox.commands.run('cat; echo end', { background: true, stdin: true })
  await handle.sendStdin('one ')
  await handle.sendStdin('two ')
  await handle.closeStdin()
  assert.equal((await handle.wait()).stdout, 'one two end\n')
  assert.equal((await sandbox.commands.run('cat; echo end')).stdout, 'end\n')
})

test('a command in the background is listed, connected to and killed', async () => {
  const handle = await sandbox.commands.run('echo begun; exec sleep 1000', { background: true, timeoutMs: 0 })
  const listed = (await sandbox.commands.list()).find((one) => one.pid === handle.pid)
  assert.equal(listed.cmd, '/bin/bash')
  assert.deepEqual(listed.args, ['-l', '-c', 'echo begun; exec sleep 1000'])
  await handle.disconnect()
  const again = await sandbox.commands.connect(handle.pid)
  await wait(() => again.stdout === 'begun\n', 'output from before')
  assert.ok(await again.kill())
  await assert.rejects(again.wait(), (error) => error instanceof CommandExitError && error.exitCode === -1 && /killed/.test(error.error))
  assert.equal(await sandbox.commands.kill(handle.pid), false)
  assert.equal(await sandbox.commands.kill(99999), false)
  await assert.rejects(sandbox.commands.connect(99999), NotFoundError)
})

test('a command is ended at its timeout', async () => {
  await assert.rejects(sandbox.commands.run('echo begun; sleep 1000', { timeoutMs: 500 }), TimeoutError)
  await wait(async () => (await sandbox.commands.list()).length === 0, 'the command to end')
})

test('much output arrives whole', async () => {
  const result = await sandbox.commands.run('seq 1 300000; seq 1 1000 >&2')
  assert.equal(result.stdout.length, 1988895)
  assert.ok(result.stdout.endsWith('300000\n') && result.stderr.endsWith('1000\n'))
})

test('many commands run at once, and each has its own output', async () => {
  const all = await Promise.all([...Array(10).keys()].map((i) => sandbox.commands.run(`sleep 0.1; echo ${i}`)))
  assert.deepEqual(all.map((one) => one.stdout), [...Array(10).keys()].map((i) => `${i}\n`))
})

test('a terminal takes input, and has a size that can change', async () => {
  let shown = ''
  const decoder = new TextDecoder()
  const handle = await sandbox.pty.create({ cols: 71, rows: 33, onData: (bytes) => { shown += decoder.decode(bytes) },
    timeoutMs: 60_000 })
  const type = (text) => sandbox.pty.sendInput(handle.pid, new TextEncoder().encode(text))
  await type('stty size\n')
  await wait(() => shown.includes('33 71'), 'the size')
  await sandbox.pty.resize(handle.pid, { cols: 90, rows: 40 })
  await type('stty size\n')
  await wait(() => shown.includes('40 90'), 'the new size')
  await type('exit 5\n')
  await assert.rejects(handle.wait(), (error) => error.exitCode === 5)
})

// ---- files ----

test('files are written and read', async () => {
  const info = await sandbox.files.write('a/b/text.txt', 'grüße\n')
  assert.deepEqual(info, { path: '/home/user/a/b/text.txt', name: 'text.txt', type: 'file', metadata: undefined })
  assert.equal(await sandbox.files.read('a/b/text.txt'), 'grüße\n')
  assert.equal(await sandbox.files.read('/home/user/a/b/text.txt'), 'grüße\n')
  const bytes = Uint8Array.from({ length: 300_000 }, (_, i) => (i * 7) % 256)
  await sandbox.files.write('/tmp/bytes', bytes.buffer)
  assert.deepEqual(await sandbox.files.read('/tmp/bytes', { format: 'bytes' }), bytes)
  assert.equal((await (await sandbox.files.read('/tmp/bytes', { format: 'blob' })).arrayBuffer()).byteLength, 300_000)
  await sandbox.files.write('empty', '')
  assert.equal(await sandbox.files.read('empty'), '')
  assert.equal((await sandbox.commands.run('wc -c < /tmp/bytes; cat a/b/text.txt')).stdout, '300000\ngrüße\n')
  await assert.rejects(sandbox.files.read('nonesuch'), NotFoundError)
})

test('several files are written at once, and streams', async () => {
  const written = await sandbox.files.write([{ path: 'many/1', data: 'one' }, { path: '/tmp/many "2"', data: 'two' }])
  assert.deepEqual(written.map((one) => one.path), ['/home/user/many/1', '/tmp/many "2"'])
  assert.equal(await sandbox.files.read('/tmp/many "2"'), 'two')
  await sandbox.files.write('streamed', new Blob(['stre', 'amed']).stream())
  assert.equal(await sandbox.files.read('streamed'), 'streamed')
  const reader = (await sandbox.files.read('streamed', { format: 'stream' })).getReader()
  assert.equal(new TextDecoder().decode((await reader.read()).value), 'streamed')
  await reader.cancel()
})

test('a large file is read in pieces', async () => {
  await sandbox.commands.run('seq 1 5000000 > /tmp/large')
  const large = await sandbox.files.read('/tmp/large')
  assert.equal(large.length, 38888896)
  assert.ok(large.endsWith('4999999\n5000000\n'))
  let length = 0
  for await (const piece of await sandbox.files.read('/tmp/large', { format: 'stream' })) length += piece.length
  assert.equal(length, 38888896)
  await sandbox.files.remove('/tmp/large')
})

test('directories are made, listed and removed', async () => {
  assert.equal(await sandbox.files.makeDir('dir/in/it'), true)
  assert.equal(await sandbox.files.makeDir('dir/in/it'), false)
  await sandbox.files.write('dir/file', 'x')
  const entries = await sandbox.files.list('dir')
  assert.deepEqual(entries.map((one) => [one.name, one.type, one.path]).sort(),
    [['file', FileType.FILE, '/home/user/dir/file'], ['in', FileType.DIR, '/home/user/dir/in']])
  assert.equal((await sandbox.files.list('dir', { depth: 2 })).length, 3)
  await sandbox.files.remove('dir')
  assert.equal(await sandbox.files.exists('dir'), false)
  await sandbox.files.remove('dir')
  await assert.rejects(sandbox.files.list('dir'), NotFoundError)
})

test('files are looked at and renamed', async () => {
  await sandbox.files.write('old', '12345')
  await sandbox.commands.run('chmod 640 old; ln -s old link')
  const info = await sandbox.files.getInfo('old')
  assert.deepEqual([info.name, info.type, info.size, info.mode, info.permissions, info.owner],
    ['old', FileType.FILE, 5, 0o640, '-rw-r-----', 'user'])
  assert.ok(Math.abs(info.modifiedTime.getTime() - Date.now()) < 60_000)
  assert.equal((await sandbox.files.getInfo('link')).symlinkTarget, 'old')
  const moved = await sandbox.files.rename('old', 'new')
  assert.equal(moved.path, '/home/user/new')
  assert.deepEqual([await sandbox.files.exists('old'), await sandbox.files.exists('new')], [false, true])
  await assert.rejects(sandbox.files.rename('old', 'other'), NotFoundError)
})

test('a directory is watched', async () => {
  await sandbox.files.makeDir('watched/below')
  const events = [], deep = []
  const handle = await sandbox.files.watchDir('watched', (event) => { events.push(event) })
  const all = await sandbox.files.watchDir('watched', (event) => { deep.push(event) }, { recursive: true })
  await sandbox.files.write('watched/file', 'x')
  await wait(() => events.some((one) => one.name === 'file' && one.type === FilesystemEventType.WRITE), 'a write')
  assert.ok(events.some((one) => one.name === 'file' && one.type === FilesystemEventType.CREATE))
  await sandbox.files.write('watched/below/deep', 'x')
  await wait(() => deep.some((one) => one.name === 'below/deep'), 'a change below')
  await sandbox.files.remove('watched/file')
  await wait(() => events.some((one) => one.type === FilesystemEventType.REMOVE), 'a removal')
  await handle.stop()
  await all.stop()
  await assert.rejects(sandbox.files.watchDir('nonesuch', () => {}), NotFoundError)
})

// ---- ports ----

test('a server in the sandbox is reached at its host', async () => {
  await sandbox.files.write('web/index.html', 'served')
  await sandbox.commands.run('cd web && exec python3 -m http.server 3000', { background: true, timeoutMs: 0 })
  const host = sandbox.getHost(3000)
  assert.ok(host.startsWith(`3000-${sandbox.sandboxId}.`))
  const { port } = new URL(process.env.E2B_SANDBOX_URL)
  const get = (headers) => new Promise((resolve, reject) => {
    http.get({ host: '127.0.0.1', port, path: '/index.html', headers: { Host: host, ...headers } }, async (response) => {
      let body = ''
      for await (const piece of response) body += piece
      resolve([response.statusCode, body])
    }).on('error', reject)
  })
  const token = { 'E2B-Traffic-Access-Token': sandbox.trafficAccessToken }
  await wait(async () => (await get(token))[0] === 200, 'the server')
  assert.deepEqual(await get(token), [200, 'served'])
  assert.equal((await get({}))[0], 401)
})

// ---- the end ----

test('a killed sandbox ends what runs in it', async () => {
  const one = await Sandbox.create()
  const handle = await one.commands.run('sleep 1000', { background: true })
  const ended = assert.rejects(handle.wait(), TimeoutError)
  assert.ok(await one.kill())
  await ended
  assert.equal(await one.isRunning(), false)
  await assert.rejects(one.commands.run('true'), SandboxNotFoundError)
  await assert.rejects(one.files.read('x'), (error) => error instanceof TimeoutError || error instanceof SandboxNotFoundError)
  assert.equal(await one.kill(), false)
})

test('a sandbox is paused at its deadline where that is wanted', async () => {
  const one = await Sandbox.create({ timeoutMs: 1000, lifecycle: { onTimeout: 'pause' } })
  await one.files.write('kept', 'x')
  await wait(async () => (await one.getInfo()).state === 'paused', 'its pause')
  assert.deepEqual((await one.getInfo()).lifecycle, { onTimeout: 'pause', autoResume: false })
  const again = await Sandbox.connect(one.sandboxId, { timeoutMs: 60_000 })
  assert.equal(await again.files.read('kept'), 'x')
  assert.ok(await again.kill())
})

test('a sandbox ends at its deadline', async () => {
  const one = await Sandbox.create({ timeoutMs: 1000 })
  await wait(async () => !(await one.isRunning()), 'its end')
  assert.ok(await sandbox.kill())
})

let failed = 0
for (const [index, [name, body]] of tests.entries()) {
  try {
    await body()
    console.log(`ok ${index + 1} - ${name}`)
  } catch (error) {
    failed++
    console.log(`not ok ${index + 1} - ${name}`)
    console.log(String(error?.stack ?? error).split('\n').map((line) => `# ${line}`).join('\n'))
  }
}
console.log(`1..${tests.length}`)
process.exit(failed ? 1 : 0)

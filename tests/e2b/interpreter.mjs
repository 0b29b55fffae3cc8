// SPDX-License-Identifier: MIT
// The unchanged npm package `@e2b/code-interpreter` against brigd, told by E2B_API_URL, E2B_SANDBOX_URL and E2B_API_KEY.
// Prints TAP. Usage: interpreter.mjs DIRECTORY, where DIRECTORY has node_modules.
import assert from 'node:assert/strict'
import { createRequire } from 'node:module'
import path from 'node:path'

const require = createRequire(path.join(path.resolve(process.argv[2]), 'package.json'))
const { InvalidArgumentError, NotFoundError, Sandbox, TimeoutError } = require('@e2b/code-interpreter')

const tests = []
const test = (name, body) => tests.push([name, body])
let sandbox

test('code runs, and its state stays', async () => {
  sandbox = await Sandbox.create({ envs: { GREETING: 'hello' }, timeoutMs: 120_000 })
  assert.equal((await sandbox.runCode('x = 1')).text, undefined)
  const execution = await sandbox.runCode('x += 1; x')
  assert.equal(execution.text, '2')
  assert.equal(execution.executionCount, 2)
  assert.equal(execution.error, undefined)
  assert.equal((await sandbox.runCode('import os; os.getcwd()')).text, '/home/user')
  assert.equal((await sandbox.runCode('os.environ["GREETING"]')).text, 'hello')
  assert.equal((await sandbox.runCode('import asyncio; await asyncio.sleep(0, 7)')).text, '7')
})

test('output comes by callbacks and in logs', async () => {
  const seen = []
  const execution = await sandbox.runCode('import sys\nprint("out ü")\nprint("err", file=sys.stderr)\ndisplay(5)\n6', {
    onStdout: (message) => { seen.push(['out', message.line, message.error]) },
    onStderr: (message) => { seen.push(['err', message.line, message.error]) },
    onResult: (result) => { seen.push(['result', result.text, result.isMainResult]) },
  })
  assert.equal(execution.logs.stdout.join(''), 'out ü\n')
  assert.equal(execution.logs.stderr.join(''), 'err\n')
  assert.deepEqual(seen.filter(([kind]) => kind === 'result'), [['result', '5', false], ['result', '6', true]])
  assert.ok(seen.some(([kind, line, error]) => kind === 'err' && line === 'err\n' && error))
  const long = await sandbox.runCode('for i in range(20000): print("ü€😀" * 10)')
  assert.equal(long.logs.stdout.join(''), ('ü€😀'.repeat(10) + '\n').repeat(20000))
})

test('errors have a name, a value and a traceback', async () => {
  let told
  const execution = await sandbox.runCode('def f():\n  1 / 0\nf()', { onError: (error) => { told = error } })
  assert.equal(execution.error.name, 'ZeroDivisionError')
  assert.equal(execution.error.value, 'division by zero')
  assert.match(execution.error.traceback, /in f/)
  assert.equal(told.name, 'ZeroDivisionError')
  assert.equal((await sandbox.runCode('import os; os._exit(3)')).error.name, 'InterpreterError')
  assert.equal((await sandbox.runCode('1')).executionCount, 1)
})

test('results have forms', async () => {
  const execution = await sandbox.runCode(`
class A:
    def _repr_mimebundle_(self, **_): return {'text/html': '<b>', 'image/png': b'1', 'application/x-own': 'own'}
A()`)
  const [result] = execution.results
  assert.deepEqual([result.html, result.png, result.isMainResult], ['<b>', 'MQ==', true])
  assert.deepEqual(result.extra, { 'application/x-own': 'own' })
  assert.ok(result.formats().includes('png'))
  assert.deepEqual((await sandbox.runCode('{"a": [1, None]}')).results[0].json, { a: [1, null] })
})

test('languages are JavaScript and the shell, too', async () => {
  assert.equal((await sandbox.runCode('const y = 3; console.log("js"); y', { language: 'javascript' })).text, '3')
  assert.deepEqual((await sandbox.runCode('({ a: y })', { language: 'js' })).results[0].json, { a: 3 })
  const failed = await sandbox.runCode('throw new TypeError("no")', { language: 'javascript' })
  assert.deepEqual([failed.error.name, failed.error.value], ['TypeError', 'no'])
  await sandbox.runCode('cd /tmp; z=4', { language: 'bash' })
  assert.equal((await sandbox.runCode('pwd; echo $z', { language: 'bash' })).logs.stdout.join(''), '/tmp\n4\n')
  assert.equal((await sandbox.runCode('exit 3 | false', { language: 'bash' })).error.value, '1')
  await assert.rejects(sandbox.runCode('1', { language: 'cobol' }), NotFoundError)
})

test('variables are those of one run', async () => {
  assert.equal((await sandbox.runCode('import os; os.environ["A"]', { envs: { A: 'b' } })).text, 'b')
  assert.equal((await sandbox.runCode('"A" in os.environ')).text, 'False')
})

test('contexts are created, listed, restarted and removed', async () => {
  const one = await sandbox.createCodeContext({ cwd: '/tmp' })
  const two = await sandbox.createCodeContext({ language: 'javascript' })
  assert.deepEqual([one.language, one.cwd, two.language, two.cwd], ['python', '/tmp', 'javascript', '/home/user'])
  assert.equal((await sandbox.runCode('x = 9; import os; os.getcwd()', { context: one })).text, '/tmp')
  assert.equal((await sandbox.runCode('x', { context: one })).text, '9')
  assert.equal((await sandbox.runCode('1 + 1', { context: two })).text, '2')
  const listed = await sandbox.listCodeContexts()
  assert.ok(listed.some(({ id }) => id === one.id) && listed.some(({ id }) => id === two.id))
  await sandbox.restartCodeContext(one)
  assert.equal((await sandbox.runCode('x', { context: one })).error.name, 'NameError')
  await sandbox.removeCodeContext(one.id)
  await assert.rejects(sandbox.runCode('1', { context: one }), NotFoundError)
  await assert.rejects(sandbox.removeCodeContext('nonesuch'), NotFoundError)
  await assert.rejects(sandbox.runCode('1', { context: two, language: 'python' }), InvalidArgumentError)
  await assert.rejects(sandbox.createCodeContext({ cwd: '/no/such' }))
})

test('a run that takes too long is interrupted, and the context lives on', async () => {
  await sandbox.runCode('kept = 1; import time')
  await assert.rejects(sandbox.runCode('time.sleep(1000)', { timeoutMs: 500 }), TimeoutError)
  assert.equal((await sandbox.runCode('kept')).text, '1')
})

test('a killed sandbox ends a run', async () => {
  const run = sandbox.runCode('print(1)\ntime.sleep(1000)', { onStdout: () => { sandbox.kill() } })
  await assert.rejects(run, TimeoutError)
  await assert.rejects(sandbox.runCode('1'), TimeoutError)
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

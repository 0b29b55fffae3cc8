// SPDX-License-Identifier: MIT
// Loaded by --require in a jail that waits for its code: removes traces of itself, runs code paths that are
// slow the first time, reports that it is ready, and waits. Then Node runs the file as usual.
'use strict';
const at = process.execArgv.indexOf('--require');
if (at >= 0 && process.execArgv[at + 1] === __filename)
  process.execArgv.splice(at, 2);
const Module = require('module');
delete Module._cache[__filename];
for (const key of Object.keys(Module._pathCache))
  if (Module._pathCache[key] === __filename)
    delete Module._pathCache[key];
const preloaded = process._preload_modules;
if (Array.isArray(preloaded) && !Object.isFrozen(preloaded))
  preloaded.splice(0);
// A program that ends normally ends as by process.exit(): Node's own teardown takes longer than most
// programs. After an error Node ends by itself, because it prints a message.
function endQuickly() {
  const { emit, reallyExit } = process;
  let mayEnd = false;
  const value = function (name, code) {
    if (name === 'beforeExit')
      mayEnd = true;
    const heard = Reflect.apply(emit, this, arguments);
    if (name === 'exit' && mayEnd && code === 0 && !process.exitCode)
      Reflect.apply(reallyExit, process, [0]);
    return heard;
  };
  Object.defineProperty(value, 'name', { value: 'emit' });
  Object.defineProperty(process, 'emit', { value, writable: true, configurable: true, enumerable: false });
}
// V8 compiles Node's functions when they are first called. Call those that every program uses now, as far as
// a program cannot notice it.
function rehearse(fs) {
  // Not process.stdout: creating it makes its pipe non-blocking, which affects fs.writeSync() too.
  const { Socket } = require('net');
  new Socket({ readable: false, writable: true }).destroy();
  const written = () => 0;
  const handle = { writeUtf8String: written, writeLatin1String: written, close() {}, unref() {}, getAsyncId: written };
  const socket = new Socket({ handle, readable: false, writable: true });
  new (require('console').Console)({ stdout: socket, colorMode: false }).log(1, 'a', { a: [1] });
  new (require('vm').Script)('0').runInThisContext();
  fs.closeSync(fs.openSync('/dev/null'));
  try {
    Module.runMain('/dev/null/none.js'); // a path that cannot exist
  } catch { /* expected */ }
  process.nextTick(() => {});
  Promise.resolve().then(() => {});
  process._tickCallback?.(); // run what is due after a program
  process.emit(''); // a name without listeners
}
// Worker threads of the program load this script too, and must not wait.
if (require('worker_threads').isMainThread) {
  const fs = require('fs');
  const gate = 200;
  endQuickly();
  try {
    rehearse(fs);
  } catch { /* only slower later */ }
  fs.writeSync(gate, 'r');
  // End of file: the executor is gone.
  if (fs.readSync(gate, Buffer.alloc(1), 0, 1) !== 1)
    process.reallyExit(1);
  fs.closeSync(gate);
}

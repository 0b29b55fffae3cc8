// SPDX-License-Identifier: MIT
// Loaded by --require in a jail that waits for its code: takes itself out of sight, does what is slow the
// first time, says that it is ready, and waits. Then Node goes on to the file as ever.
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
// What ends by itself, and well, ends as by process.exit(): Node would take itself apart first, which takes
// longer than most programs. An end with an error is left to Node, which has something to print then.
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
// What every program makes Node do is compiled by its engine when it is first done: so it is done now, as far as
// nothing of it can be seen later.
function rehearse(fs) {
  // Not process.stdout itself: that would make its pipe one that does not block, for fs.writeSync() too.
  const { Socket } = require('net');
  new Socket({ readable: false, writable: true }).destroy();
  const written = () => 0;
  const handle = { writeUtf8String: written, writeLatin1String: written, close() {}, unref() {}, getAsyncId: written };
  const socket = new Socket({ handle, readable: false, writable: true });
  new (require('console').Console)({ stdout: socket, colorMode: false }).log(1, 'a', { a: [1] });
  new (require('vm').Script)('0').runInThisContext();
  fs.closeSync(fs.openSync('/dev/null'));
  try {
    Module.runMain('/dev/null/none.js'); // which is not there, and cannot be
  } catch { /* but was looked for */ }
  process.nextTick(() => {});
  Promise.resolve().then(() => {});
  process._tickCallback?.(); // what is due after a program, now
  process.emit(''); // a name without listeners
}
// Threads of the code's own load what the process was started with, and have nothing to wait for.
if (require('worker_threads').isMainThread) {
  const fs = require('fs');
  const gate = 200;
  endQuickly();
  try {
    rehearse(fs);
  } catch { /* then it is compiled later */ }
  fs.writeSync(gate, 'r');
  // Without a byte there is nobody any more who could want this.
  if (fs.readSync(gate, Buffer.alloc(1), 0, 1) !== 1)
    process.reallyExit(1);
  fs.closeSync(gate);
}

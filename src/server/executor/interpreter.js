// SPDX-License-Identifier: MIT
// Runs code in a sandbox's context for Node. It is given by -e, and speaks JSON lines on descriptor 3, as
// interpreter.py does. The inspector evaluates as a console does: with `await` everywhere, and with names that may be
// declared again. vm.Script lets SIGINT end a loop.
(() => {
  'use strict';
  const { Socket } = require('net');
  const { Session } = require('inspector');
  const { inspect } = require('util');
  const vm = require('vm');
  const TEXT_MAX = 40000, FORM_MAX = 6 << 20, RESULTS_MAX = 256, RUN_MAX = 14 << 20; // as in interpreter.py
  const script = new vm.Script('globalThis.__brig_run()');
  const channel = new Socket({ fd: 3 });
  const session = new Session();
  const waiting = [];
  let current = null; // the run
  let count = 0;

  function say(message) {
    channel.write(JSON.stringify(message) + '\n');
  }

  // ---- values ----

  function describe(value) {
    const forms = { 'text/plain': inspect(value).slice(0, TEXT_MAX) };
    if (value !== null && typeof value === 'object' && !(value instanceof Error)) {
      const json = isPlain(value) ? attempt(() => JSON.stringify(value)) : undefined;
      if (json !== undefined && json.length <= FORM_MAX)
        forms['application/json'] = JSON.parse(json);
      const display = value[Symbol.for('Jupyter.display')];
      if (typeof display === 'function')
        Object.assign(forms, display.call(value));
    }
    return forms;
  }

  // Whether JSON says all of it.
  function isPlain(value) {
    const prototype = Object.getPrototypeOf(value);
    return Array.isArray(value) || prototype === Object.prototype || prototype === null ||
      typeof value.toJSON === 'function';
  }

  function define(name, value) {
    Object.defineProperty(globalThis, name, { value, configurable: true, writable: true, enumerable: false });
  }

  // Scripts can use the function by its name while the action is carried out.
  function lend(name, value, action) {
    define(name, value);
    try {
      return action();
    } finally {
      delete globalThis[name];
    }
  }

  function attempt(action) {
    try {
      return action();
    } catch {
      return undefined;
    }
  }

  function show(value, main) {
    const run = current;
    if (!run)
      return;
    const data = attempt(() => describe(value)) ?? { 'text/plain': 'a value that cannot be shown' };
    for (const name of Object.keys(data)) {
      const length = attempt(() => JSON.stringify(data[name]).length) ?? Infinity;
      if (length > FORM_MAX)
        delete data[name];
      else
        run.bytes += length;
    }
    if (++run.results <= RESULTS_MAX && run.bytes <= RUN_MAX)
      say({ type: 'result', run: run.number, main, data });
    else if (!run.told)
      run.told = process.stderr.write('there are too many results, or too large ones: the rest is left out\n');
  }

  // ---- errors ----

  function tellError(run, error) {
    const isError = error !== null && typeof error === 'object' && attempt(() => typeof error.stack) === 'string';
    const name = isError ? attempt(() => String(error.name)) : typeof error;
    const value = isError ? attempt(() => String(error.message)) : attempt(() => inspect(error));
    const stack = isError ? error.stack : `Uncaught ${value}`;
    const own = stack.search(/\n\s+at (Session\.post|.*node:inspector|Script\.runInThisContext)/);
    say({ type: 'error', run: run.number, name: name ?? 'Error', value: (value ?? '').slice(0, TEXT_MAX),
          traceback: (own < 0 ? stack : stack.slice(0, own)).slice(0, TEXT_MAX) });
  }

  class Interrupted extends Error {
    constructor() {
      super('the run was interrupted');
      this.name = 'Interrupted';
      this.stack = 'Interrupted: the run was interrupted';
    }
  }

  // ---- runs ----

  // The inspector cannot import modules. So they are imported by a function.
  function withImports(code) {
    const from = '\\s*from\\s*([\'"][^\'"]+[\'"])';
    const load = '__brig_import';
    return code
      .replace(new RegExp(`^([ \\t]*)import\\s+\\*\\s*as\\s+([\\w$]+)${from}`, 'gm'), `$1const $2 = await ${load}($3)`)
      .replace(new RegExp(`^([ \\t]*)import\\s+([\\w$]+)\\s*,\\s*(\\{[^}]*\\})${from}`, 'gm'),
               (all, space, name, names, path) =>
                 `${space}const { default: ${name}, ${names.slice(1).replace(/\s+as\s+/g, ': ')} = await ${load}(${path})`)
      .replace(new RegExp(`^([ \\t]*)import\\s+(\\{[^}]*\\})${from}`, 'gm'),
               (all, space, names, path) =>
                 `${space}const ${names.replace(/\s+as\s+/g, ': ')} = await ${load}(${path})`)
      .replace(new RegExp(`^([ \\t]*)import\\s+([\\w$]+)${from}`, 'gm'), `$1const { default: $2 } = await ${load}($3)`)
      .replace(/^([ \t]*)import\s*(['"][^'"]+['"])/gm, `$1await ${load}($2)`)
      .replace(/(^|[^\w$.'"`])import\s*\(/g, `$1${load}(`);
  }

  // The value behind what the inspector says of it.
  function fetchValue(remote) {
    let found;
    if (!remote.objectId) {
      const written = remote.unserializableValue;
      if (written === undefined)
        return remote.type === 'undefined' ? undefined : remote.value;
      return written.endsWith('n') ? BigInt(written.slice(0, -1)) : Number(written);
    }
    lend('__brig_take', (value) => { found = value; }, () => session.post('Runtime.callFunctionOn', {
      objectId: remote.objectId, silent: true,
      functionDeclaration: 'function () { "use strict"; globalThis.__brig_take(this); }' }));
    session.post('Runtime.releaseObject', { objectId: remote.objectId });
    return found;
  }

  function finish(run, error, value) {
    if (current !== run)
      return; // it was interrupted
    if (error)
      tellError(run, error.value);
    else if (value !== undefined)
      show(value, true);
    for (const [name, old] of run.old)
      if (old === undefined)
        delete process.env[name];
      else
        process.env[name] = old;
    current = null;
    say({ type: 'done', run: run.number });
    setImmediate(next);
  }

  function evaluated(run, failure, answer) {
    if (failure)
      finish(run, { value: new Error(failure.message) });
    else if (answer.exceptionDetails)
      finish(run, { value: fetchValue(answer.exceptionDetails.exception) });
    else
      finish(run, null, fetchValue(answer.result));
  }

  function begin(request) {
    const run = { number: request.run, results: 0, bytes: 0, old: [] };
    count++;
    current = run;
    for (const pair of request.env) {
      const at = pair.indexOf('=');
      run.old.push([pair.slice(0, at), process.env[pair.slice(0, at)]]);
      process.env[pair.slice(0, at)] = pair.slice(at + 1);
    }
    say({ type: 'begun', run: run.number });
    const expression = withImports(request.code) + `\n//# sourceURL=run${count}.js`;
    const evaluate = () => session.post(
      'Runtime.evaluate', { expression, replMode: true, awaitPromise: true, silent: true },
      (failure, answer) => evaluated(run, failure, answer));
    try {
      lend('__brig_run', evaluate, () => script.runInThisContext({ breakOnSigint: true }));
    } catch (error) {
      finish(run, { value: error?.code === 'ERR_SCRIPT_EXECUTION_INTERRUPTED' ? new Interrupted() : error });
    }
  }

  function next() {
    if (!current && waiting.length > 0)
      begin(waiting.shift());
  }

  session.connect();
  define('display', (...values) => values.forEach((value) => show(value, false)));
  define('__brig_import', (name) => import(name));
  process.on('SIGINT', () => current && finish(current, { value: new Interrupted() }));
  process.on('uncaughtException', (error) => process.stderr.write(`Uncaught ${inspect(error)}\n`));
  process.on('unhandledRejection', (error) => process.stderr.write(`Unhandled rejection: ${inspect(error)}\n`));
  let rest = '';
  channel.setEncoding('utf8');
  channel.on('data', (piece) => {
    const lines = (rest + piece).split('\n');
    rest = lines.pop();
    waiting.push(...lines.filter((line) => line).map((line) => JSON.parse(line)));
    next();
  });
  channel.on('close', () => process.reallyExit(0));
  say({ type: 'ready' });
})();

// SPDX-License-Identifier: MIT
// Commands: options, jobs with their streams, templates.
"use strict";

const { EventEmitter } = require("node:events");
const fs = require("node:fs");
const net = require("node:net");
const os = require("node:os");
const tty = require("node:tty");

const native = require("../build/brig.node");
const { AbortError, StateError, call, translate } = require("./errors.js");
const { Policy, bytes, count, invalid, text, texts } = require("./policy.js");
const { Result, camel } = require("./result.js");

// In the order of enum brig_stdio_kind; 'input' is chosen by the option of that name.
const KINDS = ["ignore", "inherit", "fd", "capture", "input", "pipe", "pty", "stdout"];
const MEMORY = { "address-space": "addressSpaceBytes", rss: "memoryBytes" };
const OPTIONS = new Set([
  "check", "cpuTimeout", "cwd", "encoding", "env", "fsAllow", "fsReadAllow", "grace", "input", "maxOutput", "memory",
  "memoryMb", "mode", "network", "onUnsupported", "passFds", "policy", "processes", "signal", "stdio", "timeout",
]);
// Those that a template has decided.
const OF_POLICY = [
  "cpuTimeout", "cwd", "fsAllow", "fsReadAllow", "grace", "maxOutput", "memory", "memoryMb", "mode", "network",
  "onUnsupported", "policy", "processes", "timeout",
];

// ---- Options ----

function checkOptions(options) {
  if (Array.isArray(options)) throw invalid("arguments are given with the command: ['echo', 'hello']");
  for (const name of Object.keys(options)) if (!OPTIONS.has(name)) throw invalid(`unknown option '${name}'`);
  if (options.signal !== undefined && !(options.signal instanceof AbortSignal)) throw invalid("signal must be an AbortSignal");
  if (options.encoding && !Buffer.isEncoding(options.encoding)) throw invalid(`unknown encoding '${options.encoding}'`);
}

/** An option that may be left out. */
const countOf = (name, value) => (value === undefined ? undefined : count(name, value));

/** The policy with the options laid over it; an option that is not given leaves the policy's. */
function policyOf(options) {
  if (options.policy !== undefined && options.mode !== undefined) throw invalid("give policy or mode, not both");
  const policy = options.policy ? (Policy.handle(options.policy), options.policy.copy()) : new Policy(options.mode);
  const kind = options.memory ?? "address-space";
  if (!Object.hasOwn(MEMORY, kind)) throw invalid(`memory: '${kind}' is not one of ${Object.keys(MEMORY).join(", ")}`);
  policy.limit({
    wallMs: countOf("timeout", options.timeout),
    cpuMs: countOf("cpuTimeout", options.cpuTimeout),
    graceMs: countOf("grace", options.grace),
    processes: countOf("processes", options.processes),
    outputBytes: countOf("maxOutput", options.maxOutput),
    [MEMORY[kind]]: options.memoryMb === undefined ? undefined : count("memoryMb", options.memoryMb) * 2 ** 20,
  });
  for (const path of texts("fsAllow", options.fsAllow ?? [])) policy.grant(path, "read-write");
  for (const path of texts("fsReadAllow", options.fsReadAllow ?? [])) policy.grant(path, "read-only");
  if (options.network !== undefined) policy.network(options.network);
  if (options.cwd !== undefined) policy.workdir(options.cwd);
  if (options.onUnsupported !== undefined) policy.onUnsupported(options.onUnsupported);
  return policy;
}

function argvOf(argv) {
  if (!Array.isArray(argv)) throw invalid("the command is an array of arguments; for a shell: ['sh', '-c', text]");
  if (argv.length === 0) throw invalid("the command is empty");
  return texts("argument", argv);
}

function envOf(env) {
  return Object.entries(env ?? process.env)
    .filter(([, value]) => value !== undefined)
    .map(([name, value]) => `${text("env", name)}=${text(name, String(value))}`);
}

/** One of the three as [kind, fd]. */
function streamOf(value, index) {
  if (typeof value === "number") return ["fd", count("stdio", value)];
  const fd = value?.fd ?? value?._handle?.fd;
  if (typeof fd === "number") return ["fd", fd];
  if (!KINDS.includes(value) || value === "fd" || value === "input" || (value === "capture" && index === 0) || (value === "stdout" && index !== 2)) {
    const more = ["", ", 'capture'", ", 'capture', 'stdout'"][index];
    throw invalid(`stdio[${index}]: '${value}' is not 'ignore', 'inherit', 'pipe', 'pty'${more} or a descriptor`);
  }
  return [value, -1];
}

function stdioOf(options, fallback) {
  const given = options.stdio ?? fallback;
  const all = Array.isArray(given) ? given : [given === "capture" ? "ignore" : given, given, given];
  const streams = [0, 1, 2].map((index) => streamOf(all[index] ?? fallback[index], index));
  if (options.input === undefined) return streams;
  if (Array.isArray(options.stdio) && (options.stdio[0] ?? null) !== null) throw invalid("give input or stdio[0], not both");
  streams[0] = ["input", -1];
  return streams;
}

/** {3: fd} as a flat array: the fd, its number inside, the next fd. */
function passFdsOf(passFds = {}) {
  return Object.entries(passFds).flatMap(([number, fd]) => [count("passFds", fd), count("passFds", Number(number))]);
}

// ---- Streams ----

/** What can still be read from a terminal whose programs have ended. */
function* last(fd) {
  const bytes = Buffer.alloc(65536);
  try {
    for (let length; (length = fs.readSync(fd, bytes)) > 0;) yield Buffer.from(bytes.subarray(0, length));
  } catch {
    // EIO: that was all
  }
}

/** The other side of a terminal. Linux reports its end as EIO. */
class Terminal extends tty.ReadStream {
  // libuv takes a short read of a terminal that nobody has open any more for the end, and loses what comes after it.
  push(piece, encoding) {
    if (piece === null && this._handle?.fd >= 0) for (const more of last(this._handle.fd)) super.push(more);
    return super.push(piece, encoding);
  }

  destroy(error, callback) {
    if (error?.code !== "EIO") return super.destroy(error, callback);
    if (!this.readableEnded) this.push(null);
    return this;
  }

  _final(callback) {
    callback(); // there is no half of a terminal to be closed
  }
}

function openPipe(job, index) {
  const fd = call(native.jobTakeStream, job, index);
  if (fd < 0) return null;
  const stream = new net.Socket({ fd, readable: index > 0, writable: index === 0 });
  // A command that does not read its input is not an error of the caller's program.
  if (index === 0) stream.on("error", () => {});
  return stream;
}

function openTerminal(job) {
  const fd = call(native.jobTerminal, job);
  return fd < 0 ? null : new Terminal(fd);
}

// ---- Jobs ----

/** A command that runs, or has ended. Events: 'exit' (result), 'net' (event), 'stop' (signal). */
class Job extends EventEmitter {
  #native;
  #ended; // the promise of the result
  #settle;
  #over = false;
  #keep = false; // whether the job is needed beyond its end
  #options;
  #abort = null;

  /** For start() and Template. */
  constructor(handle, argv, options, kinds) {
    super();
    this.#native = handle;
    this.#options = options;
    this.argv = argv;
    this.pid = call(native.jobPid, handle);
    const usesTerminal = kinds.includes("pty");
    this.terminal = usesTerminal ? openTerminal(handle) : null;
    [this.stdin, this.stdout, this.stderr] = kinds.map((kind, index) => (kind === "pipe" ? openPipe(handle, index) : null));
    if (options.encoding) for (const stream of [this.stdout, this.stderr, this.terminal]) stream?.setEncoding(options.encoding);
    this.#ended = new Promise((resolve, reject) => {
      this.#settle = { resolve, reject };
    });
    this.#ended.catch(() => {}); // whoever waits hears of it
    call(native.jobWatch, handle, () => this.#process());
    // A command may have stopped before there was a job to watch.
    setImmediate(() => this.#over || this.#process());
    this.#listen(options.signal);
  }

  #listen(signal) {
    if (!signal) return;
    this.#abort = () => {
      try {
        this.cancel();
      } catch {
        // it ended meanwhile
      }
    };
    if (signal.aborted) this.#abort();
    else signal.addEventListener("abort", this.#abort, { once: true });
  }

  #process() {
    const events = [];
    try {
      const over = call(native.jobProcess, this.#native);
      this.#take(events);
      if (over) events.push(["exit", this.#finish()]);
    } catch (error) {
      this.#end();
      this.#settle.reject(error);
    }
    for (const [name, value] of events) this.emit(name, value);
  }

  /** What is to be told to listeners. */
  #take(events) {
    for (let event; (event = call(native.jobTakeNetEvent, this.#native)) !== undefined; )
      events.push(["net", camel(JSON.parse(event))]);
    const stop = call(native.jobTakeStop, this.#native);
    if (stop) events.push(["stop", signalName(stop)]);
  }

  #finish() {
    const result = new Result(this.argv, call(native.jobResult, this.#native), this.#options.encoding);
    this.#keep = call(native.jobKeptDir, this.#native) >= 0;
    this.#end();
    if (this.#options.signal?.aborted && result.outcome === "cancelled")
      this.#settle.reject(new AbortError(this.#options.signal.reason, result));
    else this.#settle.resolve(result);
    return result;
  }

  /** The job is over, and released unless it has a directory that is kept. */
  #end() {
    this.#over = true;
    this.#options.signal?.removeEventListener("abort", this.#abort);
    call(this.#keep ? native.jobUnwatch : native.jobFree, this.#native);
  }

  #must() {
    if (this.#over) throw new StateError("the job is over", { code: "BRIG_E_STATE" });
  }

  /** What became of the command; with a number of milliseconds, null if it is not over by then. */
  wait(timeout) {
    if (timeout === undefined) return this.#ended;
    count("timeout", timeout);
    let timer;
    const late = new Promise((resolve) => {
      timer = setTimeout(resolve, timeout, null);
    });
    return Promise.race([this.#ended, late]).finally(() => clearTimeout(timer));
  }

  /** Sends a signal to the command's process group. */
  kill(signal = "SIGTERM") {
    this.#must();
    const number = typeof signal === "number" ? signal : os.constants.signals[signal];
    if (!Number.isInteger(number)) throw invalid(`unknown signal '${signal}'`);
    call(native.jobSignal, this.#native, number);
  }

  /** Asks for the end: TERM, the policy's grace, KILL of the whole tree. */
  cancel() {
    this.#must();
    call(native.jobCancel, this.#native);
  }

  /** Sets the size of the terminal. */
  resize(rows, columns) {
    this.#must();
    call(native.jobResize, this.#native, count("rows", rows), count("columns", columns));
  }

  /** Where the directory of Policy.keep() is, until close(). Its contents are the command's: follow no links. */
  get keptDir() {
    const fd = this.#over && !this.#keep ? -1 : call(native.jobKeptDir, this.#native);
    return fd < 0 ? null : `/proc/self/fd/${fd}`;
  }

  /** Ends the command if it still runs, waits for that, and releases everything. */
  async close() {
    if (!this.#over) this.cancel();
    await this.#ended.catch(() => {});
    this.#keep = false;
    call(native.jobFree, this.#native);
    for (const stream of [this.stdin, this.stdout, this.stderr, this.terminal]) stream?.destroy();
  }

  /** Whether the program goes on as long as the job does, which is the default. */
  ref() {
    call(native.jobKeepAlive, this.#native, 1);
    return this;
  }

  unref() {
    call(native.jobKeepAlive, this.#native, 0);
    return this;
  }
}
// await using job = …, where Node has it.
if (Symbol.asyncDispose) Job.prototype[Symbol.asyncDispose] = Job.prototype.close;

function signalName(number) {
  return Object.entries(os.constants.signals).find(([, value]) => value === number)?.[0] ?? `SIG${number}`;
}

/** `template` is one of the addon's, or null. */
async function launch(argv, options, fallback, template) {
  checkOptions(options);
  const words = argvOf(argv);
  if (options.signal?.aborted) throw new AbortError(options.signal.reason);
  for (const name of OF_POLICY)
    if (template && options[name] !== undefined) throw invalid(`'${name}' is decided by the template`);
  const policy = template ? null : Policy.handle(Policy.withEnv(policyOf(options), options.env ?? null));
  const streams = stdioOf(options, fallback);
  const kinds = streams.map(([kind]) => kind);
  const input = options.input === undefined ? null : bytes("input", options.input);
  const start = [
    policy, template, words, envOf(options.env), kinds.map((kind) => KINDS.indexOf(kind)), streams.map(([, fd]) => fd),
    input, passFdsOf(options.passFds),
  ];
  const handle = await Promise.resolve(call(native.jobStart, ...start)).catch((error) => {
    throw translate(error);
  });
  return new Job(handle, words, options, kinds);
}

/** Starts a command; resolves once it runs. Its streams are pipes unless `stdio` says otherwise. */
function start(argv, options = {}) {
  if (options.check !== undefined) return Promise.reject(invalid("'check' is an option of run(); use Result.check()"));
  return launch(argv, options, ["pipe", "pipe", "pipe"], null);
}

async function runWith(argv, options, template) {
  const fallback = ["ignore", "capture", "capture"];
  if (stdioOf(options, fallback).some(([kind]) => kind === "pipe" || kind === "pty"))
    throw invalid("run() has no pipes and terminals: use start()");
  const job = await launch(argv, options, fallback, template);
  const result = await job.wait().finally(() => job.close());
  return options.check ? result.check() : result;
}

/** Runs a command and resolves with what became of it, whatever that is. */
function run(argv, options = {}) {
  return runWith(argv, options, null);
}

/** A jail prepared ahead: each start only adds what must be fresh. */
class Template {
  #policy; // null: closed
  // Promises of the addon's templates: with the caller's environment, and with one that is given. The second is made when
  // it is needed first.
  #caller = null;
  #given = null;

  /** For Template.create(). */
  constructor(policy) {
    this.#policy = policy.copy();
  }

  static async create(policy = new Policy()) {
    Policy.handle(policy);
    const template = new Template(policy);
    await template.#handle({});
    return template;
  }

  #make(env) {
    const made = call(native.templateNew, Policy.handle(Policy.withEnv(this.#policy, env)));
    return made.catch((error) => {
      throw translate(error);
    });
  }

  #handle({ env = null }) {
    if (!this.#policy) throw new StateError("the template is closed", { code: "BRIG_E_STATE" });
    if (env === null) return (this.#caller ??= this.#make(null));
    return (this.#given ??= this.#make(env));
  }

  async start(argv, options = {}) {
    return launch(argv, options, ["pipe", "pipe", "pipe"], await this.#handle(options));
  }

  async run(argv, options = {}) {
    return runWith(argv, options, await this.#handle(options));
  }

  /** Jobs that were started from it go on. */
  close() {
    this.#policy = null;
    for (const made of [this.#caller, this.#given])
      // After starts that wait for the same promise.
      made?.then((handle) => setImmediate(() => call(native.templateFree, handle))).catch(() => {});
    this.#caller = this.#given = null;
  }
}

module.exports = { Job, Template, run, start };

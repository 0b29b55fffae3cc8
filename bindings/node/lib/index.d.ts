// SPDX-License-Identifier: MIT
// brig for Node: run a command in a jail and learn precisely what became of it.
/// <reference types="node" />

import { EventEmitter } from "node:events";
import { Duplex, Readable, Writable } from "node:stream";

/** The version of libbrig in use. */
export const version: string;

// ---- Policy ----

export type Mode = "sealed" | "casual" | "bare" | "strict";
export type View = "system" | "host" | "root" | "empty";
export type Access = "read-write" | "read-only" | "mask" | "device" | "protect";
export type Network = "none" | "host" | "allow" | "open" | "loopback";
export type OnUnsupported = "fail" | "warn" | "ignore";
export type Layer = "landlock" | "seccomp" | "caps" | "namespaces" | "nested";

/** 0 is no limit; what is left out stays as the mode has it. */
export interface Limits {
  wallMs?: number;
  cpuMs?: number;
  graceMs?: number;
  addressSpaceBytes?: number;
  fileSizeBytes?: number;
  openFiles?: number;
  processes?: number;
  outputBytes?: number;
  tmpBytes?: number;
  tmpInodes?: number;
  memoryBytes?: number;
  cpuPercent?: number;
  ioReadBytes?: number;
  ioWriteBytes?: number;
  inotifyWatches?: number;
  netConnections?: number;
  netBytes?: number;
  netIdleMs?: number;
}

/** Who the jail is; what is left out is chosen. */
export interface Identity {
  hostUid?: number;
  hostGid?: number;
  insideUid?: number;
  insideGid?: number;
  name?: string;
  home?: string;
  shell?: string;
}

/** A credential that never enters the jail. */
export interface Credential {
  name: string;
  header: string;
  value: string;
  upstream?: string;
  variable?: string;
  suffix?: string;
  ca?: string;
  site?: string;
  methods?: string[];
  paths?: string[];
  strip?: string[];
}

export interface GrantOptions {
  /** Where it is inside; by default at the same path. */
  dest?: string;
  /** A missing source is no error. */
  optional?: boolean;
  /** A missing source is created as a directory, outside. */
  create?: boolean;
}

/** What a jail may see, reach and use. Every method but ungrant, copy and explain returns the policy. */
export class Policy {
  constructor(mode?: Mode | Policy);
  copy(): Policy;
  origin(where: string): this;
  view(view: View, root?: string): this;
  grant(source: string, access?: Access, options?: GrantOptions): this;
  /** How many rules were taken back. */
  ungrant(dest: string): number;
  private(dest: string, access?: "read-write" | "read-only"): this;
  file(dest: string, contents: string | NodeJS.ArrayBufferView, mode?: number): this;
  /** Keeps a private directory for Job.keptDir. */
  keep(dest: string): this;
  identity(identity: Identity): this;
  network(network: Network): this;
  /** Rules for the networks "allow" and "open"; others ignore them. */
  allow(...rules: string[]): this;
  deny(...rules: string[]): this;
  publish(...ports: string[]): this;
  proxyEnv(on?: boolean): this;
  netProxy(proxy: string, options?: { secret?: string; noProxy?: string[] }): this;
  broker(path: string): this;
  inject(credential: Credential): this;
  seccomp(profile: "dev" | "code"): this;
  limit(limits: Limits): this;
  /** A value of null exposes the caller's variable again. */
  setenv(variables: Record<string, string | null>): this;
  unsetenv(...patterns: string[]): this;
  terminal(terminal: "auto" | "none"): this;
  workdir(path: string): this;
  hostname(name: string): this;
  allowNested(on?: boolean): this;
  unixSockets(on?: boolean): this;
  trace(on?: boolean): this;
  onUnsupported(what: OnUnsupported): this;
  disable(...layers: Layer[]): this;
  explain(): string;
  explainJSON(): Record<string, unknown>;
}

// ---- Results ----

export type Outcome =
  | "exited" | "signalled" | "timeout" | "cpu-timeout" | "oom" | "output-limit" | "disk-limit" | "pids-limit" | "denied"
  | "setup-failed" | "cancelled";

export interface Usage {
  wallUs: number;
  cpuUserUs: number;
  cpuSysUs: number;
  peakMemoryBytes: number | null;
  peakPids: number | null;
  oomKills: number;
  pidsRefused: number;
  cpuThrottledUs: number;
  /** A process in uninterruptible sleep that could not be ended yet. */
  stuckPid?: number;
  stdoutBytes: number;
  stderrBytes: number;
}

/** A system call that the filter refused. */
export interface Denial {
  name: string;
  errno: number;
  count: number;
}

/** One try to reach something through the network door. */
export interface NetEvent {
  time: string | null;
  verdict: "allowed" | "denied" | "failed" | "ended" | "waiting";
  name: string | null;
  address: string | null;
  port: number | null;
  via: string;
  because: string;
  rule: string | null;
  detail: string | null;
  connection?: number;
  bytesIn?: number;
  bytesOut?: number;
  durationMs?: number;
}

export interface NetworkUse {
  allowed: number;
  denied: number;
  failed: number;
  bytesIn: number;
  bytesOut: number;
  eventsDropped: number;
  events: NetEvent[];
}

/** What became of a command. T is what holds its output: Buffer, or string with `encoding`. */
export class Result<T extends Buffer | string = Buffer> {
  private constructor();
  readonly argv: string[];
  readonly outcome: Outcome;
  /** null unless it exited by itself. */
  readonly exitCode: number | null;
  /** The signal that ended it, also for timeouts. */
  readonly signal: NodeJS.Signals | null;
  /** As a shell would say it. */
  readonly status: number;
  readonly stdout: T;
  readonly stderr: T;
  readonly truncated: { stdout: boolean; stderr: boolean };
  readonly usage: Usage;
  /** Restrictions that were not enforced, or were switched off. */
  readonly unenforced: string[];
  readonly notices: string[];
  /** null: they were not listened for, see Policy.trace(). */
  readonly denials: Denial[] | null;
  readonly network: NetworkUse;
  readonly error: { code: number; errno: number; message: string } | null;
  readonly insideJail: boolean;
  /** Whether it exited with 0. */
  readonly ok: boolean;
  /** Itself if the command exited with 0; else throws CommandError. */
  check(): this;
}

// ---- Commands ----

export type Stream = "ignore" | "inherit" | "capture" | "pipe" | "pty" | number | { fd: number };

export interface CommandOptions {
  /** Passed on as it is. By default process.env, of which the mode passes on what is harmless. */
  env?: Record<string, string | undefined>;
  /** What the command reads. */
  input?: string | NodeJS.ArrayBufferView;
  /** One for all three, or each; "stdout" for the last one is 2>&1 of a shell. */
  stdio?: Stream | [Stream?, Stream?, (Stream | "stdout")?];
  /** Descriptors to hand into the jail: their number inside, and the caller's. */
  passFds?: Record<number, number>;
  /** Ends the command; the promise of its result is rejected with AbortError. */
  signal?: AbortSignal;
  /** The output is a string. */
  encoding?: BufferEncoding;
}

/** Laid over the policy; what is left out stays as it is there. Times are milliseconds; 0 is no limit. */
export interface PolicyOptions {
  policy?: Policy;
  mode?: Mode;
  timeout?: number;
  cpuTimeout?: number;
  /** Between TERM and KILL. */
  grace?: number;
  memoryMb?: number;
  /** What memoryMb counts: what each process maps, or what all of them use, which needs a cgroup. */
  memory?: "address-space" | "rss";
  processes?: number;
  /** Bytes of each captured stream. */
  maxOutput?: number;
  fsAllow?: string[];
  fsReadAllow?: string[];
  network?: Network;
  cwd?: string;
  onUnsupported?: OnUnsupported;
}

export interface StartOptions extends CommandOptions, PolicyOptions {}
export interface RunOptions extends StartOptions {
  /** All but exit code 0 rejects with CommandError. */
  check?: boolean;
}
export interface TemplateRunOptions extends CommandOptions {
  check?: boolean;
}
type Encoded = { encoding: BufferEncoding };

/** A command that runs, or has ended. */
export class Job<T extends Buffer | string = Buffer> extends EventEmitter {
  private constructor();
  readonly argv: string[];
  /** The jail's first process, as seen from outside. */
  readonly pid: number;
  /** null unless it is a pipe. */
  readonly stdin: Writable | null;
  readonly stdout: Readable | null;
  readonly stderr: Readable | null;
  /** The other side of 'pty'. */
  readonly terminal: Duplex | null;
  readonly keptDir: string | null;
  wait(): Promise<Result<T>>;
  /** null if it is not over within so many milliseconds. */
  wait(timeout: number): Promise<Result<T> | null>;
  kill(signal?: NodeJS.Signals | number): void;
  cancel(): void;
  resize(rows: number, columns: number): void;
  close(): Promise<void>;
  ref(): this;
  unref(): this;
  on(event: "exit", listener: (result: Result<T>) => void): this;
  on(event: "net", listener: (event: NetEvent) => void): this;
  on(event: "stop", listener: (signal: NodeJS.Signals) => void): this;
}

/** Starts a command; resolves once it runs. Its streams are pipes unless `stdio` says otherwise. */
export function start(argv: string[], options: StartOptions & Encoded): Promise<Job<string>>;
export function start(argv: string[], options?: StartOptions): Promise<Job>;
/** Runs a command and resolves with what became of it. Its output is captured. */
export function run(argv: string[], options: RunOptions & Encoded): Promise<Result<string>>;
export function run(argv: string[], options?: RunOptions): Promise<Result>;

/** A jail prepared ahead: each start only adds what must be fresh. */
export class Template {
  private constructor();
  static create(policy?: Policy): Promise<Template>;
  start(argv: string[], options: CommandOptions & Encoded): Promise<Job<string>>;
  start(argv: string[], options?: CommandOptions): Promise<Job>;
  run(argv: string[], options: TemplateRunOptions & Encoded): Promise<Result<string>>;
  run(argv: string[], options?: TemplateRunOptions): Promise<Result>;
  close(): void;
}

// ---- Errors ----

export class BrigError extends Error {
  readonly code: string;
  /** Of the system call behind it, or 0. */
  readonly errno: number;
}
export class InvalidError extends BrigError {}
export class UnsupportedError extends BrigError {}
export class SetupError extends BrigError {}
export class NotFoundError extends SetupError {}
export class NotExecutableError extends SetupError {}
export class StateError extends BrigError {}
export class CommandError extends BrigError {
  readonly result: Result<Buffer | string>;
}
export class AbortError extends BrigError {
  readonly cause: unknown;
  /** undefined if the command was not started. */
  readonly result?: Result<Buffer | string>;
}

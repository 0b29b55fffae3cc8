// SPDX-License-Identifier: MIT
// A policy: what a jail may see, reach and use. Plain data, checked by libbrig as it is built.
"use strict";

const native = require("../build/brig.node");
const { InvalidError, call } = require("./errors.js");

const MODES = ["sealed", "casual", "bare", "strict"];
const VIEWS = ["system", "host", "root", "empty"];
const ACCESS = ["read-write", "read-only", "mask", "device", "protect"];
const NETWORKS = ["none", "host", "allow", "open", "loopback"];
const SECCOMP = ["dev", "code"];
const TERMINALS = ["auto", "none"];
const ON_UNSUPPORTED = ["fail", "warn", "ignore"];
const LAYERS = ["landlock", "seccomp", "caps", "namespaces", "nested"];
const IDENTITY = ["hostUid", "hostGid", "insideUid", "insideGid", "name", "home", "shell"];
const CREDENTIAL = [
  "name", "header", "value", "upstream", "variable", "suffix", "ca", "site", "methods", "paths", "strip",
];
// In the order of enum brig_limit.
const LIMITS = [
  "wallMs", "cpuMs", "graceMs", "addressSpaceBytes", "fileSizeBytes", "openFiles", "processes", "outputBytes", "tmpBytes",
  "tmpInodes", "memoryBytes", "cpuPercent", "ioReadBytes", "ioWriteBytes", "inotifyWatches", "netConnections", "netBytes",
  "netIdleMs",
];

function invalid(message) {
  return new InvalidError(message, { code: "BRIG_E_INVALID" });
}

/** The number of a word. */
function word(words, name, value) {
  const number = words.indexOf(value);
  if (number < 0) throw invalid(`${name}: '${value}' is not one of ${words.join(", ")}`);
  return number;
}

function text(name, value) {
  if (value instanceof URL && value.protocol === "file:") return decodeURIComponent(value.pathname);
  if (typeof value !== "string") throw invalid(`${name} must be a string`);
  if (value.includes("\0")) throw invalid(`${name} has a NUL character in it`);
  return value;
}

/** A text that may be left out. */
const textOrNull = (name, value) => (value === undefined || value === null ? null : text(name, value));

function texts(name, values) {
  if (!Array.isArray(values)) throw invalid(`${name} must be an array of strings`);
  return values.map((value) => text(name, value));
}

function count(name, value) {
  if (!Number.isSafeInteger(value) || value < 0) throw invalid(`${name} must be a whole number from 0 on, not ${value}`);
  return value;
}

/** An object with these members and no others: what is misspelt must not be ignored. */
function members(name, object, known) {
  for (const member of Object.keys(object ?? {})) if (!known.includes(member)) throw invalid(`${name} has no member '${member}'`);
  return { ...object };
}

function bytes(name, value) {
  if (typeof value === "string") return Buffer.from(value);
  if (ArrayBuffer.isView(value)) return Buffer.from(value.buffer, value.byteOffset, value.byteLength);
  throw invalid(`${name} must be a string, a Buffer or a typed array`);
}

/** Every method but ungrant, copy and explain returns the policy. */
class Policy {
  #native;

  /** Of a mode, or like another policy. */
  constructor(mode = "sealed") {
    if (mode instanceof Policy) this.#native = call(native.policyCopy, mode.#native);
    else this.#native = call(native.policyNew, word(MODES, "mode", mode));
  }

  /** For Job and Template. */
  static handle(policy) {
    if (!(policy instanceof Policy)) throw invalid("policy must be a Policy");
    return policy.#native;
  }

  #set(name, ...args) {
    call(native[`policy${name}`], this.#native, ...args);
    return this;
  }

  #setEach(name, what, values) {
    for (const value of texts(what, values)) this.#set(name, value);
    return this;
  }

  copy() {
    return new Policy(this);
  }

  origin(where) {
    return this.#set("Origin", text("origin", where));
  }

  view(view, root) {
    return this.#set("View", word(VIEWS, "view", view), textOrNull("root", root));
  }

  grant(source, access = "read-only", options = {}) {
    const { dest, optional, create } = members("grant", options, ["dest", "optional", "create"]);
    const flags = (optional ? 1 : 0) | (create ? 2 : 0);
    return this.#set("Grant", word(ACCESS, "access", access), text("source", source), textOrNull("dest", dest), flags);
  }

  ungrant(dest) {
    return call(native.policyUngrant, this.#native, text("dest", dest));
  }

  private(dest, access = "read-write") {
    return this.#set("Private", word(ACCESS, "access", access), text("dest", dest));
  }

  file(dest, contents, mode = 0o644) {
    return this.#set("File", text("dest", dest), bytes("contents", contents), count("mode", mode));
  }

  keep(dest) {
    return this.#set("Keep", text("dest", dest));
  }

  identity(identity) {
    return this.#set("Identity", members("identity", identity, IDENTITY));
  }

  network(network) {
    return this.#set("Network", word(NETWORKS, "network", network));
  }

  allow(...rules) {
    return this.#setEach("Allow", "rule", rules);
  }

  deny(...rules) {
    return this.#setEach("Deny", "rule", rules);
  }

  publish(...ports) {
    return this.#setEach("Publish", "port", ports);
  }

  proxyEnv(on = true) {
    return this.#set("ProxyEnv", on ? 1 : 0);
  }

  netProxy(proxy, options = {}) {
    const { secret, noProxy } = members("netProxy", options, ["secret", "noProxy"]);
    return this.#set("NetProxy", text("proxy", proxy), textOrNull("secret", secret), noProxy ? texts("noProxy", noProxy) : null);
  }

  broker(path) {
    return this.#set("Broker", text("path", path));
  }

  inject(credential) {
    return this.#set("Inject", members("inject", credential, CREDENTIAL));
  }

  seccomp(profile) {
    return this.#set("Seccomp", word(SECCOMP, "profile", profile));
  }

  limit(limits) {
    for (const [name, value] of Object.entries(limits))
      if (value !== undefined) this.#set("Limit", word(LIMITS, "limit", name), count(name, value));
    return this;
  }

  setenv(variables) {
    for (const [name, value] of Object.entries(variables)) this.#set("Setenv", text("name", name), textOrNull(name, value));
    return this;
  }

  unsetenv(...patterns) {
    return this.#setEach("Unsetenv", "pattern", patterns);
  }

  /** For the option `env`: null is the caller's, of which the mode passes on what is harmless; what is given is passed on. */
  static withEnv(policy, env) {
    const copy = policy.copy();
    if (env === null) return copy.#set("HostEnv", 1);
    return copy.#set("Setenv", "*", null);
  }

  terminal(terminal) {
    return this.#set("Terminal", word(TERMINALS, "terminal", terminal));
  }

  workdir(path) {
    return this.#set("Workdir", text("path", path));
  }

  hostname(name) {
    return this.#set("Hostname", text("name", name));
  }

  allowNested(on = true) {
    return this.#set("AllowNested", on ? 1 : 0);
  }

  unixSockets(on = true) {
    return this.#set("UnixSockets", on ? 1 : 0);
  }

  trace(on = true) {
    return this.#set("Trace", on ? 1 : 0);
  }

  onUnsupported(what) {
    return this.#set("OnUnsupported", word(ON_UNSUPPORTED, "onUnsupported", what));
  }

  disable(...layers) {
    return this.#set("Disable", layers.reduce((bits, layer) => bits | (1 << word(LAYERS, "layer", layer)), 0));
  }

  /** The effective policy for people; explainJSON() for programs. */
  explain() {
    return call(native.policyExplain, this.#native, 0);
  }

  explainJSON() {
    return JSON.parse(call(native.policyExplain, this.#native, 1));
  }
}

module.exports = { Policy, bytes, count, invalid, text, texts };

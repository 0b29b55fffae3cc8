// SPDX-License-Identifier: MIT
// What became of a command.
"use strict";

const { CommandError } = require("./errors.js");

/** Names of JSON as names of JavaScript, at every depth: exit_code is exitCode. */
function camel(value) {
  if (Array.isArray(value)) return value.map(camel);
  if (value === null || typeof value !== "object") return value;
  const name = (key) => key.replace(/_([a-z])/g, (_, letter) => letter.toUpperCase());
  return Object.fromEntries(Object.entries(value).map(([key, inner]) => [name(key), camel(inner)]));
}

class Result {
  constructor(argv, { json, insideJail, stdout, stderr }, encoding) {
    const details = camel(JSON.parse(json));
    this.argv = argv;
    this.outcome = details.outcome; // 'exited', 'signalled', 'timeout', …
    this.exitCode = details.exitCode; // null unless it exited
    this.signal = details.signalName; // 'SIGKILL', or null
    this.status = details.status; // as a shell would say it
    this.stdout = encoding ? stdout.toString(encoding) : stdout;
    this.stderr = encoding ? stderr.toString(encoding) : stderr;
    this.truncated = details.truncated; // {stdout, stderr}: whether output was left out
    this.usage = details.usage;
    this.unenforced = details.unenforced;
    this.notices = details.notices;
    this.denials = details.denials?.syscalls ?? null; // null: they were not traced
    this.network = details.network;
    this.error = details.error;
    this.insideJail = insideJail !== 0;
  }

  get ok() {
    return this.outcome === "exited" && this.exitCode === 0;
  }

  /** Itself if the command exited with 0; else throws CommandError. */
  check() {
    if (this.ok) return this;
    const end = this.outcome === "exited" ? `exited with ${this.exitCode}` : `ended: ${this.outcome}`;
    throw new CommandError(`the command '${this.argv[0]}' ${end}`, this);
  }
}

module.exports = { Result, camel };

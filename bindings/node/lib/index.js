// SPDX-License-Identifier: MIT
// brig for Node: run a command in a jail and learn precisely what became of it.
"use strict";

const native = require("../build/brig.node");
const {
  AbortError, BrigError, CommandError, InvalidError, NotExecutableError, NotFoundError, SetupError, StateError,
  UnsupportedError,
} = require("./errors.js");
const { Job, Template, run, start } = require("./job.js");
const { Policy } = require("./policy.js");
const { Result } = require("./result.js");

const version = native.version();

module.exports = {
  AbortError, BrigError, CommandError, InvalidError, Job, NotExecutableError, NotFoundError, Policy, Result, SetupError,
  StateError, Template, UnsupportedError, run, start, version,
};

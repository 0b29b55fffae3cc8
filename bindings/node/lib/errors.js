// SPDX-License-Identifier: MIT
// What can go wrong, as classes below BrigError. Each has a `code`, a word that does not change.
"use strict";

class BrigError extends Error {
  constructor(message, { code = "BRIG_E_SYSTEM", errno = 0, cause } = {}) {
    super(message, cause === undefined ? undefined : { cause });
    this.name = new.target.name;
    this.code = code;
    this.errno = errno; // of the system call behind it, or 0
  }
}
/** A value given by the caller is wrong; the message names it. */
class InvalidError extends BrigError {}
/** This system cannot enforce what was asked; nothing ran. */
class UnsupportedError extends BrigError {}
/** The jail could not be built; nothing ran. */
class SetupError extends BrigError {}
/** The command does not exist inside the jail. */
class NotFoundError extends SetupError {}
/** The command exists inside the jail, but cannot be executed. */
class NotExecutableError extends SetupError {}
/** The call does not fit the state of the object: the job is over, say. */
class StateError extends BrigError {}

/** The command did not exit with 0, and `check` is set. `result` is what became of it. */
class CommandError extends BrigError {
  constructor(message, result) {
    super(message, { code: "BRIG_COMMAND_FAILED" });
    this.result = result;
  }
}
/** An AbortSignal ended the command; `cause` is the signal's reason, `result` what became of the command. */
class AbortError extends BrigError {
  constructor(cause, result) {
    super("The operation was aborted", { code: "ABORT_ERR", cause });
    this.result = result;
  }
}

const BY_CODE = new Map([
  [-1, [InvalidError, "BRIG_E_INVALID"]],
  [-2, [BrigError, "BRIG_E_NOMEM"]],
  [-3, [BrigError, "BRIG_E_SYSTEM"]],
  [-4, [UnsupportedError, "BRIG_E_UNSUPPORTED"]],
  [-5, [SetupError, "BRIG_E_SETUP"]],
  [-6, [NotFoundError, "BRIG_E_NOT_FOUND"]],
  [-7, [NotExecutableError, "BRIG_E_NOT_EXEC"]],
  [-8, [StateError, "BRIG_E_STATE"]],
]);

/** An error of the addon as one of the classes; others stay as they are. */
function translate(error) {
  if (error?.brigCode === undefined) return error;
  const [kind, code] = BY_CODE.get(error.brigCode) ?? [BrigError, "BRIG_E_SYSTEM"];
  return new kind(error.message, { code, errno: error.sysErrno });
}

/** Calls a function of the addon. */
function call(native, ...args) {
  try {
    return native(...args);
  } catch (error) {
    throw translate(error);
  }
}

module.exports = {
  AbortError, BrigError, CommandError, InvalidError, NotExecutableError, NotFoundError, SetupError, StateError,
  UnsupportedError, call, translate,
};

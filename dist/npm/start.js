// SPDX-License-Identifier: MIT
// Starts a program of the package brig-cli-linux-CPU, and ends as it ends.
"use strict";
const { spawn } = require("node:child_process");
const path = require("node:path");

// The package is an optional dependency of brig-cli: npm installs the one whose "os" and "cpu" fit.
function directory() {
  const name = `brig-cli-${process.platform}-${process.arch}`;
  try {
    return path.dirname(require.resolve(`${name}/package.json`));
  } catch {
    console.error(
      `brig-cli: the package ${name} is not installed: install it too. There is one for linux-x64 and one for ` +
        "linux-arm64; npm leaves it out with --omit=optional.",
    );
    process.exit(125);
  }
}

module.exports = function start(program) {
  const child = spawn(path.join(directory(), "bin", program), process.argv.slice(2), { stdio: "inherit" });
  // The terminal sends its signals to both; those of another process are for the program.
  for (const signal of ["SIGINT", "SIGQUIT"]) process.on(signal, () => {});
  for (const signal of ["SIGTERM", "SIGHUP"]) process.on(signal, () => child.kill(signal));
  child.on("error", (error) => {
    console.error(`brig-cli: ${error.message}`);
    process.exit(125);
  });
  child.on("exit", (code, signal) => {
    if (signal === null) process.exit(code);
    process.removeAllListeners(signal);
    process.kill(process.pid, signal);
  });
};

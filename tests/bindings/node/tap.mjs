// SPDX-License-Identifier: MIT
// Runs the tests of a file and prints TAP. Builds the package under test in a scratch directory, as an
// application would have it: node_modules/brig.
import { execFileSync } from "node:child_process";
import fs from "node:fs";
import { createRequire } from "node:module";
import os from "node:os";
import path from "node:path";
import url from "node:url";

export const ROOT = path.resolve(path.dirname(url.fileURLToPath(import.meta.url)), "../../..");
const LIBRARY = path.dirname(process.env.BRIG_LIBRARY ?? path.join(ROOT, "build/src/libbrig.so.0"));

/** An application's directory. */
export const APP = fs.realpathSync(fs.mkdtempSync(path.join(os.tmpdir(), "brig-test-")));
fs.chmodSync(APP, 0o755);
process.on("exit", () => fs.rmSync(APP, { recursive: true, force: true }));

const PACKAGE = path.join(APP, "node_modules/brig");
const tests = [];

function build() {
  fs.cpSync(path.join(ROOT, "bindings/node"), PACKAGE, { recursive: true });
  fs.rmSync(path.join(PACKAGE, "build"), { recursive: true, force: true });
  const libs = `-L${LIBRARY} -lbrig -Wl,-rpath,${LIBRARY}`;
  const words = [`BRIG_CFLAGS=-I${ROOT}/include`, `BRIG_LIBS=${libs}`, "CFLAGS=-O1 -g -Werror", `NODE=${process.execPath}`];
  execFileSync("make", ["-s", "-C", PACKAGE, ...words], { stdio: ["ignore", "inherit", "inherit"] });
}

// They are a package of their own in some distributions.
if (!fs.existsSync(path.resolve(process.execPath, "../../include/node/node_api.h"))) {
  console.log("1..0 # SKIP no node_api.h: libnode-dev is not installed");
  process.exit(0);
}
build();

/** The package, as the application would get it. */
export const brig = createRequire(path.join(APP, "app.js"))("brig");

export function test(name, body) {
  tests.push([name, body]);
}

/** A directory of the test's own, removed at the end. */
export function scratch() {
  return fs.mkdtempSync(path.join(APP, "scratch-"));
}

/** Runs what test() was told of; names on the command line choose. */
export async function main() {
  const chosen = tests.filter(([name]) => process.argv.length < 3 || process.argv.slice(2).some((word) => name.includes(word)));
  let failed = false;
  for (const [index, [name, body]] of chosen.entries()) {
    try {
      await body();
      console.log(`ok ${index + 1} - ${name}`);
    } catch (error) {
      failed = true;
      console.log(`not ok ${index + 1} - ${name}\n${String(error?.stack ?? error).replace(/^/gm, "# ")}`);
    }
  }
  console.log(`1..${chosen.length}`);
  process.exitCode = failed ? 1 : 0;
}

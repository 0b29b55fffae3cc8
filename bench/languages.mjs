// SPDX-License-Identifier: MIT
// The worker of bench/languages in Node: does what a line of its input says, and prints the microseconds.
import { execFile } from "node:child_process";
import readline from "node:readline";
import { promisify } from "node:util";
import { run } from "brig";

const ways = {
  "command plain": () => promisify(execFile)("/bin/true"),
  "command brig": () => run(["/bin/true"], { check: true }),
};
for await (const line of readline.createInterface({ input: process.stdin })) {
  const begin = process.hrtime.bigint();
  await ways[line]();
  console.log(Number(process.hrtime.bigint() - begin) / 1e3);
}

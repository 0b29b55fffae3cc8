// SPDX-License-Identifier: MIT
// Commands that are run and waited for.
import assert from "node:assert/strict";
import fs from "node:fs";
import path from "node:path";
import { brig, main, scratch, test } from "./tap.mjs";

const { run, Policy, Template } = brig;
const sh = (text, options) => run(["sh", "-c", text], { encoding: "utf8", ...options });

test("output, status and usage", async () => {
  const done = await sh("echo out; echo err >&2; exit 3");
  assert.deepEqual([done.outcome, done.exitCode, done.status, done.signal], ["exited", 3, 3, null]);
  assert.deepEqual([done.stdout, done.stderr, done.ok], ["out\n", "err\n", false]);
  assert.ok(done.usage.wallUs > 0);
  assert.equal(done.usage.stdoutBytes, 4);
  assert.deepEqual([done.truncated, done.error, done.denials], [{ stdout: false, stderr: false }, null, null]);
});

test("output is a Buffer without an encoding", async () => {
  const done = await run(["printf", "\\377"]);
  assert.deepEqual(done.stdout, Buffer.from([0xff]));
  assert.equal((await run(["true"])).stdout.length, 0);
});

test("input is text or bytes", async () => {
  assert.equal((await sh("cat", { input: "text é" })).stdout, "text é");
  assert.equal((await sh("wc -c", { input: new Uint8Array(300000) })).stdout.trim(), "300000");
  assert.equal((await sh("cat", { input: "" })).stdout, "");
  assert.equal((await sh("cat")).stdout, "");
});

test("check rejects with the result, and passes what exited with 0", async () => {
  const error = await sh("echo half; exit 4", { check: true }).catch((reason) => reason);
  assert.ok(error instanceof brig.CommandError && error instanceof brig.BrigError);
  assert.deepEqual([error.code, error.result.stdout], ["BRIG_COMMAND_FAILED", "half\n"]);
  assert.match(error.message, /'sh' exited with 4/);
  assert.ok((await sh("true", { check: true })).ok);
});

test("a time limit is an outcome, of the option and of the policy", async () => {
  const done = await run(["sleep", "600"], { timeout: 200 });
  assert.deepEqual([done.outcome, done.status, done.exitCode], ["timeout", 124, null]);
  assert.equal((await run(["sleep", "600"], { policy: new Policy().limit({ wallMs: 200 }) })).outcome, "timeout");
});

test("a signal has a name", async () => {
  const done = await sh("kill -KILL $$");
  assert.deepEqual([done.outcome, done.signal, done.exitCode, done.status], ["signalled", "SIGKILL", null, 137]);
});

test("a command that is not there, or is not a program, rejects", async () => {
  await assert.rejects(run(["nonesuch"]), (error) => error instanceof brig.NotFoundError && error.code === "BRIG_E_NOT_FOUND");
  const folder = scratch();
  fs.chmodSync(folder, 0o755);
  fs.writeFileSync(path.join(folder, "text"), "no program", { mode: 0o644 });
  await assert.rejects(run([path.join(folder, "text")], { fsReadAllow: [folder] }), brig.NotExecutableError);
});

test("paths are there as granted", async () => {
  const folder = scratch();
  fs.chmodSync(folder, 0o777);
  const file = path.join(folder, "data");
  fs.writeFileSync(file, "secret");
  assert.ok(!(await run(["cat", file])).ok);
  assert.equal((await sh(`cat ${file}`, { fsReadAllow: [folder] })).stdout, "secret");
  assert.ok(!(await sh(`touch ${file}2`, { fsReadAllow: [folder] })).ok);
  assert.ok((await sh(`touch ${file}2`, { fsAllow: [folder] })).ok);
  assert.ok(fs.existsSync(`${file}2`));
  assert.equal((await sh("ls", { fsReadAllow: [folder], cwd: folder })).stdout, "data\ndata2\n");
});

test("secrets of the environment stay outside", async () => {
  Object.assign(process.env, { LANG: "C", API_KEY: "secret" });
  const { stdout } = await run(["env"], { encoding: "utf8" });
  assert.ok(stdout.includes("LANG=C") && !stdout.includes("secret"), stdout);
  const given = await run(["/usr/bin/env"], { env: { API_KEY: "given", UNSET: undefined }, encoding: "utf8" });
  assert.ok(given.stdout.includes("API_KEY=given") && !/LANG=|UNSET/.test(given.stdout), given.stdout);
  assert.ok((await sh("env", { policy: new Policy().setenv({ TOOL: "value" }) })).stdout.includes("TOOL=value"));
});

test("output beyond the limit is cut and marked", async () => {
  const done = await sh("head -c 5000 /dev/zero; echo err >&2", { maxOutput: 1000 });
  assert.deepEqual([done.stdout.length, done.truncated], [1000, { stdout: true, stderr: false }]);
  assert.equal(done.usage.stdoutBytes, 5000);
});

test("memory by address space", async () => {
  const code = ["/usr/bin/python3", "-c", "print(len(bytearray(300 << 20)))"];
  assert.ok(!(await run(code, { memoryMb: 200 })).ok);
  assert.ok((await run(code, { memoryMb: 500 })).ok);
});

test("refused system calls are listed when they are traced", async () => {
  const code = "import socket\nsocket.socket(socket.AF_PACKET, socket.SOCK_RAW)";
  const done = await run(["/usr/bin/python3", "-c", code], { policy: new Policy().trace() });
  assert.ok(!done.ok);
  assert.ok(done.denials.some(({ name, count }) => name === "socket" && count > 0), JSON.stringify(done.denials));
  assert.deepEqual((await run(["true"], { policy: new Policy().trace() })).denials, []);
});

test("an AbortSignal ends the command and rejects", async () => {
  const controller = new AbortController();
  const running = run(["sleep", "600"], { signal: controller.signal });
  controller.abort(new Error("enough"));
  const error = await running.catch((reason) => reason);
  assert.ok(error instanceof brig.AbortError);
  assert.deepEqual([error.name, error.code, error.cause.message], ["AbortError", "ABORT_ERR", "enough"]);
  assert.equal(error.result.outcome, "cancelled");
  await assert.rejects(run(["true"], { signal: AbortSignal.abort() }), { code: "ABORT_ERR" });
  assert.ok((await run(["true"], { signal: new AbortController().signal })).ok);
});

test("wrong arguments are named", async () => {
  const refused = (words, ...args) => assert.rejects(async () => run(...args), (error) => error instanceof brig.InvalidError && words.test(error.message), String(words));
  await refused(/array of arguments/, "echo hi");
  await refused(/empty/, []);
  await refused(/NUL/, ["a\0b"]);
  await refused(/unknown option 'tiemout'/, ["true"], { tiemout: 1 });
  await refused(/mode: 'soft'/, ["true"], { mode: "soft" });
  await refused(/timeout .* -1/, ["true"], { timeout: -1 });
  await refused(/given with the command/, ["echo"], ["hi"]);
  await refused(/encoding 'utf9'/, ["true"], { encoding: "utf9" });
  await refused(/an AbortSignal/, ["true"], { signal: 9 });
  await refused(/memory: 'much'/, ["true"], { memory: "much" });
  await refused(/fsAllow must be an array/, ["true"], { fsAllow: "/tmp" });
  await refused(/policy or mode/, ["true"], { policy: new Policy(), mode: "bare" });
  await refused(/stdio\[1\]: 'loud'/, ["true"], { stdio: ["ignore", "loud"] });
  await refused(/input or stdio\[0\]/, ["true"], { stdio: ["inherit"], input: "x" });
  await refused(/use start\(\)/, ["true"], { stdio: "pipe" });
  await refused(/policy must be a Policy/, ["true"], { policy: {} });
});

test("many commands at once", async () => {
  const all = await Promise.all(Array.from({ length: 20 }, (_, i) => sh(`echo ${i}`)));
  assert.deepEqual(all.map(({ stdout }) => stdout), Array.from({ length: 20 }, (_, i) => `${i}\n`));
});

test("runs of a template share nothing", async () => {
  const template = await Template.create(new Policy().hostname("cell"));
  const text = "hostname; ls /tmp; touch /tmp/mine";
  const all = await Promise.all([1, 2, 3, 4].map(() => template.run(["sh", "-c", text], { encoding: "utf8" })));
  assert.deepEqual(all.map(({ stdout }) => stdout), Array(4).fill("cell\n"));
  await assert.rejects(template.run(["true"], { timeout: 5 }), /decided by the template/);
  process.env.API_KEY = "secret";
  assert.ok(!(await template.run(["env"], { encoding: "utf8" })).stdout.includes("API_KEY"));
  assert.match((await template.run(["env"], { env: { API_KEY: "given" }, encoding: "utf8" })).stdout, /API_KEY=given/);
  const late = template.run(["true"]);
  template.close();
  assert.ok((await late).ok);
  await assert.rejects(template.run(["true"]), brig.StateError);
});

test("a policy may be changed while a command starts from it", async () => {
  const policy = new Policy().hostname("before");
  const running = sh("hostname", { policy });
  policy.hostname("after");
  assert.equal((await running).stdout, "before\n");
  assert.equal((await sh("hostname", { policy })).stdout, "after\n");
});

test("no descriptor is left behind", async () => {
  const fds = () => fs.readdirSync("/proc/self/fd").length;
  await Promise.all(Array.from({ length: 8 }, () => run(["true"])));
  const before = fds();
  for (let i = 0; i < 10; i++) await run(["true"]);
  assert.equal(fds(), before);
});

await main();

// SPDX-License-Identifier: MIT
// Jobs: streams, terminals, signals, cancelling, waiting.
import assert from "node:assert/strict";
import { once } from "node:events";
import fs from "node:fs";
import path from "node:path";
import { pipeline } from "node:stream/promises";
import { Readable } from "node:stream";
import { Worker } from "node:worker_threads";
import { APP, brig, main, scratch, test } from "./tap.mjs";

const { run, start, Policy } = brig;

async function text(stream) {
  let all = "";
  for await (const piece of stream.setEncoding("utf8")) all += piece;
  return all;
}

/** Resolves with what was read once it has the words. */
async function until(stream, words) {
  let all = "";
  while (!all.includes(words)) all += (await once(stream, "data"))[0];
  return all;
}

function ended(pid) {
  try {
    return "ZX".includes(fs.readFileSync(`/proc/${pid}/stat`, "utf8").split(") ").pop()[0]);
  } catch {
    return true;
  }
}

test("talks to a command while it runs", async () => {
  const job = await start(["sh", "-c", 'while read -r line; do echo "heard: $line"; done; echo end; echo err >&2']);
  job.stdin.write("one\n");
  assert.equal(String(await until(job.stdout, "one")), "heard: one\n");
  assert.equal(await job.wait(0), null);
  job.stdin.end("two\n");
  assert.deepEqual(await Promise.all([text(job.stdout), text(job.stderr)]), ["heard: two\nend\n", "err\n"]);
  assert.equal((await job.wait()).exitCode, 0);
});

test("the streams have text with encoding", async () => {
  const job = await start(["sh", "-c", "echo out; echo err >&2"], { encoding: "utf8" });
  const [out, err] = await Promise.all([once(job.stdout, "data"), once(job.stderr, "data")]);
  assert.deepEqual([...out, ...err], ["out\n", "err\n"]);
});

test("more bytes than pipes hold, both ways", async () => {
  const job = await start(["cat"]);
  const bytes = Buffer.alloc(3 << 20, "brig ");
  const pieces = [];
  await Promise.all([
    pipeline(Readable.from([bytes]), job.stdin),
    (async () => {
      for await (const piece of job.stdout) pieces.push(piece);
    })(),
  ]);
  assert.ok(Buffer.concat(pieces).equals(bytes));
  assert.ok((await job.wait()).ok);
});

test("what was written can be read when the job is over", async () => {
  const job = await start(["echo", "late"], { stdio: ["ignore", "pipe", "ignore"] });
  await job.wait();
  assert.equal(await text(job.stdout), "late\n");
  assert.deepEqual([job.stdin, job.stderr, job.terminal], [null, null, null]);
});

test("stderr in the pipe of stdout", async () => {
  const job = await start(["sh", "-c", "echo a; echo b >&2; echo c"], { stdio: ["ignore", "pipe", "stdout"] });
  assert.equal(await text(job.stdout), "a\nb\nc\n");
  assert.equal(job.stderr, null);
  await job.wait();
  const result = await run(["sh", "-c", "echo a; echo b >&2"], { stdio: ["ignore", "capture", "stdout"], encoding: "utf8" });
  assert.deepEqual([result.stdout, result.stderr], ["a\nb\n", ""]);
  await assert.rejects(start(["true"], { stdio: ["ignore", "stdout", "pipe"] }), /stdio\[1\]: 'stdout'/);
});

test("a command that does not read its input is no error of the program", async () => {
  const job = await start(["true"], { stdio: ["pipe", "ignore", "ignore"] });
  await job.wait();
  const closed = new Promise((resolve) => job.stdin.on("close", resolve));
  job.stdin.write("x".repeat(1 << 20));
  await closed;
});

test("a terminal, its size, and its end, of which nothing is lost", async () => {
  for (let round = 0; round < 20; round++) {
    const job = await start(["sh", "-c", 'stty size; read -r line; stty size; echo "heard: $line"'], { stdio: "pty" });
    job.terminal.setEncoding("utf8");
    await until(job.terminal, "24 80");
    job.resize(40, 132);
    job.terminal.write("hello\n");
    const rest = await text(job.terminal);
    assert.match(rest, /40 132\r\nheard: hello\r\n$/);
    assert.equal((await job.wait()).exitCode, 0);
    assert.throws(() => job.resize(1, 1), brig.StateError);
  }
});

test("a job without a terminal has no size", async () => {
  const job = await start(["cat"]);
  assert.throws(() => job.resize(40, 132), brig.StateError);
  await job.close();
});

test("signals reach the command", async () => {
  const job = await start(["sh", "-c", "trap 'echo caught; exit 5' USR1; echo ready; while :; do sleep 0.1; done"]);
  await until(job.stdout, "ready");
  job.kill("SIGUSR1");
  assert.equal((await job.wait()).exitCode, 5);
  assert.throws(() => job.kill(), brig.StateError);
  const other = await start(["sleep", "600"]);
  assert.throws(() => other.kill("SIGNONE"), brig.InvalidError);
  other.kill("SIGKILL");
  assert.equal((await other.wait()).signal, "SIGKILL");
});

test("a command that stopped is told of, and goes on", async () => {
  const job = await start(["sh", "-c", "kill -STOP $$; echo on"]);
  const [signal] = await once(job, "stop");
  assert.equal(signal, "SIGSTOP");
  job.kill("SIGCONT");
  assert.equal(await text(job.stdout), "on\n");
  assert.ok((await job.wait()).ok);
});

test("cancel ends the whole tree", async () => {
  const job = await start(["sh", "-c", "sleep 600 & echo ready; wait"]);
  await until(job.stdout, "ready");
  const exit = once(job, "exit");
  job.cancel();
  assert.equal((await job.wait()).outcome, "cancelled");
  assert.equal((await exit)[0].outcome, "cancelled");
  assert.ok(ended(job.pid));
});

test("close ends what runs and may be called again", async () => {
  const job = await start(["sleep", "600"]);
  await job.close();
  await job.close();
  assert.equal((await job.wait()).outcome, "cancelled");
  assert.ok(ended(job.pid));
});

test("wait with a time", async () => {
  const job = await start(["cat"]);
  assert.equal(await job.wait(10), null);
  job.stdin.end();
  assert.equal((await job.wait(60_000)).exitCode, 0);
});

test("an AbortSignal during the run", async () => {
  const controller = new AbortController();
  const job = await start(["sleep", "600"], { signal: controller.signal });
  controller.abort();
  await assert.rejects(job.wait(), { name: "AbortError", code: "ABORT_ERR" });
});

test("descriptors are handed into the jail", async () => {
  const file = path.join(scratch(), "data");
  fs.writeFileSync(file, "by descriptor");
  const fd = fs.openSync(file, "r");
  const job = await start(["sh", "-c", "cat <&5"], { passFds: { 5: fd } });
  assert.equal(await text(job.stdout), "by descriptor");
  fs.closeSync(fd);
  assert.ok((await job.wait()).ok);
});

test("a stream can be a file", async () => {
  const file = path.join(scratch(), "out");
  const fd = fs.openSync(file, "w");
  const job = await start(["echo", "to the file"], { stdio: ["ignore", fd, "ignore"] });
  assert.ok((await job.wait()).ok);
  fs.closeSync(fd);
  assert.equal(fs.readFileSync(file, "utf8"), "to the file\n");
});

test("a private directory is kept until close", async () => {
  const policy = new Policy().private("/work").file("/work/in", "given").keep("/work").workdir("/work");
  const job = await start(["sh", "-c", "cat in; echo made > out"], { policy });
  assert.equal(await text(job.stdout), "given");
  assert.ok((await job.wait()).ok);
  assert.equal(fs.readFileSync(path.join(job.keptDir, "out"), "utf8"), "made\n");
  await job.close();
  assert.equal(job.keptDir, null);
});

test("a Worker that is terminated takes its job with it", async () => {
  const code = `
    const { start } = require("brig");
    const { parentPort } = require("node:worker_threads");
    start(["sleep", "600"]).then((job) => parentPort.postMessage(job.pid));`;
  fs.writeFileSync(path.join(APP, "worker.js"), code);
  const worker = new Worker(path.join(APP, "worker.js"));
  const [pid] = await once(worker, "message");
  assert.ok(!ended(pid));
  await worker.terminate();
  assert.ok(ended(pid));
});

test("a listener that throws does not lose the result", async () => {
  const job = await start(["true"]);
  const thrown = once(process, "uncaughtException");
  job.on("exit", () => {
    throw new Error("of the listener");
  });
  assert.ok((await job.wait()).ok);
  assert.match((await thrown)[0].message, /of the listener/);
});

await main();

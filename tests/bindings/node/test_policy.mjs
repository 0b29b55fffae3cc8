// SPDX-License-Identifier: MIT
// Policies: every member reaches the jail, and wrong values are named.
import assert from "node:assert/strict";
import fs from "node:fs";
import path from "node:path";
import { brig, main, ROOT, scratch, test } from "./tap.mjs";

const { Policy, run } = brig;
const sh = async (text, policy) => (await run(["sh", "-c", text], { policy, encoding: "utf8" })).stdout;
const refused = (words, body) => assert.throws(body, (error) => error instanceof brig.InvalidError && words.test(error.message));

test("wrong values are named as they are set", () => {
  const policy = new Policy();
  refused(/mode: 'soft'/, () => new Policy("soft"));
  refused(/access: 'all'/, () => policy.grant("/tmp", "all"));
  refused(/limit: 'speed'/, () => policy.limit({ speed: 3 }));
  refused(/processes .* -1/, () => policy.limit({ processes: -1 }));
  refused(/processes .* 1.5/, () => policy.limit({ processes: 1.5 }));
  refused(/./, () => policy.grant("relative"));
  refused(/./, () => policy.setenv({ "A=B": "c" }));
  refused(/./, () => policy.allow("not a rule at all"));
  refused(/grant has no member 'destination'/, () => policy.grant("/srv", "read-only", { destination: "/x" }));
  refused(/inject has no member 'method'/, () => policy.inject({ name: "a.b", header: "h", value: "v", method: ["GET"] }));
  refused(/identity has no member 'uid'/, () => policy.identity({ uid: 1 }));
  refused(/netProxy has no member 'no_proxy'/, () => policy.netProxy("h:1", { no_proxy: [] }));
  refused(/path must be a string/, () => policy.workdir(undefined));
  refused(/NUL/, () => policy.hostname("a\0b"));
  refused(/rule must be a string/, () => policy.allow("example.com", 7));
});

test("a policy is explained, for people and for programs", () => {
  const policy = new Policy().grant("/srv", "read-only", { optional: true }).hostname("cell").origin("test");
  assert.match(policy.explain(), /\/srv/);
  assert.equal(typeof policy.explainJSON(), "object");
  assert.match(JSON.stringify(policy.explainJSON()), /cell/);
});

test("a copy is a policy of its own", async () => {
  const first = new Policy().hostname("first");
  const second = first.copy().hostname("second");
  assert.equal(await sh("hostname", first), "first\n");
  assert.equal(await sh("hostname", second), "second\n");
});

test("grants have a destination, and can be taken back", async () => {
  const folder = scratch();
  fs.chmodSync(folder, 0o755);
  fs.writeFileSync(path.join(folder, "file"), "text");
  const policy = new Policy().grant(folder, "read-only", { dest: "/data" });
  assert.equal(await sh("cat /data/file", policy), "text");
  assert.equal(policy.ungrant("/data"), 1);
  assert.equal(policy.ungrant("/data"), 0);
  assert.equal(await sh("cat /data/file 2>/dev/null", policy), "");
  const masked = new Policy().grant(folder, "read-only").grant(path.join(folder, "file"), "mask");
  assert.equal(await sh(`cat ${folder}/file`, masked), "");
});

test("private directories and files", async () => {
  const policy = new Policy().private("/own").file("/own/tool", "#!/bin/sh\necho ran\n", 0o755).private("/fixed", "read-only");
  assert.equal(await sh("/own/tool; touch /own/x && echo written; touch /fixed/x 2>/dev/null || echo refused", policy), "ran\nwritten\nrefused\n");
});

test("identity, environment, view and working directory", async () => {
  const policy = new Policy()
    .identity({ insideUid: 1234, insideGid: 1234, name: "tester", home: "/home/tester" })
    .setenv({ A: "1", B: "2" })
    .unsetenv("B*")
    .view("system")
    .workdir("/usr")
    .terminal("none")
    .seccomp("dev");
  assert.equal(await sh('id -un; id -u; echo "$A$B"; pwd', policy), "tester\n1234\n1\n/usr\n");
});

test("networks", async () => {
  const links = "ls /sys/class/net 2>/dev/null; cat /proc/net/dev | wc -l";
  const none = await sh(links, new Policy().network("none"));
  assert.equal(await sh(links, new Policy().network("loopback")), none);
  for (const network of ["host", "allow", "open"]) new Policy().network(network);
});

test("refusals of the network door are in the result and told as they come", async () => {
  const broker = path.join(process.env.BUILD_DIR ?? path.join(ROOT, "build"), "src/net/brig-broker");
  const policy = new Policy("strict").network("allow").allow("example.com").deny("*.example.org").proxyEnv();
  if (fs.existsSync(broker)) policy.broker(broker);
  const code = "import socket\ntry: socket.getaddrinfo('stranger.example', 80)\nexcept OSError: pass";
  const job = await brig.start(["/usr/bin/python3", "-c", code], { policy, stdio: "ignore" });
  const events = [];
  job.on("net", (event) => events.push(event));
  const result = await job.wait();
  assert.ok(result.network.denied > 0, JSON.stringify(result));
  assert.ok(result.network.events.some((event) => event.name === "stranger.example" && event.verdict === "denied"));
  assert.deepEqual(events, result.network.events);
});

test("members of the network door are accepted", () => {
  new Policy("strict")
    .network("allow")
    .publish("18080:8080")
    .netProxy("proxy.example:3128", { secret: "Basic x", noProxy: ["example.com"] })
    .inject({ name: "api.example.com", header: "authorization", value: "Bearer x", variable: "API", methods: ["GET"], paths: ["/v1"], strip: ["cookie"] });
  refused(/./, () => new Policy().inject({ name: "api.example.com" }));
});

test("the others are accepted", () => {
  new Policy().allowNested().allowNested(false).unixSockets().trace().trace(false).onUnsupported("warn").disable("landlock", "seccomp");
  refused(/layer: 'walls'/, () => new Policy().disable("walls"));
});

test("no member of libbrig's policy is missing", () => {
  const header = fs.readFileSync(path.join(ROOT, "include/brig/brig.h"), "utf8");
  const source = fs.readFileSync(path.join(ROOT, "bindings/node/src/policy.c"), "utf8");
  const members = new Set([...header.matchAll(/^\S.*\bbrig_policy_(\w+)\(struct brig_policy \*policy,/gm)].map(([, name]) => name));
  assert.ok(members.size > 20, [...members].join());
  for (const name of members) assert.match(source, new RegExp(`brig_policy_${name}\\(|_SETTER\\(${name}\\b`));
});

test("a layer that is off is listed", async () => {
  const done = await run(["true"], { policy: new Policy().disable("landlock") });
  assert.ok(done.unenforced.some((line) => /Landlock/i.test(line)), JSON.stringify(done.unenforced));
  assert.ok(!(await run(["true"])).unenforced.some((line) => /Landlock/i.test(line)));
});

await main();

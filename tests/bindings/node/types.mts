// SPDX-License-Identifier: MIT
// Compiled, not run: what the types allow, and what they refuse.
import {
  AbortError, BrigError, CommandError, Job, NetEvent, NotFoundError, Outcome, Policy, Result, SetupError, Template, run, start,
  version,
} from "brig";

const name: string = version;
const policy: Policy = new Policy("sealed")
  .grant("/srv", "read-only", { dest: "/data", optional: true })
  .private("/work")
  .file("/work/in", new Uint8Array(3), 0o600)
  .identity({ insideUid: 1000, name })
  .network("allow")
  .allow("example.com", "example.org:8080")
  .inject({ name: "api.example.com", header: "authorization", value: "secret", methods: ["GET"] })
  .limit({ wallMs: 1000, netBytes: 5 })
  .setenv({ A: "1", B: null })
  .disable("landlock");
const removed: number = policy.ungrant("/data");

const bytes: Result = await run(["true"], { policy, timeout: removed });
const buffer: Buffer = bytes.stdout;
const text: string = (await run(["true"], { encoding: "utf8", check: true })).check().stderr;
const outcome: Outcome = bytes.outcome;
const code: number | null = bytes.exitCode;
const refused: string[] = bytes.denials?.map((denial) => denial.name) ?? [];

const job: Job<string> = await start(["cat"], { encoding: "utf8", stdio: ["pipe", "capture"], passFds: { 3: 4 } });
job.stdin?.write("text");
job.on("net", (event: NetEvent) => event.verdict === "denied");
job.on("exit", (result) => result.stdout.trim());
job.kill("SIGINT");
const late: Result<string> | null = await job.wait(10);
const sure: Result<string> = await job.wait();

const template = await Template.create(policy);
const again: Result<string> = await template.run(["true"], { encoding: "latin1", signal: AbortSignal.timeout(5) });

try {
  await run(["true"]);
} catch (error) {
  if (error instanceof NotFoundError) error satisfies SetupError;
  else if (error instanceof CommandError || error instanceof AbortError) error.result?.outcome;
  else if (error instanceof BrigError) error.code.toUpperCase();
}

// @ts-expect-error: an unknown mode
new Policy("soft");
// @ts-expect-error: an unknown limit
policy.limit({ speed: 3 });
// @ts-expect-error: a command is an array
run("true");
// @ts-expect-error: an unknown option
run(["true"], { tiemout: 3 });
// @ts-expect-error: the template has decided
template.run(["true"], { timeout: 3 });
// @ts-expect-error: output is a Buffer without an encoding
const wrong: string = bytes.stdout;
// @ts-expect-error: a stream may not be there
job.stdout.on("data", () => {});

export { again, buffer, code, late, outcome, refused, sure, text, wrong };

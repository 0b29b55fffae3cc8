// SPDX-License-Identifier: MIT
// The README of the package does what it says, and the project's: each block after a line `<!-- run -->` is a program, whose
// output is what its lines `//>` say.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import fs from "node:fs";
import path from "node:path";
import { APP, main, ROOT, test } from "./tap.mjs";

function blocks(document) {
  const text = fs.readFileSync(path.join(ROOT, document), "utf8");
  return [...text.matchAll(/^<!-- run -->\n```js\n(.*?)^```$/gms)].map(([, block]) => block);
}

for (const [document, least] of [["bindings/node/README.md", 6], ["README.md", 1]]) {
  test(`${document} has blocks to run`, () => assert.ok(blocks(document).length >= least));
  for (const [index, block] of blocks(document).entries())
    test(`block ${index + 1} of ${document} prints what it says`, () => {
      const program = path.join(APP, `block${index}.mjs`);
      fs.writeFileSync(program, block);
      const promised = block.split("\n").filter((line) => line.startsWith("//>")).map((line) => line.slice(3).trim());
      const printed = execFileSync(process.execPath, [program], { encoding: "utf8", timeout: 120_000 }).trimEnd();
      assert.deepEqual(printed.split("\n"), promised);
    });
}

await main();

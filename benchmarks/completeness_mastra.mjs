// @mastra/evals' side of `completeness.py`; runs where that is installed and knows nothing of Traceweir.
//
// Reads one JSON line of pairs, answers with one line of scores, then with the seconds of a round for every further line.

import { createRequire } from "node:module";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { pathToFileURL } from "node:url";

const installed = createRequire(join(process.env.MASTRA, "package.json"));
const path = installed.resolve("@mastra/evals/scorers/prebuilt").replace(/\.cjs$/, ".js");
const { createCompletenessScorer } = await import(pathToFileURL(path));

const message = (role, text) => [{ id: role, role, content: { format: 2, parts: [{ type: "text", text }] } }];
const scorer = createCompletenessScorer();
let runs;
for await (const line of createInterface({ input: process.stdin })) {
  if (!runs) {
    runs = JSON.parse(line).map(([question, answer]) => ({
      input: { inputMessages: message("user", question) },
      output: message("assistant", answer),
    }));
    const scores = [];
    for (const run of runs) scores.push((await scorer.run(run)).score);
    console.log(JSON.stringify(scores));
    continue;
  }
  const began = performance.now();
  for (const run of runs) await scorer.run(run);
  console.log((performance.now() - began) / 1000);
}

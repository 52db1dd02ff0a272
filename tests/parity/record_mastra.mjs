// Records what @mastra/evals gives for the texts and tool calls of these files, so that anybody can check their rows.
//
//     mkdir /tmp/mastra && cd /tmp/mastra && npm install @mastra/evals@1.10.2
//     MASTRA=/tmp/mastra node tests/parity/record_mastra.mjs            # compares; --write writes the files anew
//
// Nothing of Mastra's is copied: the files hold these inputs, and the numbers and elements that came out. No model is asked.
// The texts of mastra_texts.json are among those that record_mastra_contexts.py learns from; those of mastra_unseen_texts.json never may
// be. To record further ones, add rows with an "input" and an "output" to one of them.

import { readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

if (!process.env.MASTRA) {
  console.error("MASTRA must name a folder in which @mastra/evals@1.10.2 is installed");
  process.exit(2);
}
const installed = createRequire(join(process.env.MASTRA, "package.json"));
const resolved = installed.resolve("@mastra/evals/scorers/prebuilt").replace(/\.cjs$/, ".js");
const mastra = await import(pathToFileURL(resolved));
const data = new URL("data/", import.meta.url);
const messages = (role, text) => [{ id: role, role, content: { format: 2, parts: [{ type: "text", text }] } }];

async function texts(row) {
  const run = { input: { inputMessages: messages("user", row.input) }, output: messages("assistant", row.output) };
  const completeness = await mastra.createCompletenessScorer().run(run);
  const keywords = await mastra.createKeywordCoverageScorer().run(run);
  const similarity = await mastra.createContentSimilarityScorer().run(run);
  const exact = await mastra.createContentSimilarityScorer({ ignoreCase: false, ignoreWhitespace: true }).run(run);
  return {
    input: row.input,
    output: row.output,
    completeness: { score: completeness.score, ...completeness.preprocessStepResult },
    keywordCoverage: keywords.score,
    contentSimilarity: similarity.score,
    contentSimilarityWithCase: exact.score,
  };
}

async function calls(row) {
  const parts = row.called.map((toolName, n) => ({
    type: "tool-invocation",
    toolInvocation: { state: "result", toolCallId: `${n}`, toolName, args: {}, result: {} },
  }));
  const output = [{ id: "a", role: "assistant", content: { format: 2, parts } }];
  const run = { input: { inputMessages: messages("user", "q") }, output };
  return { options: row.options, called: row.called, score: (await mastra.createToolCallAccuracyScorerCode(row.options).run(run)).score };
}

let differ = false;
const RECORDS = [
  ["mastra_texts.json", texts],
  ["mastra_unseen_texts.json", texts],
  ["mastra_edge_texts.json", texts],
  ["mastra_tool_calls.json", calls],
];
for (const [name, record] of RECORDS) {
  const file = new URL(name, data);
  const before = readFileSync(file, "utf8");
  const rows = [];
  for (const row of JSON.parse(before)) rows.push(await record(row));
  const now = "[\n" + rows.map((row) => JSON.stringify(row)).join(",\n") + "\n]\n";
  if (process.argv.includes("--write")) writeFileSync(file, now);
  else if (now !== before) {
    differ = true;
    console.error(`${name} differs from what is recorded`);
  }
}
process.exit(differ ? 1 : 0);

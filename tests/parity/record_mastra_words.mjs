// Records which verb forms compromise never changes to an infinitive, for scorers/tracegate/scorers/words/compromise_*.txt.
//
//     mkdir /tmp/mastra && cd /tmp/mastra && npm install @mastra/evals@1.10.2     # brings compromise 14
//     .venv/bin/python -m tests.parity.verb_forms | MASTRA=/tmp/mastra node tests/parity/record_mastra_words.mjs
//
// Reads verb forms, one a line; writes the two files anew. Nothing of compromise's is copied: each form is put into three sentences.

import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

if (!process.env.MASTRA) {
  console.error("MASTRA must name a folder in which @mastra/evals@1.10.2 is installed");
  process.exit(2);
}
const { default: nlp } = await import(pathToFileURL(join(process.env.MASTRA, "node_modules/compromise/src/three.js")));

function changes(word, sentence) {
  const read = nlp(sentence.replace("_", word));
  read.verbs().toInfinitive();
  return !read.text().toLowerCase().split(" ").includes(word);
}

const PLURALS = ["the bank _ fees", "the _ are here", "the plan _ again"];
const PARTICIPLES = ["the _ bowl is here", "they were _"];
const forms = readFileSync(0, "utf8").split("\n").filter(Boolean);
const unchanged = (some, sentences) =>
  some.filter((word) => !sentences.some((sentence) => changes(word, sentence))).sort();

function write(name, words) {
  const lines = [""];
  for (const word of words) {
    if (lines.at(-1).length + word.length >= 120) lines.push("");
    lines[lines.length - 1] += (lines.at(-1) ? " " : "") + word;
  }
  writeFileSync(new URL(`../../scorers/tracegate/scorers/words/compromise_${name}.txt`, import.meta.url), lines.join("\n") + "\n");
}

write("plurals", unchanged(forms.filter((form) => form.endsWith("s")), PLURALS));
write("participles", unchanged(forms.filter((form) => !form.endsWith("s") && !form.endsWith("ing")), PARTICIPLES));

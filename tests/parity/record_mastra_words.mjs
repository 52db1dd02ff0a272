// Records what compromise takes each verb form for in neutral sentences, and infinitives that are its own, for
// scorers/traceweir/scorers/text/verbs/compromise/words/forms.txt and infinitives.txt.
//
//     mkdir /tmp/mastra && cd /tmp/mastra && npm install @mastra/evals@1.10.2     # brings compromise 14
//     .venv/bin/python -m tests.parity.verb_forms | MASTRA=/tmp/mastra node tests/parity/record_mastra_words.mjs
//
// Reads kinds, words and infinitives, one a line; writes the two files anew. Nothing of compromise's is copied: each word is put into some
// sentences. A form's letters are what it is taken for in each of them, with + where it becomes an infinitive.

import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

if (!process.env.MASTRA) {
  console.error("MASTRA must name a folder in which @mastra/evals@1.10.2 is installed");
  process.exit(2);
}
const { default: nlp } = await import(pathToFileURL(join(process.env.MASTRA, "node_modules/compromise/src/three.js")));

const FORMS = {
  s: ["_", "the bank _ fees", "the _ are here", "the plan _ again"],
  ing: ["_", "the _ bowl is here", "they liked _ bowls"],
  ed: ["_", "the _ bowl is here", "they were _", "she _ it"],
};
const INFINITIVES = {
  s: ["the plan _ again", "the bank _ fees"],
  ing: ["_", "they were _ it"],
  ed: ["she _ it", "they were _"],
  verb: ["they _ it"],
  base: ["they _ it"],
};
const LETTERS = [
  ["Auxiliary", "X"], ["Gerund", "G"], ["PastTense", "D"], ["Participle", "D"], ["Infinitive", "I"], ["PresentTense", "Z"], ["Verb", "V"],
  ["Adjective", "J"], ["Adverb", "R"], ["Plural", "P"], ["Pronoun", "O"], ["Noun", "N"], ["Preposition", "p"], ["Conjunction", "c"],
  ["Determiner", "d"], ["Value", "v"],
];
const USUAL = new Set(["Z+Z+PZ+", "G+JG", "D+JD+D+"]);
const SELDOM = 10; // forms: what fewer of them are taken for is left out

function taken(word, sentence) {
  const read = nlp(sentence.replace("_", word));
  const { tags } = read.docs[0][sentence.split(" ").indexOf("_")];
  const [, letter] = LETTERS.find(([tag]) => tags.has(tag)) ?? ["", "?"];
  read.verbs().toInfinitive();
  return letter + (read.text().toLowerCase().split(/[ .]/).includes(word) ? "" : "+");
}

function infinitive(word, sentences) {
  for (const sentence of sentences) {
    const read = nlp(sentence.replace("_", word));
    read.verbs().toInfinitive();
    const rest = new Set(sentence.split(" "));
    const left = read.text().toLowerCase().split(" ").filter((other) => !rest.has(other));
    if (left.length === 1 && left[0] !== word) return left[0];
  }
}

const forms = {}, infinitives = {};
for (const line of readFileSync(0, "utf8").split("\n").filter(Boolean)) {
  const [kind, word, known] = line.split(" ");
  if (FORMS[kind]) (forms[FORMS[kind].map((sentence) => taken(word, sentence)).join("")] ??= []).push(word);
  const found = infinitive(word, INFINITIVES[kind]);
  if (found && found !== known && /^[a-z]+$/.test(found)) (infinitives[found] ??= []).push(word);
}

function write(name, listed) {
  const lines = [];
  for (const first of Object.keys(listed).sort()) {
    lines.push(first);
    for (const word of listed[first].sort()) {
      if (lines.at(-1).length + word.length >= 120) lines.push(first);
      lines[lines.length - 1] += ` ${word}`;
    }
  }
  writeFileSync(new URL(`../../scorers/traceweir/scorers/text/verbs/compromise/words/${name}.txt`, import.meta.url), lines.join("\n") + "\n");
}

write("forms", Object.fromEntries(Object.entries(forms).filter(([form, words]) => !USUAL.has(form) && words.length >= SELDOM)));
write("infinitives", infinitives);

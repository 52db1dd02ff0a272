// Prints what compromise leaves of texts once verbs are infinitives: reads a JSON list of texts, writes a list of their words.

import { readFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

if (!process.env.MASTRA) {
  console.error("MASTRA must name a folder in which @mastra/evals@1.10.2 is installed");
  process.exit(2);
}
const { default: nlp } = await import(pathToFileURL(join(process.env.MASTRA, "node_modules/compromise/src/three.js")));

function words(text) {
  const read = nlp(text.trim());
  read.verbs().toInfinitive();
  return read.terms().out("array").flatMap((term) =>
    term.normalize("NFD").replace(/[\u0300-\u036f]/g, "").toLowerCase().split(/[^a-z0-9]+/).filter(Boolean),
  );
}

process.stdout.write(JSON.stringify(JSON.parse(readFileSync(0, "utf8")).map(words)));

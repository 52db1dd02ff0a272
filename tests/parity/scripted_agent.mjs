// What the agents of record_ai_sdk.mjs, record_langchain_js.mjs and record_mastra_spans.mjs do, and the recording of it:
// the sessions, the answers of the scripted model, the tools, and the truth. `Script` is a mock of the AI SDK.

import { createRequire } from "node:module";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

Error.stackTraceLimit = 0; // the spans of a failure have the stack, whose paths are of this machine

const MODEL = "scripted-1";
const SOLD_OUT = "train TGV 9763 has no 2 seats left";
const REFUNDED = { order: "70-5521", amount: 12.5, currency: "€" };
const trains = ({ origin, destination }) => {
  return { trains: [{ train: "TGV 9763", from: origin, to: destination, free: 2 }] };
};
const sunny = (city) => `${city}: 晴れ, 21 °C`;

// The tools of the agent: the names and types of their arguments, and what they do.
export const TOOLS = {
  search_trains: [{ origin: "string", destination: "string" }, trains],
  weather: [{ city: "string" }, ({ city }) => sunny(city)],
  reserve: [
    { train: "string", seats: "number" },
    () => {
      throw new Error(SOLD_OUT);
    },
  ],
  count_bags: [{}, () => 0],
  read_notes: [{ topic: "string" }, () => ""],
  read_config: [{ name: "string" }, () => '{"not": "parsed"}'],
  is_open: [{}, () => false],
};
export const REFUND = [{ order: "string" }, ({ order }) => ({ ...REFUNDED, order })];

// Returns a function that imports a file of a package that is installed in the folder that a variable names.
export function packages(variable) {
  const folder = process.env[variable];
  if (!folder) {
    console.error(`${variable} must name a folder in which the packages are installed: see the top of this file`);
    process.exit(2);
  }
  const required = createRequire(join(folder, "package.json"));
  return (name, path) => import(pathToFileURL(path ? join(folder, "node_modules", name, path) : required.resolve(name)));
}

// Returns the types of arguments, as in `TOOLS`, as types of zod.
export const typed = (z, types) => Object.fromEntries(Object.entries(types).map(([name, type]) => [name, z[type]()]));

// Keeps exported spans: the requests as the Collector writes them, and the ids of the traces since the last `took`.
export class MemoryExporter {
  constructor(serializer) {
    this.serializer = serializer;
    this.requests = [];
    this.traces = new Set();
  }

  export(spans, done) {
    spans.forEach((span) => this.traces.add(span.spanContext().traceId));
    this.requests.push(JSON.parse(new TextDecoder().decode(this.serializer.serializeRequest(spans))));
    done({ code: 0 });
  }

  took() {
    const found = [...this.traces];
    this.traces.clear();
    return found;
  }

  async shutdown() {}
}

// The scripted model, and the record of its calls.
export class Script {
  constructor(ai, Model, version) {
    this.version = version;
    this.replies = [];
    this.calls = [];
    this.model = new Model({
      provider: "scripted",
      modelId: MODEL,
      doGenerate: async () => this.replies.shift()(this),
      doStream: async () => ({ stream: ai.simulateReadableStream({ chunks: chunks(this.replies.shift()(this)) }) }),
    });
  }

  answered(content, finish) {
    const [input, output] = [100 + this.calls.length, 10 + this.calls.length];
    this.calls.push({ model: MODEL, input_tokens: input, output_tokens: output });
    const flat = { inputTokens: input, outputTokens: output, totalTokens: input + output };
    const nested = { inputTokens: { total: input, noCache: input }, outputTokens: { total: output, text: output } };
    const finishReason = this.version < 6 ? finish : { unified: finish, raw: finish };
    return { content, finishReason, usage: this.version < 6 ? flat : nested, warnings: [] };
  }
}

function chunks({ content, finishReason, usage }) {
  const found = [{ type: "stream-start", warnings: [] }];
  for (const part of content) {
    if (part.type !== "text") found.push(part);
    else {
      const halves = [part.text.slice(0, 3), part.text.slice(3)];
      const deltas = halves.map((delta) => ({ type: "text-delta", id: "1", delta }));
      found.push({ type: "text-start", id: "1" }, ...deltas, { type: "text-end", id: "1" });
    }
  }
  return [...found, { type: "finish", finishReason, usage }];
}

const says = (text) => (script) => script.answered([{ type: "text", text }], "stop");
const asks = (calls, text) => (script) => {
  const asked = calls.map(([id, toolName, args]) => {
    return { type: "tool-call", toolCallId: id, toolName, input: JSON.stringify(args) };
  });
  return script.answered([...(text ? [{ type: "text", text }] : []), ...asked], "tool-calls");
};
const fails = (text) => (script) => {
  script.calls.push({ model: MODEL, input_tokens: null, output_tokens: null });
  throw new Error(text);
};

const ROUTE = { origin: "Genève", destination: "Zürich" };
const BOOKING = { train: "TGV 9763", seats: 2 };
const CONFIG = "Show me the configuration, how many bags are here, and whether the desk is open.";
const task = "Refund order 70-5521.";

// Each session with its turns: the question, the replies of the model, the calls of tools, the answer, and the call's way.
const SESSIONS = {
  travel: [
    [
      "Is there a train from Genève to Zürich on Friday?",
      [asks([["c1", "search_trains", ROUTE]], "Let me look. "), says("Yes, at 08:31. It has 2 free seats.")],
      [["search_trains", ROUTE, trains(ROUTE)]],
      "Yes, at 08:31. It has 2 free seats.",
      { before: "Let me look. " },
    ],
    [
      "How is the weather in Zürich, and in 東京?",
      [
        asks(["Zürich", "東京"].map((city, place) => [`c${2 + place}`, "weather", { city }])),
        says("It is sunny in both: 21 °C. 晴れ ☀"),
      ],
      ["Zürich", "東京"].map((city) => ["weather", { city }, sunny(city)]),
      "It is sunny in both: 21 °C. 晴れ ☀",
      { stream: true },
    ],
    ...[false, true].map((stream) => [
      "Two seats, please.",
      [asks([[`c4-${stream}`, "reserve", BOOKING]]), says("I am sorry, the train is full.")],
      [["reserve", BOOKING, null, SOLD_OUT]],
      "I am sorry, the train is full.",
      { stream },
    ]),
    ["Thanks!", [says("You are welcome.")], [], "You are welcome."],
  ],
  desk: [
    [
      "Is there a note about bag 12?",
      [asks([["c5", "read_notes", { topic: "bag 12" }]]), says("No, there is no note.")],
      [["read_notes", { topic: "bag 12" }, ""]],
      "No, there is no note.",
    ],
    [
      CONFIG,
      [
        asks([["c6", "read_config", { name: "desk" }]]),
        asks([["c7", "count_bags", {}]]),
        asks([["c8", "is_open", {}]]),
        says('{"desk": "closed", "bags": 0}'),
      ],
      [["read_config", { name: "desk" }, '{"not": "parsed"}'], ["count_bags", {}, 0], ["is_open", {}, false]],
      '{"desk": "closed", "bags": 0}',
      { stream: true },
    ],
    [
      "I never got my money back for order 70-5521.",
      [
        asks([["c9", "ask_refund_agent", { task }]]),
        asks([["r1", "refund", { order: "70-5521" }]]),
        says("12.50 € are on their way."),
        says("Done: 12.50 € come back to you."),
      ],
      [["ask_refund_agent", { task }, "12.50 € are on their way."], ["refund", { order: "70-5521" }, REFUNDED]],
      "Done: 12.50 € come back to you.",
    ],
    ...[false, true].map((stream) => [
      "Is anybody there?",
      [asks([[`c10-${stream}`, "count_bags", {}]]), fails("the model is not available")],
      [["count_bags", {}, 0]],
      null,
      { stream },
    ]),
    ["And now?", [says("Yes, I am back.")], [], "Yes, I am back."],
  ],
};

// Asks all questions, and writes the recording. `ask({session, question, stream})` returns the agent's answer; `flush`
// exports what the framework still holds. `joins`: whether the framework's answer begins with the texts that come with
// calls of tools.
export async function record(script, ask, exporter, { joins = false, flush = async () => {} } = {}) {
  const sessions = [];
  for (const [key, questions] of Object.entries(SESSIONS)) {
    const session = `session-${key}`;
    const turns = [];
    for (const [question, replies, calls, last, { stream = false, before = "" } = {}] of questions) {
      const answer = joins && last ? before + last : last;
      script.replies = [...replies];
      script.calls = [];
      let text = null;
      try {
        text = (await ask({ session, question, stream })) || null; // a stream that fails has an empty text
      } catch {
        text = null;
      }
      if (text !== answer) throw new Error(`${question}: ${text} instead of ${answer}`);
      await new Promise((resolve) => setTimeout(resolve, 50)); // the spans of a stream end after its text
      const tool_calls = calls.map(([name, args, result, error = null]) => {
        return { name, args, result, error, handoff_to: null };
      });
      await flush();
      const done = { answer, agents: ["travel_agent"], tool_calls, llm_calls: script.calls, trace_ids: exporter.took() };
      turns.push({ index: turns.length, question, ...done });
    }
    sessions.push({ key, session_id: session, turns });
  }
  const truth = { session_id_in_spans: true, sessions };
  process.stdout.write(JSON.stringify({ truth, requests: exporter.requests, logs: [] }));
}

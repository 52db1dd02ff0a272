// Records the spans of Vercel's AI SDK, of an agent with a scripted model, as a recording of tests/parity/data/otlp.
//
//     mkdir /tmp/ai-sdk && cd /tmp/ai-sdk
//     npm install ai@5 zod @opentelemetry/sdk-trace-node@2 @opentelemetry/otlp-transformer@0.223
//     AI_SDK=/tmp/ai-sdk node tests/parity/record_ai_sdk.mjs | xz > tests/parity/data/otlp/ai-sdk-5.json.xz
//
// ai@7 needs the package @ai-sdk/otel too. What the agent did is in the field `truth`. No model is asked.

import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

if (!process.env.AI_SDK) {
  console.error("AI_SDK must name a folder in which ai, zod and the packages of OpenTelemetry are installed");
  process.exit(2);
}
const folder = createRequire(join(process.env.AI_SDK, "package.json"));
const load = (name) => import(pathToFileURL(folder.resolve(name)));
const installed = JSON.parse(readFileSync(join(process.env.AI_SDK, "node_modules/ai/package.json"), "utf8"));
const major = Number(installed.version.split(".")[0]);
const found = (name, path) => import(pathToFileURL(join(process.env.AI_SDK, "node_modules", name, path)));
const ai = await found("ai", major < 7 ? "dist/index.mjs" : "dist/index.js");
const mocks = await found("ai", major < 7 ? "dist/test/index.mjs" : "dist/test/index.js");
const { z } = await load("zod");
const { NodeTracerProvider, SimpleSpanProcessor } = await load("@opentelemetry/sdk-trace-node");
const { resourceFromAttributes } = await load("@opentelemetry/resources");
const { JsonTraceSerializer } = await load("@opentelemetry/otlp-transformer");
const Model = { 5: mocks.MockLanguageModelV2, 6: mocks.MockLanguageModelV3, 7: mocks.MockLanguageModelV4 }[major];

Error.stackTraceLimit = 0; // the spans of a failure have the stack, whose paths are of this machine
const requests = [];
let traces = new Set();
const exporter = {
  export(spans, done) {
    spans.forEach((span) => traces.add(span.spanContext().traceId));
    requests.push(JSON.parse(new TextDecoder().decode(JsonTraceSerializer.serializeRequest(spans))));
    done({ code: 0 });
  },
  shutdown: async () => {},
};
const resource = resourceFromAttributes({ "service.name": "travel-desk" });
const provider = new NodeTracerProvider({ resource, spanProcessors: [new SimpleSpanProcessor(exporter)] });
provider.register();
if (major >= 7) {
  const { OpenTelemetry } = await found("@ai-sdk/otel", "dist/index.js");
  ai.registerTelemetry(new OpenTelemetry({ runtimeContext: true }));
}

const MODEL = "scripted-1";
let llmCalls = [];
function counted(content, finish) {
  const [input, output] = [100 + llmCalls.length, 10 + llmCalls.length];
  llmCalls.push({ model: MODEL, input_tokens: input, output_tokens: output });
  const usage =
    major === 5
      ? { inputTokens: input, outputTokens: output, totalTokens: input + output }
      : { inputTokens: { total: input, noCache: input }, outputTokens: { total: output, text: output } };
  return { content, finishReason: major === 5 ? finish : { unified: finish, raw: finish }, usage, warnings: [] };
}
const says = (text) => () => counted([{ type: "text", text }], "stop");
const asks = (calls, text) => () =>
  counted(
    [
      ...(text ? [{ type: "text", text }] : []),
      ...calls.map(([id, toolName, args]) => {
        return { type: "tool-call", toolCallId: id, toolName, input: JSON.stringify(args) };
      }),
    ],
    "tool-calls",
  );
const fails = (text) => () => {
  llmCalls.push({ model: MODEL, input_tokens: null, output_tokens: null });
  throw new Error(text);
};
function streamed({ content, finishReason, usage }) {
  const chunks = [{ type: "stream-start", warnings: [] }];
  for (const part of content) {
    if (part.type !== "text") chunks.push(part);
    else {
      const deltas = [part.text.slice(0, 3), part.text.slice(3)].map((delta) => ({ type: "text-delta", id: "1", delta }));
      chunks.push({ type: "text-start", id: "1" }, ...deltas, { type: "text-end", id: "1" });
    }
  }
  chunks.push({ type: "finish", finishReason, usage });
  return { stream: ai.simulateReadableStream({ chunks }) };
}
function scripted(replies) {
  const left = [...replies];
  return new Model({
    provider: "scripted",
    modelId: MODEL,
    doGenerate: async () => left.shift()(),
    doStream: async () => streamed(left.shift()()),
  });
}

const tool = (schema, execute) => ai.tool({ description: "A tool.", inputSchema: z.object(schema), execute });
const trains = ({ origin, destination }) => {
  return { trains: [{ train: "TGV 9763", from: origin, to: destination, free: 2 }] };
};
const SOLD_OUT = "train TGV 9763 has no 2 seats left";
const TOOLS = {
  search_trains: tool({ origin: z.string(), destination: z.string() }, async (args) => trains(args)),
  weather: tool({ city: z.string() }, async ({ city }) => `${city}: 晴れ, 21 °C`),
  reserve: tool({ train: z.string(), seats: z.number() }, async () => {
    throw new Error(SOLD_OUT);
  }),
  count_bags: tool({}, async () => 0),
  read_notes: tool({ topic: z.string() }, async () => ""),
  read_config: tool({ name: z.string() }, async () => '{"not": "parsed"}'),
  is_open: tool({}, async () => false),
  ask_refund_agent: tool({ task: z.string() }, async ({ task }) => {
    const replies = [asks([["r1", "refund", { order: "70-5521" }]]), says("12.50 € are on their way.")];
    const refund = tool({ order: z.string() }, async ({ order }) => ({ order, amount: 12.5, currency: "€" }));
    const options = settings("refund_agent", replies, { refund }, [{ role: "user", content: task }]);
    return (await ai.generateText(options)).text;
  }),
};

let session;
function settings(agent, replies, tools, messages) {
  const stopWhen = (major >= 7 ? ai.isStepCount : ai.stepCountIs)(6);
  const common = { model: scripted(replies), tools, messages, maxRetries: 0, stopWhen };
  const ids = { sessionId: session, userId: "user-7" };
  if (major < 7) {
    const telemetry = { isEnabled: true, functionId: agent, metadata: ids };
    return { ...common, system: "You are kind.", experimental_telemetry: telemetry };
  }
  const includeRuntimeContext = { sessionId: true, userId: true };
  const telemetry = { functionId: agent, includeRuntimeContext };
  return { ...common, instructions: "You are kind.", runtimeContext: ids, telemetry };
}

const sessions = [];
let history, turns;
function begin(key) {
  [session, history, turns] = [`session-${key}`, [], []];
  sessions.push({ key, session_id: session, turns });
}
async function turn(question, replies, calls, { stream = false, answer } = {}) {
  [llmCalls, traces] = [[], new Set()];
  history.push({ role: "user", content: question });
  const options = settings("travel_agent", replies, TOOLS, [...history]);
  let text = null;
  try {
    const result = stream ? ai.streamText({ ...options, onError() {} }) : await ai.generateText(options);
    text = (await result.text) || null; // a stream that fails has an empty text, and any other call throws
    if (text) history.push(...(major >= 7 ? await result.responseMessages : (await result.response).messages));
  } catch (error) {
    text = null;
  }
  if (!text) history.pop();
  await new Promise((resolve) => setTimeout(resolve, 50)); // the spans of a stream end after its text
  if (text !== answer) throw new Error(`${question}: ${text} instead of ${answer}`);
  const tool_calls = calls.map(([name, args, result, error = null]) => ({ name, args, result, error, handoff_to: null }));
  const done = { question, answer, agents: ["travel_agent"], tool_calls, llm_calls: llmCalls, trace_ids: [...traces] };
  turns.push({ index: turns.length, ...done });
}

const ROUTE = { origin: "Genève", destination: "Zürich" };
const sunny = (city) => ["weather", { city }, `${city}: 晴れ, 21 °C`];
const BOOKING = { train: "TGV 9763", seats: 2 };
begin("travel");
await turn(
  "Is there a train from Genève to Zürich on Friday?",
  [asks([["c1", "search_trains", ROUTE]], "Let me look."), says("Yes, at 08:31. It has 2 free seats.")],
  [["search_trains", ROUTE, trains(ROUTE)]],
  { answer: "Yes, at 08:31. It has 2 free seats." },
);
await turn(
  "How is the weather in Zürich, and in 東京?",
  [
    asks([
      ["c2", "weather", { city: "Zürich" }],
      ["c3", "weather", { city: "東京" }],
    ]),
    says("It is sunny in both: 21 °C. 晴れ ☀"),
  ],
  [sunny("Zürich"), sunny("東京")],
  { answer: "It is sunny in both: 21 °C. 晴れ ☀", stream: true },
);
for (const stream of [false, true]) {
  await turn(
    "Two seats, please.",
    [asks([[`c4-${stream}`, "reserve", BOOKING]]), says("I am sorry, the train is full.")],
    [["reserve", BOOKING, null, SOLD_OUT]],
    { answer: "I am sorry, the train is full.", stream },
  );
}
await turn("Thanks!", [says("You are welcome.")], [], { answer: "You are welcome." });
begin("desk");
await turn(
  "Is there a note about bag 12?",
  [asks([["c5", "read_notes", { topic: "bag 12" }]]), says("No, there is no note.")],
  [["read_notes", { topic: "bag 12" }, ""]],
  { answer: "No, there is no note." },
);
await turn(
  "Show me the configuration, how many bags are here, and whether the desk is open.",
  [
    asks([["c6", "read_config", { name: "desk" }]]),
    asks([["c7", "count_bags", {}]]),
    asks([["c8", "is_open", {}]]),
    says('{"desk": "closed", "bags": 0}'),
  ],
  [["read_config", { name: "desk" }, '{"not": "parsed"}'], ["count_bags", {}, 0], ["is_open", {}, false]],
  { answer: '{"desk": "closed", "bags": 0}', stream: true },
);
const task = "Refund order 70-5521.";
await turn(
  "I never got my money back for order 70-5521.",
  [asks([["c9", "ask_refund_agent", { task }]]), says("Done: 12.50 € come back to you.")],
  [
    ["ask_refund_agent", { task }, "12.50 € are on their way."],
    ["refund", { order: "70-5521" }, { order: "70-5521", amount: 12.5, currency: "€" }],
  ],
  { answer: "Done: 12.50 € come back to you." },
);
for (const stream of [false, true]) {
  await turn(
    "Is anybody there?",
    [asks([[`c10-${stream}`, "count_bags", {}]]), fails("the model is not available")],
    [["count_bags", {}, 0]],
    { answer: null, stream },
  );
}
await turn("And now?", [says("Yes, I am back.")], [], { answer: "Yes, I am back." });
process.stdout.write(JSON.stringify({ truth: { session_id_in_spans: true, sessions }, requests, logs: [] }));

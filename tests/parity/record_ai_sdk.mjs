// Records the spans of Vercel's AI SDK, of an agent with a scripted model, as a recording of tests/parity/data/otlp.
//
//     mkdir /tmp/ai-sdk && cd /tmp/ai-sdk
//     npm install ai@5 zod @opentelemetry/sdk-trace-node@2 @opentelemetry/otlp-transformer@0.223
//     AI_SDK=/tmp/ai-sdk node tests/parity/record_ai_sdk.mjs | xz -9 > tests/parity/data/otlp/ai-sdk-5.json.xz
//
// ai@7 needs the package @ai-sdk/otel too. What the agent did is in the field `truth`. No model is asked.

import { readFileSync } from "node:fs";
import { join } from "node:path";
import { MemoryExporter, packages, record, REFUND, Script, TOOLS, typed } from "./scripted_agent.mjs";

const load = packages("AI_SDK");
const installed = readFileSync(join(process.env.AI_SDK, "node_modules/ai/package.json"), "utf8");
const major = Number(JSON.parse(installed).version.split(".")[0]);
const ai = await load("ai", major < 7 ? "dist/index.mjs" : "dist/index.js");
const mocks = await load("ai", major < 7 ? "dist/test/index.mjs" : "dist/test/index.js");
const { z } = await load("zod");
const { NodeTracerProvider, SimpleSpanProcessor } = await load("@opentelemetry/sdk-trace-node");
const { resourceFromAttributes } = await load("@opentelemetry/resources");
const { JsonTraceSerializer } = await load("@opentelemetry/otlp-transformer");

const exporter = new MemoryExporter(JsonTraceSerializer);
const resource = resourceFromAttributes({ "service.name": "travel-desk" });
new NodeTracerProvider({ resource, spanProcessors: [new SimpleSpanProcessor(exporter)] }).register();
if (major >= 7) {
  const { OpenTelemetry } = await load("@ai-sdk/otel", "dist/index.js");
  ai.registerTelemetry(new OpenTelemetry({ runtimeContext: true }));
}

const Model = { 5: mocks.MockLanguageModelV2, 6: mocks.MockLanguageModelV3, 7: mocks.MockLanguageModelV4 }[major];
const script = new Script(ai, Model, major);
const tool = (schema, execute) => ai.tool({ description: "A tool.", inputSchema: z.object(schema), execute });
const made = ([types, run]) => tool(typed(z, types), async (args) => run(args));
const tools = Object.fromEntries(Object.entries(TOOLS).map(([name, each]) => [name, made(each)]));

let history;
let current;
function settings(agent, tools, messages) {
  const stopWhen = (major >= 7 ? ai.isStepCount : ai.stepCountIs)(6);
  const common = { model: script.model, tools, messages, maxRetries: 0, stopWhen };
  const ids = { sessionId: current, userId: "user-7" };
  if (major < 7) {
    const telemetry = { isEnabled: true, functionId: agent, metadata: ids };
    return { ...common, system: "You are kind.", experimental_telemetry: telemetry };
  }
  const telemetry = { functionId: agent, includeRuntimeContext: { sessionId: true, userId: true } };
  return { ...common, instructions: "You are kind.", runtimeContext: ids, telemetry };
}
tools.ask_refund_agent = tool({ task: z.string() }, async ({ task }) => {
  const messages = [{ role: "user", content: task }];
  return (await ai.generateText(settings("refund_agent", { refund: made(REFUND) }, messages))).text;
});

async function ask({ session, question, stream }) {
  if (session !== current) [current, history] = [session, []];
  const messages = [...history, { role: "user", content: question }];
  const options = settings("travel_agent", tools, messages);
  const result = stream ? ai.streamText({ ...options, onError() {} }) : await ai.generateText(options);
  const text = await result.text;
  if (text) history = [...messages, ...(major >= 7 ? await result.responseMessages : (await result.response).messages)];
  return text;
}

await record(script, ask, exporter);

// Records the spans that Mastra exports, of an agent with a scripted model, as a recording of tests/parity/data/otlp.
//
//     mkdir /tmp/mastra && cd /tmp/mastra
//     npm install --legacy-peer-deps @mastra/core@1.71 @mastra/observability@1.17 @mastra/otel-exporter@1.4 ai@5 zod \
//         @opentelemetry/otlp-transformer@0.223
//     MASTRA=/tmp/mastra node tests/parity/record_mastra_spans.mjs | xz -9 > tests/parity/data/otlp/mastra-1.71.json.xz
//
// Mastra 1.71 needs Node.js 22. What the agent did is in the field `truth`. No model is asked.

import { MemoryExporter, packages, record, REFUND, Script, TOOLS, typed } from "./scripted_agent.mjs";

const load = packages("MASTRA");
const { Mastra } = await load("@mastra/core", "dist/mastra/index.js");
const { Agent } = await load("@mastra/core", "dist/agent/index.js");
const { createTool } = await load("@mastra/core", "dist/tools/index.js");
const { Observability } = await load("@mastra/observability", "dist/index.js");
const { OtelExporter } = await load("@mastra/otel-exporter", "dist/index.js");
const { JsonTraceSerializer } = await load("@opentelemetry/otlp-transformer");
const ai = await load("ai", "dist/index.mjs");
const { MockLanguageModelV2 } = await load("ai", "dist/test/index.mjs");
const { z } = await load("zod");

const exporter = new MemoryExporter(JsonTraceSerializer);
const otel = new OtelExporter({
  provider: { custom: { endpoint: "http://127.0.0.1:4318/v1/traces", protocol: "http/json" } }, // nothing is sent there
  exporter,
  signals: { logs: false },
});

const script = new Script(ai, MockLanguageModelV2, 5);
const tool = (id, schema, execute) => createTool({ id, description: "A tool.", inputSchema: z.object(schema), execute });
const made = (id, [types, run]) => tool(id, typed(z, types), async (args) => run(args));
const tools = Object.fromEntries(Object.entries(TOOLS).map(([name, each]) => [name, made(name, each)]));
const agent = (id, tools) => new Agent({ id, name: id, instructions: "You are kind.", model: script.model, tools });
const refundAgent = agent("refund_agent", { refund: made("refund", REFUND) });
tools.ask_refund_agent = tool("ask_refund_agent", { task: z.string() }, async ({ task }, { tracingContext }) => {
  return (await refundAgent.generate(task, { tracingContext, maxSteps: 6, modelSettings: { maxRetries: 0 } })).text;
});
const mastra = new Mastra({
  agents: { travel_agent: agent("travel_agent", tools), refund_agent: refundAgent },
  logger: false,
  observability: new Observability({ configs: { otel: { serviceName: "travel-desk", exporters: [otel] } } }),
});

async function ask({ session, question, stream }) {
  const memory = { thread: session, resource: "user-7" };
  const tracingOptions = { metadata: { userId: "user-7" } };
  const options = { memory, tracingOptions, maxSteps: 6, modelSettings: { maxRetries: 0 } };
  const asked = session === "session-desk" ? [{ role: "user", content: question }] : question;
  const travel = mastra.getAgent("travel_agent");
  return stream ? (await travel.stream(asked, options)).text : (await travel.generate(asked, options)).text;
}

await record(script, ask, exporter, { joins: true, flush: () => otel.flush() });
await mastra.shutdown();

// Records the spans of OpenInference on LangChain.js, of an agent with a scripted model, as a recording of
// tests/parity/data/otlp.
//
//     mkdir /tmp/langchain-js && cd /tmp/langchain-js
//     npm install --legacy-peer-deps langchain@1 @langchain/core@1 @langchain/langgraph@1 zod \
//         @arizeai/openinference-instrumentation-langchain@4 @opentelemetry/sdk-trace-node@2 \
//         @opentelemetry/otlp-transformer@0.223
//     LANGCHAIN_JS=/tmp/langchain-js node tests/parity/record_langchain_js.mjs |
//         xz -9 > tests/parity/data/otlp/langchain-js-openinference.json.xz
//
// What the agent did is in the field `truth`. No model is asked.

import { MemoryExporter, packages, record, REFUND, TOOLS, typed } from "./scripted_agent.mjs";

const load = packages("LANGCHAIN_JS");
const callbacks = await load("@langchain/core", "dist/callbacks/manager.js");
const { BaseChatModel } = await load("@langchain/core", "dist/language_models/chat_models.js");
const { AIMessage, HumanMessage } = await load("@langchain/core", "dist/messages/index.js");
const { createAgent, tool } = await load("langchain", "dist/index.js");
const { z } = await load("zod");
const { NodeTracerProvider, SimpleSpanProcessor } = await load("@opentelemetry/sdk-trace-node");
const { resourceFromAttributes } = await load("@opentelemetry/resources");
const { JsonTraceSerializer } = await load("@opentelemetry/otlp-transformer");
const { LangChainInstrumentation } = await load("@arizeai/openinference-instrumentation-langchain");

const exporter = new MemoryExporter(JsonTraceSerializer);
const resource = resourceFromAttributes({ "service.name": "travel-desk" });
const provider = new NodeTracerProvider({ resource, spanProcessors: [new SimpleSpanProcessor(exporter)] });
provider.register();
new LangChainInstrumentation({ tracerProvider: provider }).manuallyInstrument(callbacks);

// The model, with the answers of the scenario as messages of LangChain.
const script = {
  replies: [],
  calls: [],
  answered(content, finish) {
    const [input, output] = [100 + this.calls.length, 10 + this.calls.length];
    this.calls.push({ model: "scripted-1", input_tokens: input, output_tokens: output });
    const asked = content.filter((part) => part.type === "tool-call");
    const finish_reason = finish.replace("-", "_");
    return new AIMessage({
      content: content.filter((part) => part.type === "text").map((part) => part.text).join(""),
      tool_calls: asked.map((part) => {
        return { id: part.toolCallId, name: part.toolName, args: JSON.parse(part.input), type: "tool_call" };
      }),
      usage_metadata: { input_tokens: input, output_tokens: output, total_tokens: input + output },
      response_metadata: { model_name: "scripted-1", finish_reason },
    });
  },
};
class ScriptedModel extends BaseChatModel {
  _llmType() {
    return "scripted";
  }
  bindTools() {
    return this;
  }
  getLsParams() {
    return { ls_provider: "scripted", ls_model_name: "scripted-1", ls_model_type: "chat" };
  }
  async _generate() {
    const message = script.replies.shift()(script);
    return { generations: [{ text: message.content, message }], llmOutput: {} };
  }
}

const described = (name, schema) => ({ name, description: "A tool.", schema: z.object(schema) });
const made = (name, [types, run]) => tool(async (args) => run(args), described(name, typed(z, types)));
const agent = (name, tools) => {
  return createAgent({ name, tools, model: new ScriptedModel({}), systemPrompt: "You are kind." });
};
const refundAgent = agent("refund_agent", [made("refund", REFUND)]);
const askRefundAgent = tool(async ({ task }) => {
  return (await refundAgent.invoke({ messages: [new HumanMessage(task)] })).messages.at(-1).content;
}, described("ask_refund_agent", { task: z.string() }));
const tools = Object.entries(TOOLS).map(([name, each]) => made(name, each));
const travel = agent("travel_agent", [...tools, askRefundAgent]);

let current;
let history;
async function ask({ session, question, stream }) {
  if (session !== current) [current, history] = [session, []];
  const config = { metadata: { session_id: session, user_id: "user-7" } };
  const messages = { messages: [...history, new HumanMessage(question)] };
  let done;
  if (!stream) done = await travel.invoke(messages, config);
  else for await (done of await travel.stream(messages, { ...config, streamMode: "values" }));
  history = done.messages;
  return history.at(-1).content;
}

await record(script, ask, exporter);
process.exit(0);

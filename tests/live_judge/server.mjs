// Serves a GGUF model as OpenAI's chat completions on loopback: node server.mjs MODEL.gguf. Prints its port.
import http from "node:http";
import {getLlama, LlamaChatSession} from "node-llama-cpp";

const CONTEXT_TOKENS = 8192;
const llama = await getLlama({gpu: false, build: "never", logLevel: "error"});
const model = await llama.loadModel({modelPath: process.argv[2]});
const context = await model.createContext({contextSize: CONTEXT_TOKENS, sequences: 1, threads: Number(process.env.THREADS ?? 1)});
const sequence = context.getSequence();
let last = Promise.resolve();
const counted = {answers: 0, given_up: 0, input_tokens: 0, output_tokens: 0};

async function answer(body, signal) {
    const text = (role) => body.messages.filter((each) => each.role === role).map((each) => each.content).join("\n\n");
    const session = new LlamaChatSession({contextSequence: sequence, systemPrompt: text("system") || undefined});
    const schema = body.response_format?.json_schema?.schema;
    const grammar = schema ? await llama.createGrammarForJsonSchema(schema) : undefined;
    const before = sequence.tokenMeter.getState();
    const found = await session.promptWithMeta(text("user"), {
        grammar, signal, temperature: body.temperature ?? 0, maxTokens: Math.min(body.max_tokens ?? body.max_completion_tokens ?? 512, 512),
    });
    const used = sequence.tokenMeter.diff(before);
    // Of the tokens in the context, the sequence evaluates those that the question before did not begin with.
    const asked = Math.max(sequence.nextTokenIndex - used.usedOutputTokens, used.usedInputTokens);
    session.dispose({disposeSequence: false});
    counted.answers += 1;
    counted.input_tokens += asked;
    counted.output_tokens += used.usedOutputTokens;
    return {
        id: "chatcmpl-local", object: "chat.completion", created: 0, model: body.model,
        choices: [{index: 0, finish_reason: found.stopReason === "maxTokens" ? "length" : "stop",
            message: {role: "assistant", content: found.responseText}}],
        usage: {prompt_tokens: asked, completion_tokens: used.usedOutputTokens,
            total_tokens: asked + used.usedOutputTokens,
            prompt_tokens_details: {cached_tokens: asked - used.usedInputTokens}},
    };
}

const server = http.createServer((request, response) => {
    if (request.url === "/v1/usage") {
        // After the questions before, so that a caller finds them counted.
        last = last.then(() => response.writeHead(200, {"content-type": "application/json"}).end(JSON.stringify(counted)));
        return;
    }
    const chunks = [];
    // A client that gives up must not keep the next question waiting.
    const gone = new AbortController();
    response.on("close", () => gone.abort());
    request.on("data", (chunk) => chunks.push(chunk));
    request.on("end", () => {
        // One question at a time: the context has one sequence.
        last = last.then(async () => {
            try {
                const found = await answer(JSON.parse(Buffer.concat(chunks).toString("utf8")), gone.signal);
                response.writeHead(200, {"content-type": "application/json"}).end(JSON.stringify(found));
            } catch (error) {
                counted.given_up += gone.signal.aborted ? 1 : 0;
                response.writeHead(400, {"content-type": "application/json"})
                    .end(JSON.stringify({error: {message: String(error), type: "invalid_request_error"}}));
            }
        });
    });
});
server.listen(0, "127.0.0.1", () => console.log(server.address().port));

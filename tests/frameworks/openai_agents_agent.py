"""Plays the scenario with OpenAI's Agents SDK: `openai_agents_agent.py TRUTH INSTRUMENTATION API [WORDS...]`.

Instrumentations are `openinference` and `traceloop`; APIs are `responses` and `chat`; the words are `stream`,
`without-session` and `told` (the model reads the error of a tool). The models are the SDK's own; the transport of their
client answers in place of OpenAI.
"""

import asyncio
import json
import sys
from contextlib import nullcontext
from typing import Any

import httpx2
from agents import (
    Agent,
    ModelSettings,
    OpenAIChatCompletionsModel,
    OpenAIResponsesModel,
    RunConfig,
    RunContextWrapper,
    Runner,
    SQLiteSession,
    function_tool,
    set_trace_processors,
)
from openai import AsyncOpenAI
from openinference.instrumentation import using_session
from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from scenario import (
    DESK,
    DESK_TOOLS,
    MODEL,
    REFUND_TOOLS,
    REFUNDS,
    TRAVEL,
    TRAVEL_TOOLS,
    Play,
    Reply,
    Session,
    handoff,
)
from scenario import sessions as all_sessions

TRUTH, WORDS = sys.argv[1], sys.argv[2:]

provider = TracerProvider()
provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
trace.set_tracer_provider(provider)
set_trace_processors([])  # nothing to OpenAI's own service

if "openinference" in WORDS:
    from openinference.instrumentation.openai_agents import OpenAIAgentsInstrumentor

    OpenAIAgentsInstrumentor().instrument(tracer_provider=provider)
if "traceloop" in WORDS:
    from opentelemetry.instrumentation.openai_agents import OpenAIAgentsInstrumentor as TraceloopInstrumentor

    TraceloopInstrumentor().instrument(tracer_provider=provider)

WITH_SESSION = "openinference" in WORDS and "without-session" not in WORDS
play = Play(session_id_in_spans=WITH_SESSION)
provider.add_span_processor(play.trace_ids)


def as_response(reply: Reply) -> dict[str, Any]:
    output: list[dict[str, Any]] = []
    if reply.text:
        content = [{"type": "output_text", "text": reply.text, "annotations": []}]
        output.append(
            {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": content}
        )
    for call in reply.calls:
        made = {"type": "function_call", "id": play.call_id().replace("call", "fc"), "call_id": play.call_id()}
        made |= {"status": "completed", "name": call.name, "arguments": json.dumps(call.args, ensure_ascii=False)}
        output.append(made)
    read, written = play.tokens
    usage: dict[str, Any] = {"input_tokens": read, "output_tokens": written, "total_tokens": read + written}
    usage |= {"input_tokens_details": {"cached_tokens": 0}, "output_tokens_details": {"reasoning_tokens": 0}}
    return {
        "id": f"resp_{read}",
        "object": "response",
        "created_at": 1,
        "model": MODEL,
        "status": "completed",
        "output": output,
        "usage": usage,
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
    }


def as_completion(reply: Reply) -> dict[str, Any]:
    calls = [
        {
            "id": play.call_id(),
            "type": "function",
            "function": {"name": call.name, "arguments": json.dumps(call.args, ensure_ascii=False)},
        }
        for call in reply.calls
    ]
    read, written = play.tokens
    message: dict[str, Any] = {"role": "assistant", "content": reply.text or None}
    if calls:
        message["tool_calls"] = calls
    return {
        "id": f"chatcmpl-{read}",
        "object": "chat.completion",
        "created": 1,
        "model": MODEL,
        "choices": [{"index": 0, "message": message, "finish_reason": "tool_calls" if calls else "stop"}],
        "usage": {"prompt_tokens": read, "completion_tokens": written, "total_tokens": read + written},
    }


def events_of(body: dict[str, Any]) -> list[dict[str, Any]]:
    """Returns the events of a stream that ends with this body."""
    if body["object"] == "response":
        started = {"type": "response.created", "sequence_number": 0, "response": {**body, "output": [], "usage": None}}
        return [started, {"type": "response.completed", "sequence_number": 1, "response": body}]
    [choice] = body["choices"]
    frame = {key: body[key] for key in ("id", "created", "model")} | {"object": "chat.completion.chunk"}
    deltas: list[dict[str, Any]] = [{"role": "assistant", "content": choice["message"]["content"]}]
    calls = choice["message"].get("tool_calls", [])
    deltas += [{"tool_calls": [{"index": index, **call}]} for index, call in enumerate(calls)]
    chunks = [{**frame, "choices": [{"index": 0, "delta": delta}]} for delta in deltas]
    chunks.append({**frame, "choices": [{"index": 0, "delta": {}, "finish_reason": choice["finish_reason"]}]})
    return [*chunks, {**frame, "choices": [], "usage": body["usage"]}]


def serve(request: httpx2.Request) -> httpx2.Response:
    reply = play.reply()
    if reply.error:
        return httpx2.Response(400, json={"error": {"message": reply.error, "type": "invalid_request_error"}})
    body = as_response(reply) if request.url.path.endswith("/responses") else as_completion(reply)
    if not json.loads(request.content).get("stream"):
        return httpx2.Response(200, json=body)
    lines = [f"event: {each.get('type', 'message')}\ndata: {json.dumps(each)}\n\n" for each in events_of(body)]
    return httpx2.Response(
        200, text="".join([*lines, "data: [DONE]\n\n"]), headers={"Content-Type": "text/event-stream"}
    )


client = AsyncOpenAI(
    api_key="none",
    base_url="http://scripted/v1",
    max_retries=0,
    http_client=httpx2.AsyncClient(transport=httpx2.MockTransport(serve)),
)
model_class = OpenAIResponsesModel if "responses" in WORDS else OpenAIChatCompletionsModel
model = model_class(model=MODEL, openai_client=client)


def tell(context: RunContextWrapper[Any], error: Exception) -> str:
    return str(error)


def agent_of(session: Session) -> Agent[None]:
    settings = ModelSettings(include_usage=True)

    def agent(name: str, tools: Any, **more: Any) -> Agent[None]:
        options = {"failure_error_function": tell} if "told" in WORDS else {}
        tools = [function_tool(each, strict_mode=False, **options) for each in tools]
        return Agent(name=name, model=model, model_settings=settings, tools=tools, **more)

    if session.agent == TRAVEL:
        return agent(TRAVEL, TRAVEL_TOOLS)
    refunds = agent(REFUNDS, REFUND_TOOLS)
    return agent(DESK, DESK_TOOLS, handoffs=[refunds])


async def ask(agent: Agent[None], question: str, memory: SQLiteSession) -> str:
    config = RunConfig(workflow_name="desk of the station", group_id=memory.session_id)
    if "stream" in WORDS:
        result = Runner.run_streamed(agent, question, session=memory, run_config=config)
        async for _ in result.stream_events():
            pass
        return str(result.final_output)
    return str((await Runner.run(agent, question, session=memory, run_config=config)).final_output)


async def main() -> None:
    for session in all_sessions(handoff(f"transfer_to_{REFUNDS}", {})):
        agent, memory = agent_of(session), SQLiteSession(session.id)
        for turn in session.turns:
            with (
                play.turn(session, turn) as answers,
                using_session(session.id) if WITH_SESSION else nullcontext(),
            ):
                answers.append(await ask(agent, turn.question, memory))


asyncio.run(main())
provider.force_flush()
play.write(TRUTH)

"""Plays the scenario with agents of Haystack: `haystack_agent.py TRUTH [pipeline|async]`."""

import asyncio
import sys
from typing import Any

from haystack import Pipeline, component, tracing
from haystack.components.agents import Agent
from haystack.dataclasses import ChatMessage, ToolCall
from haystack.tools import create_tool_from_function
from haystack_integrations.tracing.opentelemetry import OpenTelemetryTracer
from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from scenario import DESK, DESK_TOOLS, MODEL, REFUND_TOOLS, TRAVEL, TRAVEL_TOOLS, Play, delegation
from scenario import sessions as all_sessions

TRUTH, WORDS = sys.argv[1], sys.argv[2:]

provider = TracerProvider()
provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
trace.set_tracer_provider(provider)
tracer = trace.get_tracer("travel-desk")
tracing.enable_tracing(OpenTelemetryTracer(tracer))

play = Play()
provider.add_span_processor(play.trace_ids)


@component
class ScriptedModel:
    @component.output_types(replies=list[ChatMessage])
    def run(
        self,
        messages: list[ChatMessage],
        tools: Any = None,
        streaming_callback: Any = None,
        generation_kwargs: dict[str, Any] | None = None,
    ) -> dict[str, Any]:
        reply = play.reply()
        if reply.error:
            raise RuntimeError(reply.error)
        read, written = play.tokens
        calls = [ToolCall(tool_name=call.name, arguments=call.args, id=play.call_id()) for call in reply.calls]
        usage = {"prompt_tokens": read, "completion_tokens": written, "total_tokens": read + written}
        meta = {"model": MODEL, "index": 0, "finish_reason": "tool_calls" if calls else "stop", "usage": usage}
        return {"replies": [ChatMessage.from_assistant(reply.text or None, tool_calls=calls or None, meta=meta)]}


def agent_of(tools: tuple[Any, ...]) -> Agent:
    return Agent(chat_generator=ScriptedModel(), tools=[create_tool_from_function(tool) for tool in tools])


refunds = agent_of(REFUND_TOOLS)


def ask_refund_agent(task: str) -> str:
    """Asks the agent for refunds."""
    return str(refunds.run(messages=[ChatMessage.from_user(task)])["last_message"].text)


agents = {TRAVEL: agent_of(TRAVEL_TOOLS), DESK: agent_of((*DESK_TOOLS, ask_refund_agent))}
if "pipeline" in WORDS:
    pipelines = {name: Pipeline() for name in agents}
    for name, pipeline in pipelines.items():
        pipeline.add_component(name, agents[name])

for session in all_sessions(delegation()):
    messages: list[ChatMessage] = []
    for turn in session.turns:
        messages.append(ChatMessage.from_user(turn.question))
        agent = agents[session.agent]
        with play.turn(session, turn) as answers:
            if "pipeline" in WORDS:
                pipeline = pipelines[session.agent]
                with tracer.start_as_current_span("turn", attributes={"session.id": session.id, "user.id": "user-7"}):
                    result = pipeline.run({session.agent: {"messages": messages}})[session.agent]
            elif "async" in WORDS:
                with tracer.start_as_current_span("turn", attributes={"session.id": session.id}):
                    result = asyncio.run(agent.run_async(messages=messages))
            else:
                with tracer.start_as_current_span("turn", attributes={"session.id": session.id}):
                    result = agent.run(messages=messages)
            messages = result["messages"]
            answers.append(result["last_message"].text)

provider.force_flush()
play.write(TRUTH)

"""Plays the scenario with pydantic-ai: `pydantic_ai_agent.py TRUTH [VERSION] [WORDS...]`.

VERSION is that of the data format; the words are `no-content`, `logfire` and `openinference`.
"""

import asyncio
import functools
import sys
import warnings
from typing import Any

from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from pydantic_ai import Agent, InstrumentationSettings, ModelRetry
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.usage import RequestUsage
from scenario import (
    DELEGATE,
    DESK_TOOLS,
    MODEL,
    REFUND_TOOLS,
    REFUNDS,
    TRAVEL,
    TRAVEL_TOOLS,
    Play,
    delegation,
)
from scenario import sessions as all_sessions

TRUTH, WORDS = sys.argv[1], sys.argv[2:]
warnings.simplefilter("ignore")  # versions 2 to 4 of the format are deprecated

if "logfire" in WORDS:
    import logfire

    logfire.configure(send_to_logfire=False, console=False)
    logfire.instrument_pydantic_ai(include_content="no-content" not in WORDS)
    provider: Any = trace.get_tracer_provider()
else:
    provider = TracerProvider()
    if "openinference" in WORDS:
        from openinference.instrumentation.pydantic_ai import OpenInferenceSpanProcessor

        provider.add_span_processor(OpenInferenceSpanProcessor())
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    trace.set_tracer_provider(provider)
    [version] = [int(word) for word in WORDS if word.isdecimal()] or [None]
    options: dict[str, Any] = {"version": version} if version else {}
    if "no-content" in WORDS:
        options["include_content"] = False
    if options:
        Agent.instrument_all(InstrumentationSettings(**options))
    else:
        Agent.instrument_all()

play = Play()
provider.add_span_processor(play.trace_ids)


def answer(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
    reply = play.reply()
    if reply.error:
        raise RuntimeError(reply.error)
    read, written = play.tokens
    parts: list[Any] = [TextPart(reply.text)] if reply.text else []
    parts += [ToolCallPart(call.name, call.args, play.call_id()) for call in reply.calls]
    return ModelResponse(parts, usage=RequestUsage(input_tokens=read, output_tokens=written), model_name=MODEL)


model = FunctionModel(answer, model_name=MODEL)


def retried(function: Any) -> Any:
    """Returns a tool whose errors the model reads."""

    @functools.wraps(function)
    def tool(*args: Any, **kwargs: Any) -> Any:
        try:
            return function(*args, **kwargs)
        except ValueError as error:
            raise ModelRetry(str(error)) from error

    return tool


async def ask_refund_agent(task: str) -> str:
    """Asks the agent for refunds."""
    return (await refunds.run(task)).output


refunds = Agent(model, name=REFUNDS, tools=list(REFUND_TOOLS))


async def main() -> None:
    for session in all_sessions(delegation()):
        functions = TRAVEL_TOOLS if session.agent == TRAVEL else (*DESK_TOOLS, ask_refund_agent)
        tools = [each if each.__name__ == DELEGATE else retried(each) for each in functions]
        agent = Agent(model, name=session.agent, tools=tools)
        history: list[ModelMessage] = []
        for turn in session.turns:
            with play.turn(session, turn) as answers:
                question, session_id = turn.question, session.id
                result = await agent.run(question, message_history=history, conversation_id=session_id)
                answers.append(result.output)
                history = result.all_messages()


asyncio.run(main())
provider.force_flush()
play.write(TRUTH)

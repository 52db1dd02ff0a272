"""Plays the scenario with agents of Google's ADK: `adk_agent.py TRUTH [stream|thread|openinference ...]`."""

import asyncio
import sys
from collections.abc import AsyncGenerator
from typing import Any

from google.adk.agents import LlmAgent
from google.adk.agents.run_config import RunConfig, StreamingMode
from google.adk.models import BaseLlm, LlmRequest, LlmResponse
from google.adk.runners import InMemoryRunner
from google.adk.telemetry.setup import maybe_set_otel_providers
from google.genai import types
from opentelemetry import trace
from opentelemetry._logs import get_logger_provider
from scenario import DESK, DESK_TOOLS, MODEL, REFUND_TOOLS, REFUNDS, TRAVEL, TRAVEL_TOOLS, Play, Session, handoff
from scenario import sessions as all_sessions

TRUTH, WORDS = sys.argv[1], sys.argv[2:]

maybe_set_otel_providers()

play = Play()
trace.get_tracer_provider().add_span_processor(play.trace_ids)

if "openinference" in WORDS:
    from openinference.instrumentation.google_adk import GoogleADKInstrumentor

    GoogleADKInstrumentor().instrument()


class ScriptedModel(BaseLlm):
    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        reply = play.reply()
        if reply.error:
            raise RuntimeError(reply.error)
        parts = [types.Part(text=reply.text)] if reply.text else []
        for call in reply.calls:
            wanted = types.FunctionCall(name=call.name, args=call.args, id=play.call_id())
            parts.append(types.Part(function_call=wanted))
        read, written = play.tokens
        usage = types.GenerateContentResponseUsageMetadata(
            prompt_token_count=read, candidates_token_count=written, total_token_count=read + written
        )
        if stream and reply.text:
            half = len(reply.text) // 2
            for text in reply.text[:half], reply.text[half:]:
                yield LlmResponse(content=types.Content(role="model", parts=[types.Part(text=text)]), partial=True)
        yield LlmResponse(
            content=types.Content(role="model", parts=parts),
            usage_metadata=usage,
            model_version=MODEL,
            finish_reason=types.FinishReason.STOP,
        )


def tell(tool: Any, args: dict[str, Any], tool_context: Any, error: Exception) -> dict[str, Any]:
    return {"error": str(error)}


def agent_of(session: Session) -> LlmAgent:
    model = ScriptedModel(model=MODEL)
    if session.agent == TRAVEL:
        return LlmAgent(name=TRAVEL, model=model, tools=list(TRAVEL_TOOLS), on_tool_error_callback=tell)
    refunds = LlmAgent(name=REFUNDS, model=model, description="Refunds orders.", tools=list(REFUND_TOOLS))
    return LlmAgent(name=DESK, model=model, tools=list(DESK_TOOLS), sub_agents=[refunds])


async def main() -> None:
    mode = StreamingMode.SSE if "stream" in WORDS else StreamingMode.NONE
    for session in all_sessions(handoff("transfer_to_agent", {"agent_name": REFUNDS})):
        runner = InMemoryRunner(agent=agent_of(session), app_name="frameworks")
        await runner.session_service.create_session(app_name="frameworks", user_id="user-7", session_id=session.id)
        for turn in session.turns:
            message = types.Content(role="user", parts=[types.Part(text=turn.question)])
            with play.turn(session, turn) as answers:
                async for event in runner.run_async(
                    user_id="user-7",
                    session_id=session.id,
                    new_message=message,
                    run_config=RunConfig(streaming_mode=mode),
                ):
                    if event.is_final_response() and event.content and not event.partial:
                        answers.append("".join(part.text or "" for part in event.content.parts or []))


asyncio.run(main())
trace.get_tracer_provider().force_flush()
get_logger_provider().force_flush()
play.write(TRUTH)

"""Plays the scenario with agents of Strands: `strands_agent.py TRUTH [async|swarm]`."""

import asyncio
import json
import sys
from collections.abc import AsyncGenerator, AsyncIterator
from typing import Any

from scenario import (
    DELEGATE,
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
    Turn,
    delegation,
    handoff,
)
from scenario import sessions as all_sessions
from strands import Agent, tool
from strands.models import Model
from strands.multiagent import Swarm
from strands.telemetry import StrandsTelemetry

TRUTH, WORDS = sys.argv[1], sys.argv[2:]

telemetry = StrandsTelemetry()
telemetry.setup_otlp_exporter()

play = Play()
telemetry.tracer_provider.add_span_processor(play.trace_ids)


class ScriptedModel(Model):
    config = {"model_id": MODEL}

    def update_config(self, **model_config: Any) -> None:
        pass

    def get_config(self) -> dict[str, str]:
        return self.config

    def structured_output(self, *args: Any, **kwargs: Any) -> AsyncGenerator[dict[str, Any], None]:
        raise NotImplementedError

    async def stream(self, *args: Any, **kwargs: Any) -> AsyncIterator[dict[str, Any]]:
        reply = play.reply()
        if reply.error:
            raise RuntimeError(reply.error)
        yield {"messageStart": {"role": "assistant"}}
        if reply.text:
            half = len(reply.text) // 2
            for text in reply.text[:half], reply.text[half:]:
                yield {"contentBlockDelta": {"delta": {"text": text}}}
            yield {"contentBlockStop": {}}
        for call in reply.calls:
            yield {"contentBlockStart": {"start": {"toolUse": {"name": call.name, "toolUseId": play.call_id()}}}}
            yield {"contentBlockDelta": {"delta": {"toolUse": {"input": json.dumps(call.args)}}}}
            yield {"contentBlockStop": {}}
        yield {"messageStop": {"stopReason": "tool_use" if reply.calls else "end_turn"}}
        read, written = play.tokens
        usage = {"inputTokens": read, "outputTokens": written, "totalTokens": read + written}
        yield {"metadata": {"usage": usage, "metrics": {"latencyMs": 1}}}


def agent_of(name: str, tools: tuple[Any, ...], session: Session, **options: Any) -> Agent:
    trace_attributes = {"session.id": session.id, "user.id": "user-7"}
    return Agent(
        name=name,
        model=ScriptedModel(),
        tools=[each if hasattr(each, "tool_spec") else tool(each) for each in tools],
        callback_handler=None,
        trace_attributes=trace_attributes,
        **options,
    )


def swarm_of(session: Session) -> Swarm:
    desk = agent_of(DESK, DESK_TOOLS, session)
    refunds = agent_of(REFUNDS, REFUND_TOOLS, session, description="Refunds orders.")
    return Swarm([desk, refunds], entry_point=desk, trace_attributes={"session.id": session.id})


def handed_over() -> Turn:
    """Returns the turn with a handoff: the first agent ends its own turn before the other begins."""
    turn = handoff("handoff_to_agent", {"agent_name": REFUNDS, "message": "Refund it."})
    asked, *others = turn.replies
    call = asked.calls[0]._replace(result=f"Handing off to {REFUNDS}: Refund it.")
    return turn._replace(replies=(Reply(calls=(call,)), Reply("My colleague takes over."), *others))


async def main() -> None:
    last = handed_over() if "swarm" in WORDS else delegation()
    for session in all_sessions(last):
        asked: Any
        if session.agent == TRAVEL:
            asked = agent_of(TRAVEL, TRAVEL_TOOLS, session)
        elif session.key.startswith("refund") and "swarm" in WORDS:
            asked = swarm_of(session)
        else:
            refunds = agent_of(REFUNDS, REFUND_TOOLS, session)

            @tool(name=DELEGATE)
            def ask(task: str, refunds: Any = refunds) -> str:
                """Asks the agent for refunds."""
                return str(refunds(task)).strip()

            asked = agent_of(DESK, (*DESK_TOOLS, ask), session)
        for turn in session.turns:
            with play.turn(session, turn) as answers:
                if "async" in WORDS:
                    async for event in asked.stream_async(turn.question):
                        if "result" in event:
                            answers.append(str(event["result"]).strip())
                else:
                    result = asked(turn.question)
                    result = result.results[REFUNDS].result if isinstance(asked, Swarm) else result
                    answers.append(str(result).strip())


asyncio.run(main())
telemetry.tracer_provider.force_flush()
play.write(TRUTH)

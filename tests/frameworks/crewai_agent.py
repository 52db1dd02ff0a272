"""Plays the scenario with agents of CrewAI: `crewai_agent.py TRUTH [text|async|alone]`."""

import asyncio
import json
import sys
from typing import Any

from crewai import Agent, Crew, Process, Task
from crewai.llms.base_llm import BaseLLM
from crewai.tools import tool
from openinference.instrumentation import using_session
from openinference.instrumentation.crewai import CrewAIInstrumentor
from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from scenario import DESK, DESK_TOOLS, MODEL, TRAVEL, TRAVEL_TOOLS, Play, Session
from scenario import sessions as all_sessions

TRUTH, WORDS = sys.argv[1], sys.argv[2:]

provider = TracerProvider()
provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
trace.set_tracer_provider(provider)
play = Play()
provider.add_span_processor(play.trace_ids)

CrewAIInstrumentor().instrument(tracer_provider=provider)


class ScriptedModel(BaseLLM):
    def supports_function_calling(self) -> bool:
        return "text" not in WORDS

    def call(
        self, messages: Any, tools: Any = None, callbacks: Any = None, available_functions: Any = None, **kwargs: Any
    ) -> Any:
        reply = play.reply()
        if reply.error:
            raise RuntimeError(reply.error)
        read, written = play.tokens
        self._track_token_usage_internal(
            {"prompt_tokens": read, "completion_tokens": written, "total_tokens": read + written}
        )
        if reply.calls and "text" not in WORDS:
            return [
                {
                    "id": play.call_id(),
                    "type": "function",
                    "function": {"name": call.name, "arguments": json.dumps(call.args)},
                }
                for call in reply.calls
            ]
        if reply.calls:
            (call,) = reply.calls
            return f"Thought: {reply.text or 'I need a tool.'}\nAction: {call.name}\nAction Input: {json.dumps(call.args)}\n"
        return f"Thought: I now can give a great answer\nFinal Answer: {reply.text}" if "text" in WORDS else reply.text

    async def acall(self, *args: Any, **kwargs: Any) -> Any:
        return self.call(*args, **kwargs)


def crew_of(session: Session, question: str) -> Any:
    name, tools = (TRAVEL, TRAVEL_TOOLS) if session.agent == TRAVEL else (DESK, DESK_TOOLS)
    agent = Agent(
        role=name,
        goal="Help.",
        backstory="You help.",
        llm=ScriptedModel(model=MODEL),
        tools=[tool(each) for each in tools],
        max_retry_limit=0,
        verbose=False,
    )
    if "alone" in WORDS:
        return agent
    task = Task(description=question, expected_output="An answer.", agent=agent)
    return Crew(agents=[agent], tasks=[task], process=Process.sequential, verbose=False)


def main() -> None:
    for session in all_sessions():
        for turn in session.turns:
            if "text" in WORDS and any(len(reply.calls) > 1 for reply in turn.replies):
                continue  # such an agent calls one tool at a time
            with play.turn(session, turn) as answers:
                crew = crew_of(session, turn.question)
                if "alone" in WORDS:
                    with using_session(session.id):
                        result = crew.kickoff(turn.question)
                elif "async" in WORDS:
                    with using_session(session.id):
                        result = asyncio.run(crew.kickoff_async())
                else:
                    with using_session(session.id):
                        result = crew.kickoff()
                answers.append(str(result.raw))


main()
provider.force_flush()
play.write(TRUTH)

"""Plays the scenario with agents of LlamaIndex: `llama_index_agent.py TRUTH [plain|react|alone ...]`."""

import asyncio
import json
import sys
from collections.abc import Sequence
from typing import Any

from llama_index.core.agent.workflow import AgentWorkflow, FunctionAgent, ReActAgent
from llama_index.core.base.llms.types import ChatMessage, ChatResponse, LLMMetadata, ToolCallBlock
from llama_index.core.llms.callbacks import llm_chat_callback
from llama_index.core.llms.function_calling import FunctionCallingLLM
from llama_index.core.llms.llm import ToolSelection
from llama_index.core.memory import Memory
from llama_index.core.tools import FunctionTool
from openinference.instrumentation import using_session
from openinference.instrumentation.llama_index import LlamaIndexInstrumentor
from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from scenario import DESK, DESK_TOOLS, MODEL, REFUND_TOOLS, REFUNDS, TRAVEL, TRAVEL_TOOLS, Play, Session, handoff
from scenario import sessions as all_sessions

TRUTH, WORDS = sys.argv[1], sys.argv[2:]

provider = TracerProvider()
provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
trace.set_tracer_provider(provider)
play = Play()
provider.add_span_processor(play.trace_ids)

LlamaIndexInstrumentor().instrument(tracer_provider=provider)


class ScriptedModel(FunctionCallingLLM):
    model: str = MODEL

    @classmethod
    def class_name(cls) -> str:
        return "ScriptedModel"

    @property
    def metadata(self) -> LLMMetadata:
        return LLMMetadata(is_function_calling_model="react" not in WORDS, is_chat_model=True, model_name=MODEL)

    def _prepare_chat_with_tools(
        self, tools: Any, user_msg: Any = None, chat_history: Any = None, **kwargs: Any
    ) -> dict[str, Any]:
        return {"messages": [*(chat_history or []), *([user_msg] if user_msg else [])], "tools": None}

    def get_tool_calls_from_response(self, response: ChatResponse, *args: Any, **kwargs: Any) -> list[ToolSelection]:
        return [
            ToolSelection(tool_id=block.tool_call_id or "", tool_name=block.tool_name, tool_kwargs=block.tool_kwargs)
            for block in response.message.blocks
            if isinstance(block, ToolCallBlock)
        ]

    def _answer(self) -> ChatResponse:
        reply = play.reply()
        if reply.error:
            raise RuntimeError(reply.error)
        message = ChatMessage(role="assistant", content=reply.text)
        for call in reply.calls:
            message.blocks.append(
                ToolCallBlock(tool_call_id=play.call_id(), tool_name=call.name, tool_kwargs=call.args)
            )
        if "react" in WORDS:
            if reply.calls:
                (call,) = reply.calls
                text = f"Thought: {reply.text or 'I need a tool.'}\nAction: {call.name}\nAction Input: {json.dumps(call.args)}"
            else:
                text = f"Thought: I can answer without using any more tools.\nAnswer: {reply.text}"
            message = ChatMessage(role="assistant", content=text)
        read, written = play.tokens
        raw = {"model": MODEL, "usage": {"prompt_tokens": read, "completion_tokens": written}}
        return ChatResponse(message=message, raw=raw)

    @llm_chat_callback()
    async def achat(self, messages: Sequence[ChatMessage], **kwargs: Any) -> ChatResponse:
        return self._answer()

    @llm_chat_callback()
    async def astream_chat(self, messages: Sequence[ChatMessage], **kwargs: Any) -> Any:
        async def parts() -> Any:
            answer = self._answer()
            text = answer.message.content or ""
            half = len(text) // 2
            if text:
                yield ChatResponse(message=ChatMessage(role="assistant", content=text[:half]), delta=text[:half])
            answer.delta = text[half:]
            yield answer

        return parts()

    def chat(self, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError

    stream_chat = complete = stream_complete = acomplete = astream_complete = chat


def agent_of(name: str, tools: Sequence[Any], **options: Any) -> Any:
    kind = ReActAgent if "react" in WORDS else FunctionAgent
    return kind(
        name=name,
        description=name,
        tools=[FunctionTool.from_defaults(each) for each in tools],
        llm=ScriptedModel(),
        streaming="plain" not in WORDS,
        **options,
    )


def workflow_of(session: Session) -> AgentWorkflow:
    if session.agent == TRAVEL:
        return AgentWorkflow(agents=[agent_of(TRAVEL, TRAVEL_TOOLS)])
    desk = agent_of(DESK, DESK_TOOLS, can_handoff_to=[REFUNDS])
    return AgentWorkflow(agents=[desk, agent_of(REFUNDS, REFUND_TOOLS)], root_agent=DESK)


async def main() -> None:
    for session in all_sessions(handoff("handoff", {"to_agent": REFUNDS, "reason": "A refund."})):
        if "alone" in WORDS and session.key.startswith("refund"):
            continue
        tools = TRAVEL_TOOLS if session.agent == TRAVEL else DESK_TOOLS
        agent = agent_of(session.agent, tools) if "alone" in WORDS else workflow_of(session)
        memory = Memory.from_defaults(session_id=session.id)
        for turn in session.turns:
            if "react" in WORDS and any(len(reply.calls) > 1 for reply in turn.replies):
                continue  # such an agent calls one tool at a time
            with play.turn(session, turn) as answers:
                with using_session(session.id):
                    result = await agent.run(turn.question, memory=memory)
                answers.append(str(result.response.content))


asyncio.run(main())
provider.force_flush()
play.write(TRUTH)

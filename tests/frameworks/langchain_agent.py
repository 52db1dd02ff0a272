"""Plays the scenario with agents of LangChain and LangGraph: `langchain_agent.py TRUTH INSTRUMENTATION... [WORDS...]`.

Instrumentations are `openinference`, `traceloop` and `langsmith`; the words are `async`, `stream` and `graph` (a graph
made by hand in place of `create_agent`).
"""

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Iterator, Sequence
from typing import Any

from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

TRUTH, WORDS = sys.argv[1], sys.argv[2:]
if "langsmith" in WORDS:
    os.environ |= {"LANGSMITH_TRACING": "true", "LANGSMITH_OTEL_ENABLED": "true", "LANGSMITH_OTEL_ONLY": "true"}

provider = TracerProvider()
provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
trace.set_tracer_provider(provider)

if "openinference" in WORDS:
    from openinference.instrumentation.langchain import LangChainInstrumentor

    LangChainInstrumentor().instrument(tracer_provider=provider)
if "traceloop" in WORDS:
    from opentelemetry.instrumentation.langchain import LangchainInstrumentor

    LangchainInstrumentor().instrument(tracer_provider=provider)

from langchain.agents import create_agent  # noqa: E402 - after the instrumentation, as its pages say
from langchain.agents.middleware import wrap_tool_call  # noqa: E402
from langchain_core.language_models import BaseChatModel  # noqa: E402
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, ToolMessage  # noqa: E402
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult  # noqa: E402
from langchain_core.tools import tool  # noqa: E402
from langgraph.checkpoint.memory import InMemorySaver  # noqa: E402
from langgraph.graph import START, MessagesState, StateGraph  # noqa: E402
from langgraph.prebuilt import ToolNode, tools_condition  # noqa: E402
from langsmith.run_trees import get_cached_client  # noqa: E402
from scenario import (  # noqa: E402
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
from scenario import sessions as all_sessions  # noqa: E402

client = get_cached_client(otel_tracer_provider=provider) if "langsmith" in WORDS else None
play = Play()
provider.add_span_processor(play.trace_ids)


class ScriptedModel(BaseChatModel):
    model: str = MODEL

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: Sequence[Any], **kwargs: Any) -> Any:
        return self

    def _answer(self) -> AIMessage:
        reply = play.reply()
        if reply.error:
            raise RuntimeError(reply.error)
        read, written = play.tokens
        return AIMessage(
            reply.text,
            tool_calls=[{"name": call.name, "args": call.args, "id": play.call_id()} for call in reply.calls],
            usage_metadata={"input_tokens": read, "output_tokens": written, "total_tokens": read + written},
            response_metadata={"model_name": MODEL, "finish_reason": "tool_calls" if reply.calls else "stop"},
        )

    def _generate(self, messages: list[BaseMessage], stop: Any = None, run_manager: Any = None, **kwargs: Any) -> Any:
        return ChatResult(generations=[ChatGeneration(message=self._answer())])

    def _stream(
        self, messages: list[BaseMessage], stop: Any = None, run_manager: Any = None, **kwargs: Any
    ) -> Iterator[ChatGenerationChunk]:
        answer = self._answer()
        half = len(answer.content) // 2
        for content in answer.content[:half], answer.content[half:]:
            chunk = ChatGenerationChunk(message=AIMessageChunk(content))
            if run_manager:
                run_manager.on_llm_new_token(content, chunk=chunk)
            yield chunk
        yield ChatGenerationChunk(
            message=AIMessageChunk(
                "",
                tool_calls=answer.tool_calls,
                usage_metadata=answer.usage_metadata,
                response_metadata=answer.response_metadata,
            )
        )


class StreamedModel(ScriptedModel):
    streaming: bool = True

    def _generate(self, messages: list[BaseMessage], stop: Any = None, run_manager: Any = None, **kwargs: Any) -> Any:
        chunks = list(self._stream(messages, stop, run_manager))
        whole = chunks[0]
        for chunk in chunks[1:]:
            whole += chunk
        message = whole.message
        return ChatResult(generations=[ChatGeneration(message=AIMessage(**message.model_dump(exclude={"type"})))])

    async def _astream(
        self, messages: list[BaseMessage], stop: Any = None, run_manager: Any = None, **kwargs: Any
    ) -> AsyncIterator[ChatGenerationChunk]:
        for chunk in self._stream(messages, stop):
            if run_manager:
                await run_manager.on_llm_new_token(chunk.message.content, chunk=chunk)
            yield chunk


@wrap_tool_call
def tell(request: Any, handler: Any) -> ToolMessage:
    try:
        return handler(request)
    except ValueError as error:
        return ToolMessage(str(error), tool_call_id=request.tool_call["id"], status="error")


@wrap_tool_call
async def atell(request: Any, handler: Any) -> ToolMessage:
    try:
        return await handler(request)
    except ValueError as error:
        return ToolMessage(str(error), tool_call_id=request.tool_call["id"], status="error")


def text_of(error: ValueError) -> str:
    return str(error)


def graph_of(name: str, tools: list[Any], model: ScriptedModel, saver: Any) -> Any:
    """Returns an agent as a graph made by hand."""

    def ask(state: MessagesState) -> dict[str, Any]:
        return {"messages": [model.invoke(state["messages"])]}

    async def aask(state: MessagesState) -> dict[str, Any]:
        return {"messages": [await model.ainvoke(state["messages"])]}

    graph = StateGraph(MessagesState)
    graph.add_node("model", aask if "async" in WORDS else ask)
    graph.add_node("tools", ToolNode(tools, handle_tool_errors=text_of))
    graph.add_edge(START, "model")
    graph.add_conditional_edges("model", tools_condition)
    graph.add_edge("tools", "model")
    return graph.compile(checkpointer=saver, name=name)


def agent_of(name: str, functions: Sequence[Any], saver: Any = None) -> Any:
    model = StreamedModel() if "stream" in WORDS else ScriptedModel()
    tools = [tool(each) for each in functions]
    if "graph" in WORDS:
        return graph_of(name, tools, model, saver)
    middleware = [atell if "async" in WORDS else tell]
    return create_agent(model, tools, name=name, checkpointer=saver, middleware=middleware)


def ask_refund_agent(task: str) -> str:
    """Asks the agent for refunds."""
    refunds = agent_of(REFUNDS, REFUND_TOOLS)
    return refunds.invoke({"messages": [{"role": "user", "content": task}]})["messages"][-1].content


async def aask_refund_agent(task: str) -> str:
    """Asks the agent for refunds."""
    refunds = agent_of(REFUNDS, REFUND_TOOLS)
    state = await refunds.ainvoke({"messages": [{"role": "user", "content": task}]})
    return state["messages"][-1].content


aask_refund_agent.__name__ = DELEGATE
ask = aask_refund_agent if "async" in WORDS else ask_refund_agent


def invoke(agent: Any, question: str, thread_id: str) -> str:
    config = {"configurable": {"thread_id": thread_id}}
    result = agent.invoke({"messages": [{"role": "user", "content": question}]}, config)
    return result["messages"][-1].content


def stream(agent: Any, question: str, thread_id: str) -> str:
    config = {"configurable": {"thread_id": thread_id}}
    states = agent.stream({"messages": [{"role": "user", "content": question}]}, config, stream_mode="values")
    return list(states)[-1]["messages"][-1].content


async def ainvoke(agent: Any, question: str, thread_id: str) -> str:
    config = {"configurable": {"thread_id": thread_id}}
    question = {"messages": [{"role": "user", "content": question}]}
    if "stream" in WORDS:
        states = [state async for state in agent.astream(question, config, stream_mode="values")]
        return states[-1]["messages"][-1].content
    return (await agent.ainvoke(question, config))["messages"][-1].content


async def main() -> None:
    saver = InMemorySaver()
    for session in all_sessions(delegation()):
        tools = TRAVEL_TOOLS if session.agent == TRAVEL else (*DESK_TOOLS, ask)
        agent = agent_of(session.agent, tools, saver)
        for turn in session.turns:
            with play.turn(session, turn) as answers:
                try:
                    if "async" in WORDS:
                        answers.append(await ainvoke(agent, turn.question, session.id))
                    elif "stream" in WORDS:
                        answers.append(stream(agent, turn.question, session.id))
                    else:
                        answers.append(invoke(agent, turn.question, session.id))
                finally:
                    if client:
                        client.flush()  # its spans begin in another thread; they belong to this turn


asyncio.run(main())
provider.force_flush()
play.write(TRUTH)

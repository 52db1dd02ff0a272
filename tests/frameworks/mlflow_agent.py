"""Plays the scenario with an agent of plain Python that MLflow traces: `mlflow_agent.py TRUTH`."""

import json
import sys
from typing import Any

import mlflow
from mlflow.entities import SpanType
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
    Session,
    delegation,
)
from scenario import sessions as all_sessions

TRUTH = sys.argv[1]

play = Play()


@mlflow.trace(span_type=SpanType.CHAT_MODEL, name="chat")
def chat(messages: list[dict[str, Any]]) -> dict[str, Any]:
    span = mlflow.get_current_active_span()
    span.set_attribute("mlflow.llm.model", MODEL)
    reply = play.reply()
    if reply.error:
        raise RuntimeError(reply.error)
    read, written = play.tokens
    usage = {"input_tokens": read, "output_tokens": written, "total_tokens": read + written}
    span.set_attribute("mlflow.chat.tokenUsage", usage)
    calls = [
        {"id": play.call_id(), "type": "function", "function": {"name": call.name, "arguments": json.dumps(call.args)}}
        for call in reply.calls
    ]
    message = {"role": "assistant", "content": reply.text, **({"tool_calls": calls} if calls else {})}
    return {"choices": [{"index": 0, "message": message, "finish_reason": "tool_calls" if calls else "stop"}]}


def answer(question: str, tools: dict[str, Any], history: list[dict[str, Any]]) -> str:
    history.append({"role": "user", "content": question})
    while True:
        message = chat(messages=list(history))["choices"][0]["message"]
        history.append(message)
        if not message.get("tool_calls"):
            return str(message["content"])
        for call in message["tool_calls"]:
            name = call["function"]["name"]
            tool = mlflow.trace(tools[name], span_type=SpanType.TOOL, name=name)
            try:
                result = tool(**json.loads(call["function"]["arguments"]))
            except ValueError as error:
                result = f"Error: {error}"
            content = result if isinstance(result, str) else json.dumps(result, ensure_ascii=False)
            history.append({"role": "tool", "tool_call_id": call["id"], "content": content})


def agent_of(name: str, tools: tuple[Any, ...], session: Session) -> Any:
    history: list[dict[str, Any]] = []
    known = {each.__name__: each for each in tools}

    def run(question: str) -> str:
        span = mlflow.get_current_active_span()
        span.set_attributes({"session.id": session.id, "user.id": "user-7"})
        play.trace_ids.seen.setdefault(span.trace_id.removeprefix("tr-"))
        return answer(question, known, history)

    return mlflow.trace(run, span_type=SpanType.AGENT, name=name)


def desk_of(session: Session) -> Any:
    history: list[dict[str, Any]] = []
    refunds = mlflow.trace(
        lambda task: answer(task, {each.__name__: each for each in REFUND_TOOLS}, history),
        span_type=SpanType.AGENT,
        name=REFUNDS,
    )

    def ask(task: str) -> str:
        return str(refunds(task))

    ask.__name__ = DELEGATE
    return agent_of(DESK, (*DESK_TOOLS, ask), session)


def main() -> None:
    for session in all_sessions(delegation()):
        agent = agent_of(TRAVEL, TRAVEL_TOOLS, session) if session.agent == TRAVEL else desk_of(session)
        for turn in session.turns:
            with play.turn(session, turn) as answers:
                answers.append(agent(turn.question))


main()
mlflow.flush_trace_async_logging(terminate=True)
play.write(TRUTH)

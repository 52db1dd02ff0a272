"""Reads an invocation from its spans."""

from __future__ import annotations

from dataclasses import dataclass

from traceweir.schemas.event_steps import QUESTION_OF_RUN_BEFORE
from traceweir.streams.intake.spans.content import (
    began_with_question,
    given_answer,
    goes_on_with_question,
    question_of,
    reads_only_results,
    resumption_of,
    written_answer,
)
from traceweir.streams.intake.spans.forced_answers import forced_answers
from traceweir.streams.intake.spans.identity import (
    agent_name,
    app_of,
    own_agent_name,
)
from traceweir.streams.intake.spans.missing import Missing
from traceweir.streams.intake.spans.model_calls import ModelCall, read_model_calls
from traceweir.streams.intake.spans.retrieval import Retrieval, read_retrievals
from traceweir.streams.intake.spans.texts_in_values import chat_text
from traceweir.streams.intake.spans.tool_calls import ToolCall, read_tool_calls
from traceweir.streams.intake.spans.tool_spans import tool_name
from traceweir.streams.intake.spans.turn_errors import error_of_turn
from traceweir.streams.intake.spans.turns import TurnSpans
from traceweir.streams.intake.spans.unread_names import unread_names
from traceweir.streams.intake.spans.unread_operations import unread_operations

_NO_TEXT = "the question is not in the spans: the run goes on with the answer of a person, which is no text"
_OF_RUN_BEFORE = f"{QUESTION_OF_RUN_BEFORE}: this run only goes on with it, after the answer of a person"
_OF_CALL_BEFORE = f"{QUESTION_OF_RUN_BEFORE}: this model call only goes on with it, and its input has the results alone"


@dataclass(slots=True)
class Reading:
    """An invocation as read from its spans."""

    turn: TurnSpans
    trace_id: str
    session_id: str
    user_id: str
    invocation_id: str
    question: str
    answer: str
    failed: bool
    app: str
    error: str
    """The error message of the turn; empty if it did not fail."""
    agent: str
    models: list[ModelCall]
    calls: list[ToolCall]
    retrievals: list[Retrieval]
    missing: Missing

    @classmethod
    def of(cls, turn: TurnSpans, session_id: str, user_id: str, *, is_first: bool) -> Reading:
        """Reads an invocation.

        The first invocation of a trace has the trace's id, so that the id stays if an outer span comes late. A turn of a
        conversation has an id of its own: the turns before it can be forgotten when its spans come.
        """
        root = turn.roots[0].span
        models = read_model_calls(turn.nodes)
        # What is beside the agents can be the title of a chat.
        own = [model for model in models if not turn.is_beside(model.nodes[0])] or models
        failed = turn.failed
        given = "" if failed else given_answer(turn, own)
        ran = {tool_name(node.span) for node in turn.nodes if node.kind == "tool"}
        forced = forced_answers(own, ran, given)
        has_whole_history = turn.bare or began_with_question(turn, models)
        resumption = resumption_of(turn)
        repeats = goes_on_with_question(turn)
        only_results = turn.bare and reads_only_results(models)
        calls = read_tool_calls(
            turn.nodes,
            models,
            has_whole_history=has_whole_history,
            answering=forced.names,
            resumes=resumption is not None or repeats or only_results,
        )
        answers_calls = not repeats and any(call.is_earlier for call in calls)
        question = question_of(turn, own) if resumption is None else resumption
        if answers_calls:
            # The answer of a person lets calls of a former invocation go on, and is no question.
            question = ""
        answer = "" if failed else chat_text(given or forced.text) or written_answer(turn, own)
        error = error_of_turn(turn, models, answer)
        named = (own_agent_name(node) for node in turn.nodes if node.kind in ("agent", "workflow", "chain", "llm"))
        agent = agent_name(turn.roots[0])
        # There, only an agent that works for the lost one can have a name.
        if not agent and not turn.is_fragment:
            agent = next((name for name in named if name), "")
        has_session = session_id != root.trace_id
        missing = Missing.of(
            turn,
            models,
            calls,
            question=question,
            answer=answer,
            agent=agent,
            failed=failed,
            error=error,
            has_session=has_session,
        )
        if answers_calls:
            missing.parts["question"] = _OF_CALL_BEFORE if only_results else _OF_RUN_BEFORE
        elif resumption is not None and not question:
            missing.parts["question"] = _NO_TEXT
        missing.parts |= unread_names(
            [*turn.above, *turn.nodes],
            has_session=has_session,
            has_user=bool(user_id),
            tools={call.name for call in calls},
        )
        if unread := unread_operations(turn.nodes):
            missing.parts["operation"] = unread
        return cls(
            turn=turn,
            trace_id=root.trace_id,
            session_id=session_id,
            user_id=user_id,
            invocation_id=root.trace_id if is_first and not turn.in_conversation else f"{root.trace_id}:{root.span_id}",
            question=question,
            answer=answer,
            failed=failed,
            app=app_of([root, *(node.span for node in (*turn.above, *turn.nodes))]),
            error=error,
            agent=agent,
            models=models,
            calls=calls,
            retrievals=read_retrievals(turn.nodes),
            missing=missing,
        )

    @property
    def is_empty(self) -> bool:
        """Whether the spans tell of no step, no question and no answer, as of a change of a state."""
        return not (self.models or self.calls or self.retrievals or self.question or self.answer or self.failed)

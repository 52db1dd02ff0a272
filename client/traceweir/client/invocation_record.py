"""Writes one invocation as Traceweir's events: question, tool calls, model calls, answer. Knows no context managers."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from traceweir.client.chunks import read_chunks
from traceweir.client.clock import Clock, RisingClock
from traceweir.client.dimensions import Dimensions, short
from traceweir.client.finish_reasons import not_whole
from traceweir.client.json_values import encode, plain, short_text
from traceweir.client.reasoning import Reasoning
from traceweir.client.sent_records import SentRecords
from traceweir.client.sink import Sink

MAX_ID_CHARS = 1_024
MAX_ERROR_CHARS = 10_000
UNSET: Any = object()
"""Stands for a value that nobody has set; None is a value."""


class InvocationRecord:
    """Writes the events of one invocation, each when it happens. A value that is not complete is said to be missing.

    Question, answer and arguments are left out if a part of them is lost, because a score of the rest would be wrong. Of
    a result, the rest is kept.
    """

    def __init__(
        self,
        sink: Sink,
        session_id: str,
        *,
        invocation_id: str = "",
        dimensions: Dimensions | None = None,
        reference_id: str = "",
        reasoning: Reasoning | None = None,
        wall_ns: Clock | None = None,
    ) -> None:
        """Prepares the fields that all events of the invocation have; writes nothing.

        Args:
            sink: Takes the events.
            session_id: The session.
            invocation_id: Id of the invocation; a new one if empty.
            dimensions: Whose work it is.
            reference_id: Id of the expected answer on the topic `references`.
            reasoning: Collects the reasoning trace; None: no trace is written.
            wall_ns: Returns nanoseconds since 1970.
        """
        self._sink = sink
        self._reasoning = reasoning
        self._clock = RisingClock(wall_ns) if wall_ns else RisingClock()
        self.session_id = identifier(session_id)
        self.id = identifier(invocation_id) or sink.new_id()
        self._key = self.session_id.encode("utf-8", "replace")
        span = sink.active_span()
        self._started_at = self._clock.text()
        fields = {
            "session_id": self.session_id,
            "invocation_id": self.id,
            "started_at": self._started_at,
            **(dimensions or Dimensions()).known(),
            **({"reference_id": short(reference_id)} if reference_id else {}),
            **({"trace_context": {"trace_id": span[0], "span_id": span[1]}} if span else {}),
        }
        self._envelope = encode(fields)[:-1]
        self._model = ""
        self._numbers = 0
        self._call_ids: set[str] = set()
        self.sent: SentRecords | None = None
        """Counts the records of the session; None if nobody says how many the session has."""
        self.is_ended = False
        """Whether the end is written. Steps that begin later belong to no invocation; results of earlier ones do."""

    def started(self, question: Any = UNSET) -> None:
        """Writes that the user sent a message: a text, or any value, which is written as JSON."""
        text, missing = _text_of(question, "the question", "pass it to `invocation`")
        content = {"user_content": _content(text, "user")} if text and not missing else {}
        self._put("invocation.started", content, missing)
        if self._reasoning is not None:
            self._reasoning.begin(self._started_at, text)

    def tool_called(self, name: str, args: Any = None, call_id: str = "", model_call_id: str = "") -> str:
        """Writes the call of a tool, and returns its id.

        Args:
            name: Name of the tool.
            args: The arguments by name; None if there are none.
            call_id: Id of the call; a new one if empty, or if another call of the invocation has it: results find their
                calls by it.
            model_call_id: Id of the model call whose answer asked for several calls; empty if unknown.
        """
        name = short(name)
        call_id = identifier(call_id)
        while not call_id or call_id in self._call_ids:
            call_id = self._next_call_id()
        self._call_ids.add(call_id)
        known, lost = plain({} if args is None else args)
        if not isinstance(known, dict):
            # As for tools that take a text instead of an object.
            known = {"input": known}
        missing = f"the arguments of the call of tool {name!r} are not recorded: {lost}" if lost else ""
        encoded = b"null" if lost else encode(known)
        fields = b'"name":%b,"call_id":%b,"args":%b' % (encode(name), encode(call_id), encoded)
        if model_call_id:
            fields += b',"model_call_id":' + encode(identifier(model_call_id))
        self._put("tool.called", fields, missing)
        if self._reasoning is not None:
            self._reasoning.called(name, None if lost else known, len(encoded))
        return call_id

    def tool_returned(self, name: str, call_id: str, response: Any = UNSET, error: str | None = None) -> None:
        """Writes the result of a call, or the message of its error."""
        name = short(name)
        missing = observation = ""
        fields = b'"name":%b,"call_id":%b' % (encode(name), encode(call_id))
        if error is not None:
            observation = error[:MAX_ERROR_CHARS] or "the tool failed without a message"
            fields += b',"error":' + encode(observation)
        elif response is UNSET:
            missing = f"the result of the call of tool {name!r} is not recorded: set `result` of the tool"
        else:
            known, lost = plain(response)
            missing = f"the result of the call of tool {name!r} is not complete: {lost}" if lost else ""
            encoded = encode(known)
            fields += b',"response":' + encoded
            observation = known if isinstance(known, str) else encoded.decode()
        self._put("tool.returned", fields, missing)
        if self._reasoning is not None:
            self._reasoning.observed(name, observation, failed=error is not None)

    def model_called(self, model: str, input_tokens: int | None = None, output_tokens: int | None = None) -> None:
        """Writes the call of a model. Tokens that are no number, or negative, are unknown."""
        self._model = short(model) or "unknown"
        tokens = {"input_tokens": _count(input_tokens), "output_tokens": _count(output_tokens)}
        known_tokens = {name: count for name, count in tokens.items() if count is not None}
        self._put("model.called", {"model": self._model, **known_tokens})

    def said(self, content: Any, author: str = "") -> None:
        """Writes an intermediate response of the agent or of a sub-agent."""
        text, missing = _text_of(content, "an intermediate response", "pass it to `said`")
        self._put("response.intermediate", {"author": short(author), "content": _content(text, "model")}, missing)
        if self._reasoning is not None:
            self._reasoning.thought(text)

    def retrieved(self, chunks: Iterable[Any]) -> None:
        """Writes what a retriever returned.

        Args:
            chunks: At most 100 pieces: texts; mappings with `content`, `text` or `page_content`, and `doc_uri`; or objects
                with these attributes, such as the documents of LangChain and the nodes of LlamaIndex.
        """
        found, lost = read_chunks(chunks)
        missing = f"the retrieved context is not complete: {lost}" if lost else ""
        self._put("retrieval.returned", {"chunks": found}, missing)

    def completed(self, answer: Any = UNSET, *, failed: bool = False, finish_reason: object = None) -> None:
        """Writes the end of the invocation.

        Args:
            answer: The final answer: a text, or any value, which is written as JSON.
            failed: Whether the agent ended by an exception, so that it gave no answer.
            finish_reason: Why the model ended the answer, in the words of Google ADK; None if unknown.
        """
        self.is_ended = True
        fields: dict[str, Any] = {}
        text, missing = (
            ("", "")
            # `==` would be the answer's own.
            if failed and (answer is UNSET or answer is None)
            else _text_of(answer, "the answer", "set `answer` of the invocation")
        )
        if text and not missing:
            fields["final_response"] = _content(text, "model")
        if self._model:
            fields["model"] = self._model
        self._put("invocation.completed", fields, missing or not_whole(text, finish_reason))
        if self._reasoning is not None:
            if self.sent is not None:
                self.sent.add_trace()
            self._sink.put_trace(
                self._key,
                self._reasoning.document(
                    f"kp:trace:{self._sink.new_id()}", self.session_id, self.id, text, failed=failed
                ),
            )

    def session_ended(self) -> None:
        """Writes that the session ended. The event belongs to the session alone.

        With the number of records that the session has, it is scored as soon as these are there. A session of which
        other processes, or other `SessionBlock` objects, have recorded a part is scored some seconds later.
        """
        envelope = encode({"session_id": self.session_id})[:-1]
        event = b'"type":"session.ended"'
        if self.sent is not None and (numbers := self.sent.at_the_end()) is not None:
            event += b',"expects":{"events":%d,"traces":%d}' % numbers
        self._sink.put_event(self._key, envelope, event, self._clock.text())

    def _put(self, kind: str, fields: dict[str, Any] | bytes, missing: str = "") -> None:
        """Writes an event.

        Args:
            kind: Its type.
            fields: Its other fields, or the JSON of them without braces: JSON that is joined costs the agent's thread
                less than a document of values that are JSON already.
            missing: What is missing; empty: nothing.
        """
        members = fields if isinstance(fields, bytes) else encode(fields)[1:-1]
        said = b',"missing":[%b]' % encode(missing) if missing else b""
        event = b'"type":"%b"%b%b%b' % (kind.encode(), b"," if members else b"", members, said)
        if self.sent is not None:
            self.sent.add_event()
        self._sink.put_event(self._key, self._envelope, event, self._clock.text())

    def _next_call_id(self) -> str:
        self._numbers += 1
        return f"{self.id}:{self._numbers}"


def identifier(value: object) -> str:
    """Returns an id as a text of at most 1,024 characters; None is empty."""
    return short_text(value, MAX_ID_CHARS)


def _text_of(value: Any, part: str, remedy: str) -> tuple[str, str]:
    """Returns a message as text, and the sentence that says what is missing."""
    if value is UNSET or value is None:
        return "", f"{part} is not recorded: {remedy}"
    known, lost = plain(value)
    text = known if isinstance(known, str) else encode(known).decode()
    return text, f"{part} is not complete: {lost}" if lost else ""


def _content(text: str, role: str) -> dict[str, Any]:
    return {"parts": [{"text": text}], "role": role}


def _count(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**53 else None

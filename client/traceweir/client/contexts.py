"""Defines the context managers of a recorder: session, invocation, tool and model call, for `with` and `async with`.

Nothing here raises: an error of the recording is logged, and the agent goes on. Exceptions of the agent pass unchanged.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from contextvars import ContextVar, Token
from dataclasses import dataclass
from types import TracebackType
from typing import Any, ParamSpec, Self, TypeVar

from traceweir.client.dimensions import Dimensions
from traceweir.client.invocation_record import MAX_ERROR_CHARS, UNSET, InvocationRecord, identifier
from traceweir.client.json_values import short_text
from traceweir.client.problems import ThrottledLog
from traceweir.client.sent_records import SentRecords
from traceweir.client.sink import Sink

P = ParamSpec("P")
R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class EnclosingBlocks:
    """The session and the invocation around the running code."""

    session: SessionBlock
    """The session around the code."""
    invocation: InvocationRecord | None = None
    """The invocation around the code."""


@dataclass(frozen=True, slots=True)
class RecorderParts:
    """What all context managers of one recorder share."""

    sink: Sink
    """Takes the events."""
    place: ContextVar[EnclosingBlocks | None]
    """Where the running code is; tasks and `asyncio.to_thread` take the place of their caller."""
    new_record: Callable[[str, str, Dimensions, str], InvocationRecord]
    """Returns a record for a session, an invocation id, dimensions and a reference id."""
    dimensions: Dimensions
    """The dimensions of the recorder."""

    @property
    def problems(self) -> ThrottledLog:
        """Where problems of the recording are logged."""
        return self.sink.problems


class _Context:
    """Enters and leaves one block. A block is recorded once, even if its context manager is entered again."""

    def __init__(self, recording: RecorderParts) -> None:
        self._recording = recording
        self._token: Token[EnclosingBlocks | None] | None = None
        self._depth = 0
        self._begun = self._ended = False

    def _begin(self) -> None:
        """Records the begin of the block."""
        raise NotImplementedError

    def _end(self, error: BaseException | None) -> None:
        """Records the end of the block."""
        raise NotImplementedError

    def __enter__(self) -> Self:
        self._depth += 1
        if self._begun:
            self._recording.problems.report(
                "again", f"the same {type(self).__name__} was entered twice; make a new one"
            )
            return self
        self._begun = True
        _safely(self._recording, "a block began", self._begin)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        _safely(self._recording, "a block ended", self._leave, error)

    async def __aenter__(self) -> Self:
        return self.__enter__()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.__exit__(kind, error, trace)

    def _leave(self, error: BaseException | None) -> None:
        self._depth -= 1
        if self._depth or not self._begun or self._ended:
            return
        self._ended = True
        try:
            self._end(error)
        finally:
            token = self._token
            self._token = None
            if token is not None:
                # A generator was closed by another task than the one that ran it.
                with suppress(ValueError):
                    self._recording.place.reset(token)

    def _stand(self, place: EnclosingBlocks) -> None:
        self._token = self._recording.place.set(place)


class SessionBlock(_Context):
    """A conversation. Invocations inside the block belong to it."""

    def __init__(self, recording: RecorderParts, session_id: str, dimensions: Dimensions) -> None:
        """Stores the arguments.

        Args:
            recording: What the recorder shares.
            session_id: Id of the session; a new one if empty.
            dimensions: What the session adds to the recorder's dimensions.
        """
        super().__init__(recording)
        self.id = session_id
        """Id of the session; a generated id is known within the block."""
        self.dimensions = dimensions
        """The dimensions of invocations in this session."""
        self._is_generated = not session_id
        self.sent = SentRecords()
        """Counts what this session has sent."""

    def end(self) -> None:
        """Records that the session ended, so that it is scored now and not when it has been idle for some time."""
        _safely(self._recording, "a session ended", self._put_end)

    def invocation(self, question: Any = UNSET, *, invocation_id: str = "", reference_id: str = "") -> InvocationBlock:
        """Returns an invocation of this session, for code that does not run inside the block, such as other threads."""
        return InvocationBlock(
            self._recording, question, session=self, invocation_id=invocation_id, reference_id=reference_id
        )

    def _put_end(self) -> None:
        record = self._recording.new_record(self.id, "", self.dimensions, "")
        record.sent = self.sent
        record.session_ended()

    def _begin(self) -> None:
        if self._is_generated:
            self.id = self._recording.sink.new_id()
        self._stand(EnclosingBlocks(self))

    def _end(self, error: BaseException | None) -> None:
        # Nobody else can continue it.
        if self._is_generated:
            self._put_end()


class InvocationBlock(_Context):
    """One turn: the user's question, what the agent did, and its answer. Set `answer` before the block ends.

    Inside another invocation it is the run of a sub-agent, whose steps belong to the outer invocation, and whose answer
    is an intermediate response.
    """

    def __init__(
        self,
        recording: RecorderParts,
        question: Any = UNSET,
        *,
        session: SessionBlock | None = None,
        session_id: str = "",
        invocation_id: str = "",
        reference_id: str = "",
        dimensions: Dimensions | None = None,
    ) -> None:
        """Stores the arguments.

        Args:
            recording: What the recorder shares.
            question: The user's message; any value.
            session: The session; otherwise the one around the block.
            session_id: Id of the session, if no session is around the block.
            invocation_id: Id of the invocation; a new one if empty.
            reference_id: Id of the expected answer on the topic `references`.
            dimensions: What the invocation adds to the session's dimensions.
        """
        super().__init__(recording)
        self.answer: Any = UNSET
        """The final answer: a text, or any value, which is written as JSON."""
        self._question = question
        self._session = session
        self._session_id = session_id
        self._invocation_id = invocation_id
        self._reference_id = reference_id
        self._dimensions = dimensions or Dimensions()
        self._record: InvocationRecord | None = None
        self._is_outer = True

    @property
    def id(self) -> str:
        """Id of the invocation, of the outer one for a sub-agent; empty before the block."""
        return self._record.id if self._record is not None else ""

    def tool(self, name: str, args: Any = None, *, call_id: str = "", model_call_id: str = "") -> ToolCallBlock:
        """Returns a tool call of this invocation, for code that does not run inside the block, such as other threads."""
        return ToolCallBlock(
            self._recording, name, args, call_id=call_id, model_call_id=model_call_id, invocation=self._record
        )

    def model_call(self, model: str) -> ModelCallBlock:
        """Returns a model call of this invocation, for code that does not run inside the block."""
        return ModelCallBlock(self._recording, model, invocation=self._record)

    def said(self, content: Any, author: str = "") -> None:
        """Records an intermediate response of the agent, or of the sub-agent `author`."""
        if self._record is not None and not self._is_late("an intermediate response"):
            author = author or self._dimensions.agent_name
            _safely(self._recording, "an intermediate response came", self._record.said, content, author)

    def retrieved(self, chunks: Iterable[Any]) -> None:
        """Records retrieved context: texts, mappings with `content` and `doc_uri`, or documents of a library.

        `text` and `page_content` are other names of `content`, and `metadata` can have the place of the document.
        """
        if self._record is not None and not self._is_late("retrieved context"):
            _safely(self._recording, "context was retrieved", self._record.retrieved, chunks)

    def _is_late(self, what: str) -> bool:
        if self._record is not None and self._record.is_ended:
            report_late(self._recording, what)
            return True
        return False

    def _begin(self) -> None:
        here = None if self._session is not None or self._session_id else self._recording.place.get()
        # A task or a generator can outlive the invocation that it began in: what it begins then is a turn of its own.
        if here is not None and here.invocation is not None and not here.invocation.is_ended:
            self._is_outer = False
            self._record = here.invocation
            self._stand(EnclosingBlocks(here.session, here.invocation))
            return
        session = self._session or (here.session if here else None)
        if session is None:
            dimensions = self._recording.dimensions
            session = SessionBlock(self._recording, identifier(self._session_id), dimensions)
            if not session.id:
                session.id = self._recording.sink.new_id()
                self._own = session
        dimensions = session.dimensions.with_known(self._dimensions)
        record = self._recording.new_record(session.id, self._invocation_id, dimensions, self._reference_id)
        record.sent = session.sent
        session.sent.began()
        self._record = record
        self._stand(EnclosingBlocks(session, record))
        record.started(self._question)

    _own: SessionBlock | None = None
    """The session that this invocation has for itself alone."""

    def _end(self, error: BaseException | None) -> None:
        if self._record is None:
            return
        if not self._is_outer:
            if self.answer is not UNSET:
                self._record.said(self.answer, self._dimensions.agent_name)
            return
        try:
            self._record.completed(self.answer, failed=error is not None)
        finally:
            if self._record.sent is not None:
                self._record.sent.ended()
        if self._own is not None:
            self._own.end()


class _Step(_Context):
    """A step of the invocation around the block."""

    def __init__(self, recording: RecorderParts, invocation: InvocationRecord | None) -> None:
        super().__init__(recording)
        self._invocation = invocation

    def _outer(self) -> InvocationRecord | None:
        if self._invocation is None:
            here = self._recording.place.get()
            self._invocation = here.invocation if here is not None else None
        if self._invocation is None:
            self._recording.problems.report(
                "outside",
                f"a {type(self).__name__} outside of an invocation is not recorded; open an `invocation` around it",
            )
        elif self._invocation.is_ended:
            report_late(self._recording, f"a {type(self).__name__}")
            self._invocation = None
        return self._invocation


class ToolCallBlock(_Step):
    """The call of a tool. Set `result` before the block ends; an exception becomes the tool's error and passes on."""

    def __init__(
        self,
        recording: RecorderParts,
        name: str,
        args: Any = None,
        *,
        call_id: str = "",
        model_call_id: str = "",
        invocation: InvocationRecord | None = None,
    ) -> None:
        """Stores the arguments.

        Args:
            recording: What the recorder shares.
            name: Name of the tool.
            args: The arguments by name.
            call_id: Id of the call, for example the model's; a new one if empty.
            model_call_id: Id of the model's answer that asked for this call and others; empty if unknown.
            invocation: The invocation; otherwise the one around the block.
        """
        super().__init__(recording, invocation)
        self.result: Any = UNSET
        """The result of the tool, any value."""
        self.error: str | None = None
        """The error message of a tool that reports its failure without an exception."""
        self._name = name
        self._args = args
        self._call_id = call_id
        self._model_call_id = model_call_id

    def _begin(self) -> None:
        invocation = self._outer()
        if invocation is not None:
            self._call_id = invocation.tool_called(self._name, self._args, self._call_id, self._model_call_id)
            self._args = None

    def _end(self, error: BaseException | None) -> None:
        if self._invocation is not None and self._call_id:
            message = None if self.error is None else short_text(self.error, MAX_ERROR_CHARS)
            if error is not None:
                message = described(error)
            self._invocation.tool_returned(self._name, self._call_id, self.result, message)


class ModelCallBlock(_Step):
    """The call of a model, which is written when the block ends. Set the tokens before, if they are known."""

    def __init__(self, recording: RecorderParts, model: str, *, invocation: InvocationRecord | None = None) -> None:
        """Stores the arguments.

        Args:
            recording: What the recorder shares.
            model: Name of the model.
            invocation: The invocation; otherwise the one around the block.
        """
        super().__init__(recording, invocation)
        self.input_tokens: int | None = None
        """Number of input tokens; None if unknown."""
        self.output_tokens: int | None = None
        """Number of output tokens; None if unknown."""
        self._model = model

    def _begin(self) -> None:
        self._outer()

    def _end(self, error: BaseException | None) -> None:
        if self._invocation is not None:
            self._invocation.model_called(self._model, self.input_tokens, self.output_tokens)


def report_late(recording: RecorderParts, what: str) -> None:
    """Logs that a step began after its invocation had ended, for example in a task that nobody waited for."""
    recording.problems.report(
        "late", f"{what} after the end of its invocation is not recorded; await tasks before the `invocation` ends"
    )


def described(error: BaseException) -> str:
    """Returns the class and the message of an exception, at most 10,000 characters."""
    message = short_text(error, MAX_ERROR_CHARS)
    return f"{type(error).__name__}: {message}"[:MAX_ERROR_CHARS] if message else type(error).__name__


def _safely(recording: RecorderParts, what: str, work: Callable[P, object], *args: P.args, **kwargs: P.kwargs) -> None:
    try:
        work(*args, **kwargs)
    except Exception as error:  # noqa: BLE001  # the recording must not break the agent
        recording.problems.raised(what, error)

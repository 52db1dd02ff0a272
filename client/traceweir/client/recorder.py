"""Defines Recorder: records what an agent written by hand does, and sends it to Traceweir through Kafka."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from typing import Any, TypeVar

from traceweir.client.contexts import InvocationBlock, ModelCallBlock, RecorderParts, SessionBlock, ToolCallBlock
from traceweir.client.delivery import DEFAULT_LIMITS, Counts, QueueLimits, RecordQueue, Transport
from traceweir.client.dimensions import UNKNOWN, Dimensions
from traceweir.client.invocation_record import UNSET, InvocationRecord, identifier
from traceweir.client.kafka import KafkaOptions, KafkaTransport
from traceweir.client.problems import ThrottledLog
from traceweir.client.reasoning import Reasoning, ReasoningTraces
from traceweir.client.sink import Sink

F = TypeVar("F", bound=Callable[..., Any])


class Recorder:
    """Records sessions, invocations, tool calls and model calls of an agent.

    Make one recorder for a process. It connects in the background with the first event, never waits for Kafka, and raises
    nothing after it is made. At the end of the process it delivers what is queued, for at most `flush_timeout_s`.
    """

    def __init__(
        self,
        bootstrap_servers: str,
        dimensions: Dimensions = UNKNOWN,
        *,
        traces: ReasoningTraces | None = None,
        topic_prefix: str = "traceweir.",
        kafka: KafkaOptions | None = None,
        queue: QueueLimits = DEFAULT_LIMITS,
        flush_timeout_s: float = 5.0,
        connect: Callable[[], Transport] | None = None,
    ) -> None:
        """Checks the arguments; connects to nothing.

        Args:
            bootstrap_servers: Brokers of Kafka, `host:port`, separated by commas.
            dimensions: By what scores are grouped: the app, the agent, its version, the environment and labels.
            traces: If given, each invocation is also written as a ReasoningTrace.
            topic_prefix: What the topics' names begin with, as `TRACEWEIR_TOPIC_PREFIX` of the workers.
            kafka: Options of librdkafka, for example for TLS and passwords.
            queue: How many events, and bytes of them, may wait for Kafka; further ones are dropped and counted.
            flush_timeout_s: How long the end of the process may wait for Kafka.
            connect: Returns another way to Kafka than confluent-kafka, for tests.

        Raises:
            ValueError: an argument is outside its range.
        """
        if not bootstrap_servers and connect is None:
            raise ValueError("bootstrap_servers is empty; name the brokers, such as '127.0.0.1:9092'")
        probability = dimensions.sampling_probability
        if probability is not None and not 0 < probability <= 1:
            raise ValueError(f"sampling_probability must be above 0 and at most 1, got {probability}")
        if flush_timeout_s < 0:
            raise ValueError(f"flush_timeout_s must be at least 0, got {flush_timeout_s}")
        options = dict(kafka or {})
        problems = ThrottledLog()
        self._delivery = RecordQueue(
            connect or (lambda: KafkaTransport(bootstrap_servers, options)), queue, problems, flush_timeout_s
        )
        self._flush_timeout_s = flush_timeout_s
        self._traces = traces
        self.recording = RecorderParts(
            sink=Sink(self._delivery, problems, topic_prefix),
            place=ContextVar("traceweir.client", default=None),
            new_record=self._new_record,
            dimensions=dimensions,
        )
        """What the context managers share; for integrations with frameworks."""

    def session(
        self, session_id: str = "", *, user_id: str = "", environment: str = "", labels: Mapping[str, str] | None = None
    ) -> SessionBlock:
        """Returns a session for a `with` block.

        A session with an id can go on in another block or process, and ends when it is idle or at
        `SessionBlock.end()`. A session without an id gets one, and ends with its block.

        Args:
            session_id: Id of the conversation.
            user_id: Id of the user.
            environment: Where the agent runs, in place of the recorder's.
            labels: Labels in addition to the recorder's.
        """
        added = Dimensions(user_id=user_id, environment=environment, labels=labels)
        return SessionBlock(self.recording, identifier(session_id), self.recording.dimensions.with_known(added))

    def invocation(
        self,
        question: Any = UNSET,
        *,
        session_id: str = "",
        invocation_id: str = "",
        agent_name: str = "",
        user_id: str = "",
        labels: Mapping[str, str] | None = None,
        sampling_probability: float | None = None,
        reference_id: str = "",
    ) -> InvocationBlock:
        """Returns an invocation, one turn of the agent, for a `with` block. Set its `answer`.

        Args:
            question: The user's message; any value.
            session_id: Id of the session; otherwise the session around the block, or a new one for this invocation alone.
            invocation_id: Id of the invocation; a new one if empty.
            agent_name: Name of the agent, in place of the recorder's.
            user_id: Id of the user, in place of the session's.
            labels: Labels in addition to those of the session.
            sampling_probability: Probability with which this invocation was chosen for recording.
            reference_id: Id of the expected answer on the topic `references`.
        """
        return InvocationBlock(
            self.recording,
            question,
            session_id=session_id,
            invocation_id=invocation_id,
            reference_id=reference_id,
            dimensions=Dimensions(
                agent_name=agent_name, user_id=user_id, labels=labels, sampling_probability=sampling_probability
            ),
        )

    def tool(self, name: str, args: Any = None, *, call_id: str = "", model_call_id: str = "") -> ToolCallBlock:
        """Returns a tool call for a `with` block inside an invocation. Set its `result`.

        Args:
            name: Name of the tool.
            args: The arguments by name.
            call_id: Id of the call, for example the model's; a new one if empty.
            model_call_id: Id of the model's answer that asked for this call and others, such as that of its response:
                the order of these calls then means nothing. Empty if unknown.
        """
        return ToolCallBlock(self.recording, name, args, call_id=call_id, model_call_id=model_call_id)

    def model_call(self, model: str) -> ModelCallBlock:
        """Returns a model call for a `with` block inside an invocation. Set its tokens, if they are known."""
        return ModelCallBlock(self.recording, model)

    def record_tool(self, function: F) -> F:
        """Decorates a function, or a coroutine function, so that each of its calls is recorded as a tool call."""
        name = getattr(function, "__name__", type(function).__name__)
        try:
            signature: inspect.Signature | None = inspect.signature(function)
        except (TypeError, ValueError):
            # Some functions in C have none.
            signature = None

        def call_of(args: tuple[Any, ...], kwargs: dict[str, Any]) -> ToolCallBlock:
            return self.tool(name, _by_name(signature, args, kwargs))

        if inspect.iscoroutinefunction(function):

            @functools.wraps(function)
            async def recorded_async(*args: Any, **kwargs: Any) -> Any:
                with call_of(args, kwargs) as call:
                    call.result = result = await function(*args, **kwargs)
                    return result

            return recorded_async  # type: ignore[return-value]  # has the signature of the function

        @functools.wraps(function)
        def recorded(*args: Any, **kwargs: Any) -> Any:
            with call_of(args, kwargs) as call:
                call.result = result = function(*args, **kwargs)
                return result

        return recorded  # type: ignore[return-value]  # has the signature of the function

    @property
    def counts(self) -> Counts:
        """What became of the events of this process."""
        return self._delivery.counts

    def flush(self, timeout_s: float = 5.0) -> bool:
        """Waits until all events are delivered or given up; returns False if `timeout_s` passed before."""
        return self._delivery.flush(timeout_s)

    def close(self, timeout_s: float | None = None) -> bool:
        """Delivers what is queued, and drops later events; returns False if events were not delivered in time.

        Args:
            timeout_s: Time limit; by default `flush_timeout_s`.
        """
        return self._delivery.close(self._flush_timeout_s if timeout_s is None else timeout_s)

    def _new_record(
        self, session_id: str, invocation_id: str, dimensions: Dimensions, reference_id: str
    ) -> InvocationRecord:
        reasoning = None
        if self._traces is not None:
            reasoning = Reasoning(self._traces, dimensions.agent_name or dimensions.app_name)
        return InvocationRecord(
            self.recording.sink,
            session_id,
            invocation_id=invocation_id,
            dimensions=dimensions,
            reference_id=reference_id,
            reasoning=reasoning,
        )


def _by_name(signature: inspect.Signature | None, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
    """Returns the arguments of a call by name; positional ones without a name are the list `args`."""
    if signature is not None:
        try:
            bound = dict(signature.bind(*args, **kwargs).arguments)
        except TypeError:
            # The call itself raises this to the agent.
            bound = None
        if bound is not None:
            bound.pop("self", None)
            return bound
    return {**({"args": args} if args else {}), **kwargs}

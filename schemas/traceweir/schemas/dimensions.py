"""Defines Dimensions: whose work a score judges, by app, agent, version, environment, model, user and labels."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from operator import attrgetter
from typing import Annotated, Any

from pydantic import Field, ValidationError

from traceweir.schemas.base import Identifier, WireModel

MAX_SHORT_CHARS = 256
MAX_LABELS = 8
_USER_ID_DOMAIN = b"traceweir user id\x00"

ShortText = Annotated[str, Field(min_length=1, max_length=MAX_SHORT_CHARS)]
"""A text of 1 to 256 characters, by which scores are grouped."""


MaybeText = Annotated[str, Field(max_length=MAX_SHORT_CHARS)]
"""A text of at most 256 characters, as an event has it; an empty text is unknown."""
MaybeLabels = Annotated[dict[ShortText, ShortText], Field(max_length=MAX_LABELS)]
"""At most 8 labels, as an event has them."""

# A pattern for "not all zeros" that has the same meaning in Rust and in Python, with the number of digits as a length.
_NOT_ZEROS = r"^0*[1-9a-f][0-9a-f]*$"
TraceId = Annotated[str, Field(pattern=_NOT_ZEROS, min_length=32, max_length=32)]
"""A trace id of OpenTelemetry: 32 hexadecimal digits in lower case, not all zeros."""
SpanId = Annotated[str, Field(pattern=_NOT_ZEROS, min_length=16, max_length=16)]
"""A span id of OpenTelemetry: 16 hexadecimal digits in lower case, not all zeros."""
Probability = Annotated[float, Field(gt=0, le=1)]
"""A probability above 0 and at most 1."""


class TraceContext(WireModel):
    """The span of OpenTelemetry that a judged invocation belongs to."""

    trace_id: TraceId
    """Id of the trace: 32 hexadecimal digits in lower case, not all zeros."""
    span_id: SpanId | None = None
    """Id of the span: 16 hexadecimal digits in lower case, not all zeros; null if unknown."""


class Dimensions(WireModel):
    """What scores are grouped by. An unknown dimension is null; no default takes its place."""

    app_name: ShortText | None = None
    """Name of the agent's app."""
    agent_name: ShortText | None = None
    """Name of the agent."""
    agent_version: ShortText | None = None
    """Version of the agent, as its team writes versions."""
    environment: ShortText | None = None
    """Where the agent runs, for example `production`."""
    model: ShortText | None = None
    """Name of the model."""
    user_id: Identifier | None = None
    """Id of the user: a hash of the id, unless plain ids are configured."""
    labels: Annotated[dict[ShortText, ShortText], Field(min_length=1, max_length=MAX_LABELS)] | None = None
    """From 1 to 8 labels, each a short name and a short value."""
    trace_context: TraceContext | None = None
    """The span of the judged invocation in OpenTelemetry."""
    sampling_probability: Probability | None = None
    """Probability with which the invocation was recorded, above 0 and at most 1."""

    @property
    def known(self) -> dict[str, Any]:
        """The dimensions that are not null, as keys of a document."""
        return self.model_dump(mode="json", exclude_none=True)


UNKNOWN = Dimensions()
"""The dimensions of a subject about which nothing is known."""
UNKNOWN_MODEL = "unknown"
"""The model of a `model.called` event whose source names no model; it is no dimension."""
_ABOUT_ONE_INVOCATION = ("trace_context", "sampling_probability")
_NAMES = tuple(Dimensions.model_fields)
_values = attrgetter(*_NAMES)


def invocation_dimensions(events: Iterable[object]) -> Dimensions:
    """Returns the dimensions of an invocation from those of its events, in the order of the events.

    The last known value counts. An agent can thus send a dimension once, or with every event. Labels are replaced as a
    whole, so that an invocation has at most 8.

    Args:
        events: Objects with the attributes of `Dimensions`; an empty text is unknown.
    """
    found: dict[str, Any] = {}
    before: tuple[Any, ...] | None = None
    for event in events:
        values = _values(event)
        # Most agents send the same dimensions with every event.
        if values != before:
            found.update(
                (name, value)
                for name, value in zip(_NAMES, values, strict=True)
                if value and (name != "model" or value != UNKNOWN_MODEL)
            )
            before = values
    return Dimensions.trusted_with(UNKNOWN.__dict__ | found) if found else UNKNOWN


def usable_dimensions(found: Mapping[str, object]) -> Dimensions:
    """Returns those of the values that are valid dimensions. A document of another system can have the same keys.

    >>> usable_dimensions({"model": "large", "environment": {"os": "linux"}, "reward": 1}).known
    {'model': 'large'}
    """
    usable: dict[str, Any] = {}
    for name in _NAMES:
        if found.get(name) is not None:
            with suppress(ValidationError):
                usable[name] = getattr(Dimensions.model_validate({name: found[name]}), name)
    return UNKNOWN.model_copy(update=usable) if usable else UNKNOWN


def session_dimensions(invocations: Sequence[Dimensions]) -> Dimensions:
    """Returns the dimensions of a session from those that `invocation_dimensions` returned for its invocations, in order.

    The last known value counts. `trace_context` and `sampling_probability` describe a single invocation, so that the
    session has them only if all its invocations have the same value.
    """
    if len(invocations) == 1:
        return invocations[0]
    last = invocation_dimensions(invocations)
    differing = {
        name: None
        for name in _ABOUT_ONE_INVOCATION
        if any(getattr(each, name) != getattr(last, name) for each in invocations)
    }
    return last.model_copy(update=differing) if differing else last


def hashed_user_id(user_id: str, key: bytes = b"") -> str:
    """Returns a text of fixed length that stands for a user id; equal ids with equal keys give equal texts.

    With a key, the text is an HMAC-SHA-256, and only the owner of the key can test a guess. Without a key, the text is
    a SHA-256: whoever can list the possible ids, for example e-mail addresses, finds the id by trying them all. The
    prefix tells the two apart.

    >>> hashed_user_id("ada@example.com") == hashed_user_id("ada@example.com")
    True
    >>> hashed_user_id("ada@example.com", b"secret").split(":")[0]
    'hmac-sha256'
    """
    message = _USER_ID_DOMAIN + user_id.encode("utf-8", "surrogatepass")
    if key:
        return f"hmac-sha256:{hmac.new(key, message, hashlib.sha256).hexdigest()}"
    return f"sha256:{hashlib.sha256(message).hexdigest()}"

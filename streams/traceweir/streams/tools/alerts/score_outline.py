"""Reads of a score's JSON what rules need, in a tenth of the time of a Score."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated

import msgspec

from traceweir.schemas.base import MAX_IDENTIFIER_CHARS
from traceweir.schemas.dimensions import MAX_SHORT_CHARS
from traceweir.schemas.invocation import Level
from traceweir.schemas.times import UNKNOWN_TIME

_Name = Annotated[str, msgspec.Meta(min_length=1)]
_Id = Annotated[str, msgspec.Meta(min_length=1, max_length=MAX_IDENTIFIER_CHARS)]
_Short = Annotated[str, msgspec.Meta(max_length=MAX_SHORT_CHARS)]
_LATEST = datetime(9_999, 1, 1, tzinfo=UTC)


class ScoreOutline(msgspec.Struct, gc=False):
    """What rules of alerts read of a score; the fields have the names and meanings of those of a Score."""

    result_id: _Id
    revision: int
    session_id: _Id
    level: Level
    metric: _Name
    status: str
    scorer_version: str
    config_digest: str
    occurred_at: Annotated[datetime, msgspec.Meta(tz=True)]
    value: float | None = None
    threshold: float | None = None
    attempt: int = 0
    not_evaluated_because: str | None = None
    cause: str | None = None
    category: str | None = None
    metric_digest: str | None = None
    judge: str | None = None
    app_name: _Short | None = None
    agent_name: _Short | None = None
    agent_version: _Short | None = None
    environment: _Short | None = None
    model: _Short | None = None
    user_id: _Id | None = None
    labels: dict[_Short, _Short] | None = None


def read_score(record: bytes | None) -> ScoreOutline | None:
    """Returns what rules read of a record's value; None if it is no score.

    >>> read_score(b'{"score": 1}') is None
    True
    """
    try:
        found = _decode(record or b"")
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None
    return found if UNKNOWN_TIME <= found.occurred_at < _LATEST else None


_decode = msgspec.json.Decoder(ScoreOutline).decode

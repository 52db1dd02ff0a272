"""Holds the streams of a rule, and says which stream a score belongs to."""

from __future__ import annotations

from collections.abc import Callable
from hashlib import blake2b
from operator import attrgetter
from typing import Any

import msgspec

from traceweir.schemas.alert_rule import AlertRule
from traceweir.streams.tools.alerts.arrivals import DueStreams
from traceweir.streams.tools.alerts.open_minutes import RuleVersion
from traceweir.streams.tools.alerts.rule_stream import RuleStream
from traceweir.streams.tools.alerts.watched_scores import StreamName, Watchable, fits, stream_name, suspects_of
from traceweir.streams.tools.results.selection import LABEL

MOST_STREAMS = 20_000
"""Streams of a rule at most; scores of later ones are counted, and not watched."""
_MOST_KNOWN = 100_000
"""Combinations of fields that are remembered at most; then all are forgotten."""


class WatchedRule:
    """A rule and its streams.

    Args:
        rule: The rule.
    """

    def __init__(self, rule: AlertRule) -> None:
        self.rule = rule
        self.version = RuleVersion(rule.id, blake2b(rule.model_dump_json().encode(), digest_size=8).hexdigest())
        self.streams: dict[StreamName, RuleStream] = {}
        self.due = DueStreams[RuleStream]()
        """The streams whose time passes without a score."""
        self._next = 1
        self._salts: dict[StreamName, bytes] = {}
        self._names: dict[Any, StreamName | None] = {}
        self._suspects: dict[tuple[str | None, ...], tuple[str | None, ...]] = {}
        self._fields = _fields_of(rule)

    def name_for(self, score: Watchable) -> StreamName | None:
        """Returns the stream that a score belongs to; None if the rule is not about such scores."""
        fields = self._fields(score)
        try:
            return self._names[fields]
        except KeyError:
            if len(self._names) >= _MOST_KNOWN:
                self._names.clear()
        found = stream_name(score, self.rule) if fits(score, self.rule) else None
        self._names[fields] = found
        return found

    def suspects(self, score: Watchable) -> tuple[str | None, ...]:
        """Returns the values of the fields `SUSPECTS`; scores that have equal ones share an object."""
        if len(self._suspects) >= _MOST_KNOWN:
            self._suspects.clear()
        found = suspects_of(score)
        return self._suspects.setdefault(found, found)

    def stream(self, name: StreamName) -> RuleStream | None:
        """Returns a stream, a new one if there is none; None if there are too many."""
        found = self.streams.get(name)
        if found is None and len(self.streams) < MOST_STREAMS:
            found = self.put(RuleStream(self._next, self.rule, name))
        return found

    def put(self, stream: RuleStream) -> RuleStream:
        """Watches a stream, and gives the next one a higher number."""
        self.streams[stream.name] = stream
        self.due.put(stream)
        self._next = max(self._next, stream.number + 1)
        return stream

    def salt(self, name: StreamName) -> bytes:
        """Returns what makes the digests of a stream's sessions differ from those of other streams and versions."""
        if name not in self._salts:
            text = msgspec.json.encode((*self.version, name.metric, name.level, name.slice))
            self._salts[name] = blake2b(text, digest_size=16).digest()
        return self._salts[name]


def _fields_of(rule: AlertRule) -> Callable[[Watchable], Any]:
    """Returns a function of a score: all that decides about its stream."""
    plain = attrgetter("metric", "level", "app_name", *(each for each in rule.by if not each.startswith(LABEL)))
    labels = [each.removeprefix(LABEL) for each in rule.by if each.startswith(LABEL)]
    if not labels:
        return plain

    def with_labels(score: Watchable) -> tuple[Any, ...]:
        found = score.labels or {}
        return plain(score), *(found.get(each) for each in labels)

    return with_labels

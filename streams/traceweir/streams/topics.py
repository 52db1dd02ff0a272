"""The one table of topic names, and the names derived from it. Pure: knows no Kafka client."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Literal, get_args

CleanupPolicy = Literal["delete", "compact"]
StageName = Literal["assemble", "score", "gate"]

STAGES: tuple[StageName, ...] = get_args(StageName)
"""All stages, in the order of a trace's path."""

DEFAULT_PREFIX = "traceweir."


@dataclass(frozen=True)
class Topics:
    """Full topic names under one prefix.

    >>> topics = Topics.of("acme.")
    >>> topics.dead_letters
    'acme.dead-letters'
    """

    traces: str
    """Reasoning traces, from outside; any key."""
    invocations: str
    """Invocation events, from outside; any key."""
    strays: str
    """Internal: records of `traces` and `invocations` that arrived away from their session's home; key session id."""
    references: str
    """What was expected, from outside; key reference id. Compacted: the latest of each id is what counts."""
    sessions: str
    """Closed segments; key session id."""
    candidates: str
    """Traces for the gate, with their embedding; key novelty scope."""
    results: str
    """Every score and decision; key session id."""
    network: str
    """Accepted traces; key trace id. Compacted: a tombstone takes a trace back."""
    dead_letters: str
    """What could not be read or scored; the original key and partition."""

    @classmethod
    def of(cls, prefix: str = DEFAULT_PREFIX) -> Topics:
        """Give the names under `prefix`, which is put before each as it stands (its dot included)."""
        return cls(
            traces=f"{prefix}traces",
            invocations=f"{prefix}invocations",
            strays=f"{prefix}strays",
            references=f"{prefix}references",
            sessions=f"{prefix}sessions",
            candidates=f"{prefix}candidates",
            results=f"{prefix}results",
            network=f"{prefix}network",
            dead_letters=f"{prefix}dead-letters",
        )

    def cleanup_policies(self) -> dict[str, CleanupPolicy]:
        """Give every topic's name with what the broker does to its old records."""
        return {
            self.traces: "delete",
            self.invocations: "delete",
            self.strays: "delete",
            self.references: "compact",
            self.sessions: "delete",
            self.candidates: "delete",
            self.results: "delete",
            self.network: "compact",
            self.dead_letters: "delete",
        }


def application_id(prefix: str, stages: Collection[StageName]) -> str:
    """Name what runs `stages` together: the consumer group, and the stem of changelog and transactional ids.

    The order and repetition of `stages` do not matter; another set of stages is another application, with its own
    state and offsets.

    >>> application_id("traceweir.", ["gate", "score"])
    'traceweir.score-gate'
    >>> application_id("", ["assemble"])
    'assemble'

    Raises:
        ValueError: `stages` is empty or names one that does not exist.
    """
    unknown = sorted(set(stages).difference(STAGES))
    if unknown or not stages:
        what = f"unknown stage {', '.join(map(repr, unknown))}" if unknown else "no stage given"
        raise ValueError(f"{what}; choose from {', '.join(STAGES)}")
    path = "-".join(stage for stage in STAGES if stage in stages)
    stem = prefix.rstrip(".")
    return f"{stem}.{path}" if stem else path


def changelog(application_id: str) -> str:
    """Name the changelog topic of an application's one table.

    The form is Faust's own (application id, table name, `changelog`), for a table called `state`.

    >>> changelog("traceweir.assemble")
    'traceweir.assemble-state-changelog'
    """
    return f"{application_id}-state-changelog"

"""Defines all topic names and the names derived from them. Imports no Kafka client."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Literal, get_args

CleanupPolicy = Literal["delete", "compact"]
StageName = Literal["collect", "assemble", "score", "gate"]

ALL_STAGES: tuple[StageName, ...] = get_args(StageName)
"""All stages, in the order of a trace's path."""
STAGES: tuple[StageName, ...] = ("assemble", "score", "gate")
"""The stages of a worker that is started without a choice. `collect` is needed for OpenTelemetry only."""

SHADOW_NAME = r"[A-Za-z0-9_-]{1,100}"
"""The pattern of the name of a shadow: a part of a topic's name, without dots."""
DEFAULT_PREFIX = "traceweir."
DEFAULT_OTLP_SPANS = "otlp_spans"
"""The topic to which the OpenTelemetry Collector's Kafka exporter writes spans, as it names it."""
DEFAULT_OTLP_LOGS = "otlp_logs"
"""The topic to which the OpenTelemetry Collector's Kafka exporter writes log records, as it names it."""


@dataclass(frozen=True)
class Topics:
    """Full topic names under one prefix.

    >>> topics = Topics.of("acme.")
    >>> topics.dead_letters
    'acme.dead-letters'
    """

    otlp_spans: str
    """OTLP trace requests, from outside; any key. The name has no prefix."""
    otlp_logs: str
    """OTLP log requests, from outside; any key. The name has no prefix."""
    spans: str
    """Internal: spans and log records that arrived on a partition that is not the home of their trace; no key."""
    traces: str
    """Reasoning traces, from outside; any key."""
    invocations: str
    """Invocation events, from outside; any key."""
    strays: str
    """Internal: records of `traces` and `invocations` that arrived on a wrong partition; key session id."""
    references: str
    """Expected answers and tool calls, from outside; key reference id.

    Compacted: the latest record of an id counts.
    """
    configs: str
    """Evaluation configs, pushed by operators; key: what the config is for. All records are on partition 0.

    Compacted: the latest config of a key counts, and a tombstone withdraws it.
    """
    labels: str
    """What people say about sessions, from outside; key label id.

    Compacted: the latest label of an id counts, and a tombstone removes it.
    """
    sessions: str
    """Closed segments; key session id."""
    candidates: str
    """Traces for the gate, with their embedding; key novelty scope."""
    results: str
    """Every score and decision; key session id."""
    network: str
    """Accepted traces; key trace id. Compacted: a tombstone withdraws a trace."""
    dead_letters: str
    """Records that could not be read, scored or exported, with their original key and partition."""
    anchors: str
    """Frozen sessions with labels of people, written by operators; key anchor id.

    Compacted: the latest anchor of an id counts, and a tombstone removes it.
    """
    anchor_verdicts: str
    """What judges say about anchors; key anchor id. They are no scores."""
    alerts: str
    """Changes of scores that rules have found; key alert id.

    Compacted: the latest record of an id counts, so that a resolved alert replaces the raised one.
    """
    alerts_state: str
    """Internal: what `traceweir alerts run` knows of each stream; key: see `tools/alerts/state_rows.py`. All records are on
    partition 0.

    Compacted: a tombstone removes a row.
    """
    export_waiting: str
    """Internal: scores that the target of an exporter has not taken yet, on the partition of their score; key: see
    `export_waiting_key`.

    Compacted: a tombstone says that a score waits no longer.
    """

    @classmethod
    def of(
        cls, prefix: str = DEFAULT_PREFIX, otlp_spans: str = DEFAULT_OTLP_SPANS, otlp_logs: str = DEFAULT_OTLP_LOGS
    ) -> Topics:
        """Returns the names under `prefix`. The prefix is prepended unchanged, so it must include its dot."""
        return cls(
            otlp_spans=otlp_spans,
            otlp_logs=otlp_logs,
            spans=f"{prefix}spans",
            traces=f"{prefix}traces",
            invocations=f"{prefix}invocations",
            strays=f"{prefix}strays",
            references=f"{prefix}references",
            configs=f"{prefix}configs",
            labels=f"{prefix}labels",
            sessions=f"{prefix}sessions",
            candidates=f"{prefix}candidates",
            results=f"{prefix}results",
            network=f"{prefix}network",
            dead_letters=f"{prefix}dead-letters",
            anchors=f"{prefix}anchors",
            anchor_verdicts=f"{prefix}anchor-verdicts",
            alerts=f"{prefix}alerts",
            alerts_state=f"{prefix}alerts-state",
            export_waiting=f"{prefix}export-waiting",
        )

    def shadow_results(self, name: str) -> str:
        """Returns the topic with the scores of a shadow: of another config, on the same sessions.

        >>> Topics.of().shadow_results("v2")
        'traceweir.results.shadow.v2'

        Raises:
            ValueError: the name is not that of a shadow.
        """
        if re.fullmatch(SHADOW_NAME, name) is None:
            raise ValueError(
                f"{name!r:.120} cannot name a shadow: use 1 to 100 of a-z, A-Z, 0-9, '-' and '_', for example v2"
            )
        return self.shadow_results_prefix + name

    def of_shadow(self, name: str) -> Topics:
        """Returns the topics of the stages of a shadow: scores and candidates go to topics of its own.

        >>> Topics.of().of_shadow("v2").candidates
        'traceweir.candidates.shadow.v2'

        Raises:
            ValueError: the name is not that of a shadow.
        """
        return replace(self, results=self.shadow_results(name), candidates=f"{self.candidates}.shadow.{name}")

    @property
    def shadow_results_prefix(self) -> str:
        """What the topics with the scores of shadows begin with."""
        return f"{self.results}.shadow."

    def cleanup_policies(self, stages: Collection[StageName] = STAGES) -> dict[str, CleanupPolicy]:
        """Returns the cleanup policy of every topic of a deployment with these stages, by topic name."""
        collected: dict[str, CleanupPolicy] = dict.fromkeys((self.otlp_spans, self.otlp_logs, self.spans), "delete")
        return {
            **(collected if "collect" in stages else {}),
            self.traces: "delete",
            self.invocations: "delete",
            self.strays: "delete",
            self.references: "compact",
            self.configs: "compact",
            self.labels: "compact",
            self.sessions: "delete",
            self.candidates: "delete",
            self.results: "delete",
            self.network: "compact",
            self.dead_letters: "delete",
            self.anchors: "compact",
            self.anchor_verdicts: "delete",
            self.alerts: "compact",
            self.alerts_state: "compact",
            self.export_waiting: "compact",
        }

    def added_to(self) -> frozenset[str]:
        """Returns the topics that can have more partitions than `TRACEWEIR_PARTITIONS`: inputs with any key.

        All others keep the number. Workers choose the partition of what they write to internal topics, and the records of
        one key of a compacted topic must stay on one partition.
        """
        return frozenset((self.otlp_spans, self.otlp_logs, self.traces, self.invocations))

    def of_others(self, stages: Collection[StageName] = STAGES) -> frozenset[str]:
        """Returns the topics to which workers with these stages never write in a checkpoint."""
        others = {
            self.otlp_spans,
            self.otlp_logs,
            self.references,
            self.configs,
            self.labels,
            self.anchors,
            self.anchor_verdicts,
            self.alerts,
            self.alerts_state,
            self.export_waiting,
        }
        return frozenset(others if "collect" in stages else others | {self.traces, self.invocations})

    def retention_days(self) -> dict[str, int]:
        """Returns for how many days at least a record of each topic that is not compacted is kept, by topic name.

        Inputs and internal topics must outlast an outage of all workers. Sessions can be scored again with another config,
        results are read by people, and dead letters wait for someone to replay them. A judge is compared with what it said
        about anchors at first.
        """
        return {
            self.otlp_spans: 7,
            self.otlp_logs: 7,
            self.spans: 7,
            self.traces: 7,
            self.invocations: 7,
            self.strays: 7,
            self.sessions: 30,
            self.candidates: 7,
            self.results: 30,
            self.dead_letters: 30,
            self.anchor_verdicts: 365,
        }


def application_id(prefix: str, stages: Collection[StageName]) -> str:
    """Returns the id of the application that runs `stages` together.

    The id is the consumer group, and the stem of the changelog's name and of the transactional ids. The order and
    repetition of `stages` do not matter. Another set of stages is another application, with its own state and offsets.

    >>> application_id("traceweir.", ["gate", "score"])
    'traceweir.score-gate'
    >>> application_id("", ["assemble"])
    'assemble'

    Raises:
        ValueError: `stages` is empty or names one that does not exist.
    """
    unknown = sorted(set(stages).difference(ALL_STAGES))
    if unknown or not stages:
        what = f"unknown stage {', '.join(map(repr, unknown))}" if unknown else "no stage given"
        raise ValueError(f"{what}; choose from {', '.join(ALL_STAGES)}")
    path = "-".join(stage for stage in ALL_STAGES if stage in stages)
    stem = prefix.rstrip(".")
    return f"{stem}.{path}" if stem else path


def shadow_application_id(prefix: str, name: str) -> str:
    """Returns the id of the application that runs a shadow.

    >>> shadow_application_id("traceweir.", "v2")
    'traceweir.shadow.v2'
    """
    stem = prefix.rstrip(".")
    return f"{stem}.shadow.{name}" if stem else f"shadow.{name}"


def shadows_topic(prefix: str) -> str:
    """Returns the compacted topic that says what each shadow is; key: the name of the shadow.

    >>> shadows_topic("traceweir.")
    'traceweir.shadows'
    """
    return f"{prefix}shadows"


def exports_topic(prefix: str) -> str:
    """Returns the compacted topic that says where each exporter stands; key: its consumer group.

    >>> exports_topic("traceweir.")
    'traceweir.exports'
    """
    return f"{prefix}exports"


def export_waiting_key(group: str, offset: int, at_ms: int) -> bytes:
    """Returns the key of a score that waits for the target of an exporter.

    The timestamp tells two records with one offset apart, where the topic of the results was created again.

    >>> export_waiting_key("traceweir.export-webhook", 17, 1767225600000)
    b'traceweir.export-webhook@17@1767225600000'

    Args:
        group: The consumer group of the exporter.
        offset: The offset of the score on `results`.
        at_ms: The timestamp of the score on `results`, in milliseconds since 1970.
    """
    return f"{group}@{offset}@{at_ms}".encode()


def changelog(application_id: str) -> str:
    """Returns the name of the changelog topic of an application's one table.

    Faust defines the form (application id, table name, `changelog`); the table is called `state`.

    >>> changelog("traceweir.assemble")
    'traceweir.assemble-state-changelog'
    """
    return f"{application_id}-state-changelog"

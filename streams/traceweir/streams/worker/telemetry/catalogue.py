"""Lists every metric of a worker. The code, the documentation and the tests read this list."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Kind = Literal["counter", "gauge", "histogram"]

_SUFFIXES = {"s": "seconds", "By": "bytes", "USD": "usd"}
_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)


@dataclass(frozen=True, slots=True)
class Instrument:
    """A metric. Names and units are those of OpenTelemetry; Prometheus has them in its own form."""

    name: str
    kind: Kind
    unit: str
    """A unit of UCUM, such as `s`; in braces what is counted."""
    meaning: str
    attributes: tuple[str, ...] = ()
    bounds: tuple[float, ...] = ()
    """Upper bounds of the buckets of a histogram."""

    @property
    def prometheus_name(self) -> str:
        """The name in Prometheus, with the unit, and for a counter `_total`.

        >>> CHECKPOINT_DURATION.prometheus_name, RECORDS.prometheus_name
        ('traceweir_checkpoint_duration_seconds', 'traceweir_records_consumed_total')
        """
        parts = [self.name.replace(".", "_"), *([_SUFFIXES[self.unit]] if self.unit in _SUFFIXES else [])]
        return "_".join([*parts, *(["total"] if self.kind == "counter" else [])])


# --- Counted with each committed checkpoint, since the start of the process

READ = Instrument(
    "traceweir.records.read",
    "counter",
    "{record}",
    "Records that the stages have taken from a topic, counted with the next checkpoint.",
    ("topic",),
)
RECORDS = Instrument(
    "traceweir.records.consumed", "counter", "{record}", "Records that a stage has processed.", ("stage",)
)
PRODUCED = Instrument("traceweir.records.produced", "counter", "{record}", "Records written to a topic.", ("topic",))
EVENTS = Instrument(
    "traceweir.stage.events",
    "counter",
    "{event}",
    "What a stage did with its records and sessions: the counters of its log.",
    ("stage", "event"),
)
DEAD_LETTERS = Instrument(
    "traceweir.dead_letters",
    "counter",
    "{record}",
    "Records that became dead letters.",
    ("stage", "reason"),
)
SCORES = Instrument(
    "traceweir.scores",
    "counter",
    "{score}",
    "Scores by metric and status. `reason` says why a score has no value, `judge` which model judged; "
    "each is empty otherwise.",
    ("metric", "status", "reason", "judge"),
)
SCORE_VALUE = Instrument(
    "traceweir.score.value",
    "histogram",
    "1",
    "Values of scores.",
    ("metric",),
    (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 2.0, 3.0, 4.0, 5.0),
)
FRESHNESS = Instrument(
    "traceweir.score.freshness",
    "histogram",
    "s",
    "Time from the last record of a session to each of its committed scores.",
    (),
    (0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1_800.0, 3_600.0, 21_600.0, 86_400.0),
)
DECISIONS = Instrument(
    "traceweir.gate.decisions", "counter", "{decision}", "Decisions: `accepted` or `rejected`.", ("decision",)
)
REJECTIONS = Instrument(
    "traceweir.gate.rejections",
    "counter",
    "{reason}",
    "Reasons of rejections; a rejection can have several.",
    ("reason",),
)
JUDGE_TOKENS = Instrument(
    "traceweir.judge.tokens", "counter", "{token}", "Tokens that scores have cost: `input` or `output`.", ("type",)
)
JUDGE_COST = Instrument("traceweir.judge.cost", "counter", "USD", "What scores have cost.")
JUDGE_CACHED = Instrument(
    "traceweir.judge.cached", "counter", "{score}", "Scores from stored verdicts, which cost nothing."
)
JUDGE_DURATION = Instrument(
    "traceweir.judge.request.duration",
    "histogram",
    "s",
    "Time of a request to a judge. `outcome`: `answered`, `unusable` (no verdict in the answer), "
    "`temporary`, `refused` or `cancelled`.",
    ("model", "outcome"),
    (0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 20.0, 30.0, 60.0, 120.0),
)
JUDGE_FAILURES = Instrument(
    "traceweir.judge.request.failures",
    "counter",
    "{request}",
    "Requests without a verdict, by the cause of scores: `judge_unavailable`, `judge_refused`, "
    "`judge_truncated`, `judge_unparsable` or `too_long`. A later request can bring the verdict.",
    ("model", "cause"),
)
EMBEDDER_DURATION = Instrument(
    "traceweir.embedder.duration", "histogram", "s", "Time of a call of the embedding model.", (), _SECONDS
)
EMBEDDER_BATCH = Instrument(
    "traceweir.embedder.batch",
    "histogram",
    "{text}",
    "Texts in a call of the embedding model.",
    (),
    (1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0),
)
EMBEDDER_TEXTS = Instrument(
    "traceweir.embedder.texts",
    "counter",
    "{text}",
    "Texts of traces by the `source` of their vector: `model`, or `cache` if an equal text has a vector "
    "or is being embedded. Not counted without a model.",
    ("source",),
)
CHECKPOINT_DURATION = Instrument(
    "traceweir.checkpoint.duration",
    "histogram",
    "s",
    "Time to send and commit a checkpoint, with the wait for scores in the same transaction.",
    (),
    (*_SECONDS, 20.0, 30.0, 60.0),
)
CHECKPOINT_FAILURES = Instrument(
    "traceweir.checkpoint.failures",
    "counter",
    "{checkpoint}",
    "Checkpoints not known to be committed, which are also all aborted transactions. The worker drops its"
    " partitions, or ends.",
)

# --- The present state

CHECKPOINT_AGE = Instrument(
    "traceweir.checkpoint.age", "gauge", "s", "Time since the checkpoint in work began; 0 without one."
)
TRANSACTION_TIMEOUT = Instrument(
    "traceweir.transaction.timeout",
    "gauge",
    "s",
    "`TRACEWEIR_TRANSACTION_TIMEOUT_S`.",
)
LAG = Instrument(
    "traceweir.consumer.lag",
    "gauge",
    "{record}",
    "Unread records of this worker's partitions, up to the last stable offset, without the marks of transactions.",
    ("topic",),
)
UNREAD_AGE = Instrument(
    "traceweir.records.unread.age",
    "gauge",
    "s",
    "Age of the oldest record of an input that no checkpoint contains, in this worker's partitions; 0 "
    "without one. Never less than the age by which Kafka deletes the record. Records behind an open "
    "transaction do not count, nor does a partition of which this process has read nothing yet.",
    ("topic",),
)
RETENTION = Instrument(
    "traceweir.topic.retention",
    "gauge",
    "s",
    "Time for which Kafka keeps the records of an input (`retention.ms`), asked for every 30 s. Missing "
    "without such a limit, or without the right to read it.",
    ("topic",),
)
HELD_BACK = Instrument(
    "traceweir.transactions.open.age",
    "gauge",
    "s",
    "Longest time for which the last stable offset of a partition of an input has stood still although "
    "records follow: the age of an open transaction of any producer.",
    ("topic",),
)
CLOCK_AHEAD = Instrument(
    "traceweir.clock.ahead",
    "gauge",
    "s",
    "Time by which this worker's clock was ahead of the brokers' at the last comparison, beyond its "
    "duration; negative: behind. Beyond 60 s the worker ends. Missing before the first comparison, and "
    "without transactions.",
)
WATERMARK_LAG = Instrument(
    "traceweir.watermark.lag", "gauge", "s", "Time by which the slowest partition's watermark is behind the clock."
)
OPEN_SESSIONS = Instrument(
    "traceweir.sessions.open", "gauge", "{session}", "Open sessions of this worker's partitions."
)
SCOPES = Instrument("traceweir.novelty.scopes", "gauge", "{scope}", "Novelty scopes in memory.")
PARTITIONS = Instrument("traceweir.partitions", "gauge", "{partition}", "Partitions that this worker owns.")
RESTORING = Instrument(
    "traceweir.restore.remaining",
    "gauge",
    "{record}",
    "Offsets of changelogs still to be read before this worker's partitions are ready.",
)
READY = Instrument("traceweir.worker.ready", "gauge", "1", "1 if the worker owns its partitions and reads, else 0.")
PROBLEMS = Instrument("traceweir.worker.problems", "gauge", "{problem}", "Problems that `/healthz` lists.")
JUDGE_BREAKER = Instrument(
    "traceweir.judge.breaker.open",
    "gauge",
    "1",
    "1 while the circuit breaker of a model is open, else 0.",
    ("model",),
)
JUDGE_UNFIT = Instrument(
    "traceweir.judge.unfit",
    "gauge",
    "1",
    "1 if the judge of a criterion did not tell the known cases apart (`judge.check`), else 0.",
    ("metric", "model"),
)
JUDGE_WAITING = Instrument(
    "traceweir.judge.waiting",
    "gauge",
    "{session}",
    "Sessions of this worker's partitions that are scored again: `settling` waits for `settle_s` of a "
    "criterion, `unavailable` for a judge.",
    ("reason",),
)
JUDGE_BUDGET_LEFT = Instrument(
    "traceweir.judge.budget.left",
    "gauge",
    "1",
    "What is left of each limit of the budget, from 0 to 1 of this worker's share.",
    ("limit",),
)
SCORING_RESTARTS = Instrument(
    "traceweir.scoring.restarts", "counter", "{process}", "Scoring processes that ended unexpectedly."
)
SCORING_IN_FLIGHT = Instrument(
    "traceweir.scoring.in_flight", "gauge", "{session}", "Sessions that the scoring process has, or that wait for it."
)
SCORING_SUSPECTS = Instrument(
    "traceweir.scoring.suspects", "gauge", "{session}", "Sessions that wait for the quarantine process."
)
MEMORY = Instrument(
    "traceweir.process.memory",
    "gauge",
    "By",
    "Resident memory of `worker` and of `scoring`, its process.",
    ("process",),
)
LOOP_LAG = Instrument(
    "traceweir.event_loop.lag", "gauge", "s", "Longest delay of a timer of the event loop in the last 15 s."
)
CONFIGS_UNUSABLE = Instrument(
    "traceweir.configs.unusable",
    "gauge",
    "{config}",
    "Pushed configs that this worker cannot use, so that the former ones stay.",
)
CHALLENGERS_UNUSABLE = Instrument(
    "traceweir.challengers.unusable",
    "gauge",
    "{challenger}",
    "Challengers in effect that cannot score in this worker, or whose scores it cannot write.",
)
CHALLENGER_WAITING = Instrument(
    "traceweir.challenger.waiting",
    "gauge",
    "{session}",
    "Sessions of this worker's partitions that a challenger has yet to score.",
)
BUILD = Instrument("traceweir.build", "gauge", "1", "Always 1, with the version of Traceweir.", ("version",))

CATALOGUE: tuple[Instrument, ...] = (
    READ, RECORDS, PRODUCED, EVENTS, DEAD_LETTERS, SCORES, SCORE_VALUE, FRESHNESS, DECISIONS, REJECTIONS,
    JUDGE_TOKENS, JUDGE_COST, JUDGE_CACHED, JUDGE_DURATION, JUDGE_FAILURES, JUDGE_BREAKER, JUDGE_UNFIT, JUDGE_BUDGET_LEFT,
    JUDGE_WAITING, EMBEDDER_DURATION, EMBEDDER_BATCH, EMBEDDER_TEXTS,
    CHECKPOINT_DURATION, CHECKPOINT_FAILURES, CHECKPOINT_AGE, TRANSACTION_TIMEOUT, LAG, UNREAD_AGE, RETENTION, HELD_BACK, CLOCK_AHEAD,
    WATERMARK_LAG, OPEN_SESSIONS, SCOPES,
    PARTITIONS, RESTORING, READY, PROBLEMS, SCORING_RESTARTS, SCORING_IN_FLIGHT, SCORING_SUSPECTS, CONFIGS_UNUSABLE, CHALLENGERS_UNUSABLE,
    CHALLENGER_WAITING, MEMORY, LOOP_LAG,
    BUILD,
)  # fmt: skip
"""All metrics of a worker, in the order of their documentation."""

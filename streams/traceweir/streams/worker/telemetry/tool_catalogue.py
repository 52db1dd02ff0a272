"""Lists the metrics of `canary`, `export`, `dashboard` and `alerts run`, each of which serves its own."""

from __future__ import annotations

from traceweir.streams.worker.telemetry.catalogue import DEAD_LETTERS, Instrument

# --- Of `traceweir canary`

CANARY_SUCCESS = Instrument(
    "traceweir.canary.success", "gauge", "1", "1 if the last session of the canary was decided in time, else 0."
)
CANARY_DURATION = Instrument(
    "traceweir.canary.duration", "gauge", "s", "Time from sending the last session of the canary to its decision."
)
CANARY_LAST_SUCCESS = Instrument(
    "traceweir.canary.last_success.time", "gauge", "s", "When a session of the canary was last decided, since 1970."
)

CANARY = (CANARY_SUCCESS, CANARY_DURATION, CANARY_LAST_SUCCESS)
"""The metrics of `traceweir canary`, which serves them itself."""

# --- Of `traceweir export`

EXPORT_SCORES = Instrument(
    "traceweir.export.scores",
    "counter",
    "{score}",
    "What an exporter did with scores: `read`, `waited` (had to wait for another attempt), `left_out` (not selected), "
    "`unreadable`, and `removed` (Kafka has deleted them before); and at the answer of the target, so that a score that is "
    "sent again counts again: `sent` (acknowledged) and `rejected` (dropped by the target, as it says). What it could not "
    "send is in `traceweir.dead_letters`, with the stage `export` and the reason `refused` or `given_up`.",
    ("group", "event"),
)
EXPORT_WAITING = Instrument(
    "traceweir.export.waiting",
    "gauge",
    "{score}",
    "Scores that wait for another attempt, in the partitions of this exporter: in `memory`, or on the `topic` alone. The "
    "topic `export-waiting` has all of them.",
    ("group", "place"),
)
EXPORT_READY = Instrument(
    "traceweir.export.ready",
    "gauge",
    "1",
    "1 if the exporter reads its partitions, a broker answers, and the target takes what it is sent, else 0.",
    ("group",),
)

EXPORT = (EXPORT_SCORES, EXPORT_WAITING, EXPORT_READY)
"""The metrics of `traceweir export` alone."""
EXPORT_PAGE = (*EXPORT, DEAD_LETTERS)
"""The metrics that `traceweir export` serves."""

# --- Of `traceweir dashboard`

_BOUND = "`bound` is `estimate`, `low` or `high`, the ends of the 95 % interval."
_JUDGED = ("criterion", "judge")
TRUST_LABELS = Instrument(
    "traceweir.trust.labels",
    "gauge",
    "{label}",
    "Labels of people that a judge is compared with: reviews of subjects that were drawn at random, which pass or fail, or "
    "are numbers.",
    _JUDGED,
)
TRUST_TPR = Instrument(
    "traceweir.trust.tpr",
    "gauge",
    "1",
    f"The share of what people passed that the judge passes. {_BOUND}",
    (*_JUDGED, "bound"),
)
TRUST_TNR = Instrument(
    "traceweir.trust.tnr",
    "gauge",
    "1",
    f"The share of what people failed that the judge fails. {_BOUND}",
    (*_JUDGED, "bound"),
)
TRUST_RAW = Instrument(
    "traceweir.trust.raw_rate", "gauge", "1", "The judge's pass rate, or the mean of its numbers.", _JUDGED
)
TRUST_CORRECTED = Instrument(
    "traceweir.trust.corrected_rate",
    "gauge",
    "1",
    f"The pass rate, or the mean, that people would give. {_BOUND} Missing if it cannot be said yet.",
    (*_JUDGED, "bound"),
)
TRUST_TIME = Instrument(
    "traceweir.trust.computed.time", "gauge", "s", "When the metrics of trust were last computed, since 1970."
)

TRUST = (TRUST_LABELS, TRUST_TPR, TRUST_TNR, TRUST_RAW, TRUST_CORRECTED, TRUST_TIME)
"""The metrics of `traceweir dashboard`, which serves them itself."""
# --- Of `traceweir alerts run`

ALERTS_RAISED = Instrument(
    "traceweir.alerts.raised",
    "gauge",
    "{alert}",
    "Alerts that are raised now, for Alertmanager; a rule, metric and level without one is left out. Only the process that "
    "watches reports them.",
    ("rule", "metric", "level"),
)
ALERTS_SCORES = Instrument(
    "traceweir.alerts.scores",
    "counter",
    "{score}",
    "What `traceweir alerts run` did with scores: `read`; `late`, which it counted in a later minute; `unwatched`, of streams "
    "beyond the most that a rule can have; and `unreadable`.",
    ("event",),
)
ALERTS_LAG = Instrument(
    "traceweir.alerts.lag",
    "gauge",
    "{record}",
    "Records of the topic of results that the process which watches has not read.",
)
ALERTS_READY = Instrument(
    "traceweir.alerts.ready",
    "gauge",
    "1",
    "1 if the process watches, or waits to take over, and a broker answers, else 0.",
)

ALERTS = (ALERTS_RAISED, ALERTS_SCORES, ALERTS_LAG, ALERTS_READY)
"""The metrics of `traceweir alerts run`."""

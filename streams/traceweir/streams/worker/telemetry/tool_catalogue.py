"""Lists the metrics of `canary`, `export`, `dashboard` and `alerts run`, each of which serves its own."""

from __future__ import annotations

from traceweir.streams.worker.telemetry.catalogue import DEAD_LETTERS, Instrument

# --- Of `traceweir canary`

CANARY_SUCCESS = Instrument(
    "traceweir.canary.success", "gauge", "1", "1 if the canary's last session was decided in time, else 0."
)
CANARY_DURATION = Instrument(
    "traceweir.canary.duration", "gauge", "s", "Time from sending the canary's last session to its decision."
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
    "What an exporter did with scores: `read`, `waited` (for another attempt), `left_out` (not selected),"
    " `unreadable`, `removed` (by Kafka, before); `sent` (acknowledged) and `rejected` (dropped by the "
    "target, as it says), where a score sent again counts again. What it could not send is in "
    "`traceweir.dead_letters`, with the stage `export`.",
    ("group", "event"),
)
EXPORT_WAITING = Instrument(
    "traceweir.export.waiting",
    "gauge",
    "{score}",
    "Scores that wait for another attempt, in this exporter's partitions: in `memory`, or on the `topic` alone.",
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
    "Labels of people that a judge is compared with: reviews of subjects drawn at random, which pass or "
    "fail, or are numbers.",
    _JUDGED,
)
TRUST_TPR = Instrument(
    "traceweir.trust.tpr",
    "gauge",
    "1",
    "Share of what people passed that the judge passes. `bound`: `estimate`, `low` or `high`, the ends of"
    " the 95 % interval.",
    (*_JUDGED, "bound"),
)
TRUST_TNR = Instrument(
    "traceweir.trust.tnr",
    "gauge",
    "1",
    "Share of what people failed that the judge fails; `bound` as of `trust.tpr`.",
    (*_JUDGED, "bound"),
)
TRUST_RAW = Instrument(
    "traceweir.trust.raw_rate", "gauge", "1", "The judge's pass rate, or the mean of its numbers.", _JUDGED
)
TRUST_CORRECTED = Instrument(
    "traceweir.trust.corrected_rate",
    "gauge",
    "1",
    "The pass rate, or mean, that people would give; `bound` as of `trust.tpr`. Missing if it cannot be said yet.",
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
    "Raised alerts, for Alertmanager; only the process that watches reports them.",
    ("rule", "metric", "level"),
)
ALERTS_SCORES = Instrument(
    "traceweir.alerts.scores",
    "counter",
    "{score}",
    "What `traceweir alerts run` did with scores: `read`; `late`, counted in a later minute; `unwatched`,"
    " of streams beyond a rule's most; `unreadable`.",
    ("event",),
)
ALERTS_LAG = Instrument(
    "traceweir.alerts.lag",
    "gauge",
    "{record}",
    "Records of the topic of results that the watching process has not read.",
)
ALERTS_READY = Instrument(
    "traceweir.alerts.ready",
    "gauge",
    "1",
    "1 if the process watches, or waits to take over, and a broker answers, else 0.",
)

ALERTS = (ALERTS_RAISED, ALERTS_SCORES, ALERTS_LAG, ALERTS_READY)
"""The metrics of `traceweir alerts run`."""

"""Runs the benchmarks: all with `make bench`, some with `python -m benchmarks NAME ...` (`main` lists the names)."""

import os
import sys
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

from tests.support.kafka_cluster import KafkaCluster

from benchmarks import (
    alerts,
    alerts_watch,
    anchors,
    backlog,
    certification,
    checks,
    clickhouse_growth,
    clickhouse_store,
    client,
    collect,
    compaction,
    completeness,
    config_push,
    cosine,
    dashboard_memory,
    dashboard_viewers,
    diff_coverage,
    diff_memory,
    distant_takeover,
    endpoint,
    exactly_once,
    growth,
    hot_scope,
    judge,
    judge_outage,
    judge_windows,
    kafka_streams,
    kappa,
    latency,
    open_sessions,
    page,
    recorded,
    recorded_changes,
    redaction,
    response_match,
    score_files,
    scoring_processes,
    session_size,
    shadow,
    spans,
    store,
    takeover,
    throughput,
    tracing,
    trust,
    trust_story,
)
from benchmarks.machine import description
from traceweir.streams.worker.kafka.embedded_broker import EmbeddedBroker

NEEDS_KAFKA = {
    "throughput",
    "latency",
    "takeover",
    "rebuild",
    "compaction",
    "config-push",
    "exactly-once",
    "spans",
    "tracing",
    "checks",
    "judge-outage",
    "backlog",
    "open-sessions",
    "session-size",
    "shadow",
}


def main(names: list[str]) -> None:
    """Runs the named benchmarks, or all if none is named."""
    print(description())
    with ExitStack() as stack:
        servers, broker, logs = "", None, Path()
        if not names or NEEDS_KAFKA & set(names):
            home = os.environ.get("KAFKA_HOME")
            if not home:
                sys.exit("KAFKA_HOME must name an unpacked Apache Kafka: KAFKA_HOME=... make bench")
            try:
                kafka_streams.classpath(os.environ)
            except kafka_streams.KafkaStreamsError as error:
                sys.exit(str(error))
            cluster = stack.enter_context(KafkaCluster(Path(home)))
            servers, broker, logs = cluster.bootstrap_servers, cluster.pid(1), cluster.data(1)
        rates: dict[str, float] = {}

        def on_kafka() -> None:
            rates.update(throughput.run(servers, broker=broker))

        def from_last_event_to_score() -> None:
            most = rates.get("all stages") or throughput.one(servers, "all stages", throughput.SESSIONS)["rate"]
            latency.run(servers, most / 4)

        def on_embedded() -> None:
            with EmbeddedBroker() as broker:
                throughput.run(broker.bootstrap_servers, sessions=3_000, rounds=3, transactions=False)

        every: dict[str, Callable[[], object]] = {
            "alerts": alerts.run,
            "alerts-watch": alerts_watch.run,
            "anchors": anchors.run,
            "throughput": on_kafka,
            "latency": from_last_event_to_score,
            "takeover": lambda: takeover.run(servers),
            "distant-takeover": distant_takeover.run,
            "config-push": lambda: config_push.run(servers),
            "rebuild": lambda: takeover.lost(servers),
            "compaction": lambda: compaction.run(servers, logs),
            "exactly-once": lambda: exactly_once.run(servers),
            "embedded": on_embedded,
            "growth": growth.run,
            "collect": collect.run,
            "client": client.run,
            "endpoint": endpoint.run,
            "spans": lambda: spans.run(servers),
            "tracing": lambda: tracing.run(servers),
            "trust": trust.run,
            "kappa": kappa.run,
            "trust-story": trust_story.run,
            "certification": certification.run,
            "checks": lambda: checks.run(servers, broker),
            "cosine": cosine.main,
            "hot-scope": hot_scope.run,
            "response-match": response_match.main,
            "completeness": completeness.main,
            "judge": judge.run,
            "scoring-processes": scoring_processes.run,
            "judge-outage": lambda: judge_outage.run(servers),
            "judge-windows": judge_windows.run,
            "recorded": recorded.run,
            "recorded-changes": recorded_changes.run,
            "redaction": redaction.run,
            "score-files": score_files.run,
            "backlog": lambda: backlog.run(servers, broker),
            "open-sessions": lambda: open_sessions.run(servers),
            "session-size": lambda: session_size.run(servers, logs),
            "shadow": lambda: shadow.run(servers),
            "store": store.run,
            "clickhouse-store": clickhouse_store.run,
            "clickhouse-growth": clickhouse_growth.run,
            "dashboard-memory": dashboard_memory.run,
            "dashboard-viewers": dashboard_viewers.run,
            "page": page.run,
            "diff-coverage": diff_coverage.run,
            "diff-memory": diff_memory.run,
        }
        if unknown := sorted(set(names) - every.keys()):
            sys.exit(f"no benchmark is called {', '.join(unknown)}; there are {', '.join(every)}")
        for name in names or every:
            print(f"\n{name}", flush=True)
            every[name]()


if __name__ == "__main__":
    main(sys.argv[1:])

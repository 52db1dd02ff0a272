"""Runs one round: load, faults, rest; then the audit, and the same records again without faults."""

from __future__ import annotations

import json
import os
import shutil
import sys
import time
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path

from tests.audit import claims, configs
from tests.audit.committed import CHANGELOG, CONFIGS, INPUTS, OUTPUTS, Committed
from tests.audit.config_topic import FILE
from tests.audit.evidence import Evidence
from tests.chaos.crew import Crew
from tests.chaos.load import Load
from tests.chaos.outcome import Outcome
from tests.chaos.phases import PATIENCE_S, delete_topics, make_topics, rest, run_load, size_of
from tests.chaos.pusher import ConfigPusher
from tests.chaos.scenario import Scenario
from tests.chaos.small_disk import SmallDisk
from tests.chaos.undisturbed import copy_inputs, differences
from tests.support.kafka_cluster import KafkaCluster
from tests.support.ledger import PARTITIONS, Ledger
from tests.support.unsteady import offer_plugin
from tests.support.workers import Fleet

from traceweir.streams.base.settings import Settings
from traceweir.streams.base.topics import STAGES, application_id
from traceweir.streams.worker.kafka.topic_admin import create_topics

GRACE_S, FORMER_S, GUARD_S, AWAY_S = 240.0, 450.0, 900.0, 1500.0
"""Far enough from each other and from the duration of a round that no pause decides which records belong together.

In a backlog strays arrive as late as the backlog is long, and beyond the grace they would start their own segment.
"""
VARIABLES = {
    "TRACEWEIR_GRACE_S": f"{GRACE_S:g}",
    "TRACEWEIR_GUARD_S": f"{GUARD_S:g}",
    "TRACEWEIR_SCORE_TIMEOUT_S": "8",
}
APPS = ("agent", "shop")
"""The apps of the load, if configs are pushed."""
IN_EFFECT_WITHIN_S = 10.0
"""Time after which a pushed config counts in each worker, if nothing is disturbed."""
LAST_LOAD_S = 1.0
"""Sessions for the last config: as many as begin in this time of the load, in seconds."""
LATE = 0.05
"""The share of sessions with a record that arrives after the session has closed, by kind of lateness."""


def play(
    scenario: Scenario,
    bootstrap_servers: str,
    cluster: KafkaCluster | None,
    folder: Path,
    report_phase: Callable[[str], object] = lambda phase: None,
) -> Outcome:
    """Runs a round on its own topics, which are deleted afterwards.

    Args:
        scenario: The load and the faults.
        bootstrap_servers: The broker that the scenario names.
        cluster: The broker's nodes, if the round is allowed to kill them.
        folder: For state directories and logs; must be empty.
        report_phase: Called with a description of each phase of the round.
    """
    started = time.monotonic()
    prefix = f"chaos-{scenario.seed}-{os.urandom(3).hex()}."
    ledger = Ledger(
        scenario.seed,
        late=LATE,
        former=0.004,
        former_s=FORMER_S,
        unsteady=1.0,
        # A session that ends its process once and whose process a fault kills once would correctly be taken for poison.
        without=("kills-once",) if scenario.harms_scorers or scenario.poisonous else (),
        poisonous=scenario.poisonous,
        away_s=AWAY_S,
        apps=APPS if scenario.pushes else (),
    )
    config, variables = _configure(folder)
    plugins = str(folder / "plugins")
    file = json.loads(config.read_text())
    once = scenario.broker == "kafka"
    patience_s = PATIENCE_S + scenario.takeover_s
    with ExitStack() as stack:
        stack.callback(sys.path.remove, plugins)
        applications = make_topics(bootstrap_servers, prefix, scenario)
        stack.callback(delete_topics, bootstrap_servers, prefix)
        disk = stack.enter_context(SmallDisk(folder / "disk")) if scenario.small_disk else None
        committed = stack.enter_context(Committed(bootstrap_servers, prefix, *applications))
        servers = bootstrap_servers
        if scenario.slows_network:
            assert cluster is not None
            servers = cluster.distant_servers
        fleet = stack.enter_context(Fleet(servers, prefix, folder, config, variables=variables))
        load = Load(ledger, bootstrap_servers, prefix, scenario.rate, idempotent=once)
        settings = Settings(kafka_bootstrap_servers=bootstrap_servers, topic_prefix=prefix)
        pusher = stack.enter_context(ConfigPusher(settings, file, APPS, scenario.seed)) if scenario.pushes else None
        crew = Crew(fleet, scenario, cluster, disk, pusher)
        stack.callback(crew.release)
        pause_s = run_load(
            load,
            crew,
            committed,
            report_phase,
            is_warm=lambda: bool(committed.rows["results"]),
            on_warm=lambda: setattr(ledger, "warm", True),
        )
        rest(load, crew, committed, report_phase, once=once, patience_s=patience_s)
        if pusher is not None:
            settled = _settle(load, crew, committed, pusher, report_phase)
            rest(load, crew, committed, report_phase, once=once, patience_s=patience_s)
        if cluster is not None:
            cluster.wait()
        report_phase("auditing")
        evidence = Evidence(
            ledger, committed, file, configs=None if pusher is None else pusher.topic(committed.rows[CONFIGS])
        )
        if pusher is not None:
            crew.counters.update(pusher.counters)
            evidence.refused_configs, evidence.settled = pusher.letters(committed.rows[CONFIGS]), settled
            configs.require_sessions_after_the_last_push(evidence)
        crew.counters["stage raises"] = sum(worker.stumbles for worker in fleet.started)
        state_bytes = max(size_of(worker.state_dir) for worker in fleet.started)
        fleet.end()
        if once:
            found = claims.faults(evidence, claims.EXACTLY_ONCE, claims.WITHIN_THE_GRACE, configs.CLAIMS)
            report_phase("repeating the records without faults")
            unlike = _undisturbed(evidence, bootstrap_servers, prefix, scenario, folder, config, variables)
            if unlike:
                found.setdefault(claims.DIFFERENT, {})["an_undisturbed_run_gives_the_same_scores"] = unlike
        else:
            found = claims.faults(evidence, claims.AT_LEAST_ONCE)
        return Outcome(
            scenario=scenario,
            faults=crew.counters,
            ends=crew.ends,
            sent=Counter({**ledger.sent, "records": load.sent}),
            dead_lettered=len(committed.rows["dead-letters"]),
            committed={topic: len(committed.rows[topic]) for topic in (*INPUTS, *OUTPUTS, CHANGELOG)},
            found=found,
            longest_pause_s=pause_s,
            state_bytes=state_bytes,
            took_s=time.monotonic() - started,
        )


def _settle(
    load: Load, crew: Crew, committed: Committed, pusher: ConfigPusher, report_phase: Callable[[str], object]
) -> dict[int, int]:
    """Pushes the last config when nothing is disturbed any more, and sends further sessions.

    Returns, by partition, the offset of `sessions` from which on that config counts.
    """
    report_phase("pushing the last config")
    pusher.push_the_last()
    pushed_at = time.monotonic()
    while time.monotonic() - pushed_at < IN_EFFECT_WITHIN_S:
        committed.read(0.5)
        crew.calm(load.passed_s)  # restarts a worker that has ended
    settled = dict.fromkeys(range(PARTITIONS), 0)
    for row in committed.rows["sessions"]:
        settled[row.partition] = max(settled[row.partition], row.offset + 1)
    load.go_on(LAST_LOAD_S)
    load.finish()
    return settled


def _configure(folder: Path) -> tuple[Path, dict[str, str]]:
    """Writes the config and the plug-in; returns the config's file and the workers' variables.

    The harness reads configs with the scorer of the plug-in too.
    """
    notes, plugins, config = folder / "notes", folder / "plugins", folder / "config.json"
    notes.mkdir()
    offer_plugin(plugins)
    sys.path.insert(0, str(plugins))
    criteria = {"tool_trajectory_avg_score": 0.5, "unsteady": {"threshold": 0.5, "notes": str(notes)}}
    gate = {"threshold": 0.65, "required": ["tool_trajectory_avg_score"], "cache_size": 120}
    config.write_text(json.dumps({"criteria": criteria, "gate": gate}))
    paths = [str(plugins), *os.environ.get("PYTHONPATH", "").split(os.pathsep)]  # a checkout tests its own worker
    return config, VARIABLES | {"PYTHONPATH": os.pathsep.join(filter(None, paths))}


def _undisturbed(
    evidence: Evidence,
    bootstrap_servers: str,
    prefix: str,
    scenario: Scenario,
    folder: Path,
    config: Path,
    variables: Mapping[str, str],
) -> list[str]:
    """Returns the differences to the scores of an undisturbed run, without those of sessions with a pushed config."""
    again = f"{prefix}again."
    settings = Settings(
        kafka_bootstrap_servers=bootstrap_servers, topic_prefix=again, replication_factor=scenario.nodes
    )
    create_topics(settings)
    disturbed = evidence.committed
    pushed = {version[0] for version, digests in evidence.digests.items() if digests != {FILE}}
    if pushed.issuperset(version[0] for version in evidence.digests):
        return ["nothing is compared: there is no session that only the config of the file has scored"]
    count = copy_inputs(disturbed, bootstrap_servers, again)
    with (
        Committed(bootstrap_servers, again, application_id(again, STAGES)) as committed,
        Fleet(bootstrap_servers, again, folder, config, variables=variables) as fleet,
    ):
        fleet.start("undisturbed")
        came_at = time.monotonic()
        while time.monotonic() - came_at < PATIENCE_S:
            if committed.read(0.5):
                came_at = time.monotonic()
            if committed.arrived() == count and committed.is_at_rest() and not committed.read(1.0):
                break
        return list(differences(evidence.ledger, disturbed, committed, without=pushed))


def clear(folder: Path) -> None:
    """Removes the state directories of a round; keeps the logs."""
    for state in folder.glob("state-*"):
        shutil.rmtree(state, ignore_errors=True)

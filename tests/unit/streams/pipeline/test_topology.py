"""Tests the topology, the single description from which all stages are built."""

from __future__ import annotations

import ast
import subprocess
import sys
from dataclasses import astuple
from pathlib import Path

import pytest
from tests.support.paths import ROOT
from tests.support.redaction.known_names import KnownNames

from traceweir.scorers import read_plan
from traceweir.streams.base.clock import utc_now
from traceweir.streams.base.settings import Settings
from traceweir.streams.base.topics import ALL_STAGES, STAGES, StageName, Topics
from traceweir.streams.pipeline.topology import Resources, Topology, topics_of

STAGE_MODULES = {f"traceweir.streams.pipeline.{stage}.stage" for stage in ALL_STAGES}
BUILDERS = {"streams/traceweir/streams/pipeline/topology.py"}
# These modules import the classes to inspect them, and build no stage.
READERS = {
    "tests/simulation/bounds.py",
    "tests/simulation/long_run.py",
    "tests/simulation/bugs/of_certificates.py",
    "tests/simulation/bugs/of_clocks_and_bytes.py",
    "tests/simulation/bugs/of_collect.py",
    "tests/simulation/bugs/of_configs.py",
    "tests/simulation/bugs/of_replays_and_judges.py",
    "tests/simulation/bugs/of_stages.py",
    "tests/unit/streams/base/stages/test_inputs.py",
    "tests/unit/test_parameters.py",
    "benchmarks/hot_scope.py",
    "benchmarks/timed_worker.py",
    "tests/flow/test_closing.py",
    "tests/flow/test_reopening.py",
    "tests/flow/test_reopening_state.py",
    "tests/flow/test_session_bounds.py",
}


@pytest.mark.parametrize(
    ("stage", "inputs", "outputs", "followed"),
    [
        (
            "collect",
            ("otlp_spans", "otlp_logs", "t.spans"),
            ("t.spans", "t.invocations", "t.traces", "t.dead-letters"),
            (),
        ),
        ("assemble", ("t.traces", "t.invocations", "t.strays"), ("t.strays", "t.sessions", "t.dead-letters"), ()),
        ("score", ("t.sessions",), ("t.results", "t.candidates", "t.dead-letters"), ("t.references", "t.configs")),
        ("gate", ("t.candidates",), ("t.results", "t.network", "t.dead-letters"), ()),
    ],
)
def test_a_stage_reads_and_writes_its_topics(
    stage: StageName, inputs: tuple[str, ...], outputs: tuple[str, ...], followed: tuple[str, ...]
) -> None:
    topics = topics_of(stage, Topics.of("t."))
    assert (topics.inputs, topics.outputs, topics.followed) == (inputs, outputs, followed)


@pytest.mark.parametrize("stages", [ALL_STAGES, STAGES, ("collect",), ("assemble",), ("score",), ("gate",)])
def test_the_topics_of_others_are_those_that_no_stage_of_a_worker_writes(stages: tuple[StageName, ...]) -> None:
    topics = Topics.of()
    written = {name for stage in stages for name in topics_of(stage, topics).outputs}
    others = topics.of_others(stages)
    assert not written & others
    if stages in (ALL_STAGES, STAGES):
        assert topics.cleanup_policies(stages).keys() - others == written


def test_every_topic_but_those_of_exporters_labels_and_alerts_belongs_to_a_stage_and_is_the_input_of_at_most_one_stage() -> (
    None
):
    topics = Topics.of()
    found = [topics_of(stage, topics) for stage in ALL_STAGES]
    inputs = [name for each in found for name in each.inputs]
    assert len(inputs) == len(set(inputs))
    of_stages = {name for each in found for name in (*each.inputs, *each.outputs, *each.followed)}
    assert of_stages == set(astuple(topics)) - {
        topics.labels,
        topics.anchors,
        topics.anchor_verdicts,
        topics.alerts,
        topics.alerts_state,
        topics.export_waiting,
    }


def test_the_settings_determine_how_long_a_session_can_be_revised() -> None:
    settings = Settings(idle_gap_s=1, close_linger_s=0.5, grace_s=20, max_future_s=300, guard_s=40)
    closing = Topology.of(settings, read_plan(None), Resources(utc_now, scoring=None)).closing
    assert (closing.revised_within_ms, closing.guard_ms) == (1_000 + 500 + 20_000 + 300_000, 40_000)


def test_the_score_stage_is_not_built_without_a_scoring_resource() -> None:
    topology = Topology.of(Settings(), read_plan(None), Resources(utc_now, scoring=None))
    assert [spec.name for spec in topology.specs(["assemble", "gate"])] == ["assemble", "gate"]
    with pytest.raises(ValueError, match=r"stage 'score' needs Resources\.scoring"):
        topology.spec("score")


def test_a_gate_that_redacts_names_is_not_built_without_a_recogniser() -> None:
    plan = read_plan({"gate": {"presidio": {"model": "en_core_web_sm"}}})
    topology = Topology.of(Settings(), plan, Resources(utc_now, scoring=None))
    with pytest.raises(ValueError, match=r"gate\.presidio needs Resources\.entities"):
        topology.spec("gate")


def test_other_tasks_of_a_worker_run_after_each_trace_in_which_the_gate_looks_for_names() -> None:
    plan = read_plan({"gate": {"presidio": {"model": "en_core_web_sm"}}})
    topology = Topology.of(Settings(), plan, Resources(utc_now, scoring=None, entities=KnownNames()))
    assert topology.spec("gate").max_records == 1
    assert Topology.of(Settings(), read_plan(None), Resources(utc_now, scoring=None)).spec("gate").max_records == 2_000


@pytest.mark.slow
def test_only_the_topology_builds_stages() -> None:
    """A stage that is built elsewhere can differ from the stage of the worker."""
    importers = {
        str(path.relative_to(ROOT))
        for folder in ("schemas", "scorers", "streams", "tests", "benchmarks", "examples")
        for path in (ROOT / folder).rglob("*.py")
        if _imports_a_stage(path)
    }
    assert importers == BUILDERS | READERS
    for name in READERS:
        calls = {
            node.func.id
            for node in ast.walk(_tree(ROOT / name))
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
        }
        assert calls.isdisjoint({"CollectStage", "AssembleStage", "ScoreStage", "GateStage"})


@pytest.mark.slow
@pytest.mark.parametrize("module", ["traceweir.streams.pipeline.topology", "traceweir.streams.testing"])
def test_building_stages_imports_neither_faust_nor_pytest(module: str) -> None:
    unwanted = ("faust", "mode", "confluent_kafka", "rocksdict", "pytest")
    code = f"import sys, {module}; print([name for name in {unwanted} if name in sys.modules])"
    assert subprocess.check_output([sys.executable, "-c", code], text=True) == "[]\n"


def _tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text("utf-8"))


def _imports_a_stage(path: Path) -> bool:
    text = path.read_text("utf-8")
    # An import names the module, so the other files need not be parsed, a second of CPU for each 25,000 lines.
    return any(module in text for module in STAGE_MODULES) and not STAGE_MODULES.isdisjoint(_imports(path))


def _imports(path: Path) -> list[str]:
    nodes = list(ast.walk(_tree(path)))
    named = [alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names]
    return named + [node.module for node in nodes if isinstance(node, ast.ImportFrom) and node.module]

"""Tests that entry points find plugins by name, and that plugins affect neither each other nor built-in metrics."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from tests.support.paths import ROOT
from tests.support.scoring import expecting, install, make_turn, scores_of
from traceweir_brevity import Brevity

from traceweir.scorers import ToolTrajectory, read_plan
from traceweir.scorers.databricks_names import ALIASES, short_name
from traceweir.scorers.evaluation.registry import BUILT_IN, UNSUPPORTED, UnusableMetric, scorer_class

EXAMPLE = ROOT / "examples" / "plugin" / "pyproject.toml"
Install = Callable[[str, Mapping[str, str]], None]


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Install:
    """Installs a package with a given name that provides scorers."""
    monkeypatch.syspath_prepend(str(tmp_path))
    return lambda name, entry_points: install(tmp_path, name, entry_points)


def offered_by_the_example() -> dict[str, str]:
    """The entry points of the package in `examples/plugin`."""
    entry_points: dict[str, dict[str, str]] = tomllib.loads(EXAMPLE.read_text("utf-8"))["project"]["entry-points"]
    return entry_points["traceweir.scorers"]


def test_a_built_in_metric_has_its_scorer() -> None:
    assert scorer_class("tool_trajectory_avg_score") is ToolTrajectory


def test_no_metric_is_both_computed_and_unsupported() -> None:
    assert not BUILT_IN.keys() & UNSUPPORTED.keys()


async def test_an_installed_plugin_measures_the_metric_that_a_config_names(package: Install) -> None:
    package("traceweir-brevity", offered_by_the_example())
    plan = read_plan({"criteria": {"brevity": {"threshold": 0.5, "maxWords": 2}}})
    assert plan.metrics[0].scorer == Brevity(max_words=2)
    assert [
        score.value for score in await scores_of(plan, [make_turn(answer="one two three four", reference=expecting())])
    ] == [
        0.5,
        0.5,
    ]


def test_an_unknown_metric_is_reported_with_the_known_metrics(package: Install) -> None:
    package("traceweir-brevity", {"brevity": "traceweir_brevity:Brevity"})
    with pytest.raises(
        UnusableMetric, match=r"there is no such metric; did you mean 'brevity'\? Known: .*response_match_score"
    ):
        scorer_class("brevty")


@pytest.mark.parametrize("metric", BUILT_IN)
def test_a_built_in_metric_has_a_row_in_a_table_of_the_page(metric: str) -> None:
    rows = [line for line in (ROOT / "docs" / "metrics.md").read_text("utf-8").splitlines() if line.startswith("| ")]
    named = {name for row in rows for name in re.findall(r"`([^`]+)`", row.split(" | ")[0])}
    row = f"| `{short_name(metric)}` | what it measures | its default threshold, or required |"
    spellings = {metric, *(alias for alias, name in ALIASES.items() if name == metric)}
    assert named & spellings, f"docs/metrics.md lacks a row of the metric:\n{row}"


def test_two_plugins_with_the_same_name_are_both_reported(package: Install) -> None:
    package("package-one", {"brevity": "traceweir_brevity:Brevity"})
    package("package-two", {"brevity": "traceweir_brevity:Brevity"})
    with pytest.raises(UnusableMetric, match="package-one and package-two both provide this metric"):
        scorer_class("brevity")


def test_a_built_in_metric_cannot_be_replaced(package: Install) -> None:
    package("package-one", {"response_match_score": "traceweir_brevity:Brevity"})
    with pytest.raises(UnusableMetric, match="cannot be replaced, but package-one provides one"):
        scorer_class("response_match_score")


def test_a_plugin_that_cannot_be_imported_is_reported_with_the_reason(package: Install) -> None:
    package("package-one", {"broken": "tests.support.no_such_module:Scorer"})
    with pytest.raises(
        UnusableMetric, match=r"of package-one cannot be imported: ModuleNotFoundError: .*no_such_module"
    ):
        scorer_class("broken")


def test_a_broken_plugin_that_no_config_names_has_no_effect(package: Install) -> None:
    package("package-one", {"broken": "tests.support.no_such_module:Scorer"})
    assert read_plan({"criteria": {"response_match_score": 0.8}}).metrics


@pytest.mark.parametrize("place", ["traceweir_brevity:__doc__", "builtins:dict", "tests.support.scoring:make_turn"])
def test_a_plugin_must_provide_a_scorer(package: Install, place: str) -> None:
    package("package-one", {"thing": place})
    with pytest.raises(UnusableMetric, match="of package-one is not a subclass of Scorer"):
        scorer_class("thing")

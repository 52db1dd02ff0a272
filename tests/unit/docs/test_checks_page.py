"""The page about checks has a config that can be used, with every check, and tells their thresholds and directions."""

from __future__ import annotations

import re

from tests.support.commands import blocks
from tests.support.paths import ROOT

from traceweir.scorers import read_plan
from traceweir.scorers.evaluation.registry import BUILT_IN, PLACES

PAGE = (ROOT / "docs" / "checks.md").read_text("utf-8")
CHECKS = {name for name, place in PLACES.items() if place.startswith("metrics.checks.")}


def test_the_config_has_every_check() -> None:
    (config,) = blocks(PAGE, "json")
    assert {metric.name for metric in read_plan(config).metrics} == CHECKS


def test_every_check_has_a_row() -> None:
    assert {name for name in CHECKS if f"\n| `{name}` |" not in PAGE} == set()


def test_the_table_of_tools_has_the_directions_and_thresholds_of_the_code() -> None:
    rows = re.findall(r"^\| `(\w+)` \| .*? \| (higher|lower) \| (\w+) \|", PAGE, re.MULTILINE)
    assert len(rows) == 5
    for name, direction, threshold in rows:
        kind = BUILT_IN[name]
        assert kind.direction == direction
        assert kind.default_threshold == (None if threshold == "required" else float(threshold))

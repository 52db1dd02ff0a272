"""The tests that the guide "Test a scenario" shows pass as they stand on the page."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Coroutine, Iterator
from typing import Any

import pytest
from tests.support.paths import ROOT

PAGE = ROOT / "docs" / "guides" / "test-a-scenario.md"
Scenario = Callable[[], Coroutine[Any, Any, None]]


def scenarios() -> Iterator[tuple[str, Scenario]]:
    """The tests of the page; a block sees what the blocks before it have defined."""
    module: dict[str, Any] = {"__name__": "test_a_scenario"}
    for block in re.findall(r"```python\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL):
        exec(block, module)
    return ((name, found) for name, found in module.items() if name.startswith("test_"))


@pytest.mark.parametrize("scenario", [pytest.param(found, id=name) for name, found in scenarios()])
def test_the_scenario_passes(scenario: Scenario) -> None:
    asyncio.run(scenario())


def test_the_page_shows_five_scenarios() -> None:
    assert len(list(scenarios())) == 5

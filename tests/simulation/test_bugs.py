"""Checks what counts as a finding: a patch that does not fit the product any more finds nothing."""

from __future__ import annotations

import asyncio
import csv
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.simulation import seams
from tests.simulation.bugs import registry
from tests.simulation.command import FOUND
from tests.simulation.round import Outcome
from tests.support.paths import ROOT


class Product:
    def work(self) -> str:
        return self.missing  # type: ignore[attr-defined, no-any-return]  # a fault of the product

    async def wait(self) -> str:
        return "done"


PATCHES = """
def own(self):
    return self.gone

async def wait(self):
    return self.gone

def calls(self):
    return before(self)
"""


@pytest.fixture
def patches(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, Callable[..., Any]]]:
    """Returns patches as in a module of the bugs, and puts back what they replace."""
    monkeypatch.setattr(registry, "mistakes", [])
    monkeypatch.setattr(registry, "waiting", set())
    found: dict[str, Any] = {"before": Product.work}
    exec(compile(PATCHES, Path(registry.__file__).with_name("of_a_test.py"), "exec"), found)
    work, wait = Product.work, Product.wait
    yield found
    seams.put(Product, "work", work)
    seams.put(Product, "wait", wait)


def test_a_patch_that_raises_a_mistake_of_its_own_is_broken(patches: dict[str, Callable[..., Any]]) -> None:
    registry.put(Product, "work", patches["own"])
    with pytest.raises(AttributeError):
        Product().work()
    (line,) = registry.broken()
    assert "gone" in line


def test_so_is_a_coroutine_and_one_that_is_called_with_other_arguments(patches: dict[str, Callable[..., Any]]) -> None:
    registry.put(Product, "wait", patches["wait"])
    registry.put(Product, "work", patches["own"])
    with pytest.raises(AttributeError):
        asyncio.run(Product().wait())
    with pytest.raises(TypeError):
        Product().work(1)  # type: ignore[call-arg]
    assert [line.split("(")[0] for line in registry.broken()] == [
        "the patch raises AttributeError",
        "the patch raises TypeError",
    ]


def test_what_the_product_raises_is_no_mistake_of_the_patch(patches: dict[str, Callable[..., Any]]) -> None:
    registry.put(Product, "work", patches["calls"])
    with pytest.raises(AttributeError, match="missing"):
        Product().work()
    assert registry.broken() == []


def test_the_parts_of_a_patch_that_the_product_does_not_call_are_known(patches: dict[str, Callable[..., Any]]) -> None:
    """The product can have moved what a patch replaces to another place, so that the patch changes nothing."""
    registry.put(Product, "work", patches["calls"])
    registry.put(Product, "wait", patches["wait"])
    assert registry.uncalled() == {"Product.work", "Product.wait"}
    with pytest.raises(AttributeError, match="missing"):
        Product().work()
    assert registry.uncalled() == {"Product.wait"}


def test_a_broken_patch_and_a_simulation_that_raises_find_nothing() -> None:
    assert Outcome(1, found=["lost: a session"]).finds
    assert not Outcome(1, found=["not at rest"], raised=["the patch raises TypeError('...')"]).finds
    assert Outcome(1, raised=["the simulation raised KeyError('...')"]).wrong


def test_a_patch_of_a_name_that_is_gone_is_refused() -> None:
    with pytest.raises(AttributeError, match=r"'Product' has no attribute 'scored' to replace"):
        seams.put(Product, "scored", lambda self: None)


def test_each_bug_without_a_known_seed_has_another_test() -> None:
    seeds = json.loads(FOUND.read_text("utf-8"))
    with FOUND.with_name("not_found.csv").open(encoding="utf-8", newline="") as file:
        others = list(csv.DictReader(file))
    assert {each["bug"] for each in others} == registry.BUGS.keys() - seeds.keys()
    assert seeds.keys() <= registry.BUGS.keys()
    assert [each for each in others if not (ROOT / each["test without the simulation"]).is_file()] == []


def test_the_page_counts_the_bugs() -> None:
    seeds = json.loads(FOUND.read_text("utf-8"))
    section = (ROOT / "docs" / "simulation.md").read_text("utf-8")
    assert f"a seed for {len(seeds)} of the {len(registry.BUGS)}" in section

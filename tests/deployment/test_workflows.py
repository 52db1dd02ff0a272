"""Each workflow runs other people's actions at the commit that is named, and not at a tag that can move."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.support.paths import ROOT

WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
USED = re.compile(r"uses: (?P<action>\S+)@(?P<commit>[0-9a-f]{40}) # (?P<version>v\d+\.\d+\.\d+)")


def actions(value: Any) -> Iterator[str]:
    """Yields each action that a workflow uses."""
    if isinstance(value, dict):
        yield from (child for key, child in value.items() if key == "uses")
        yield from (action for child in value.values() for action in actions(child))
    elif isinstance(value, list):
        yield from (action for child in value for action in actions(child))


@pytest.mark.parametrize("file", WORKFLOWS, ids=lambda file: file.name)
def test_each_action_is_pinned_by_its_commit_with_its_version_beside_it(file: Path) -> None:
    text = file.read_text("utf-8")
    used = list(actions(yaml.safe_load(text)))
    assert used
    assert used == [f"{found['action']}@{found['commit']}" for found in USED.finditer(text)]


def test_an_action_has_one_commit_in_all_workflows() -> None:
    found = {found[0] for file in WORKFLOWS for found in USED.finditer(file.read_text("utf-8"))}
    assert len(found) == len({each.partition("@")[0] for each in found})

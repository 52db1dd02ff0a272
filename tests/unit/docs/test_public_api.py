"""What docs/public-api.md lists can be imported, is all that the modules offer, and costs no heavy import before it is asked for."""

from __future__ import annotations

import re
import subprocess
import sys
from importlib import import_module
from importlib.metadata import entry_points

import pytest
from tests.support.paths import ROOT

PLUGIN = "traceweir.streams.pytest_plugin"


def listed() -> dict[str, set[str]]:
    """Names by module."""
    page = (ROOT / "docs" / "public-api.md").read_text("utf-8")
    _, *sections = re.split(r"^## `(.+)`$", page, flags=re.MULTILINE)
    return {
        module: set(re.findall(r"^- `(\w+)`: ", text, re.MULTILINE))
        for module, text in zip(sections[::2], sections[1::2], strict=True)
    }


LISTED = listed()
PACKAGES = sorted(LISTED.keys() - {PLUGIN})


@pytest.mark.parametrize("module", PACKAGES)
def test_the_page_lists_what_the_module_offers(module: str) -> None:
    assert LISTED[module] == set(import_module(module).__all__)


@pytest.mark.parametrize(("module", "name"), [(module, name) for module in PACKAGES for name in sorted(LISTED[module])])
def test_each_name_can_be_imported(module: str, name: str) -> None:
    namespace: dict[str, object] = {}
    exec(f"from {module} import {name}", namespace)
    assert namespace[name] is not None


def test_pytest_finds_the_plugin_at_its_path() -> None:
    (plugin,) = entry_points(group="pytest11", name="traceweir")
    assert (plugin.value, PLUGIN in LISTED) == (PLUGIN, True)


@pytest.mark.parametrize("module", ["traceweir.streams.offline", "traceweir.streams.evals"])
def test_a_package_imports_nothing_before_a_name_is_asked_for(module: str) -> None:
    code = f"import sys, {module}; print(sorted(name for name in sys.modules if name.startswith('traceweir.')))"
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ended.stdout == f"{['traceweir.streams', module]}\n"


@pytest.mark.slow
def test_scoring_a_frame_needs_no_kafka_client() -> None:
    heavy = ["aiokafka", "confluent_kafka", "faust", "litellm", "pandas"]
    code = f"import sys; from traceweir.streams.offline import score_frame; print([name for name in {heavy} if name in sys.modules])"
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ended.stdout == "[]\n"


@pytest.mark.parametrize("module", ["traceweir.streams.offline", "traceweir.streams.evals"])
def test_a_name_that_is_not_there_is_named(module: str) -> None:
    with pytest.raises(AttributeError, match=f"module '{module}' has no attribute 'nothing'"):
        import_module(module).nothing  # noqa: B018  # the access is what fails

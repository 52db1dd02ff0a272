"""The code on the pages about frameworks is code that the tests run."""

from __future__ import annotations

import pytest
from tests.frameworks.conftest import HERE, REPOSITORY, snippets, unused_snippets

PAGES = sorted(path.name for path in (REPOSITORY / "docs" / "guides").glob("connect-*.md"))


def script_of(page: str) -> str:
    return page.removeprefix("connect-").removesuffix(".md").replace("-", "_") + "_agent.py"


@pytest.mark.parametrize("page", [page for page in PAGES if (HERE / script_of(page)).exists()])
def test_the_agents_run_the_code_on_the_page(page: str) -> None:
    assert snippets(page)
    assert unused_snippets(page, script_of(page)) == []


def test_each_agent_has_a_page() -> None:
    assert {path.name for path in HERE.glob("*_agent.py")} <= {script_of(page) for page in PAGES}

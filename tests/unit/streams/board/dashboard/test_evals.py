"""The page Evals shows eval sets, runs of `traceweir eval`, expected beside actual, and two runs compared."""

from __future__ import annotations

import asyncio
import re
from contextlib import redirect_stdout
from dataclasses import replace
from html import unescape
from io import StringIO
from pathlib import Path
from typing import Any

import httpx
import orjson
import pytest
from tests.support.dashboard_site import HOSTILE, SECRET, Site, session_id_of
from tests.support.eval_runs import run_line, write_evals
from tests.support.scoring import NOW
from tests.support.stores import open_store

from traceweir.streams.board.dashboard import eval_folder
from traceweir.streams.board.dashboard.eval_folder import EvalFolder
from traceweir.streams.cli.eval import eval_files

pytestmark = pytest.mark.slow

HEADERS = {"accept": "text/html", "origin": "http://127.0.0.1:4180"}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with an eval set and two runs, of which the second one is later."""
    folder = tmp_path / "evals"
    write_evals(folder)
    return folder


@pytest.fixture
def site(folder: Path, tmp_path: Path) -> Site:
    return Site(open_store(tmp_path / "store.duckdb"), now=NOW, evals=folder)


async def page(site: Site, address: str, code: int = 200, **parameters: str) -> str:
    transport = httpx.ASGITransport(site.application())
    async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:4180", headers=HEADERS) as client:
        answer = await client.get(address, params=parameters or None)
    assert answer.status_code == code
    return answer.text


async def test_eval_sets_and_runs_are_listed_the_latest_run_first(site: Site) -> None:
    text = await page(site, "/evals")

    assert re.findall(r"<bdi>(\w+\.jsonl)</bdi>", text) == ["second.jsonl", "first.jsonl"]
    assert "<bdi>trips.evalset.json</bdi>" in text
    # Recorded sessions are no run.
    assert "trips.sessions.jsonl" not in text


async def test_a_run_of_the_command_is_shown_with_its_cases(site: Site, folder: Path) -> None:
    written = StringIO()

    def run() -> None:
        # The command runs a loop of its own, which is possible in a thread without one.
        with redirect_stdout(written):
            eval_files(
                [str(folder / "trips.evalset.json")],
                sessions=(), from_kafka=False, format_name=None, matches={}, config=None, junit=None, num_runs=None,
                detailed=False, as_json=True,
            )  # fmt: skip

    await asyncio.to_thread(run)
    (folder / "own.jsonl").write_text(written.getvalue())
    cases = [orjson.loads(line) for line in written.getvalue().splitlines()]

    text = unescape(await page(site, "/evals/run", name="own.jsonl"))
    of_set = unescape(await page(site, "/evals/set", name="trips.evalset.json"))

    assert cases
    for each in cases:
        assert f"<bdi>{each['eval_id']}</bdi>" in text
        assert f"<bdi>{each['eval_id']}</bdi>" in of_set
    assert of_set.count("/evals/run?name=own.jsonl") == len(cases)


async def test_a_run_has_the_expected_beside_the_actual(site: Site) -> None:
    text = unescape(await page(site, "/evals/run", name="second.jsonl"))

    failed = text[text.index("<bdi>a</bdi>") :]
    assert failed.index("To Seoul.") < failed.index("To Busan.")
    assert '{"name":"find","args":{"day":"Friday"}}' in failed
    # A failed case comes before those that passed.
    assert text.index("<bdi>a</bdi>") < text.index("<bdi>b</bdi>")


async def test_two_runs_are_compared_case_by_case_with_regressions_first(site: Site) -> None:
    text = await page(site, "/evals/compare", first="first.jsonl", second="second.jsonl")

    rows = re.findall(r'<tr><td><span class="[^"]*">([\w ]+)</span></td><th scope="row"><bdi>(\w+)</bdi>', text)
    assert rows == [("regressed", "a"), ("fixed", "b"), ("same", "c"), ("only in the first", "gone")]
    assert "1 → 0.1" in text


async def test_the_commands_run_the_set_and_each_run_line(site: Site, folder: Path) -> None:
    text = unescape(await page(site, "/evals/set", name="trips.evalset.json"))

    file = folder / "trips.evalset.json"
    run = folder / "trips.2026-01-31.jsonl"
    assert f"<code>traceweir eval {file} --json > {run}</code>" in text
    assert f"<code>traceweir eval {file}:rebooking --json > {run}</code>" in text


@pytest.mark.parametrize(
    ("content", "has_secret", "has_text"), [("full", True, True), ("redacted", False, True), ("none", False, False)]
)
async def test_a_run_is_shown_as_much_as_is_configured_and_is_inert(
    content: Any, has_secret: bool, has_text: bool, site: Site, folder: Path
) -> None:
    texts: dict[str, Any] = {
        "prompt": f"I am {SECRET}",
        "actual_response": HOSTILE,
        "actual_tool_calls": [{"name": HOSTILE}],
    }
    (folder / "hostile.jsonl").write_bytes(run_line(HOSTILE, "FAILED", **texts))

    text = await page(replace(site, content=content), "/evals/run", name="hostile.jsonl")

    assert (SECRET in text, "I am " in text) == (has_secret, has_text)
    assert "<script>document" not in text
    assert "<img" not in text


@pytest.mark.parametrize(
    ("address", "name"),
    [("/evals/run", "../secret.jsonl"), ("/evals/set", "/etc/passwd"), ("/evals/run", "trips.sessions.jsonl")],
)
async def test_a_file_that_is_none_of_the_folder_is_not_found(
    address: str, name: str, site: Site, folder: Path
) -> None:
    (folder.parent / "secret.jsonl").write_bytes(run_line("a", "PASSED"))

    assert "has no" in await page(site, address, 404, name=name)


async def test_files_that_cannot_be_read_say_why(site: Site, folder: Path) -> None:
    (folder / "broken.evalset.json").write_text("{")
    (folder / "half.jsonl").write_bytes(run_line("a", "PASSED") + b'\n{"eval_id": 1}\n')

    text = unescape(await page(site, "/evals"))
    half = unescape(await page(site, "/evals/run", name="half.jsonl"))

    assert "is not JSON" in text
    assert "line 2 is no result of a case" in half
    assert "<bdi>a</bdi>" in half


async def test_without_a_folder_the_page_says_how_to_name_one(site: Site) -> None:
    bare = replace(site, evals=None)

    assert "TRACEWEIR_DASHBOARD_EVALS" in await page(bare, "/evals")
    assert "TRACEWEIR_DASHBOARD_EVALS" in await page(bare, "/evals/run", 404, name="x")


async def test_selected_sessions_become_cases_of_a_set_of_the_folder(site: Site, folder: Path) -> None:
    site.add_sessions(3)
    before = len(orjson.loads((folder / "trips.evalset.json").read_bytes())["eval_cases"])
    given = {"selected": [f"0,{session_id_of(n)}" for n in (1, 2)], "form": "evalset", "evalset": "trips.evalset.json"}
    transport = httpx.ASGITransport(site.application())
    async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:4180", headers=HEADERS) as client:
        answer = await client.post("/sessions/selection", data=given)
        refused = await client.post("/sessions/selection", data={**given, "evalset": "../x.evalset.json"})

    cases = orjson.loads((folder / "trips.evalset.json").read_bytes())["eval_cases"]
    assert answer.text.count(">added<") == 2
    assert [each["eval_id"] for each in cases[before:]] == [session_id_of(1), session_id_of(2)]
    assert refused.status_code == 422


def test_a_file_that_has_changed_is_read_again(folder: Path) -> None:
    evals = EvalFolder(folder)
    before = evals.run("first.jsonl")
    (folder / "first.jsonl").write_bytes(run_line("a", "FAILED", 0.1))
    after = evals.run("first.jsonl")

    assert before is not None
    assert after is not None
    assert (len(before.cases), len(after.cases)) == (4, 1)


def test_the_latest_runs_are_shown(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(eval_folder, "MAX_FILES", 1)

    assert [each.name for each in EvalFolder(folder).runs()] == ["second.jsonl"]

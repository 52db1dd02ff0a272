"""The page of one session shows it as far as is configured, with its scores and its commands."""

from __future__ import annotations

import shlex
from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson
import pytest
from tests.support.dashboard_pages import SESSION, Open, Tags, commands
from tests.support.dashboard_site import HOSTILE, SECRET, Site, session_id_of, session_of
from tests.support.results import make_score
from tests.support.scoring import NOW
from tests.support.stores import FakeRecord, batch_of, open_store

from traceweir.schemas.text import shell_command
from traceweir.streams.board.dashboard.content import Content
from traceweir.streams.board.store import sessions as sessions_module

pytestmark = pytest.mark.slow


async def test_hostile_text_is_shown_as_it_is(site: Site, visit: Open) -> None:
    answer = await visit(replace(site, content="full")).get(SESSION)

    assert "&lt;script&gt;document.title=&#39;owned&#39;&lt;/script&gt;" in answer.text
    assert "{{ 7 * 7 }} \\u202e" in answer.text


@pytest.mark.parametrize(
    ("content", "has_secret", "has_question"), [("full", True, True), ("redacted", False, True), ("none", False, False)]
)
async def test_a_session_is_shown_as_much_as_is_configured(
    content: Content, has_secret: bool, has_question: bool, site: Site, visit: Open
) -> None:
    page = (await visit(replace(site, content=content)).get(SESSION)).text

    assert (SECRET in page, "Two seats from Busan" in page) == (has_secret, has_question)
    assert ("TRACEWEIR_DASHBOARD_CONTENT=none" in page) == (content == "none")


async def test_a_session_page_has_calls_errors_scores_and_the_nearest_trace(site: Site, visit: Open) -> None:
    page = (await visit(replace(site, trace_url="http://127.0.0.1:16686/trace/{trace_id}")).get(SESSION)).text

    for text in (
        "book_seats",
        "error: sold out",
        "Two seats on KTX 127 are booked.",
        "outcome confidence",
        "not shared",
    ):
        assert text in page
    assert "<ins>one</ins><del>two</del>" in page
    assert commands(page) == [f"traceweir evalset add --to cases.evalset.json {session_id_of(0)}"]


@pytest.mark.parametrize("content", ["full", "redacted", "none"])
async def test_a_session_page_marks_the_turns_on_which_a_score_of_the_session_rests(
    content: Content, tmp_path: Path, visit: Open
) -> None:
    site = Site(open_store(tmp_path / "store.duckdb"), content=content)
    site.add_sessions(1)
    about: dict[str, Any] = {"level": "session", "invocation_id": None, "session_id": session_id_of(0)}
    for number, turns in enumerate((["1", "of no turn", HOSTILE], "1", [["1"]])):
        details = {"turns": turns}
        site.add(
            make_score(
                **about, metric=f"rating_{number}", result_id=f"rated-{number}", status="FAILED", details=details
            )
        )
    page = (await visit(site).get(SESSION)).text

    marks = [
        (attributes["href"], attributes["class"])
        for tag, attributes in Tags(page).found
        if tag == "a" and (attributes.get("href") or "").startswith("#rated-")
    ]
    assert marks == ([] if content == "none" else [("#rated-0", "s f")])
    assert ("rests on <bdi>1</bdi>, <bdi>of no turn</bdi>" in page) is (content != "none")
    assert not [tag for tag, _ in Tags(page).found if tag == "img"]


async def test_a_session_page_says_what_the_judge_did_not_read_and_which_category_it_chose(
    tmp_path: Path, visit: Open
) -> None:
    site = Site(open_store(tmp_path / "store.duckdb"), content="full")
    site.add_sessions(1)
    about: dict[str, Any] = {"session_id": session_id_of(0), "invocation_id": None}
    fitted = {"characters": 5_000, "shortened": {"tool_result": 12, "agent": 1}}
    site.add(make_score(**about, metric="user_frustration", category="resolved", value=1.0, details={"fitted": fitted}))
    responses = {"responses": [{"value": 1.0, "sentences": [], "fitted": fitted}, {"value": 1.0, "sentences": []}]}
    site.add(make_score(**about, metric="hallucinations_v1", value=1.0, details=responses))
    page = (await visit(site).get(SESSION)).text

    assert "<bdi>resolved</bdi>: " in page
    left_out = "5000 characters of 12 tool results, 1 message of the agent."
    assert page.count(f"Left out of the prompt to fit the judge's window: {left_out}") == 2


@pytest.mark.parametrize(
    ("content", "text", "details", "warned"),
    [
        ("full", "두 좌석을 예약했습니다.", {}, True),
        ("none", "두 좌석을 예약했습니다.", {}, False),
        ("full", "Two seats are booked.", {}, False),
        ("full", "Two seats are booked.", {"script": "Hangul"}, True),
        ("full", "Two seats are booked.", {"script": HOSTILE}, False),
    ],
)
async def test_a_session_page_warns_where_a_threshold_does_not_hold_in_the_language(
    content: Content, text: str, details: dict[str, Any], warned: bool, tmp_path: Path, visit: Open
) -> None:
    site = Site(open_store(tmp_path / "store.duckdb"), content=content)
    session = session_of(0, site.now, is_new=False)
    for event in session["events"]:
        for name in ("user_content", "final_response"):
            if name in event:
                event[name] = {"parts": [{"text": text}]}
    site.store.write(batch_of("sessions", FakeRecord(orjson.dumps(session))))
    about: dict[str, Any] = {"session_id": session_id_of(0), "invocation_id": "1", "metric": "response_match_score"}
    site.add(make_score(**about, threshold=0.8, details=details))
    page = (await visit(site).get(SESSION)).text

    assert ("In Korean, this threshold does not tell right answers from wrong ones" in page) is warned
    assert ("this threshold does not tell right answers from wrong ones" in page) is warned


@pytest.mark.parametrize(
    "session_id",
    [
        "'; touch owned #",
        "$(touch owned)`touch owned`",
        "-rf",
        "--help",
        "<b>&amp;'\"",
        "two  spaces\\",
        "y" * 1_024,
        "é 日本 🚉",
    ],
)
async def test_the_command_of_a_session_gives_its_whole_id_to_the_program(
    session_id: str, tmp_path: Path, visit: Open
) -> None:
    site = Site(open_store(tmp_path / "store.duckdb"), now=NOW, evalset=Path("my cases.evalset.json"))
    site.add(make_score(session_id))
    page = (await visit(site).get("/session", params={"session_id": session_id})).text
    (command,) = commands(page)
    *options, found = shlex.split(command)

    assert found == session_id
    assert options[:5] == ["traceweir", "evalset", "add", "--to", str(Path.cwd() / "my cases.evalset.json")]
    assert options[5:] == (["--"] if session_id.startswith("-") else [])


async def test_a_command_has_no_character_that_a_terminal_obeys(tmp_path: Path, visit: Open) -> None:
    session_id = "a\x1b[201~\r\ntouch owned\n\x03\u202e"
    site = Site(open_store(tmp_path / "store.duckdb"), now=NOW)
    site.add(make_score(session_id))
    (command,) = commands((await visit(site).get("/session", params={"session_id": session_id})).text)

    assert command == shell_command("traceweir", "evalset", "add", "--to", "cases.evalset.json", session_id)
    assert command.isprintable()


async def test_a_session_that_no_command_line_can_name_has_no_command(tmp_path: Path, visit: Open) -> None:
    site = Site(open_store(tmp_path / "store.duckdb"), now=NOW)
    site.add(make_score("a\0b"))
    page = (await visit(site).get("/session", params={"session_id": "a\0b"})).text

    assert "No command can name this session" in page
    assert commands(page) == []


async def test_a_case_with_other_content_is_replaced_by_the_command(site: Site, visit: Open) -> None:
    evalset = Path("/srv/cases.evalset.json")
    page = (await visit(replace(site, evalset=evalset)).get(f"{SESSION}&case=refused")).text

    assert commands(page) == [f"traceweir evalset add --to {evalset} --replace {session_id_of(0)}"]


async def test_a_page_of_a_long_session_says_what_it_leaves_out(
    tmp_path_factory: pytest.TempPathFactory, visit: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sessions_module, "MAX_RESULTS", 2)
    site = Site(open_store(tmp_path_factory.mktemp("long") / "store.duckdb"), now=NOW)
    site.add(*(make_score("long", value=0.1, segment=n, result_id=f"result-{n}") for n in range(5)))
    page = (await visit(site).get("/session?session_id=long")).text

    assert "3 earlier results are not shown" in page
    assert "replaced results are not shown" not in page

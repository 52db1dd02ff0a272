"""A person finds the way through the dashboard in a browser, with a mouse or with the keyboard alone."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Literal
from urllib.parse import parse_qs, urlsplit

import pytest
from tests.browser.conftest import DIGEST
from tests.support.dashboard_site import HOSTILE, Site, served, session_id_of
from tests.support.results import make_score
from tests.support.stores import open_store

from traceweir.streams.tools.doctor.finding import Finding

if TYPE_CHECKING:
    from pathlib import Path

    from playwright.sync_api import Page, Route

pytestmark = [pytest.mark.browser, pytest.mark.slow]

VIEWS = {
    "overview": "/",
    "alerts": "/alerts",
    "sessions": "/sessions",
    "session": f"/session?session_id={session_id_of(0)}",
    "metrics": "/metrics",
    "metric": "/metric?metric=tool_trajectory_avg_score",
    "not scored": "/not-scored",
    "dead letters": "/dead-letters",
    "compare": "/compare?first_agent_version=2.3.1&second_agent_version=2.4.0",
    "review": "/review?metric=hallucinations_v1&share=1",
    "worth a look": "/review?metric=hallucinations_v1&share=0.0001&stratum=flagged",
    "trust": "/trust?metric=hallucinations_v1",
    "feedback": "/feedback",
    "empty": "/?app_name=nobody",
    "evals": "/evals",
    "eval set": "/evals/set?name=trips.evalset.json",
    "eval run": "/evals/run?name=second.jsonl",
    "two runs": "/evals/compare?first=first.jsonl&second=second.jsonl",
    "config": f"/config?digest={DIGEST}",
    "problem": "/?span=2y",
}
TOKEN = "a-token-of-20-letters"


def test_a_new_score_appears_without_a_reload(page: Page, fresh: tuple[Site, str]) -> None:
    site, address = fresh
    page.goto(f"{address}/sessions?metric=response_match_score")
    page.evaluate("window.kept = true")
    page.get_by_role("link", name="first").wait_for()
    site.add(make_score("second"))
    site.tell()

    page.get_by_role("link", name="second").wait_for()
    assert page.evaluate("window.kept")


def test_a_score_that_is_stored_before_the_page_listens_appears(page: Page, fresh: tuple[Site, str]) -> None:
    site, address = fresh

    def store_first(route: Route) -> None:
        site.add(make_score("second"))
        route.continue_()

    page.route("**/assets/live.js", store_first)
    page.goto(f"{address}/sessions?metric=response_match_score")

    page.get_by_role("link", name="second").wait_for()


def test_what_is_under_the_pointer_stays_until_new_sessions_are_asked_for(page: Page, fresh: tuple[Site, str]) -> None:
    site, address = fresh
    page.goto(f"{address}/sessions?metric=response_match_score")
    page.get_by_role("link", name="first").hover()
    site.add(make_score("second"), make_score("third"))
    site.tell()

    button = page.get_by_role("button", name="2 new sessions: show")
    button.wait_for()
    assert page.get_by_role("link", name="second").count() == 0
    button.click()

    page.get_by_role("link", name="second").wait_for()
    assert not button.is_visible()


def test_a_chart_stays_in_its_place_with_new_figures_and_its_axis_is_the_span(
    page: Page, fresh: tuple[Site, str]
) -> None:
    site, address = fresh
    page.goto(address)
    page.locator(".chart canvas").first.wait_for()
    page.evaluate("window.canvas = document.querySelector('.chart canvas')")
    legend = page.locator(".u-legend").first
    assert "0 % of 1" in legend.inner_text()
    site.add(*(make_score(f"s{number}", value=1.0) for number in range(3)))
    site.tell()

    page.get_by_text("of 4").first.wait_for()
    assert page.evaluate("window.canvas === document.querySelector('.chart canvas') && window.canvas.isConnected")
    assert "75 % of 4" in page.locator(".u-legend").first.inner_text()


def test_a_time_is_shown_in_the_zone_of_the_browser_under_the_pointer(page: Page, fresh: tuple[Site, str]) -> None:
    _, address = fresh
    page.goto(f"{address}/metric?metric=response_match_score&since=2026-01-30T00:00Z&until=2026-02-01T00:00Z")
    time = page.locator("time").first
    time.hover()
    assert "UTC" in (time.get_attribute("title") or "")


def test_a_problem_of_the_feed_is_shown_and_goes_away(page: Page, fresh: tuple[Site, str]) -> None:
    site, address = fresh
    page.goto(address)
    site.state.problem = "topic 'traceweir.results' does not exist: run `traceweir topics create`"
    site.tell()
    page.get_by_text("run `traceweir topics create`").wait_for()
    site.state.problem = None
    site.tell()

    page.get_by_text("up to date").wait_for()
    assert not page.get_by_role("alert").is_visible()


def test_the_health_is_shown_changes_by_itself_and_is_inert(page: Page, fresh: tuple[Site, str]) -> None:
    site, address = fresh
    page.goto(address)
    health = page.get_by_role("list", name="Health")
    health.get_by_text("answered 1 s ago").wait_for()
    site.health = [Finding("workers", "failure", f"no worker runs the stage gate {HOSTILE}")]
    site.tell()

    health.get_by_text("no worker runs the stage gate").wait_for()
    page.get_by_text("not healthy").wait_for()
    assert health.get_by_role("listitem").count() == 1
    assert health.locator("script, img").count() == 0
    assert page.title() != "owned"


def test_from_the_overview_to_the_metric_to_the_session(page: Page, address: str) -> None:
    page.goto(address)
    page.get_by_role("region", name="Metrics").get_by_role("link", name="tool_trajectory_avg_score").first.click()
    page.get_by_role("heading", name="Worst").wait_for()
    worst = page.locator("section", has=page.get_by_role("heading", name="Worst")).get_by_role("link").first
    session = worst.inner_text()
    worst.click()

    page.get_by_text("Two seats on KTX 127 are booked.").wait_for()
    assert page.title().startswith(f"Session {session}")


def test_a_filter_is_set_kept_by_links_and_removed(page: Page, address: str) -> None:
    page.goto(address)
    page.get_by_text("+ filter").click()
    page.get_by_label("agent version").fill("2.3.1")
    page.get_by_role("button", name="Apply").click()
    page.get_by_role("navigation").get_by_role("link", name="Sessions").click()
    page.wait_for_url("**/sessions?*agent_version=2.3.1*")
    assert "2.4.0" not in page.get_by_role("region", name="Sessions").inner_text()
    page.get_by_title("Remove this filter").click()

    page.wait_for_url(lambda url: "agent_version" not in url)
    assert "2.4.0" in page.get_by_role("region", name="Sessions").inner_text()


def test_two_versions_are_compared(page: Page, address: str) -> None:
    page.goto(f"{address}/compare")
    fields = [page.get_by_role("group", name=side).get_by_label("agent version") for side in ("First", "Second")]
    assert [field.input_value() for field in fields] == ["2.3.1", "2.4.0"]
    fields[1].fill("2.3.1")
    page.get_by_role("button", name="Compare").click()
    page.get_by_text("Both sides are the same.").wait_for()
    fields[1].fill("2.4.0")
    page.get_by_role("button", name="Compare").click()

    row = page.get_by_role("region", name="Differences").get_by_role("row").filter(has_text="tool_trajectory")
    row.wait_for()
    assert re.search(r"−\d+\.\d points", row.inner_text())


def test_a_span_is_selected_by_dragging_in_the_chart(page: Page, address: str) -> None:
    page.goto(address)
    box = page.locator(".chart[data-brush] .u-over").first.bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + box["width"] * 0.4, box["y"] + 50)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * 0.7, box["y"] + 60, steps=5)
    page.mouse.up()

    page.wait_for_url("**/?since=*")
    assert set(parse_qs(urlsplit(page.url).query)) == {"since", "until"}
    page.get_by_text(" to ").first.wait_for()
    assert page.get_by_role("region", name="Metrics").is_visible()


def test_hostile_text_is_shown_and_does_nothing(page: Page, address: str) -> None:
    page.goto(f"{address}/session?session_id={session_id_of(0)}")

    assert "<script>document.title='owned'</script>" in page.locator(".turn").first.inner_text()
    assert "owned" not in page.title()
    assert page.locator("main img, main script").count() == 0


def test_an_empty_store_says_the_next_command(page: Page, tmp_path: Path) -> None:
    with served(Site(open_store(tmp_path / "store.duckdb"))) as address:
        page.goto(address)

        assert "traceweir up --demo" in page.locator("main").inner_text()


def test_the_token_opens_the_pages(page: Page, tmp_path: Path) -> None:
    with served(Site(open_store(tmp_path / "store.duckdb"), token=TOKEN)) as address:
        answer = page.goto(f"{address}/sessions")
        assert answer is not None
        assert answer.status == 401
        page.get_by_label("token").fill("something-else-20-letters")
        page.get_by_role("button", name="Open").click()
        page.get_by_text("This is not the token.").wait_for()
        page.get_by_label("token").fill(TOKEN)
        page.get_by_role("button", name="Open").click()

        # The address that was asked for is shown, and not the overview.
        page.get_by_text("No session matches.").wait_for()
        assert page.url == f"{address}/sessions"
        page.get_by_text("up to date").wait_for()  # the stream of events has the cookie too


def test_selected_rows_are_kept_while_scores_arrive_and_become_a_file(page: Page, fresh: tuple[Site, str]) -> None:
    site, address = fresh
    page.goto(f"{address}/sessions?metric=response_match_score")
    page.get_by_label("Select session first").check()
    page.get_by_role("heading", name="1 session").click()
    site.add(make_score("second"))
    site.tell()
    page.get_by_text("up to date").wait_for()
    with page.expect_download() as found:
        page.get_by_role("button", name="CSV").click()

    assert found.value.suggested_filename == "sessions.csv"
    assert '"first"' in found.value.path().read_text()


def test_the_keyboard_alone_selects_a_session_and_shows_the_call_of_the_api(page: Page, address: str) -> None:
    page.goto(f"{address}/sessions?status=FAILED")
    page.get_by_label("rationale").focus()
    chosen = ""
    for _ in range(20):
        page.keyboard.press("Tab")
        chosen = page.evaluate("document.activeElement.getAttribute('aria-label') ?? ''")
        if chosen.startswith("Select session"):
            break
    page.keyboard.press("Space")
    for _ in range(200):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.textContent") == "API call":
            break
    page.keyboard.press("Enter")

    page.get_by_text("curl -s").first.wait_for()
    assert chosen.removeprefix("Select session ") in page.locator("main").inner_text()


def test_a_view_is_saved_opened_and_removed(page: Page, address: str) -> None:
    page.goto(f"{address}/sessions?status=FAILED&agent_version=2.4.0")
    page.get_by_text("Views", exact=True).click()
    page.get_by_label("name", exact=True).fill("new failures")
    page.get_by_role("button", name="Save this view").click()
    page.goto(address)
    page.get_by_text("Views", exact=True).click()
    page.get_by_role("link", name="new failures").click()
    page.wait_for_url("**/sessions?status=FAILED&agent_version=2.4.0")
    page.get_by_text("Views", exact=True).click()
    page.get_by_role("button", name="Remove the view new failures").click()

    page.get_by_text("Views", exact=True).click()
    assert page.get_by_role("link", name="new failures").count() == 0


def test_a_facet_narrows_the_list(page: Page, address: str) -> None:
    page.goto(f"{address}/sessions?status=FAILED")
    page.get_by_text("Narrow down").click()
    page.get_by_role("link", name="book_seats").last.click()
    page.get_by_title("Remove this condition").wait_for()

    assert "tool_error=book_seats" in page.url


def test_the_keyboard_alone_reaches_a_session(page: Page, address: str) -> None:
    page.goto(address)
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to the content"
    for _ in range(80):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.textContent").startswith("rail-"):
            break
    page.keyboard.press("Enter")

    page.wait_for_url("**/session?session_id=rail-*")


@pytest.mark.parametrize("width", [360, 1280, 3840])
@pytest.mark.parametrize("view", VIEWS)
def test_no_view_is_wider_than_the_screen(view: str, width: int, page: Page, address: str) -> None:
    page.set_viewport_size({"width": width, "height": 900})
    page.goto(address + VIEWS[view])

    assert page.evaluate("document.documentElement.scrollWidth") <= width


@pytest.mark.parametrize("view", VIEWS)
def test_no_column_is_cut_on_a_phone(view: str, page: Page, address: str) -> None:
    page.set_viewport_size({"width": 390, "height": 844})
    page.goto(address + VIEWS[view])
    page.evaluate("document.querySelectorAll('details').forEach((each) => { each.open = true; })")

    cut = page.evaluate(
        "[...document.querySelectorAll('.scroll, table')].filter((each) => each.scrollWidth > each.clientWidth + 1)"
        ".map((each) => `${each.className} ${each.getAttribute('aria-label')} ${each.scrollWidth} ${each.clientWidth}`)"
    )
    assert cut == []


def test_a_session_begins_with_its_status_and_its_id_on_a_phone(page: Page, address: str) -> None:
    page.set_viewport_size({"width": 390, "height": 844})
    page.goto(f"{address}/sessions?status=FAILED")

    row = page.get_by_role("region", name="Sessions").locator("tbody tr").first
    assert re.match(r"failed\s+rail-\d+", row.inner_text().strip())
    box = row.bounding_box()
    assert box is not None
    # The list is before the form that narrows it.
    assert box["y"] < 500


def test_the_result_of_a_comparison_is_before_its_form_on_a_phone(page: Page, address: str) -> None:
    page.set_viewport_size({"width": 390, "height": 844})
    page.goto(address + VIEWS["compare"])

    result = page.locator("#differences").bounding_box()
    form = page.get_by_role("group", name="First").bounding_box()
    assert result is not None
    assert form is not None
    assert result["y"] < form["y"]


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("view", VIEWS)
def test_axe_finds_nothing_serious(view: str, scheme: Literal["light", "dark"], page: Page, address: str) -> None:
    page.emulate_media(color_scheme=scheme)
    page.goto(address + VIEWS[view])

    assert serious_findings(page) == []


@pytest.mark.parametrize("action", ["Eval set", "API call"])
def test_axe_finds_nothing_serious_in_what_is_selected(action: str, page: Page, address: str) -> None:
    page.goto(f"{address}/sessions")
    page.get_by_label("all on this page").check()
    page.get_by_role("button", name=action).click()
    page.get_by_role("link", name="To the sessions").wait_for()

    assert serious_findings(page) == []


def test_axe_finds_nothing_serious_in_the_login(page: Page, tmp_path: Path) -> None:
    with served(Site(open_store(tmp_path / "store.duckdb"), token=TOKEN)) as address:
        page.goto(address)

        assert serious_findings(page) == []


def serious_findings(page: Page) -> list[tuple[str, list[str]]]:
    """Returns what axe finds that is serious or critical: each rule with the elements that break it."""
    axe = pytest.importorskip("axe_core_python.sync_playwright", reason="needs axe-core: run `make test-browser`").Axe()
    found = axe.run(page)["violations"]
    serious = [each for each in found if each["impact"] in ("serious", "critical")]
    return [(each["id"], [node["html"] for node in each["nodes"]][:3]) for each in serious]


def test_a_chart_has_its_figures_as_a_table(page: Page, address: str) -> None:
    page.goto(address)
    page.get_by_text("Figures as a table").first.click()

    assert page.get_by_role("region", name="Figures of the chart").get_by_role("row").count() > 5

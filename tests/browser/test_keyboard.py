"""The pages Review and Trust are used with the keyboard alone, on a wide screen and on a phone's."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest
from tests.browser.test_review import REVIEW, wait_for_progress
from tests.support.dashboard_site import served
from tests.support.labelled_scores import site_of, story

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = [pytest.mark.browser, pytest.mark.slow]

SIZES = [pytest.param(1440, 900, id="wide"), pytest.param(390, 844, id="phone")]
FOCUSABLE = "a[href], button, input:not([type=hidden]), select, textarea, summary, [tabindex='0']"
STATE = f"""() => {{
  const all = [...document.querySelectorAll("{FOCUSABLE}")];
  const stops = all.filter((each) => !each.disabled && each.checkVisibility({{checkVisibilityCSS: true}}));
  const at = document.activeElement;
  const box = at.getBoundingClientRect();
  return {{
    count: stops.length,
    place: stops.indexOf(at),
    html: at.outerHTML.slice(0, 120),
    isMarked: getComputedStyle(at).outlineStyle !== "none",
    isInView: box.bottom > 0 && box.top < innerHeight && box.right > 0 && box.left < innerWidth,
  }};
}}"""


def focus(page: Page) -> dict[str, Any]:
    found: dict[str, Any] = page.evaluate(STATE)
    return found


def tab_to(page: Page, selector: str) -> None:
    """Presses Tab until an element has the focus."""
    target = page.locator(selector)
    for _ in range(focus(page)["count"] + 1):
        if target.evaluate_all("found => found.includes(document.activeElement)"):
            return
        page.keyboard.press("Tab")
    pytest.fail(f"Tab does not lead to {selector}")


@pytest.fixture(scope="module")
def trusted(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Yields the address of a dashboard with a judge that people have labelled."""
    site = site_of(tmp_path_factory.mktemp("trusted"), *story(200, 100))
    with served(site) as address:
        yield address


@pytest.mark.parametrize(("width", "height"), SIZES)
@pytest.mark.parametrize("view", ["review", "trust"])
def test_tab_leads_to_each_control_in_order_and_shows_where_it_is(
    view: str, width: int, height: int, page: Page, address: str, trusted: str
) -> None:
    page.set_viewport_size({"width": width, "height": height})
    page.goto(f"{address}{REVIEW}&annotator=order" if view == "review" else f"{trusted}/trust?metric=helpful")
    count = focus(page)["count"]
    assert count > 20
    for place in range(count):
        page.keyboard.press("Tab")
        found = focus(page)
        assert found["place"] == place, found
        assert found["isMarked"], found
        assert found["isInView"], found
    assert page.evaluate("document.documentElement.scrollWidth") <= width


@pytest.mark.parametrize(("width", "height"), SIZES)
def test_a_review_needs_no_mouse_from_the_choice_of_the_criterion_to_the_last_undo(
    width: int, height: int, page: Page, address: str
) -> None:
    page.set_viewport_size({"width": width, "height": height})
    page.goto(f"{address}/review?share=0.2")
    tab_to(page, "select[name=metric]")
    page.keyboard.type("hall")
    tab_to(page, "input[name=annotator]")
    page.keyboard.type(f"person {width}")
    page.keyboard.press("Enter")
    page.wait_for_url("**metric=hallucinations_v1*")
    said = page.locator("#given")

    tab_to(page, "button[data-key='2']")
    page.keyboard.press("n")
    page.keyboard.type("wrong train")
    page.keyboard.press("Escape")
    page.keyboard.press("1")
    wait_for_progress(page, 1)
    assert "you pass wrong train" in " ".join(said.inner_text().split())

    tab_to(page, "button[data-key='2']")
    page.keyboard.press("Enter")
    wait_for_progress(page, 2)
    assert "you fail" in said.inner_text()

    tab_to(page, "button[data-key='u']")
    page.keyboard.press("Space")
    wait_for_progress(page, 1)
    page.keyboard.press("s")
    page.get_by_text("1 passed over").wait_for()

    tab_to(page, "a.chip:has-text('Worth a look')")
    page.keyboard.press("Enter")
    page.wait_for_url("**stratum=flagged*")
    page.keyboard.press("3")
    page.locator("#progress", has_text=re.compile(r"Worth a look: 1 of")).wait_for()
    tab_to(page, "a:has-text('What the labels say about the judge')")
    page.keyboard.press("Enter")
    page.wait_for_url("**/trust?*")


@pytest.mark.parametrize(("width", "height"), SIZES)
def test_a_disagreement_is_opened_with_the_keyboard_alone(width: int, height: int, page: Page, trusted: str) -> None:
    page.set_viewport_size({"width": width, "height": height})
    page.goto(f"{trusted}/trust?metric=helpful")
    tab_to(page, "summary:has-text('disagreements')")
    page.keyboard.press("Enter")
    first = page.locator("details[open] ul.changes a").first
    session = first.inner_text()
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    page.wait_for_url(f"**/session?session_id={session}*")

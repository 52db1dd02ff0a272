"""A person labels sessions with the keyboard alone, and sees the judge's verdict only afterwards."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Literal

import pytest
from tests.browser.test_dashboard import serious_findings

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = [pytest.mark.browser, pytest.mark.slow]

REVIEW = "/review?metric=hallucinations_v1&share=0.2"


def progress(page: Page) -> int:
    found = re.match(r"(\d+) of", page.locator("#progress").inner_text())
    assert found is not None
    return int(found[1])


def wait_for_progress(page: Page, done: int) -> None:
    # A condition in JavaScript would be evaluated in the page, whose policy forbids it.
    page.locator("#progress", has_text=re.compile(rf"^\s*{done} of")).wait_for()


def test_the_keyboard_alone_labels_three_and_undoes_one(page: Page, address: str) -> None:
    page.goto(f"{address}{REVIEW}&annotator=keyboard")
    subjects = []
    for done, key in enumerate(("1", "2", "3"), 1):
        item = page.locator("#item")
        subjects.append(item.locator(".mono").first.inner_text())
        assert "supported by results" not in page.locator("main").inner_text().split("to judge", 1)[-1]
        page.keyboard.press(key)
        page.wait_for_url("**given=*")
        wait_for_progress(page, done)
        given = page.locator("#given").inner_text()
        assert ("you " + {"1": "pass", "2": "fail", "3": "unsure"}[key]) in given
        assert re.search(r"(passed|failed) [\d.]+, needs 0.8", given)
    assert "1 of them unsure" in page.locator("#progress").inner_text()

    page.keyboard.press("u")
    wait_for_progress(page, 2)
    assert progress(page) == 2


def test_keys_are_letters_in_the_note_and_the_note_is_kept(page: Page, address: str) -> None:
    page.goto(f"{address}{REVIEW}&annotator=notes")
    page.keyboard.press("n")
    page.keyboard.type("123 su")
    assert progress(page) == 0
    assert page.get_by_role("textbox", name="why, if you like").input_value() == "123 su"
    page.keyboard.press("Escape")
    page.keyboard.press("2")
    page.wait_for_url("**given=*")
    assert "123 su" in page.locator("#given").inner_text()


def test_passing_over_leads_on_and_back(page: Page, address: str) -> None:
    page.goto(f"{address}{REVIEW}&annotator=skips")
    first = page.locator("#item .mono").nth(1).inner_text()
    page.keyboard.press("s")
    page.wait_for_url("**after=*")
    assert page.locator("#item .mono").nth(1).inner_text() != first
    assert "1 passed over" in page.locator("#progress").inner_text()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_given_label_fits_on_a_phone_and_axe_finds_nothing(
    scheme: Literal["light", "dark"], page: Page, address: str
) -> None:
    page.set_viewport_size({"width": 390, "height": 844})
    page.emulate_media(color_scheme=scheme)
    page.goto(f"{address}{REVIEW}&annotator={scheme}")
    page.get_by_role("button", name="Pass").click()
    page.wait_for_url("**given=*")
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    assert serious_findings(page) == []

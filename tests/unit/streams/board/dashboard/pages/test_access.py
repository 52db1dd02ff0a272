"""Who may see the pages, and what another site can send."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest
from tests.support.dashboard_pages import TOKEN, Open, Tags
from tests.support.dashboard_site import Site

from traceweir.streams.board.dashboard.access import COOKIE

pytestmark = pytest.mark.slow


async def test_without_the_token_pages_ask_for_it_and_the_api_refuses(site: Site, visit: Open) -> None:
    client = visit(replace(site, token=TOKEN))
    page, api = await client.get("/sessions"), await client.get("/api/overview", headers={"accept": "*/*"})

    assert (page.status_code, "Token needed" in page.text, "rail" in page.text) == (401, True, False)
    assert (api.status_code, api.json()["detail"][:12]) == (401, "the token is")
    assert (await client.get("/assets/style.css")).status_code == 200


async def test_a_wrong_token_is_refused_and_the_right_one_opens_the_pages(site: Site, visit: Open) -> None:
    client = visit(replace(site, token=TOKEN))
    wrong = await client.post("/login", data={"token": TOKEN[:-1]})
    right = await client.post("/login", data={"token": TOKEN})

    assert (wrong.status_code, "This is not the token." in wrong.text, wrong.headers.get("set-cookie")) == (
        401,
        True,
        None,
    )
    assert (right.status_code, right.headers["location"]) == (303, "/")
    assert TOKEN not in right.headers["set-cookie"]
    assert {"HttpOnly", "SameSite=strict"} <= set(right.headers["set-cookie"].split("; "))
    assert (await client.get("/sessions")).status_code == 200
    client.cookies.set(COOKIE, "forged", domain="127.0.0.1")
    assert (await visit(replace(site, token=TOKEN), cookie=f"{COOKIE}=forged").get("/sessions")).status_code == 401


async def test_a_form_of_a_page_without_the_token_is_answered_by_the_login(site: Site, visit: Open) -> None:
    client = visit(replace(site, token=TOKEN))
    wrong = await client.post("/views/save", data={"token": TOKEN[:-1]})
    right = await client.post("/views/save", data={"token": TOKEN})

    assert (wrong.status_code, "This is not the token." in wrong.text) == (401, True)
    assert (right.status_code, right.headers["location"]) == (303, "/")


async def test_dashboards_of_one_process_know_their_own_tokens_and_their_own_clock(site: Site, visit: Open) -> None:
    other = replace(site, token="another-token-of-30-letters-xx", now=site.now + timedelta(days=400))
    first, second = visit(replace(site, token=TOKEN)), visit(other)
    assert (await second.post("/login", data={"token": TOKEN})).status_code == 401
    for client, token in ((first, TOKEN), (second, other.token)):
        assert (await client.post("/login", data={"token": token})).status_code == 303
    figures = [(await each.get("/api/v1/overview")).json()["metrics"] for each in (first, second)]
    assert [bool(each) for each in figures] == [True, False]


@pytest.mark.parametrize(
    ("address", "leads_to"),
    [
        ("/sessions?metric=a%20b&status=FAILED", "/sessions?metric=a%20b&status=FAILED"),
        ("/session?session_id=%F0%9F%9A%89%2F%3F", "/session?session_id=%F0%9F%9A%89%2F%3F"),
        ("/metrics", "/metrics"),
    ],
)
async def test_after_the_login_the_address_that_was_shared_is_opened(
    address: str, leads_to: str, site: Site, visit: Open
) -> None:
    client = visit(replace(site, token=TOKEN))
    asked = (await client.get(address)).text
    (hidden,) = [each for tag, each in Tags(asked).found if tag == "input" and each.get("name") == "address"]
    wrong = (await client.post("/login", data={"token": "x", "address": hidden["value"] or ""})).text
    (kept,) = [each for tag, each in Tags(wrong).found if tag == "input" and each.get("name") == "address"]
    right = await client.post("/login", data={"token": TOKEN, "address": kept["value"] or ""})

    assert (right.status_code, right.headers["location"]) == (303, leads_to)


@pytest.mark.parametrize(
    "address", ["https://evil.example/", "//evil.example/", "/\\evil.example", "/%0a\n/x", "javascript:1"]
)
async def test_the_login_leads_to_no_other_site(address: str, site: Site, visit: Open) -> None:
    client = visit(replace(site, token=TOKEN))
    right = await client.post("/login", data={"token": TOKEN, "address": address})

    assert right.headers["location"] == "/"


@pytest.mark.parametrize("headers", [{"origin": "http://evil.example"}, {"sec-fetch-site": "cross-site"}])
async def test_a_page_of_another_site_can_send_nothing(headers: dict[str, str], site: Site, visit: Open) -> None:
    answer = await visit(replace(site, token=TOKEN), **headers).post("/login", data={"token": TOKEN})

    assert (answer.status_code, answer.json()["detail"][:22]) == (403, "a page of another site")

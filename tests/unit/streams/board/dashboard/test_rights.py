"""Every route of the API and the pages needs a right, and no page of another site can change anything through one."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Callable
from typing import Any, get_args

import httpx
import pytest
from fastapi.routing import iter_route_contexts
from tests.support.dashboard_site import Site
from tests.support.scoring import NOW
from tests.support.stores import open_store

from traceweir.streams.board.dashboard.access import (
    COOKIE,
    FOR_FEEDBACK,
    FOR_LABEL,
    LOGIN,
    KnownClient,
    Right,
    Tokens,
    digest_of,
    guarded,
)
from traceweir.streams.board.dashboard.application import create_application
from traceweir.streams.board.dashboard.application import routes as routes_of_dashboards
from traceweir.streams.board.dashboard.context import Dashboard, DashboardOptions
from traceweir.streams.board.dashboard.live import Live

pytestmark = pytest.mark.slow

READ, LABEL, ADMIN = (f"a-token-for-{right}" for right in ("read", "label", "admin"))
FEEDBACK = "a-token-for-feedback"
TOKENS = Tokens(admin=ADMIN, label=LABEL, read=READ, feedback=FEEDBACK)
NAMED = Tokens(
    named=tuple(KnownClient(f"a {right}", right, digest_of(f"the-named-{right}-token")) for right in get_args(Right))
)
CHANGING = {
    ("POST", "/api/v1/case"): "label",
    ("POST", "/api/v1/labels"): "label",
    ("POST", "/api/v1/feedback"): "feedback",
    ("POST", "/review/label"): "label",
    ("POST", "/review/withdraw"): "label",
    ("POST", "/session/case"): "label",
    ("POST", "/sessions/selection"): "label",
    ("POST", "/views"): "label",
    ("POST", "/views/remove"): "label",
}
"""The routes that change something, and the right that each needs. A new one is named here."""
READING = ("GET", "HEAD", "OPTIONS")
OF_OTHERS = (
    {"origin": "http://evil.example"},
    {"origin": "null"},
    {"origin": "http://127.0.0.1:4181"},
    {"sec-fetch-site": "cross-site"},
    {"sec-fetch-site": "same-site"},
)
Ask = Callable[..., Any]


@pytest.fixture(scope="module")
def dashboard(tmp_path_factory: pytest.TempPathFactory) -> Dashboard:
    site = Site(open_store(tmp_path_factory.mktemp("store") / "store.duckdb"), now=NOW)
    return Dashboard(site.store, DashboardOptions(lambda: site.state, "full", lambda: NOW), Live())


@pytest.fixture
async def ask(dashboard: Dashboard) -> AsyncIterator[Ask]:
    application = create_application(dashboard, TOKENS)
    transport = httpx.ASGITransport(application)
    async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:4180") as client:

        async def status(method: str, path: str, token: str | None = None, **headers: str) -> int:
            if token is not None:
                headers["authorization"] = f"Bearer {token}"
            return (await client.request(method, path, headers=headers)).status_code

        yield status


def routes() -> set[tuple[str, str]]:
    """Returns the method and the path of each route, without the login, which has to let everyone in."""
    found: set[tuple[str, str]] = set()
    for each in iter_route_contexts(routes_of_dashboards(with_login=True).routes):
        # The assets are mounted, and are the same for everyone.
        methods = each.methods or ()
        found.update((method, each.path) for method in methods if each.path and each.path != LOGIN)
    return found


def test_the_routes_that_change_something_are_known(dashboard: Dashboard) -> None:
    found = routes()

    assert len(found) > 30
    assert {(method, path) for method, path in found if method not in READING} == set(CHANGING)
    allowed = {re.sub(r"^/api/(?!v1/)", "/api/v1/", path) for path in (*FOR_LABEL, *FOR_FEEDBACK)}
    assert allowed == {path for _, path in CHANGING}


async def test_every_route_is_refused_without_a_token(dashboard: Dashboard, ask: Ask) -> None:
    for method, path in sorted(routes()):
        assert await ask(method, path) == 401, (method, path)
        assert await ask(method, path, "a-token-of-nobody") == 401, (method, path)


async def test_every_route_that_changes_something_is_refused_without_its_right(ask: Ask) -> None:
    for (method, path), right in CHANGING.items():
        assert await ask(method, path, READ) == 403, path
        assert (await ask(method, path, LABEL) == 403) is (right == "admin"), path
        assert await ask(method, path, ADMIN) not in (401, 403, 404, 405), path


async def test_a_token_for_feedback_sends_feedback_and_nothing_else(dashboard: Dashboard, ask: Ask) -> None:
    for method, path in sorted(routes()):
        refused = await ask(method, path, FEEDBACK) == 403
        assert refused is ((method, path) != ("POST", "/api/v1/feedback")), (method, path)


async def test_an_unknown_change_needs_admin(ask: Ask) -> None:
    for method in ("POST", "PUT", "PATCH", "DELETE"):
        for path in ("/views/", "/sessions", "/api/v1/new", "/views/remove/all"):
            assert await ask(method, path, LABEL) == 403, (method, path)


async def test_a_token_with_a_name_has_its_right_as_the_token_of_that_right(dashboard: Dashboard, ask: Ask) -> None:
    of_right = {"read": READ, "label": LABEL, "admin": ADMIN, "feedback": FEEDBACK}
    transport = httpx.ASGITransport(create_application(dashboard, NAMED))
    async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:4180") as client:
        for method, path in [("GET", "/api/v1/labels"), *sorted(CHANGING)]:
            for right in get_args(Right):
                named = {"authorization": f"Bearer the-named-{right}-token"}
                got = (await client.request(method, path, headers=named)).status_code
                assert got == await ask(method, path, of_right[right]), (path, right)
            digest = {"authorization": f"Bearer {NAMED.named[0].digest}"}
            for headers in ({"authorization": "Bearer the-named-label-tokem"}, {"authorization": "Bearer "}, digest):
                assert (await client.request(method, path, headers=headers)).status_code == 401, (path, headers)


async def test_the_digest_of_an_empty_or_short_token_lets_nobody_in(dashboard: Dashboard) -> None:
    for token in ("", "short"):
        tokens = Tokens(named=(KnownClient("ana", "admin", digest_of(token)),))
        transport = httpx.ASGITransport(create_application(dashboard, tokens))
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:4180") as client:
            for headers in ({}, {"authorization": f"Bearer {token}"}, {"cookie": f"{COOKIE}="}):
                assert (await client.get("/api/v1/labels", headers=headers)).status_code == 401, headers


async def test_the_login_takes_a_token_with_a_name_and_no_digest_makes_its_cookie(dashboard: Dashboard) -> None:
    transport = httpx.ASGITransport(create_application(dashboard, NAMED))
    async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:4180") as client:
        wrong = await client.post(LOGIN, data={"token": NAMED.named[1].digest})
        right = await client.post(LOGIN, data={"token": "the-named-read-token"})
        assert (wrong.status_code, right.status_code) == (401, 303)
        assert (await client.get("/api/v1/labels")).status_code == 200
    # The same file after a restart, which the cookie does not outlive.
    again = KnownClient("a read", "read", NAMED.named[1].digest)
    assert len({each.cookie for each in (*NAMED.named, again)}) == 5


@pytest.mark.parametrize("tokens", [TOKENS, Tokens()], ids=["with tokens", "without a token"])
async def test_no_page_of_another_site_changes_anything_through_any_route(dashboard: Dashboard, tokens: Tokens) -> None:
    reached = []

    async def application(scope: Any, receive: Any, send: Any) -> None:
        reached.append((scope["method"], scope["path"]))
        await send({"type": "http.response.start", "status": 204, "headers": []})
        await send({"type": "http.response.body", "body": b""})

    changing = [each for each in sorted(routes()) if each[0] not in READING] + [("POST", LOGIN)]
    transport = httpx.ASGITransport(guarded(application, tokens))
    async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:4180") as client:
        for method, path in changing:
            for headers in OF_OTHERS:
                sent = {**headers, "authorization": f"Bearer {ADMIN}"}
                answer = await client.request(method, path, headers=sent)
                assert answer.status_code == 403, (path, headers)
        assert reached == []
        for method, path in changing:
            sent = {
                "origin": "http://127.0.0.1:4180",
                "sec-fetch-site": "same-origin",
                "authorization": f"Bearer {ADMIN}",
            }
            assert (await client.request(method, path, headers=sent)).status_code == 204
    assert reached == changing

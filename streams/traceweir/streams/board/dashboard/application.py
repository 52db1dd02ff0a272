"""Puts the API, the pages, their assets and the login together."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated

from fastapi import Form, Request, Response
from fastapi.middleware.gzip import GZipMiddleware
from fastapi.responses import RedirectResponse
from fastapi.staticfiles import StaticFiles

from traceweir.streams.board.dashboard import page
from traceweir.streams.board.dashboard.access import ASSETS, COOKIE, LOGIN, Application, cookie_value, guarded, is_token
from traceweir.streams.board.dashboard.api import create_api
from traceweir.streams.board.dashboard.cases import CaseAdded
from traceweir.streams.board.dashboard.feed import FeedState
from traceweir.streams.board.dashboard.live import Live
from traceweir.streams.board.dashboard.page.rendering import login_page
from traceweir.streams.board.dashboard.page.routes import PageOptions, added_case, page_routes
from traceweir.streams.board.store.selection import Readable

COOKIE_LASTS_S = 12 * 3600
"""Seconds after which a browser has to send the token again."""
ASSETS_CACHED_S = 3600
_COMPRESSED_FROM_BYTES = 1_000


class _Assets(StaticFiles):
    """Lets browsers keep the assets for a while."""

    def file_response(self, *args: object, **kwargs: object) -> Response:
        answer = super().file_response(*args, **kwargs)  # type: ignore[arg-type]
        answer.headers["cache-control"] = f"private, max-age={ASSETS_CACHED_S}"
        return answer


def create_application(
    store: Readable, state: Callable[[], FeedState], live: Live, options: PageOptions, token: str | None
) -> Application:
    """Returns the ASGI application of the dashboard.

    Args:
        store: Answers the questions.
        state: Returns the state of the feed.
        live: Tells when the store has changed.
        options: How the pages look.
        token: What clients have to send; None lets every client of this machine in.
    """
    application = create_api(
        store,
        state,
        content=options.content,
        now=options.now,
        live=live,
        budget=options.budget,
        challengers=options.challengers,
        health=options.health,
    )
    application.include_router(page_routes(store, options))

    @application.post("/api/case", response_model=CaseAdded)
    def add_case(session_id: Annotated[str, Form(min_length=1, max_length=1_024)]) -> CaseAdded:
        """Adds a session to the eval set that TRACEWEIR_DASHBOARD_EVALSET names, as a case with the conversation verbatim."""
        return added_case(store, session_id, options.evalset, options.content)

    application.mount(ASSETS.rstrip("/"), _Assets(directory=Path(page.__file__).parent / "assets"))
    if token is not None:

        @application.get(LOGIN, include_in_schema=False)
        async def ask_for_token(request: Request) -> Response:
            return login_page(401 if "traceweir.refused" in request.scope else 200, wrong=False)

        @application.post(LOGIN, include_in_schema=False)
        async def let_in(request: Request, given: Annotated[str, Form(alias="token", max_length=10_000)]) -> Response:
            if not is_token(given, token):
                return login_page(401, wrong=True)
            answer = RedirectResponse("/", 303)
            answer.set_cookie(
                COOKIE, cookie_value(token), COOKIE_LASTS_S,
                httponly=True, samesite="strict", secure=request.url.scheme == "https",
            )  # fmt: skip
            return answer

    application.add_middleware(GZipMiddleware, minimum_size=_COMPRESSED_FROM_BYTES)
    return guarded(application, token)

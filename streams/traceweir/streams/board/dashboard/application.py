"""Puts the API, the pages, their assets and the login together."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from functools import cache
from pathlib import Path
from time import monotonic
from typing import Annotated, Any

from fastapi import FastAPI, Form, Request, Response
from fastapi.middleware.gzip import GZipMiddleware
from fastapi.responses import RedirectResponse
from fastapi.staticfiles import StaticFiles

from traceweir.streams.board.dashboard import page
from traceweir.streams.board.dashboard.access import (
    ASSETS,
    COOKIE,
    LOGIN,
    TOKENS,
    Application,
    Tokens,
    client_of_token,
    guarded,
)
from traceweir.streams.board.dashboard.addresses import is_local
from traceweir.streams.board.dashboard.api.building import create_api
from traceweir.streams.board.dashboard.context import Dashboard
from traceweir.streams.board.dashboard.page.rendering import login_page
from traceweir.streams.board.dashboard.page.routers.all_pages import page_router
from traceweir.streams.board.dashboard.shared_answers import SharedAnswers
from traceweir.streams.board.dashboard.turns import AnswerTurns

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
    dashboard: Dashboard,
    tokens: Tokens,
    state: Callable[[], Hashable] | None = None,
    clock: Callable[[], float] = monotonic,
) -> Application:
    """Returns the ASGI application of the dashboard.

    Args:
        dashboard: Answers the requests.
        tokens: What clients have to send; without one, every client of this machine is let in.
        state: Returns from what answers follow beside their addresses, so that one is computed once for all who ask;
            None: each request is computed.
        clock: Returns the seconds of a clock that never goes back: answers are kept for a while.
    """
    application: Any = dashboard.serving(routes(with_login=bool(tokens)))
    if state is None:
        return guarded(application, tokens)
    shared: Any = SharedAnswers(application, state, AnswerTurns(), clock, asked=dashboard.live.note_request)
    return guarded(shared, tokens)


@cache
def routes(*, with_login: bool) -> FastAPI:
    """Returns the routes of the API, the pages, their assets and the login, which let everyone in.

    All dashboards of a process share them: FastAPI takes half a second to build them and to answer the first requests.
    """
    application = create_api()
    application.include_router(page_router())
    application.mount(ASSETS.rstrip("/"), _Assets(directory=Path(page.__file__).parent / "assets"))
    application.add_middleware(GZipMiddleware, minimum_size=_COMPRESSED_FROM_BYTES)
    if with_login:

        @application.get(LOGIN, include_in_schema=False)
        async def ask_for_token(request: Request) -> Response:
            address = request.scope.get("traceweir.refused")
            return login_page(200 if address is None else 401, address or "/", wrong=False)

        @application.post(LOGIN, include_in_schema=False)
        async def let_in(
            request: Request,
            given: Annotated[str, Form(alias="token", max_length=10_000)],
            address: Annotated[str, Form()] = "/",
        ) -> Response:
            # A page of another site can write a form, and must not choose where the login leads.
            address = address if is_local(address) else "/"
            if (client := client_of_token(given.encode(), request.scope[TOKENS])) is None:
                return login_page(401, address, wrong=True)
            answer = RedirectResponse(address, 303)
            answer.set_cookie(
                COOKIE, client.cookie, COOKIE_LASTS_S,
                httponly=True, samesite="strict", secure=request.url.scheme == "https",
            )  # fmt: skip
            return answer

    return application

"""Reads the filters of a request for a page, and answers it with a template."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from fastapi import Request
from fastapi.responses import HTMLResponse

from traceweir.streams.board.dashboard.context import dashboard_of
from traceweir.streams.board.dashboard.page.filters import FilterError, Filters, filters_of
from traceweir.streams.board.dashboard.page.rendering import rendered
from traceweir.streams.board.dashboard.pushed_configs import first_push
from traceweir.streams.board.dashboard.saved_views import SavedView, ViewError


async def note_stored_rows(request: Request) -> None:
    """Notes the state of the store before it is read: a batch that is stored meanwhile makes the page load again."""
    request.state.stored_rows = dashboard_of(request).options.state().stored_rows


def filters_from(request: Request) -> Filters:
    """Returns the filters of the address.

    Raises:
        FilterError: a parameter is out of its range.
    """
    return filters_of(request.query_params, dashboard_of(request).options.now())


def one_of(given: Mapping[str, str], name: str, allowed: Sequence[str]) -> str | None:
    """Returns the value of a parameter; None if the address has none.

    Raises:
        FilterError: the value is none of those that are allowed.
    """
    value = given.get(name)
    if value is not None and value not in allowed:
        raise FilterError(f"{name} is none of {', '.join(allowed)}")
    return value


def page(request: Request, name: str, filters: Filters, **more: Any) -> HTMLResponse:
    """Returns the page of a template with these values and those that every page shows."""
    options = dashboard_of(request).options
    configs = options.configs()
    views: Sequence[SavedView] = ()
    views_problem = ""
    if options.views is not None:
        try:
            views = options.views.present()
        except ViewError as error:
            views_problem = str(error)
    return rendered(
        f"{name}.html",
        saved_views=views,
        views_problem=views_problem,
        address=f"{request.url.path}?{request.url.query}" if request.url.query else request.url.path,
        request=request,
        filters=filters,
        state=options.state(),
        health=options.health(),
        options=options,
        first_push=lambda digest: first_push(configs, digest),
        view=name,
        **more,
    )

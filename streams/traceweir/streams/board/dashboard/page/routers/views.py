"""Saves a name for the address of a page, and removes it."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Form, Response
from fastapi.responses import RedirectResponse

from traceweir.streams.board.dashboard.addresses import MAX_ADDRESS_CHARS, is_local
from traceweir.streams.board.dashboard.context import Dashboard, Serving
from traceweir.streams.board.dashboard.page.filters import FilterError
from traceweir.streams.board.dashboard.saved_views import SavedViews, ViewError

router = APIRouter()

_Name = Annotated[str, Form(max_length=1_024)]
_Address = Annotated[str, Form(max_length=2 * MAX_ADDRESS_CHARS)]


@router.post("/views")
def save_view(dashboard: Serving, name: _Name, address: _Address) -> Response:
    try:
        _views(dashboard).save(name, address)
    except ViewError as error:
        raise FilterError(str(error)) from None
    return RedirectResponse(address, 303)


@router.post("/views/remove")
def remove_view(dashboard: Serving, name: _Name, address: _Address) -> Response:
    try:
        _views(dashboard).remove(name)
    except ViewError as error:
        raise FilterError(str(error)) from None
    return RedirectResponse(address if is_local(address) else "/", 303)


def _views(dashboard: Dashboard) -> SavedViews:
    if dashboard.options.views is None:
        raise FilterError("no view can be saved: name a file with TRACEWEIR_DASHBOARD_VIEWS")
    return dashboard.options.views

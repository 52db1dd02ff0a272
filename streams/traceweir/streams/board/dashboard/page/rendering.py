"""Renders templates. Jinja escapes every value, so that text of agents cannot become markup."""

from __future__ import annotations

from functools import cache
from typing import Any

from fastapi.responses import HTMLResponse
from jinja2 import Environment, PackageLoader, StrictUndefined

from traceweir.schemas.score import GATE
from traceweir.streams.board.dashboard.page.filters import LABELS, SPANS
from traceweir.streams.board.dashboard.page.formats import FILTERS, inert


def rendered(template: str, code: int = 200, **values: Any) -> HTMLResponse:
    """Returns the answer with a template and these values."""
    return HTMLResponse(_environment().get_template(template).render(**values), code)


def problem_page(code: int, sentence: str) -> HTMLResponse:
    """Returns a page that says what is wrong with a request."""
    return rendered("problem.html", code, sentence=sentence)


def login_page(code: int, address: str, *, wrong: bool) -> HTMLResponse:
    """Returns the page that asks for the token, and then leads to an address of the dashboard."""
    return rendered("login.html", code, address=address, wrong=wrong)


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("traceweir.streams.board.dashboard.page"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=inert,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(FILTERS)
    environment.globals.update(labels=LABELS, spans=SPANS, gate=GATE)
    return environment

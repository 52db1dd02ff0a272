"""Makes answers of the API from those of the store, and says what is wrong with a request."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any

import orjson
from fastapi import FastAPI, HTTPException, Request, Response
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel
from starlette.exceptions import HTTPException as StarletteHTTPException

from traceweir.schemas.text import printable
from traceweir.streams.board.dashboard.access import is_for_programs
from traceweir.streams.board.dashboard.content import Content, shown
from traceweir.streams.board.dashboard.page.filters import FilterError
from traceweir.streams.board.dashboard.page.rendering import problem_page
from traceweir.streams.board.store.errors import StoreError

RETRY_AFTER = {"retry-after": "1"}
"""The header of an answer that says to try again in a second."""


class RequestProblem(BaseModel):
    """Why a request was refused."""

    detail: str
    """A sentence for a person."""


def answer(found: BaseModel | Sequence[BaseModel], content: Content) -> Response:
    """Returns what was found as JSON, with as much of the agents' text as may be shown."""
    document = shown(found, content) if isinstance(found, BaseModel) else [shown(each, content) for each in found]
    return Response(orjson.dumps(document), media_type="application/json")


def only_known_parameters(request: Request) -> None:
    """Refuses a parameter that the address does not have, because an answer without it would be about something else."""
    # No address of the API has a part that changes.
    path = request.app.openapi()["paths"].get(request.scope["path"])
    # A page, and no answer of this API.
    if path is None:
        return
    known = {each["name"] for each in path[request.method.lower()].get("parameters", ())}
    names = [name for name, _ in request.query_params.multi_items()]
    for name in names:
        if name not in known:
            choice = f"choose from {', '.join(sorted(known))}" if known else "this address has none"
            raise HTTPException(422, f"{printable(name, 100)!r} is not a parameter; {choice}")
        if names.count(name) > 1:
            raise HTTPException(422, f"{name}: given more than once")


def answer_problems(api: FastAPI) -> None:
    """Lets the API, and the pages beside it, say what is wrong with a request."""
    for each in (RequestValidationError, FilterError, StarletteHTTPException, StoreError, Exception):
        api.add_exception_handler(each, _refuse)


async def _refuse(request: Request, error: Exception) -> Response:
    match error:
        case StarletteHTTPException():
            headers = dict(error.headers or {})
            if "Allow" in headers:
                headers["Allow"] = ", ".join(_methods_of(request, headers["Allow"]))
            if isinstance(error.__cause__, UnicodeDecodeError | RecursionError):
                return problem_answer(request.url.path, error.status_code, _unread(error.__cause__))
            is_unknown = error.status_code == HTTPStatus.NOT_FOUND and error.detail == HTTPStatus.NOT_FOUND.phrase
            sentence = f"there is no address {request.url.path}" if is_unknown else str(error.detail)
            return problem_answer(request.url.path, error.status_code, sentence, headers)
        case RequestValidationError():
            return problem_answer(request.url.path, 422, "; ".join(map(_problem_of, error.errors())))
        case FilterError():
            return problem_answer(request.url.path, 422, str(error))
        case StoreError():
            return problem_answer(request.url.path, 503, str(error), RETRY_AFTER)
    return problem_answer(
        request.url.path, 500, f"the dashboard failed with {type(error).__name__}; its log says where"
    )


def _unread(cause: UnicodeDecodeError | RecursionError) -> str:
    """Returns why a body cannot be parsed at all, with the way out."""
    if isinstance(cause, UnicodeDecodeError):
        return f"the body is no UTF-8 at byte {cause.start + 1:,}: send a JSON object in UTF-8"
    return "the body has too many lists or objects in each other: send the JSON object that the documentation shows"


def _problem_of(found: Mapping[str, Any]) -> str:
    """Returns what is wrong with a part of a request, or with all of its body."""
    match found["loc"]:
        case ("body",):
            return f"the body is no JSON object: send one, with the header `content-type: application/json` ({found['msg']})"
        case ("body", int(place)):
            return f"the body is no JSON at character {place} ({found.get('ctx', {}).get('error', found['msg'])})"
        case (*_, name):
            return f"{name}: {found['msg']}"
    return str(found["msg"])


def _methods_of(request: Request, allowed: str) -> list[str]:
    """Returns the methods of an address. FastAPI names those of one function, and does not know that HEAD is answered."""
    documented = request.app.openapi()["paths"].get(request.scope["path"], ())
    methods = {*allowed.split(", "), *(method.upper() for method in documented)}
    return sorted(methods | {"HEAD"} if "GET" in methods else methods)


def problem_answer(path: str, status: int, detail: str, headers: Mapping[str, str] | None = None) -> Response:
    """Returns the answer that says what is wrong: JSON for an address of programs, a page for others."""
    sentence = printable(detail, 1_000)
    if is_for_programs(path):
        return Response(orjson.dumps({"detail": sentence}), status, headers, media_type="application/json")
    found = problem_page(status, sentence)
    found.headers.update(headers or {})
    return found

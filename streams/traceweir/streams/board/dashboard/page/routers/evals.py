"""Serves eval sets with their cases, and runs of `traceweir eval` with the status of each case."""

from __future__ import annotations

from pathlib import PurePath
from typing import Annotated

from fastapi import APIRouter, HTTPException, Query, Request
from fastapi.responses import HTMLResponse
from pydantic import JsonValue

from traceweir.schemas.text import printable
from traceweir.streams.board.dashboard.content import shown_document, shown_text
from traceweir.streams.board.dashboard.context import Dashboard, Serving
from traceweir.streams.board.dashboard.eval_folder import EvalFolder, RunCase, RunFile, SetFile, paired
from traceweir.streams.board.dashboard.page.answers import page
from traceweir.streams.board.dashboard.page.commands import eval_command
from traceweir.streams.board.dashboard.page.filters import filters_of

router = APIRouter()

_Name = Annotated[str, Query(min_length=1, max_length=1_024)]


@router.get("/evals")
def show_evals(request: Request, dashboard: Serving) -> HTMLResponse:
    folder = dashboard.options.evals
    return _page(
        request,
        dashboard,
        "evals",
        sets=folder.sets() if folder is not None else [],
        runs=folder.runs() if folder is not None else [],
    )


@router.get("/evals/set")
def show_eval_set(request: Request, dashboard: Serving, name: _Name) -> HTMLResponse:
    folder = _folder(dashboard)
    found = _set_of(folder, name)
    last: dict[str, tuple[RunFile, RunCase]] = {}
    for run in reversed(folder.runs()):
        last |= {case.eval_id: (run, case) for case in run.cases if PurePath(case.file).name == found.path.name}
    commands = {
        case.eval_id: eval_command(found.path, folder.path, dashboard.options.now(), case.eval_id)
        for case in found.cases
    }
    return _page(
        request,
        dashboard,
        "eval-set",
        found=found,
        last=last,
        command=eval_command(found.path, folder.path, dashboard.options.now()),
        commands=commands,
    )


@router.get("/evals/run")
def show_eval_run(request: Request, dashboard: Serving, name: _Name) -> HTMLResponse:
    folder = _folder(dashboard)
    found = _run_of(folder, name)
    return _page(
        request, dashboard, "eval-run", found=found, others=[each for each in folder.runs() if each.name != name]
    )


@router.get("/evals/compare")
def show_eval_comparison(request: Request, dashboard: Serving, first: _Name, second: _Name) -> HTMLResponse:
    folder = _folder(dashboard)
    before = _run_of(folder, first)
    after = _run_of(folder, second)
    return _page(request, dashboard, "eval-compare", first=before, second=after, pairs=paired(before, after))


def _page(request: Request, dashboard: Dashboard, name: str, **more: object) -> HTMLResponse:
    content = dashboard.options.content

    def readable(text: str | None) -> str:
        return shown_text(text or "", content)

    def readable_calls(calls: list[JsonValue] | None) -> JsonValue:
        found: JsonValue = shown_document(calls, content)
        return found

    filters = filters_of({}, dashboard.options.now())
    return page(request, name, filters, readable=readable, readable_calls=readable_calls, **more)


def _folder(dashboard: Dashboard) -> EvalFolder:
    if dashboard.options.evals is None:
        raise HTTPException(
            404, "No folder of evals is named: start the dashboard with TRACEWEIR_DASHBOARD_EVALS=evals."
        )
    return dashboard.options.evals


def _set_of(folder: EvalFolder, name: str) -> SetFile:
    found = folder.eval_set(name)
    if found is None:
        raise HTTPException(404, f"{folder.path} has no eval set {printable(name, 200)!r}.")
    return found


def _run_of(folder: EvalFolder, name: str) -> RunFile:
    found = folder.run(name)
    if found is None:
        raise HTTPException(404, f"{folder.path} has no run {printable(name, 200)!r}.")
    return found

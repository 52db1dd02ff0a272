"""Serves the pages of the dashboard. Each page asks the store what the JSON API asks, and shows it as HTML."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any, get_args
from urllib.parse import urlencode

from fastapi import APIRouter, Depends, Form, HTTPException, Query, Request, Response
from fastapi.responses import HTMLResponse, RedirectResponse

from traceweir.schemas.judge_config import Budget
from traceweir.schemas.score import GATE, Cause, NotEvaluated, ReportedStatus
from traceweir.schemas.text import printable, shell_command
from traceweir.streams.board.dashboard.cases import CaseAdded, NoCaseError, NoSessionError, add_session
from traceweir.streams.board.dashboard.challengers import (
    ChallengersInEffect,
    NoChallengers,
    UnknownChallengerError,
    challenger_diff,
)
from traceweir.streams.board.dashboard.content import Content, shown, shown_document, shown_text
from traceweir.streams.board.dashboard.feed import FeedState
from traceweir.streams.board.dashboard.page import charts, session_view
from traceweir.streams.board.dashboard.page.filters import FilterError, Filters, filters_of
from traceweir.streams.board.dashboard.page.rendering import rendered
from traceweir.streams.board.dashboard.result_diff import NoDiffError, shown_diff
from traceweir.streams.board.store.answers import MetricFigures, SeriesPoint
from traceweir.streams.board.store.comparison import compare, last_versions
from traceweir.streams.board.store.metric import dimension_values, metric
from traceweir.streams.board.store.moves import moves_of
from traceweir.streams.board.store.overview import (
    closed_sessions,
    figures_by_metric,
    figures_with_quantiles,
    judge_spending,
    overview,
    series_of,
    step_of,
)
from traceweir.streams.board.store.paging import Position
from traceweir.streams.board.store.selection import Readable, Selection
from traceweir.streams.board.store.sessions import (
    NO_CAUSE,
    TRACE_VALUE,
    dead_letters,
    not_scored,
    session,
    session_page,
    sessions,
    trace,
    what_to_do,
)
from traceweir.streams.intake.formats.documents import InputError
from traceweir.streams.lab.comparison.sections import flips_of, sections_of
from traceweir.streams.lab.evals.capture import Outcome
from traceweir.streams.tools.doctor.finding import Finding

PAGE_LENGTHS = (50, 200, 500)
_STATUSES = get_args(ReportedStatus)
_REASONS = get_args(NotEvaluated)
_CAUSES = (*get_args(Cause), NO_CAUSE)
_SIDES = ("first", "second")
Sides = tuple[Mapping[str, str], Mapping[str, str]]
"""The filters of both sides of a comparison, beside those of the page."""


@dataclass(frozen=True)
class PageOptions:
    """What the pages need beside the store."""

    state: Callable[[], FeedState]
    """Returns the state of the feed."""
    content: Content
    """How much of the agents' text a page contains."""
    now: Callable[[], datetime]
    """The clock, at which a span without an end ends."""
    trace_url: str | None = None
    """Address of a trace in another tool, with `{trace_id}` and `{span_id}`; None: there is no link."""
    evalset: Path | None = None
    """Eval set to which sessions can be added; None: pages show the command."""
    budget: Budget | None = None
    """The budget of the workers' judges; None: it is not known."""
    challengers: ChallengersInEffect = field(default_factory=NoChallengers)
    """The challengers that are in effect, and the shadows."""
    health: Callable[[], Sequence[Finding]] = tuple
    """Returns what is known of the brokers, the workers and losses, part by part."""


def page_routes(store: Readable, options: PageOptions) -> APIRouter:
    """Returns the routes of all pages."""

    def note_stored_rows(request: Request) -> None:
        # Before the store is read: a batch that is stored meanwhile makes the page load again.
        request.state.stored_rows = options.state().stored_rows

    router = APIRouter(
        include_in_schema=False, default_response_class=HTMLResponse, dependencies=[Depends(note_stored_rows)]
    )

    def page(request: Request, name: str, filters: Filters, **more: Any) -> HTMLResponse:
        return rendered(
            f"{name}.html",
            request=request,
            filters=filters,
            state=options.state(),
            health=options.health(),
            options=options,
            view=name,
            **more,
        )

    def filters_from(request: Request) -> Filters:
        return filters_of(request.query_params, options.now())

    @router.get("/")
    def show_overview(request: Request) -> HTMLResponse:
        filters = filters_from(request)
        found = overview(store, filters.selection)
        earlier = figures_by_metric(store, filters.before())
        criteria = _criteria(found.metrics)
        places = charts.lines_to_draw(criteria, earlier, filters.selection.metric)
        return page(
            request,
            "overview",
            filters,
            found=found,
            sessions_before=closed_sessions(store, filters.before()),
            gate_before=next((each for each in earlier if each.metric == GATE), None),
            criteria=criteria,
            earlier=_by_place(earlier),
            moves=moves_of(found.metrics, earlier),
            total=_total(found.metrics),
            total_before=_total(earlier),
            judged=sorted((each for each in criteria if each.usd or each.input_tokens), key=lambda each: -each.usd),
            spending=judge_spending(store, options.now(), options.budget),
            chart=charts.pass_rate_chart(found.series, places, found.changes, found.step_s),
            sparklines=_sparklines(found.metrics, found.series, found.step_s),
            latest=sessions(store, filters.selection, status="FAILED", limit=8),
            values=dimension_values(store, filters.selection),
        )

    @router.get("/sessions")
    def show_sessions(request: Request) -> HTMLResponse:
        # A place in the list ends with a session's id, whose length and spaces are not those of a filter.
        parameters = dict(request.query_params)
        after = _position(parameters.pop("older_than", None))
        filters = filters_of(parameters, options.now())
        given = filters.parameters
        status = _one_of(given, "status", _STATUSES)
        reason = _one_of(given, "reason", _REASONS)
        limit = int(_one_of(given, "limit", tuple(map(str, PAGE_LENGTHS))) or PAGE_LENGTHS[0])
        found = session_page(
            store,
            filters.selection,
            status=status,
            reason=reason,
            cause=_one_of(given, "cause", _CAUSES),
            limit=limit,
            after=after,
            least=_number(given, "least"),
            most=_number(given, "most"),
            text=given.get("text"),
            readable=lambda text: shown_text(text, options.content),
        )
        return page(
            request,
            "sessions",
            filters,
            found=found.sessions,
            older_than=str(found.next) if found.next is not None else None,
            is_first=after is None,
            limit=limit,
            statuses=_STATUSES,
            reasons=_REASONS,
            causes=_CAUSES,
            lengths=PAGE_LENGTHS,
            values=dimension_values(store, filters.selection),
        )

    @router.get("/session")
    def show_session(request: Request, session_id: str = "") -> HTMLResponse:
        filters = filters_from(request)
        details = session(store, session_id) if session_id else None
        if details is None:
            raise HTTPException(
                404,
                f"The store has no session {printable(session_id, 200)!r}: it is older than the store keeps, or not "
                "closed yet.",
            )
        document = shown(details, options.content)
        case = _one_of(filters.parameters, "case", get_args(Outcome))
        segments = session_view.segment_views(document["segments"])  # type: ignore[arg-type]
        scores = session_view.score_views(document["results"], document["replaced_results"], segments)  # type: ignore[arg-type]
        return page(
            request,
            "session",
            filters,
            session_id=session_id,
            segments=segments,
            scores=scores,
            resting_on=session_view.resting_on(scores),
            left_out=[
                (details.segments_left_out, "segments"),
                (details.results_left_out, "results"),
                (details.replaced_results_left_out, "replaced results"),
            ],
            nearest=_nearest(store, scores, segments, options.content),
            what_to_do=what_to_do,
            case=case,
            case_command=case_command(session_id, options.evalset, replace=case == "refused"),
        )

    @router.post("/session/case")
    def add_as_case(session_id: Annotated[str, Form(min_length=1, max_length=1_024)]) -> Response:
        found = added_case(store, session_id, options.evalset, options.content)
        query = urlencode({"session_id": session_id, "case": found.outcome})
        return RedirectResponse(f"/session?{query}#case", 303)

    @router.get("/metrics")
    def show_metrics(request: Request) -> HTMLResponse:
        filters = filters_from(request)
        step_s = step_of((filters.selection.until - filters.selection.since).total_seconds())
        found = figures_with_quantiles(store, filters.selection)
        return page(
            request,
            "metrics",
            filters,
            criteria=found,
            moves=moves_of(found, figures_by_metric(store, filters.before())),
            sparklines=_sparklines(found, series_of(store, filters.selection, step_s), step_s),
            values=dimension_values(store, filters.selection),
        )

    @router.get("/metric")
    def show_metric(request: Request) -> HTMLResponse:
        filters = filters_from(request)
        if filters.selection.metric is None:
            raise FilterError("metric is missing: name one")
        found = metric(store, filters.selection)
        places = [(each.metric, each.level) for each in found.figures][: charts.MAX_LINES]
        charted = _main_judge(found.figures)
        series = found.series
        if charted is not None:
            of_judge = replace(filters.selection, dimensions={**filters.selection.dimensions, "judge": charted})
            series = series_of(store, of_judge, found.step_s)
        document = shown(found, options.content)
        return page(
            request,
            "metric",
            filters,
            found=found,
            worst=document["worst"],
            nearest=document["nearest"],
            charted=charted,
            rates=charts.pass_rate_chart(series, places, found.changes, found.step_s),
            means=charts.mean_chart(series, places, found.changes, found.step_s),
            distribution=charts.histogram(found.distribution),
            values=dimension_values(store, filters.selection),
        )

    @router.get("/not-scored")
    def show_not_scored(request: Request) -> HTMLResponse:
        filters = filters_from(request)
        found = [shown(each, options.content) for each in not_scored(store, filters.selection)]
        return page(
            request,
            "not-scored",
            filters,
            found=found,
            no_cause=NO_CAUSE,
            values=dimension_values(store, filters.selection),
        )

    @router.get("/dead-letters")
    def show_dead_letters(request: Request) -> HTMLResponse:
        filters = filters_from(request)
        found = shown(dead_letters(store, filters.selection), options.content)
        return page(request, "dead-letters", filters, found=found)

    @router.get("/compare")
    def show_comparison(request: Request) -> HTMLResponse:
        filters = filters_from(request)
        sides = _sides(request.query_params) or _last_versions(store, filters.selection)
        first, second = (filters_of({**filters.kept, **side}, filters.selection.until) for side in sides)
        return page(
            request,
            "compare",
            filters,
            sides=sides,
            first=first,
            second=second,
            found=compare(store, first.selection, second.selection),
            query=urlencode(
                filters.kept
                | {
                    f"{name}_{key}": value
                    for name, side in zip(_SIDES, sides, strict=True)
                    for key, value in side.items()
                }
            ),
            same=first.selection == second.selection,
            values=dimension_values(store, filters.selection),
        )

    @router.get("/diff")
    def show_diff(request: Request) -> HTMLResponse:
        filters = filters_from(request)
        sides = _sides(request.query_params) or ({}, {})
        first, second = (filters_of({**filters.kept, **side}, filters.selection.until) for side in sides)
        found = None
        problem = ""
        try:
            found = shown_diff(store, first.selection, second.selection, options.content)
        except NoDiffError as error:
            problem = str(error)
        return page(
            request,
            "diff",
            filters,
            first=first,
            second=second,
            problem=problem,
            sections=list(sections_of(found)) if found else [],
            flips=list(flips_of(found)) if found else [],
            query=urlencode(request.query_params),
        )

    @router.get("/challenger")
    def show_challenger(request: Request, name: Annotated[str, Query(min_length=1, max_length=100)]) -> HTMLResponse:
        parameters = {key: value for key, value in request.query_params.items() if key != "name"}
        filters = filters_of(parameters, options.now())
        found = None
        problem = ""
        known = next((each for each in options.challengers.in_effect if each.name == name), None)
        try:
            found = challenger_diff(store, options.challengers, name, options.content)
        except UnknownChallengerError as error:
            raise HTTPException(404, str(error)) from None
        except NoDiffError as error:
            problem = str(error)
        return page(
            request,
            "challenger",
            filters,
            shown_name=name,
            challenger=known,
            problem=problem,
            sections=list(sections_of(found)) if found else [],
            flips=list(flips_of(found)) if found else [],
        )

    return router


def added_case(store: Readable, session_id: str, evalset: Path | None, content: Content) -> CaseAdded:
    """Adds a session to the eval set.

    Raises:
        HTTPException: there is no eval set, the store has no such session, or the session cannot be a case.
    """
    if evalset is None or content == "none":
        raise HTTPException(
            422, "no eval set is named: start the dashboard with TRACEWEIR_DASHBOARD_EVALSET=cases.evalset.json"
        )
    try:
        return add_session(store, session_id, evalset)
    except NoSessionError as error:
        raise HTTPException(404, str(error)) from None
    except (NoCaseError, InputError) as error:
        raise HTTPException(422, str(error)) from None


def case_command(session_id: str, evalset: Path | None, *, replace: bool) -> str | None:
    """Returns the command that adds a session to an eval set; None if no command line can name the session.

    Args:
        session_id: Id of the session.
        evalset: The eval set, relative to the working directory of this process; None: a new one where the command runs.
        replace: Whether the command replaces a case with the same id.
    """
    file = "cases.evalset.json" if evalset is None else str(evalset.absolute())
    # An id that begins with a hyphen would be an option.
    name = ["--", session_id] if session_id.startswith("-") else [session_id]
    return shell_command("traceweir", "evalset", "add", "--to", file, *(["--replace"] if replace else []), *name)


def _criteria(metrics: Sequence[MetricFigures]) -> list[MetricFigures]:
    return [each for each in metrics if each.metric not in (GATE, TRACE_VALUE)]


def _sparklines(
    metrics: Sequence[MetricFigures], series: Sequence[SeriesPoint], step_s: int
) -> dict[charts.Place, dict[str, Any] | None]:
    return {place: charts.sparkline(series, place, step_s) for place in _by_place(metrics)}


def _by_place(metrics: Sequence[MetricFigures]) -> dict[charts.Place, MetricFigures]:
    return {(each.metric, each.level): each for each in metrics}


def _total(metrics: Sequence[MetricFigures]) -> dict[str, float | None]:
    """Returns the pass rate of all criteria with a threshold together, and what the judges of all criteria cost."""
    criteria = _criteria(metrics)
    passed = sum(each.passed for each in criteria)
    failed = sum(each.failed for each in criteria)
    return {
        "pass_rate": passed / (passed + failed) if passed + failed else None,
        "usd": sum(each.usd for each in criteria),
        "tokens": sum(each.input_tokens + each.output_tokens for each in criteria),
    }


def _one_of(given: Mapping[str, str], name: str, allowed: Sequence[str]) -> str | None:
    value = given.get(name)
    if value is not None and value not in allowed:
        raise FilterError(f"{name} is none of {', '.join(allowed)}")
    return value


def _position(text: str | None) -> Position | None:
    try:
        return Position.parse(text) if text else None
    except ValueError as error:
        raise FilterError(f"older_than: {error}") from None


def _number(given: Mapping[str, str], name: str) -> float | None:
    text = given.get(name)
    if text is None:
        return None
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise FilterError(f"{name} is not a number")
    return value


def _main_judge(figures: Sequence[MetricFigures]) -> str | None:
    """Returns the judge of the most results if several have judged at a level; None if there is nothing to tell apart."""
    if all(len(each.judges) < 2 for each in figures):
        return None
    results = Counter[str]()
    for each in figures:
        for part in each.by_judge:
            if part.judge is not None:
                results[part.judge] += part.results
    return min(results, key=lambda judge: (-results[judge], judge))


def _sides(parameters: Mapping[str, str]) -> Sides | None:
    """Returns the filters of the two sides of a comparison; None if the address names none."""
    first, second = (
        {
            name.removeprefix(f"{side}_"): value
            for name, value in parameters.items()
            if name.startswith(f"{side}_") and value.strip()
        }
        for side in _SIDES
    )
    return (first, second) if first or second else None


def _last_versions(store: Readable, selection: Selection) -> Sides:
    """Returns the two newest versions of an agent in a span, the older one first; no filters if there are none."""
    found = last_versions(store, selection)
    if found is None:
        return {}, {}
    agent = {} if found.agent is None else {"agent_name": found.agent}
    return {**agent, "agent_version": found.older}, {**agent, "agent_version": found.newer}


def _nearest(
    store: Readable,
    scores: Sequence[session_view.ScoreView],
    segments: Sequence[session_view.SegmentView],
    content: Content,
) -> session_view.NearestTrace | None:
    nearest = session_view.nearest_of(scores)
    if nearest is None:
        return None
    session_id, document = trace(store, nearest.trace_id)
    known = shown_document(document, content) if document is not None else None
    own = next((each for segment in segments for each in segment.traces if each.get("id") == nearest.of), None)
    return session_view.compared(nearest, session_id, own, known)

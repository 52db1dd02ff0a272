"""Serves the page on which people label what was drawn at random, and what is worth a look, without the judge's verdict."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Annotated, Any, Literal
from urllib.parse import parse_qs, parse_qsl, unquote, urlencode, urlsplit

from fastapi import APIRouter, Form, Request, Response
from fastapi.responses import HTMLResponse, RedirectResponse
from pydantic import ValidationError

from traceweir.schemas.base import explain
from traceweir.schemas.labels import MAX_NAME_CHARS, MAX_NOTE_CHARS, Label
from traceweir.schemas.text import printable
from traceweir.streams.board.dashboard.addresses import MAX_ADDRESS_CHARS, is_local
from traceweir.streams.board.dashboard.api.labels import (
    SCALE_OF_DAYS,
    LabelRequest,
    check_annotator,
    client_of,
    name_of_client,
    take,
    write,
)
from traceweir.streams.board.dashboard.content import shown, shown_text
from traceweir.streams.board.dashboard.context import Dashboard, Serving
from traceweir.streams.board.dashboard.criterion_scale import VERDICTS, CriterionScale, plan_of, scale_of
from traceweir.streams.board.dashboard.given_labels import ReviewLabel
from traceweir.streams.board.dashboard.page import session_view
from traceweir.streams.board.dashboard.page.answers import filters_from, one_of, page
from traceweir.streams.board.dashboard.page.filters import FilterError, Filters, filters_of
from traceweir.streams.board.dashboard.page.review_view import (
    DEFAULT_SHARE,
    SHARES,
    Queue,
    QueueEntry,
    pairs_of_people,
    queue_of,
    suggested_share,
)
from traceweir.streams.board.store.labels import given_labels
from traceweir.streams.board.store.metric import dimension_values
from traceweir.streams.board.store.review import (
    MAX_DRAWN,
    Picked,
    drawn_subjects,
    picked_subjects,
    review_criteria,
    review_point,
)
from traceweir.streams.board.store.sessions import session

router = APIRouter()

STRATA = ("random", "flagged")
_KEPT = ("metric", "share", "annotator")
_WHOLE = ("segment", "revision")
_MOST_DIGITS = 10
_NO_RIGHT = (
    "This token can read and not label. Log in with TRACEWEIR_DASHBOARD_LABEL_TOKEN, which whoever runs the dashboard has, "
    "or with another token that may label: remove the cookies of this page, load it again, and enter the token."
)
_NO_KAFKA = "Labels cannot be taken: this dashboard has no Kafka."
_Address = Annotated[str, Form(max_length=2 * MAX_ADDRESS_CHARS)]


@dataclass(frozen=True)
class _Review:
    """What the page shows of a criterion."""

    criterion: str
    random: Queue
    flagged: Queue
    population: int
    picked: Sequence[Picked]

    @property
    def suggested(self) -> float:
        return suggested_share(self.population)


@dataclass(frozen=True)
class _Given:
    """A label that the person has given, with what the judge says."""

    label: Label
    note: str
    scores: Sequence[Mapping[str, Any]]
    reasons: Sequence[str]


@router.get("/review")
def show_review(request: Request, dashboard: Serving) -> HTMLResponse:
    filters = filters_from(request)
    stratum = one_of(filters.parameters, "stratum", STRATA) or STRATA[0]
    share = _share(filters.parameters)
    annotator = filters.parameters.get("annotator") or name_of_client(request)
    everything = replace(filters.selection, metric=None)
    found = None
    given = None
    item: QueueEntry | None = None
    people: list[ReviewLabel] = []
    if filters.selection.metric is not None:
        people = _reviews(dashboard, filters.selection.metric, filters.selection.since)
        found = _review(dashboard, filters, share, people, annotator, stratum)
        given = _given(dashboard, filters, people, annotator, found.picked)
        item = (found.random if stratum == "random" else found.flagged).next
    kept = {name: filters.parameters[name] for name in _KEPT if name in filters.parameters}
    here = {**kept, "stratum": stratum, "after": filters.parameters.get("after")}
    pairs = pairs_of_people(people)
    kappa_when = ""
    if pairs:
        # NumPy is imported where it is needed.
        from traceweir.streams.base.statistics.drawn_kappa import WHEN

        kappa_when = WHEN
    return page(
        request,
        "review",
        filters,
        criteria=review_criteria(dashboard.store, everything),
        found=found,
        queue=None if found is None else found.random if stratum == "random" else found.flagged,
        item=item,
        segment=_segment(dashboard, item),
        given=given,
        scale=_scale(dashboard, filters),
        pairs=pairs,
        kappa_when=kappa_when,
        stratum=stratum,
        share=share,
        shares=SHARES if share in SHARES else sorted((*SHARES, share)),
        most=MAX_DRAWN,
        annotator=annotator,
        client=name_of_client(request),
        refusal=_refusal(request, dashboard),
        kept=kept,
        here=filters.link("/review", here),
        skip=filters.link("/review", here, after=item.subject.point) if item is not None else "",
        values=dimension_values(dashboard.store, everything),
    )


@router.post("/review/label")
def give_label(
    request: Request,
    dashboard: Serving,
    about: Annotated[str, Form(max_length=20_000)],
    address: _Address,
    verdict: Annotated[Literal["pass", "fail", "unsure"] | None, Form()] = None,
    category: Annotated[str | None, Form(max_length=MAX_NAME_CHARS)] = None,
    value: Annotated[str | None, Form(max_length=100)] = None,
    note: Annotated[str, Form(max_length=2 * MAX_NOTE_CHARS)] = "",
) -> Response:
    """Writes a label as `POST /api/v1/labels` does. The server draws again, so that no request can claim a draw."""
    parameters, filters = _place(dashboard, address)
    criterion = filters.selection.metric
    if criterion is None:
        raise FilterError("metric is missing in the address of the page: choose a criterion")
    subject = {name: _whole(values[0]) if name in _WHOLE else values[0] for name, values in parse_qs(about).items()}
    drawn = one_of(parameters, "stratum", STRATA) or STRATA[0]
    share = _share(parameters)
    if verdict in ("pass", "fail") and _scale(dashboard, filters) != VERDICTS:
        raise FilterError(
            f"verdict: {criterion!r:.100} is answered on its own scale, or with unsure: load the page again"
        )
    try:
        asked = LabelRequest.model_validate(
            {
                **subject,
                "criterion": criterion,
                **_answer(verdict, category, value),
                # A browser sends both characters of a line's end.
                "note": note.replace("\r\n", "\n").strip() or None,
                "annotator": parameters.get("annotator"),
                "drawn": drawn,
                "inclusion_probability": share if drawn == "random" else None,
            }
        )
    except ValidationError as error:
        raise FilterError(explain(error)) from None
    if drawn == "random":
        point = review_point(criterion, asked.session_id, asked.segment or 0, asked.invocation_id or asked.trace_id)
        if point >= share:
            raise FilterError(f"about: this subject is not drawn with the share {share:g}: load the page again")
    taken = take(request, dashboard, asked, "review")
    return _back({**parameters, "given": taken.label_id})


@router.post("/review/withdraw")
def withdraw_label(
    request: Request, dashboard: Serving, label_id: Annotated[str, Form(max_length=4_000)], address: _Address
) -> Response:
    """Withdraws a label of the person, and erases its note."""
    parameters, filters = _place(dashboard, address)
    annotator = parameters.get("annotator") or name_of_client(request)
    check_annotator(request, annotator)
    people = _reviews(dashboard, filters.selection.metric or "", filters.selection.since)
    own = _own(people, unquote(label_id), annotator)
    if own is None:
        raise FilterError(
            f"label_id: {printable(annotator, 100)!r} has no label {printable(unquote(label_id), 100)!r} here: it was withdrawn"
        )
    now = dashboard.options.now()
    write(dashboard, own.label.model_copy(update={"withdrawn": True, "note": None, "occurred_at": now}))
    return _back(parameters)


def _answer(verdict: str | None, category: str | None, value: str | None) -> dict[str, str | float]:
    """Returns the answer of a form. A button counts more than what stands in the field of the number."""
    if verdict is not None:
        return {"verdict": verdict}
    if category is not None:
        return {"category": category}
    try:
        number = float(value or "")
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise FilterError("value: write a number, or choose an answer")
    return {"value": number}


def _scale(dashboard: Dashboard, filters: Filters) -> CriterionScale:
    """Returns the scale of the chosen criterion."""
    criterion = filters.selection.metric or ""
    plan = plan_of(dashboard.store, dashboard.options.configs(), criterion, dashboard.options.now() - SCALE_OF_DAYS)
    return scale_of(plan, criterion)


def _review(
    dashboard: Dashboard, filters: Filters, share: float, people: Sequence[ReviewLabel], annotator: str, stratum: str
) -> _Review:
    drawn, population = drawn_subjects(dashboard.store, filters.selection, share)
    taken = {each.identity for each in drawn}
    picked = [
        each for each in picked_subjects(dashboard.store, filters.selection) if each.subject.identity not in taken
    ]
    after = _number(filters.parameters, "after", -1.0)
    places = {each: after if each == stratum else -1.0 for each in STRATA}
    # Else a draw with a greater share would lack whatever was worth a look, which is worse than the rest.
    of_draw = [each for each in people if each.label.drawn == "random"]
    return _Review(
        criterion=filters.selection.metric or "",
        random=queue_of(drawn, of_draw, annotator, places["random"]),
        flagged=queue_of([each.subject for each in picked], people, annotator, places["flagged"]),
        population=population,
        picked=picked,
    )


def _reviews(dashboard: Dashboard, criterion: str, since: datetime) -> list[ReviewLabel]:
    # A label is given after its session has ended.
    return dashboard.given.with_stored(given_labels(dashboard.store, criterion, since), criterion, since)


def _own(people: Sequence[ReviewLabel], label_id: str, annotator: str) -> ReviewLabel | None:
    return next(
        (each for each in people if each.label.label_id == label_id and each.label.annotator == annotator), None
    )


def _given(
    dashboard: Dashboard, filters: Filters, people: Sequence[ReviewLabel], annotator: str, picked: Sequence[Picked]
) -> _Given | None:
    """Returns the label that the address names, if the person has given it, with the scores of its subject."""
    own = _own(people, filters.parameters.get("given", ""), annotator)
    details = session(dashboard.store, own.label.subject.session_id) if own is not None else None
    if own is None or details is None:
        return None
    label = own.label
    names = ("segment", "level", "invocation_id", "trace_id")
    rows = [
        row
        for row in shown(details, dashboard.options.content)["results"]  # type: ignore[union-attr]
        if isinstance(row, dict)
        and row["metric"] == label.criterion
        and tuple(row[name] for name in names) == own.identity[1:]
    ]
    reasons = next((each.reasons for each in picked if each.subject.identity == own.identity), ())
    return _Given(label, shown_text(label.note or "", dashboard.options.content), rows, reasons)


def _segment(dashboard: Dashboard, item: QueueEntry | None) -> session_view.SegmentView | None:
    """Returns the segment of a subject as it is shown, without any score; None if the store does not have it."""
    details = session(dashboard.store, item.subject.session_id) if item is not None else None
    if item is None or details is None:
        return None
    rows = [each for each in details.segments if each["segment"] == item.subject.segment]
    document = shown(details.model_copy(update={"segments": rows}), dashboard.options.content)
    found = session_view.segment_views(document["segments"])  # type: ignore[arg-type]
    return found[0] if found else None


def _refusal(request: Request, dashboard: Dashboard) -> str | None:
    """Returns why the person cannot label; None: they can."""
    client = client_of(request)
    if client is not None and client.right not in ("label", "admin"):
        return _NO_RIGHT
    return _NO_KAFKA if dashboard.options.write_labels is None else None


def _place(dashboard: Dashboard, address: str) -> tuple[dict[str, str], Filters]:
    """Returns the parameters of the page that a form names, and its filters."""
    if not is_local(address):
        raise FilterError("address: this is no address of the page: load it again")
    parameters = dict(parse_qsl(urlsplit(address).query))
    if len(parameters.get("annotator", "")) > MAX_NAME_CHARS:
        raise FilterError(f"annotator: a name has at most {MAX_NAME_CHARS} characters")
    return parameters, filters_of(parameters, dashboard.options.now())


def _back(parameters: Mapping[str, str]) -> Response:
    return RedirectResponse(f"/review?{urlencode(parameters)}", 303)


def _whole(text: str) -> int | str:
    """Returns the number that a form has as text; any other text is left to the check of the label."""
    return int(text) if text.isdecimal() and text.isascii() and len(text) <= _MOST_DIGITS else text


def _share(parameters: Mapping[str, str]) -> float:
    share = _number(parameters, "share", DEFAULT_SHARE)
    if not 0 < share <= 1:
        raise FilterError("share is not above 0 and at most 1")
    return share


def _number(parameters: Mapping[str, str], name: str, default: float) -> float:
    try:
        found = float(parameters.get(name, default))
    except ValueError:
        found = math.nan
    if not math.isfinite(found):
        raise FilterError(f"{name} is not a number")
    return found

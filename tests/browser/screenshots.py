"""Takes the screenshots of the documentation: `python -m tests.browser.screenshots` writes docs/images/dashboard/."""

from __future__ import annotations

import shutil
import sys
from datetime import timedelta
from pathlib import Path
from tempfile import TemporaryDirectory

import orjson
from tests.browser.conftest import ARGUMENTS
from tests.support.dashboard_site import Site, served, session_id_of, session_of
from tests.support.scaled_criteria import TOPICS, scaled_configs, scaled_scores
from tests.support.scoring import NOW
from tests.support.stores import FakeRecord, batch_of, open_store

from traceweir.schemas.dead_letter import DeadLetter, Reason
from traceweir.schemas.labels import Label, LabelSubject
from traceweir.streams.board.store.judged import judged_scores
from traceweir.streams.board.store.review import drawn_subjects
from traceweir.streams.board.store.selection import Selection
from traceweir.streams.tools.doctor.finding import Finding

FOLDER = Path(__file__).parents[2] / "docs" / "images" / "dashboard"
VIEWS = {
    "overview": "/",
    "sessions": "/sessions?status=FAILED",
    "session": f"/session?session_id={session_id_of(1)}",
    "metrics": "/metrics",
    "metric": "/metric?metric=tool_trajectory_avg_score",
    "not-scored": "/not-scored",
    "dead-letters": "/dead-letters",
    "compare": "/compare?first_agent_version=2.3.1&second_agent_version=2.4.0",
    "review": "/review?metric=hallucinations_v1&share=0.2&span=7d",
    "trust": "/trust?metric=hallucinations_v1&span=7d",
}
SCALED_VIEWS = {
    "review-number": "/review?metric=mood&share=0.5&span=7d&annotator=kim",
    "review-category": "/review?metric=topic&share=0.5&span=7d&annotator=kim",
    "trust-number": "/trust?metric=mood&span=7d",
    "trust-category": "/trust?metric=topic&span=7d",
}
SESSIONS = 900
SCALED_SESSIONS = 240
_LETTERS: tuple[tuple[Reason, str], ...] = (
    ("not_json", "the value is not JSON: unexpected end of data: line 1 column 109 (char 108)"),
    ("invalid", "outcome.confidence: Input should be less than or equal to 1 (got 1.5)"),
    ("late", "the record's timestamp is more than 3600000 ms behind the watermark"),
)
HEALTH = [
    Finding("broker", "ok", "answered 1 s ago"),
    Finding("store", "ok", "0 records not stored yet"),
    Finding("workers", "ok", "traceweir.assemble-score-gate: 1 worker, 0 records behind (worker-1 0)"),
    Finding("losses", "ok", "no record was removed unread in the last day"),
    Finding("dead letters", "warning", f"{len(_LETTERS)} dead letters not replayed: see `traceweir dlq list`"),
    Finding("scorers and judges", "ok", "75 results of the last hour, none failed"),
]


def main() -> int:
    """Writes a picture of each view in light and in dark; returns the exit code."""
    from playwright.sync_api import sync_playwright

    FOLDER.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory() as folder, sync_playwright() as driver:
        site = Site(open_store(Path(folder) / "store.duckdb"))
        scaled = _scaled(Path(folder))
        site.health = HEALTH
        site.add_sessions(SESSIONS)
        site.store.write(batch_of("dead-letters", *(_letter(number) for number in range(len(_LETTERS)))))
        site.store.write(batch_of("labels", *_labels(site)))
        site.now += timedelta(minutes=1)  # a span does not contain its end
        browser = driver.chromium.launch(executable_path=shutil.which("chromium"), args=list(ARGUMENTS))
        for shown, views in ((site, VIEWS), (scaled, SCALED_VIEWS)):
            with served(shown) as address:
                for scheme in ("light", "dark"):
                    page = browser.new_page(viewport={"width": 1280, "height": 800}, color_scheme=scheme)
                    for name, view in views.items():
                        page.goto(address + view)
                        page.get_by_text("up to date").wait_for()
                        page.screenshot(path=FOLDER / f"{name}-{scheme}.png")
        browser.close()
    return 0


def _scaled(folder: Path) -> Site:
    """Returns a dashboard whose judge answers with numbers and categories, and whose people mostly agree with it."""
    site = Site(open_store(folder / "scaled.duckdb"), now=NOW + timedelta(minutes=1), configs=scaled_configs())
    site.health = HEALTH
    labels: list[FakeRecord] = []
    for number in range(SCALED_SESSIONS):
        scores = [each.model_copy(update={"judge": "gemini-2.5-flash"}) for each in scaled_scores(number)]
        site.add(*scores)
        if number % 2:
            continue
        for score in scores:
            if score.metric == "share":
                continue
            answer: dict[str, object] = {"value": round((score.value or 0) + (-0.2 if number % 7 else 0.4))}
            if score.category is not None:
                answer = {"category": [*TOPICS][(number + (number % 14 == 6)) % 3]}
            label = Label.model_validate(
                {
                    "label_id": f"{number} {score.metric}",
                    "subject": {"session_id": score.session_id, "segment": 0, "revision": 0, "level": "session"},
                    "criterion": score.metric,
                    "annotator": "ana",
                    "kind": "review",
                    "drawn": "random",
                    "inclusion_probability": 0.5,
                    "occurred_at": site.now,
                    **answer,
                }
            )
            labels.append(FakeRecord(label.wire(), len(labels), label.label_id.encode()))
    sessions = [orjson.dumps(session_of(number, NOW, is_new=False)) for number in range(SCALED_SESSIONS)]
    site.store.write(batch_of("sessions", *(FakeRecord(each, number) for number, each in enumerate(sessions))))
    site.store.write(batch_of("labels", *labels))
    site.now += timedelta(minutes=1)
    return site


def _labels(site: Site) -> list[FakeRecord]:
    """Returns labels of two people, who mostly agree with the judge."""
    selected = Selection(site.now - timedelta(days=2), site.now + timedelta(days=1), metric="hallucinations_v1")
    drawn, _ = drawn_subjects(site.store, selected, 0.2)
    scores, _ = judged_scores(site.store, selected)
    passed = {each.session_id: each.status == "PASSED" for each in scores}
    records: list[FakeRecord] = []
    for number, each in enumerate(drawn[:120]):
        for annotator in ("ana", "ben")[: 2 if number % 2 else 1]:
            differs = number % (17 if annotator == "ana" else 31) == 3
            label = Label(
                label_id=f"{number} {annotator}",
                subject=LabelSubject(
                    session_id=each.session_id,
                    segment=0,
                    revision=0,
                    level="invocation",
                    invocation_id=each.invocation_id,
                ),
                criterion="hallucinations_v1",
                verdict="pass" if passed[each.session_id] != differs else "fail",
                annotator=annotator,
                kind="review",
                drawn="random",
                inclusion_probability=0.2,
                occurred_at=site.now,
            )
            records.append(FakeRecord(label.wire(), len(records), label.label_id.encode()))
    return records


def _letter(number: int) -> FakeRecord:
    reason, detail = _LETTERS[number]
    value = b'{"session_id": "rail-1", "task": '
    letter = DeadLetter(reason, detail, "assemble", "traceweir.traces", 1, 120 + number, None, value)
    return FakeRecord(value, number, headers=letter.wire_headers())


if __name__ == "__main__":
    sys.exit(main())

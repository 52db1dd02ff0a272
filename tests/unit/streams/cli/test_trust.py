"""Tests `traceweir trust` on files: a story with planted truth, and bad input."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from traceweir.schemas.labels import Label, LabelSubject, label_id
from traceweir.schemas.score import Score
from traceweir.streams.cli.main import main

TIME = datetime(2026, 11, 1, tzinfo=UTC)
RATE = 0.8
TPR = 0.95
TNR = 0.6
LABELS = 150
SESSIONS = 2_000


def score(session: str, passed: bool | None, **changes: Any) -> Score:
    """Returns a judged score of a session; without a verdict for None."""
    fields = {
        "result_id": f"result-{session}",
        "revision": 0,
        "session_id": session,
        "segment": 0,
        "level": "session",
        "metric": "helpful",
        "value": None if passed is None else float(passed),
        "threshold": 0.5,
        "status": "NOT_EVALUATED" if passed is None else "PASSED" if passed else "FAILED",
        "not_evaluated_because": "error" if passed is None else None,
        "judge": None if passed is None else "model-a",
        "scorer_version": "1",
        "config_digest": "d",
        "occurred_at": TIME,
        "evaluated_at": TIME,
    }
    return Score.model_validate(fields | changes)


def label(session: str, verdict: str | None, **changes: Any) -> Label:
    """Returns a review of a session that was drawn at random."""
    subject = LabelSubject(session_id=session, segment=0, revision=0, level="session")
    fields: dict[str, Any] = {
        "label_id": label_id(subject, "helpful", "ana", "review"),
        "subject": subject,
        "criterion": "helpful",
        "verdict": verdict,
        "annotator": "ana",
        "kind": "review",
        "drawn": "random",
        "inclusion_probability": 0.1,
        "occurred_at": TIME,
    }
    return Label.model_validate(fields | changes)


def planted(seed: int) -> tuple[list[Score], list[Label]]:
    """Returns the scores of a judge with known errors, and labels of a random part of the sessions."""
    random = np.random.default_rng(seed)
    good = random.random(SESSIONS) < RATE
    right = random.random(SESSIONS) < np.where(good, TPR, TNR)
    drawn = random.choice(SESSIONS, LABELS, replace=False)
    scores = [score(f"s{number}", bool(passed)) for number, passed in enumerate(np.where(right, good, ~good))]
    return scores, [label(f"s{number}", "pass" if good[number] else "fail") for number in drawn]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "240")


def written(scores: list[Score], labels: list[Label], more: bytes = b"") -> list[str]:
    """Writes the two files, and returns the options that name them."""
    Path("results.jsonl").write_bytes(b"".join(each.wire() + b"\n" for each in scores))
    Path("labels.jsonl").write_bytes(b"".join(each.wire() + b"\n" for each in labels) + more)
    return ["--labels", "labels.jsonl", "--results", "results.jsonl"]


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    """Runs a command; returns its exit code, its output, and what it says on stderr."""
    with pytest.raises(SystemExit) as ended:
        main(["trust", *arguments])
    captured = capsys.readouterr()
    return int(ended.value.code or 0), captured.out, captured.err


def test_the_interval_covers_a_planted_rate_from_which_the_judge_is_far(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capsys, "rate", *written(*planted(7)), "--json")
    found = json.loads(out)
    assert (code, err) == (0, "")
    assert found["method"] == "ppi++"
    assert found["raw"] == pytest.approx(RATE * TPR + (1 - RATE) * (1 - TNR), abs=0.03)
    assert found["low"] <= RATE <= found["high"]
    assert abs(found["value"] - RATE) < 0.05
    assert found["high"] - found["low"] < 0.13
    assert "People would give a pass rate of" in found["sentence"]


def test_the_agreement_covers_the_planted_errors(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "agreement", *written(*planted(7)), "--json")
    found = json.loads(out)
    assert code == 0
    assert found["labels"] == LABELS
    assert found["tpr"]["low"] <= TPR <= found["tpr"]["high"]
    assert found["tnr"]["low"] <= TNR <= found["tnr"]["high"]
    assert len(found["disagreements"]) == found["only_judge_passes"] + found["only_people_pass"]


def test_labels_of_another_time_correct_a_window_without_labels(capsys: pytest.CaptureFixture[str]) -> None:
    scores, labels = planted(7)
    Path("earlier.jsonl").write_bytes(b"".join(each.wire() + b"\n" for each in scores))
    window = [
        each.model_copy(update={"session_id": f"later-{each.session_id}", "result_id": each.result_id + "x"})
        for each in planted(8)[0]
    ]
    _, out, _ = run(capsys, "rate", *written(window, labels), "--calibration", "earlier.jsonl", "--json")
    found = json.loads(out)
    assert found["method"] == "rogan-gladen"
    assert found["low"] <= RATE <= found["high"]
    assert "assumes that the judge errs as it did" in found["sentence"]
    unsure = [label(window[0].session_id, "unsure"), *labels]
    _, out, _ = run(capsys, "rate", *written(window, unsure), "--calibration", "earlier.jsonl", "--json")
    assert "The interval does not count 1 unsure label." in json.loads(out)["sentence"]


def test_without_labels_that_calibrate_the_rate_cannot_be_said(capsys: pytest.CaptureFixture[str]) -> None:
    scores, labels = planted(7)
    thumbs = [
        label(each.subject.session_id, "pass", kind="user", drawn="none", inclusion_probability=None) for each in labels
    ]
    _, out, err = run(capsys, "rate", *written(scores, thumbs))
    assert "cannot be said yet: about" in out
    assert "150 not used: kind user" in err


def test_few_labels_are_counted_without_the_judge_and_more_are_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    scores, labels = planted(7)
    _, out, _ = run(capsys, "rate", *written(scores, labels[:10]), "--json")
    found = json.loads(out)
    assert found["method"] == "exact"
    assert found["more_labels"] > 10
    assert "more labels" in found["sentence"]


def test_the_later_label_counts_and_a_withdrawn_one_does_not(capsys: pytest.CaptureFixture[str]) -> None:
    later = TIME + timedelta(days=1)
    scores = [score(f"s{number}", True) for number in range(3)]
    labels = [
        label("s0", "pass"),
        label("s0", "fail", occurred_at=later),
        label("s1", "pass"),
        label("s1", None, occurred_at=later, withdrawn=True),
        label("s2", "pass"),
    ]
    _, out, err = run(capsys, "agreement", *written(scores, labels), "--json")
    found = json.loads(out)
    assert (found["labels"], found["both_pass"], found["only_judge_passes"]) == (2, 1, 1)
    assert "1 not used: withdrawn" in err
    assert "2 not used: the annotator has given a later label" in err


def test_labels_with_and_without_the_only_segment_are_of_one_annotator(capsys: pytest.CaptureFixture[str]) -> None:
    unknown = LabelSubject(session_id="s0", revision=0, level="session")
    labels = [label("s0", "pass", subject=unknown), label("s0", "fail", occurred_at=TIME + timedelta(days=1))]
    _, out, err = run(capsys, "agreement", *written([score("s0", True)], labels), "--json")
    found = json.loads(out)
    assert (found["labels"], found["only_judge_passes"], found["unsure"]) == (1, 1, 0)
    assert "1 not used: the annotator has given a later label" in err


def test_labels_whose_truth_is_open_are_counted_beside_the_agreement(capsys: pytest.CaptureFixture[str]) -> None:
    labels = [label("s0", "pass"), label("s1", "unsure")]
    _, out, err = run(capsys, "agreement", *written([score("s0", True), score("s1", True)], labels), "--json")
    found = json.loads(out)
    assert (found["labels"], found["unsure"]) == (1, 1)
    assert "criterion 'helpful': 1 label unsure, or of annotators who differ, and not in the table" in err


def test_one_number_among_verdicts_costs_itself(capsys: pytest.CaptureFixture[str]) -> None:
    scores = [score(f"s{number}", True) for number in range(4)]
    labels = [*(label(f"s{number}", "pass") for number in range(3)), label("s3", None, value=0.5)]
    _, out, err = run(capsys, "agreement", *written(scores, labels), "--json")
    assert json.loads(out)["labels"] == 3
    assert "1 not used: a number, where most labels of the criterion are verdicts" in err


def test_a_label_of_a_score_that_was_not_drawn_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    scores = [score("s0", True), score("s1", True, inclusion_probability=0.0)]
    _, out, err = run(capsys, "agreement", *written(scores, [label("s0", "pass"), label("s1", "pass")]), "--json")
    assert json.loads(out)["labels"] == 1
    assert "1 not used: the score has the probability 0" in err


def test_disagreements_of_numbers_that_are_verdicts_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    labels = [label("s0", None, value=1.0), label("s1", None, value=0.0)]
    _, out, _ = run(capsys, "agreement", *written([score("s0", True), score("s1", True)], labels), "--json")
    found = json.loads(out)
    assert found["only_judge_passes"] == 1
    assert found["disagreements"] == [{"session_id": "s1", "subject": "s1"}]


@pytest.mark.parametrize(
    ("revision", "reason"),
    [
        (None, "the session has several revisions, and the label names none"),
        (2, "the results do not have the revision that was seen yet"),
    ],
)
def test_a_label_of_another_or_no_revision_does_not_count(
    revision: int | None, reason: str, capsys: pytest.CaptureFixture[str]
) -> None:
    subject = LabelSubject(session_id="s0", segment=0, revision=revision, level="session")
    files = written([score("s0", True, revision=1)], [label("s0", "pass", subject=subject)])
    code, out, err = run(capsys, "agreement", *files)
    assert (code, out) == (1, "")
    assert f"1 not used: {reason}" in err


def test_unsure_labels_and_annotators_who_differ_widen_the_interval(capsys: pytest.CaptureFixture[str]) -> None:
    scores, labels = planted(7)
    _, out, _ = run(capsys, "rate", *written(scores, labels[:-4]), "--json")
    narrow = json.loads(out)
    subject = labels[-4].subject
    other = "fail" if labels[-4].verdict == "pass" else "pass"
    differs = label(subject.session_id, other, annotator="ben")
    unsure = [label(each.subject.session_id, "unsure") for each in labels[-3:]]
    _, out, _ = run(capsys, "rate", *written(scores, [*labels[:-3], differs, *unsure]), "--json")
    wide = json.loads(out)
    assert (wide["unsure"], wide["labels"]) == (4, LABELS - 4)
    assert wide["low"] < narrow["low"]
    assert wide["high"] > narrow["high"]


def test_missing_verdicts_bound_the_rate(capsys: pytest.CaptureFixture[str]) -> None:
    scores, labels = planted(7)
    missing = [score(f"missing{number}", None) for number in range(500)]
    _, out, _ = run(capsys, "rate", *written([*scores, *missing], labels), "--json")
    found = json.loads(out)
    assert found["coverage"] == pytest.approx(0.8)
    assert found["worst"] == pytest.approx(found["low"] * 0.8)
    assert found["best"] == pytest.approx(found["high"] * 0.8 + 0.2)
    assert "Only 80.0% have a verdict" in found["sentence"]


def test_a_label_of_a_replaced_revision_does_not_count(capsys: pytest.CaptureFixture[str]) -> None:
    scores, labels = planted(7)
    replaced = [each.model_copy(update={"revision": 1}) for each in scores]
    code, out, err = run(capsys, "agreement", *written(replaced, labels))
    assert (code, out) == (1, "")
    assert "150 not used: a later revision has replaced the one that was seen" in err


def test_numbers_have_a_mean(capsys: pytest.CaptureFixture[str]) -> None:
    random = np.random.default_rng(3)
    truth = random.beta(4, 2, 800)
    scores = [score(f"s{number}", True, value=min(1.0, value + 0.1)) for number, value in enumerate(truth.tolist())]
    labels = [label(f"s{number}", None, value=value) for number, value in enumerate(truth[:100].tolist())]
    labels.append(label("s100", None, value=7.0))
    _, out, err = run(capsys, "rate", *written(scores, labels), "--json")
    found = json.loads(out)
    assert found["quantity"] == "mean"
    assert found["low"] <= 4 / 6 <= found["high"]
    assert found["raw"] > found["high"]
    assert "1 not used: off the scale: a value is from 0 to 1" in err


@pytest.mark.parametrize(
    ("threshold", "said"),
    [pytest.param(3.0, [1, 1, 1, 5], id="threshold"), pytest.param(None, [1, 2, 3, 4, 5], id="people")],
)
def test_a_judge_that_gave_only_1_does_not_make_the_scale_that_from_0_to_1(
    threshold: float | None, said: list[float], capsys: pytest.CaptureFixture[str]
) -> None:
    scores = [score(f"s{number}", False, value=1.0, threshold=threshold) for number in range(20)]
    labels = [label(f"s{number}", None, value=said[number % len(said)]) for number in range(20)]
    code, out, err = run(capsys, "agreement", *written(scores, labels), "--json")
    assert code == 0
    assert "off the scale: a value is from 0 to 1" not in err
    found = json.loads(out)
    assert (found["numbers"]["labels"], found["numbers"]["people_mean"]) == (20, np.mean(said))
    assert found.get("labels") == (None if threshold is None else 20)


def test_unknown_sessions_and_criteria_are_named(capsys: pytest.CaptureFixture[str]) -> None:
    labels = [label("s0", "pass"), label("elsewhere", "pass"), label("s1", "pass", criterion="helpfil")]
    code, _, err = run(capsys, "agreement", *written([score("s0", True)], labels))
    assert code == 0
    assert "1 not used: the results have no such session" in err
    assert "did you mean 'helpful'?" in err


def test_a_bad_line_costs_itself_and_the_exit_code(capsys: pytest.CaptureFixture[str]) -> None:
    more = json.loads(label("s1", "pass").wire()) | {"verdict": "perhaps"}
    files = written([score("s0", True), score("s1", True)], [label("s0", "pass")], json.dumps(more).encode() + b"\n{\n")
    code, out, err = run(capsys, "agreement", *files, "--json")
    assert code == 1
    assert json.loads(out)["labels"] == 1
    assert "labels.jsonl: line 2: verdict: " in err
    assert "labels.jsonl: line 3: " in err


@pytest.mark.parametrize("command", ["agreement", "rate"])
def test_an_empty_file_and_a_missing_one_are_said(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    files = written([score("s0", True)], [])
    assert run(capsys, command, *files)[::2] == (
        1,
        "labels.jsonl: contains no document; check that the file is the right one and is not empty\n",
    )
    Path("labels.jsonl").unlink()
    code, _, err = run(capsys, command, *files)
    assert code == 2
    assert "labels.jsonl: cannot be read" in err


def test_an_unknown_criterion_on_the_command_line_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    files = written([score("s0", True)], [label("s0", "pass")])
    code, _, err = run(capsys, "rate", *files, "--criterion", "helpfil")
    assert code == 2
    assert "did you mean 'helpful'?" in err


def test_hostile_names_are_escaped(capsys: pytest.CaptureFixture[str]) -> None:
    name = "\x1b[31m[red]x"
    scores = [score("s0", True, metric=name), score("s1", False, metric=name)]
    _, out, _ = run(capsys, "rate", *written(scores, [label("s0", "fail", criterion=name)]))
    assert "\x1b" not in out
    assert "[red]x" in out


def test_the_plan_counts_labels_for_a_rate_a_difference_and_a_proof(capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--criterion", "helpful", "--tpr", "0.95", "--tnr", "0.9", "--rate", "0.8", "--half-width", "0.05"]
    code, out, _ = run(capsys, "plan", *options, "--json")
    found = json.loads(out)
    assert code == 0
    assert found["rate"] < found["rate_people_only"] == 245
    assert found["rate"] < found["difference_each_version"] < 2.1 * found["rate"]
    assert (found["certified_good"], found["certified_bad"], found["certified"]) == (74, 217, 901)


def test_a_judge_below_the_bar_cannot_be_planned_to_pass(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capsys, "plan", "--criterion", "c", "--tpr", "0.95", "--tnr", "0.75", "--rate", "0.8")
    assert code == 0
    assert out.count("none is enough") == 1
    assert "and more; or" not in out
    assert "no number of labels can prove it" in err


def test_scores_of_another_prompt_are_another_judge(capsys: pytest.CaptureFixture[str]) -> None:
    scores, labels = planted(7)
    half = len(scores) // 2
    digests = ["first"] * half + ["second"] * half
    scores = [each.model_copy(update={"metric_digest": digest}) for each, digest in zip(scores, digests, strict=True)]
    scores[0] = score("s0", None, metric_digest="first")
    _, out, _ = run(capsys, "rate", *written(scores, labels), "--json")
    found = [json.loads(line) for line in out.splitlines()]
    assert [(each["metric_digest"], each["judged"]) for each in found] == [("first", half - 1), ("second", half)]


def test_numbers_and_categories_of_people_are_compared_with_those_of_the_judge(
    capsys: pytest.CaptureFixture[str],
) -> None:
    graded = [
        score(f"s{number}", True, value=3.0 + number % 2, threshold=None, status="PASSED") for number in range(12)
    ]
    of_people = [label(f"s{number}", None, value=3.0) for number in range(12)]
    code, out, _ = run(capsys, "agreement", *written(graded, of_people), "--json")
    found = json.loads(out)
    assert (code, found["numbers"]["labels"], found["numbers"]["difference"]) == (0, 12, 0.5)
    assert found["numbers"]["low"] < 0.5 < found["numbers"]["high"]
    assert found["categories"] is None

    named = [score(f"s{number}", True, category="good" if number else "poor") for number in range(12)]
    labels = [label(f"s{number}", None, category="good") for number in range(12)]
    code, out, _ = run(capsys, "agreement", *written(named, labels))
    assert code == 0
    assert "12 labels with a category: the judge gives the same for 0.92" in out
    assert "people 'good', judge 'poor': 1" in out

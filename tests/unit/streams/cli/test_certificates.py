"""Tests `traceweir trust certify` and `certificates` on files: judges with planted errors, and labels that prove nothing."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.support.certificates import certificate
from tests.unit.streams.cli.test_trust import TIME, label, run, score, written

from traceweir.schemas.base import JsonObject
from traceweir.schemas.certificate import Certificate
from traceweir.schemas.labels import Label
from traceweir.schemas.score import Score
from traceweir.scorers.evaluation.plan import read_plan
from traceweir.streams.cli.certificate_standing import standing, with_certificates

SESSIONS = 800
CERTIFY = ("certify", "--criterion", "helpful")
CONFIG: JsonObject = {"criteria": {"safety_v1": 0.5}}
JUDGE = "gemini/gemini-2.5-flash"
"""The model that the config asks, by litellm's name."""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "240")


def planted(tpr: float, tnr: float, **changes: Any) -> tuple[list[Score], list[Label]]:
    """Returns the scores of a judge with known errors, and a label of each session."""
    random = np.random.default_rng(5)
    good = random.random(SESSIONS) < 0.7
    right = random.random(SESSIONS) < np.where(good, tpr, tnr)
    passed = np.where(right, good, ~good)
    scores = [score(f"s{n}", bool(each), metric_digest="measured", **changes) for n, each in enumerate(passed)]
    return scores, [label(f"s{n}", "pass" if each else "fail") for n, each in enumerate(good)]


def test_a_judge_that_seldom_errs_is_certified_with_its_bounds(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capsys, *CERTIFY, *written(*planted(0.97, 0.93)), "--json")
    found = Certificate.model_validate_json(out)
    assert (code, err) == (0, "")
    assert (found.key, found.bar) == (("helpful", "measured", "model-a", 0.5), 0.8)
    assert found.good + found.bad == SESSIONS
    assert 0.8 <= found.tpr_bound < 0.97
    assert 0.8 <= found.tnr_bound < 0.93


def test_a_judge_that_passes_too_much_is_not_certified(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capsys, *CERTIFY, *written(*planted(0.97, 0.6)), "--json")
    assert (code, out) == (1, "")
    assert "helpful by model-a: not certified: TNR is above 0." in err
    assert "TPR" not in err


def test_a_higher_bar_needs_more(capsys: pytest.CaptureFixture[str]) -> None:
    files = written(*planted(0.97, 0.93))
    assert run(capsys, *CERTIFY, *files, "--bar", "0.95")[0] == 1
    assert run(capsys, *CERTIFY, *files, "--bar", "0.5")[0] == 0


def test_labels_that_the_judge_can_be_made_with_prove_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    scores, labels = planted(0.97, 0.93, evaluated_at=TIME + timedelta(seconds=1))
    code, out, err = run(capsys, *CERTIFY, *written(scores, labels), "--json")
    assert (code, out) == (1, "")
    assert f"{SESSIONS} not used: the session was labelled before the first score of this judge" in err
    again = [
        each.model_copy(
            update={"label_id": f"{each.label_id}x", "annotator": "ben", "occurred_at": TIME + timedelta(1)}
        )
        for each in labels
    ]
    assert run(capsys, *CERTIFY, *written(scores, labels + again))[0] == 1
    assert run(capsys, *CERTIFY, *written(scores, again))[0] == 0


def test_a_session_of_which_an_invocation_was_labelled_before_proves_nothing(
    capsys: pytest.CaptureFixture[str],
) -> None:
    scores, labels = planted(0.97, 0.93)
    early = [
        each.model_copy(
            update={
                "label_id": f"{each.label_id}i",
                "subject": each.subject.model_copy(update={"level": "invocation", "invocation_id": "i"}),
                "occurred_at": TIME - timedelta(1),
            }
        )
        for each in labels
    ]
    code, out, err = run(capsys, *CERTIFY, *written(scores, early + labels), "--json")
    assert (code, out) == (1, "")
    assert f"{SESSIONS} not used: the session was labelled before the first score of this judge" in err


def test_feedback_and_flagged_labels_prove_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    scores, labels = planted(0.97, 0.93)
    thumbs = {"kind": "user", "drawn": "none", "inclusion_probability": None}
    flagged = {"drawn": "flagged", "inclusion_probability": None}
    for changes in (thumbs, flagged):
        other = [each.model_copy(update=changes) for each in labels]
        assert run(capsys, *CERTIFY, *written(scores, other))[0] == 1


def test_labels_of_two_draws_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    scores, labels = planted(0.97, 0.93)
    labels[0] = labels[0].model_copy(update={"inclusion_probability": 0.5})
    code, _, err = run(capsys, *CERTIFY, *written(scores, labels))
    assert code == 1
    assert "drawn with probabilities from 0.1 to 0.5, and the proof needs one" in err


def as_it_is(scores: list[Score], labels: list[Label]) -> tuple[list[Score], list[Label]]:
    return scores, labels


def with_unsure(scores: list[Score], labels: list[Label]) -> tuple[list[Score], list[Label]]:
    unsure = [label(each.subject.session_id, "unsure") for each in labels[:400]]
    return scores, [*unsure, *labels[400:]]


def in_one_session(scores: list[Score], labels: list[Label]) -> tuple[list[Score], list[Label]]:
    one = [each.model_copy(update={"session_id": f"s{n % 10}", "segment": n // 10}) for n, each in enumerate(scores)]
    about = [
        each.model_copy(
            update={
                "label_id": f"l{n}",
                "subject": each.subject.model_copy(update={"session_id": f"s{n % 10}", "segment": n // 10}),
            }
        )
        for n, each in enumerate(labels)
    ]
    return one, about


@pytest.mark.parametrize(
    ("changed", "labels"), [(as_it_is, "800 labels"), (with_unsure, "400 unsure"), (in_one_session, "10 labels")]
)
def test_unsure_labels_and_segments_of_one_session_prove_less(
    changed: Callable[[list[Score], list[Label]], tuple[list[Score], list[Label]]],
    labels: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    code, out, err = run(capsys, *CERTIFY, *written(*changed(*planted(0.97, 0.93))))
    assert code == (0 if labels == "800 labels" else 1)
    assert ("400 unsure" in out) == (labels == "400 unsure")
    assert ("790 not used: a further segment of a session" in err) == (labels == "10 labels")


def test_a_criterion_without_a_judge_has_nothing_to_certify(capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = run(capsys, *CERTIFY, *written(*planted(0.97, 0.93, source="code")))
    assert code == 1
    assert "helpful: no judge has a verdict on a session, so there is nothing to certify" in err


def test_a_certificate_ends_with_the_judge_the_threshold_and_the_criterion() -> None:
    plan = read_plan(CONFIG)
    (metric,) = plan.metrics
    known = certificate(criterion="safety_v1", metric_digest=metric.digest, judge=JUDGE)
    assert standing(known, plan) == "in force"
    assert standing(known.model_copy(update={"metric_digest": "x"}), plan).startswith("ended: the judge, its prompt")
    assert standing(known.model_copy(update={"threshold": 0.6}), plan) == "ended: the threshold is another one"
    assert standing(known, read_plan({})) == "ended: the config has no such criterion"


def test_a_certificate_of_a_judge_that_the_config_does_not_name_is_not_in_force() -> None:
    (metric,) = read_plan(CONFIG).metrics
    known = certificate(criterion="safety_v1", metric_digest=metric.digest, judge="openai/former")
    assert standing(known, read_plan(CONFIG)) == f"not in force: the config names {JUDGE}"
    # The digest has the names that the criteria write; who answers to a name is another option.
    renamed = read_plan({**CONFIG, "judge": {"models": {"gemini-2.5-flash": "openai/former"}}})
    assert standing(known, renamed) == "in force"
    assert (
        standing(known.model_copy(update={"judge": JUDGE}), renamed) == "not in force: the config names openai/former"
    )
    assert standing(known.model_copy(update={"judge": None}), renamed) == "in force"


def test_a_certificate_of_models_of_a_fallback_is_in_force() -> None:
    plan = read_plan({**CONFIG, "judge": {"fallback": {"gemini-2.5-flash": ["gpt-4o-mini"]}}})
    (metric,) = plan.metrics
    known = certificate(criterion="safety_v1", metric_digest=metric.digest, judge=f"{JUDGE} + openai/gpt-4o-mini")
    assert standing(known, plan) == "in force"
    other = known.model_copy(update={"judge": f"{JUDGE} + openai/gpt-5"})
    assert standing(other, plan) == f"not in force: the config names {JUDGE}, openai/gpt-4o-mini"


def test_the_certificates_of_a_file_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    (metric,) = read_plan(CONFIG).metrics
    given = [
        certificate(criterion="safety_v1", metric_digest=metric.digest, judge=JUDGE),
        certificate(criterion="\x1b[31mred"),
    ]
    Path("eval.json").write_text(json.dumps(with_certificates(CONFIG, given)))
    code, out, _ = run(capsys, "certificates", "--config", "eval.json", "--json")
    found = [json.loads(line) for line in out.splitlines()]
    assert code == 0
    assert [each["standing"] for each in found] == ["in force", "ended: the config has no such criterion"]
    code, out, _ = run(capsys, "certificates", "--config", "eval.json")
    assert code == 0
    assert "\x1b" not in out


def test_a_dry_run_writes_no_file_and_asks_no_broker(capsys: pytest.CaptureFixture[str]) -> None:
    files = written(*planted(0.97, 0.93))
    Path("eval.json").write_text(json.dumps(CONFIG))
    code, _, err = run(capsys, *CERTIFY, *files, "--into", "eval.json", "--dry-run")
    assert code == 0
    assert "eval.json: would have the certificate of helpful: ended: the config has no such criterion" in err
    assert json.loads(Path("eval.json").read_text()) == CONFIG
    assert run(capsys, *CERTIFY, *files, "--into", "eval.json")[0] == 0
    assert len(read_plan(Path("eval.json").read_text()).gate.certificates) == 1


def test_a_file_that_is_full_of_certificates_is_left_as_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    full = with_certificates(CONFIG, [certificate(criterion=f"c{number}") for number in range(200)])
    Path("eval.json").write_text(json.dumps(full))
    code, _, err = run(capsys, *CERTIFY, *written(*planted(0.97, 0.93)), "--into", "eval.json")
    assert code == 2
    assert "certificates" in err
    assert json.loads(Path("eval.json").read_text()) == full


def test_the_certificates_of_a_config_replace_its_own() -> None:
    document = with_certificates({**CONFIG, "gate": {"threshold": 0.5, "certificates": [{"a": 1}]}}, [certificate()])
    assert [each.criterion for each in read_plan(document).gate.certificates] == ["helpful"]
    assert with_certificates(document, []) == {**CONFIG, "gate": {"threshold": 0.5}}

"""Compares eval sets, pooling and the console with google-adk 2.13.0; `record_adk_files.py` records its results."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.parity.record_adk_files import DOCUMENTS, OLD_SET
from tests.support.eval_sets import case, eval_set, invocation, write
from tests.support.scoring import NOW

from traceweir.schemas.config import GateConfig
from traceweir.schemas.eval_set import EvalSet
from traceweir.schemas.eval_set_files import modern
from traceweir.scorers import Measurement, Metric, MissingInput, Plan, Scorer, Subject, TraceValue
from traceweir.streams.cli.main import main
from traceweir.streams.intake.formats.documents import InputError
from traceweir.streams.lab.evals.files import Chosen, checked, read_eval_file
from traceweir.streams.lab.evals.recordings import read_recordings
from traceweir.streams.lab.evals.results import CaseResult, CriterionResult
from traceweir.streams.lab.evals.scoring import ScoredFile, score_files
from traceweir.streams.lab.evals.text import failure_lines

DATA = Path(__file__).parent / "data"
RECORDED: dict[str, Any] = json.loads((DATA / "adk_files.json").read_text("utf-8"))


def test_every_recorded_document_is_compared() -> None:
    assert RECORDED["google-adk"] == "2.13.0"
    assert RECORDED["accepted"].keys() == DOCUMENTS.keys()


@pytest.mark.parametrize(("name", "accepted"), RECORDED["accepted"].items())
def test_eval_sets_are_accepted_and_rejected_as_in_adk(name: str, accepted: bool) -> None:
    try:
        checked(DOCUMENTS[name], "file")
    except InputError:
        assert not accepted
    else:
        assert accepted


def test_the_old_format_is_converted_as_in_adk() -> None:
    new = modern(OLD_SET, "old.test.json")
    made = EvalSet.model_validate_json(json.dumps(new)).model_dump(mode="json", exclude_unset=True)["eval_cases"]
    for each in made:
        for turn in each["conversation"]:
            del turn["invocation_id"]
    # ADK writes default values; a reader of the file treats them as absent keys.
    theirs = EvalSet.model_validate_json(json.dumps({"eval_set_id": "set", "eval_cases": RECORDED["old"]}))
    assert EvalSet.model_validate_json(json.dumps({"eval_set_id": "set", "eval_cases": made})) == theirs.model_copy(
        update={"eval_cases": [each.model_copy(update={"creation_timestamp": 0.0}) for each in theirs.eval_cases]}
    )


class Stated(Scorer):
    """Returns the response as a number."""

    def score(self, subject: Subject) -> Measurement:
        if subject.response == "None":
            raise MissingInput("no number")
        return Measurement(value=float(subject.response))


@pytest.mark.parametrize(("runs", "threshold", "failures"), RECORDED["pooled"])
async def test_runs_are_pooled_and_failures_are_reported_as_in_adk(
    runs: list[list[float | None]], threshold: float, failures: list[str], tmp_path: Path
) -> None:
    # Each run of a case has the same number of invocations; the means are equal if those without a value are included.
    length = max(map(len, runs))
    padded = [[*run, *[None] * (length - len(run))] for run in runs]
    file = write(tmp_path / "a.test.json", eval_set(case("a", *[invocation("Hi")] * length)))
    recorded = eval_set(*(case("a", *(invocation("Hi", str(value)) for value in run)) for run in padded))
    sessions = write(tmp_path / "a.sessions.json", recorded)
    plan = Plan((Metric("m", threshold, Stated(), "d"),), TraceValue(), GateConfig(), {"m": 1.0}, "")
    scored = ScoredFile(read_eval_file(Chosen(file)), plan, read_recordings([str(sessions)]), {})

    [result] = (await score_files([scored], now=lambda: NOW, pooled=True)).cases

    found = [line.replace(f"{file}:a", "module") for line in failure_lines(result)]
    assert [line.partition("was not evaluated.")[:2] for line in found] == [
        line.partition("was not evaluated.")[:2] for line in failures
    ]
    assert (result.status == "PASSED") == (not failures)


@pytest.mark.parametrize(("statuses", "final"), RECORDED["final"])
def test_the_status_of_a_case_depends_on_the_statuses_of_its_criteria(statuses: list[str], final: str) -> None:
    criteria = [
        CriterionResult("m", None, 1.0, "PASSED")
        if status == "INFORMATIONAL"
        else CriterionResult("m", 0.5, None if status == "NOT_EVALUATED" else 1.0, status)  # type: ignore[arg-type]
        for status in statuses
    ]
    assert CaseResult(Path("f"), "set1", "a", criteria).status == final


INFORMATIONAL = ("tool_call_count_v1", "inference_call_count_v1", "token_usage_v1", "invocation_duration_v1")


def comparable(text: str) -> list[str]:
    """Returns the lines of ADK's console, except the first line and metrics that Traceweir does not compute."""
    lines: list[str] = []
    skipping = False
    for line in text.splitlines()[1:]:
        names_one = any(name in line for name in INFORMATIONAL)
        if names_one and line.startswith("Metric:"):
            skipping = True
            lines.pop()  # the horizontal rule above
        elif line.startswith("---"):
            skipping = False
        if not (skipping or names_one):
            lines.append(line)
    return lines


def test_the_informational_metrics_equal_adks(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    call = {"usage_metadata": {"prompt_token_count": 10, "candidates_token_count": 5}, "model_version": "m"}
    rolls = {"content": {"parts": [{"function_call": {"name": "roll_die", "args": {"sides": 19}}}]}, **call}
    bad = {**invocation("a"), "intermediate_data": {"invocation_events": [call]}, "duration": 0.082}
    good = {**invocation("b"), "intermediate_data": {"invocation_events": [rolls, call]}, "duration": 0.371}
    cases = case("bad", invocation("a")), case("good", invocation("b"))
    file = write(tmp_path / "set1.evalset.json", eval_set(*cases))
    write(tmp_path / "set1.sessions.json", eval_set(case("bad", bad), case("good", good)))
    config = write(tmp_path / "config.json", {"criteria": {metric: {} for metric in INFORMATIONAL}})

    with pytest.raises(SystemExit):
        main(["eval", str(file), "--config", str(config), "--print-detailed-results"])

    expected = (DATA / "adk_cli_out.txt").read_text("utf-8").splitlines()
    of_metrics = [line for line in expected if line.startswith("Metric: ") and "INFORMATIONAL" in line]
    assert len(of_metrics) == 8
    assert [line for line in capfd.readouterr().out.splitlines() if line.startswith("Metric: ")] == of_metrics


def test_the_console_output_equals_adks(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    asked, expected = "무엇을 할 수 있나요?", "다른 크기의 주사위를 굴리고 숫자가 소수인지 확인할 수 있습니다."
    rolled = invocation("19면체 주사위를 굴리세요", "17이 나왔습니다.", [{"name": "roll_die", "args": {"sides": 19}}])
    file = write(
        tmp_path / "set1.evalset.json",
        eval_set(case("bad", invocation(asked, expected, [{"name": "x"}])), case("good", rolled)),
    )
    write(
        tmp_path / "set1.sessions.json",
        eval_set(case("bad", invocation(asked, "주사위를 굴릴 수 있습니다.", [])), case("good", rolled)),
    )

    with pytest.raises(SystemExit) as ended:
        main(["eval", str(file), "--print-detailed-results"])

    assert ended.value.code == 1
    assert capfd.readouterr().out.splitlines() == comparable((DATA / "adk_cli_out.txt").read_text("utf-8"))

"""Tests reading eval sets from files: the selection by arguments, and problems reported by file, case and field."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from tests.support.eval_sets import case, eval_set, invocation, scenario, write

from traceweir.scorers.evaluation.config_problems import ConfigError
from traceweir.streams.intake.formats.documents import InputError
from traceweir.streams.lab.evals.configs import clashing, criteria_for
from traceweir.streams.lab.evals.files import Chosen, chosen_files, read_eval_file
from traceweir.streams.lab.evals.json_text import MAX_BYTES, parsed, slips, without_slips

TURN = invocation("Hi", "Hello.", [])


def problem(path: Path, document: Any) -> str:
    """Returns the error message for a file with this content, with FILE in place of its path."""
    write(path, document)
    with pytest.raises(InputError) as refused:
        read_eval_file(Chosen(path))
    return str(refused.value).replace(str(path), "FILE")


# --- invalid files


def test_comments_and_trailing_commas_are_reported_with_position_and_remedy(tmp_path: Path) -> None:
    said = problem(tmp_path / "a.test.json", '# trips\n{"eval_set_id": "s", // x\n "eval_cases": [],\n}\n')
    assert said.splitlines() == [
        "FILE, line 1, column 1: a comment; JSON does not allow it, remove it",
        "FILE, line 2, column 22: a comment; JSON does not allow it, remove it",
        "FILE, line 3, column 18: a comma before }; JSON does not allow it, remove it",
        "`traceweir migrate FILE --out FILE` removes all of them.",
    ]


def test_at_most_five_positions_are_reported(tmp_path: Path) -> None:
    said = problem(tmp_path / "a.test.json", "[" + "{},# x\n" * 9 + "{}]").splitlines()
    assert (len(said), said[5]) == (7, "and 4 more")


def test_comment_characters_within_a_string_are_not_a_comment() -> None:
    text = '{"a": "# // /* ,}", "b": "\\"# x", "c": [1 , ] /* , ] \n */ , "d": "http://x"}'
    assert [text[slip.begin : slip.end] for slip in slips(text)] == [",", "/* , ] \n */"]
    corrected: Any = parsed(without_slips(text), "x")
    assert corrected == {"a": "# // /* ,}", "b": '"# x', "c": [1], "d": "http://x"}


def test_other_syntax_errors_are_reported_with_their_position(tmp_path: Path) -> None:
    said = problem(tmp_path / "a.test.json", '{"eval_set_id": "s"\n "eval_cases": []}')
    assert said.startswith("FILE, line 2, column 2: is not JSON (")
    assert problem(tmp_path / "a.test.json", "").startswith("FILE, line 1, column 1: is not JSON")


def test_nan_is_rejected_because_it_is_not_json(tmp_path: Path) -> None:
    said = problem(tmp_path / "a.test.json", '{"eval_set_id": "s", "eval_cases": [], "creation_timestamp": NaN}')
    assert said == "FILE: NaN is not valid JSON; write null, or remove the key."


def test_a_file_nested_too_deeply_is_rejected(tmp_path: Path) -> None:
    assert problem(tmp_path / "a.test.json", "[" * 200_000) == "FILE: is nested too deeply to be read."


@pytest.mark.parametrize("depth", [150, 700, 900, 950, 970, 980, 990, 1000])
def test_arguments_of_any_depth_are_read_or_rejected(depth: int, tmp_path: Path) -> None:
    text = (
        '{"eval_set_id": "s", "eval_cases": [{"eval_id": "a", "final_session_state": {"x": %s%s}, "conversation": []}]}'
    )
    path = write(tmp_path / "a.test.json", text % ("[" * depth, "]" * depth))
    if depth == 150:
        assert len(read_eval_file(Chosen(path)).cases) == 1
    else:
        with pytest.raises(InputError, match=r"nested too deeply|recursion limit"):
            read_eval_file(Chosen(path))


def test_a_file_that_is_not_utf_8_is_reported_with_the_position(tmp_path: Path) -> None:
    path = tmp_path / "a.test.json"
    path.write_bytes('{"eval_set_id":\n "설"}'.encode("cp949"))
    with pytest.raises(InputError, match=r"a\.test\.json, line 2, byte 3: is not UTF-8\. Save the file as UTF-8\."):
        read_eval_file(Chosen(path))


def test_a_file_with_a_byte_order_mark_is_read(tmp_path: Path) -> None:
    path = write(tmp_path / "a.test.json", "\ufeff" + '{"eval_set_id": "s", "eval_cases": []}')
    assert read_eval_file(Chosen(path)).cases == ()


def test_a_file_beyond_the_size_limit_is_rejected_before_reading(tmp_path: Path) -> None:
    path = tmp_path / "a.test.json"
    with path.open("wb") as stream:
        os.truncate(stream.fileno(), MAX_BYTES + 1)
    with pytest.raises(InputError, match="is larger than the maximum of 64 MiB"):
        read_eval_file(Chosen(path))


def test_a_missing_file_is_reported_by_name(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"no\.json: cannot be read \(No such file or directory\)"):
        read_eval_file(Chosen(tmp_path / "no.json"))


RUBRIC = {"rubric_id": "short", "rubric_content": {"text_property": "It is short."}}


@pytest.mark.parametrize(
    ("document", "said"),
    [
        (
            eval_set(case("a", TURN), case("a", TURN)),
            "FILE: eval_cases.1.eval_id: 'a' is also the id of eval_cases.0; use a different id for each case",
        ),
        (
            eval_set({"eval_id": "a"}),
            "FILE: case 'a': exactly one of conversation and conversation_scenario is needed; the case has neither",
        ),
        (
            eval_set({**scenario("a"), "conversation": []}),
            "FILE: case 'a': exactly one of conversation and conversation_scenario is needed; the case has both",
        ),
        (
            eval_set(case("a", rubrics=[{"rubric_content": {"text_property": "x"}}])),
            "FILE: case 'a': rubrics.0.rubric_id: Field required",
        ),
        (
            eval_set(case("a", rubrics=[RUBRIC, RUBRIC])),
            "FILE: case 'a': rubrics: rubric_id 'short' occurs twice; use a different id for each rubric",
        ),
        (
            eval_set(case("a", TURN, {**TURN, "intermediate_data": {"tool_use": []}})),
            "FILE: case 'a': conversation.1.intermediate_data.tool_use: this key does not exist; correct its spelling, or remove the key",
        ),
        (eval_set({"conversation": []}), "FILE: eval_cases.0.eval_id: Field required"),
        ({"eval_cases": []}, "FILE: eval_set_id: Field required"),
        ({"cases": []}, "FILE: eval_cases: is missing; an eval set is an object with eval_set_id and eval_cases."),
        ([{"query": 1}], "FILE: data[0].query: must be a string."),
    ],
)
def test_a_problem_is_reported_with_file_case_and_field(document: Any, said: str, tmp_path: Path) -> None:
    assert problem(tmp_path / "a.test.json", document) == said


def test_all_problems_are_reported_at_once_with_escaped_control_characters(tmp_path: Path) -> None:
    said = problem(tmp_path / "a.test.json", eval_set({"eval_id": "a\x1b[31m"}, {"eval_id": "b"})).splitlines()
    assert len(said) == 2
    assert said[0].startswith(r"FILE: case 'a\\x1b[31m': ")


# --- arguments


def test_a_folder_selects_all_test_files_below_it(tmp_path: Path) -> None:
    for name in ("b.test.json", "deep/er/a.test.json", "c.evalset.json", "test_config.json"):
        write(tmp_path / name, eval_set())
    assert [each.path.name for each in chosen_files([str(tmp_path)])] == ["b.test.json", "a.test.json"]


def test_a_folder_without_test_files_is_rejected(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"neither this folder nor a folder below it contains a \*\.test\.json file"):
        chosen_files([str(tmp_path)])


def test_cases_are_selected_after_a_colon_and_selections_are_combined(tmp_path: Path) -> None:
    path = write(tmp_path / "a.json", eval_set(case("one"), case("two"), case("three")))
    [chosen] = chosen_files([f"{path}:three, one", f"{path}:one"])
    assert [each.eval_id for each in read_eval_file(chosen).cases] == ["one", "three"]
    [chosen] = chosen_files([f"{path}:three", str(path)])
    assert len(read_eval_file(chosen).cases) == 3


def test_a_file_with_a_colon_in_its_name_can_be_selected(tmp_path: Path) -> None:
    path = write(tmp_path / "a:b.json", eval_set())
    assert chosen_files([str(path)]) == [Chosen(path)]


def test_a_selection_can_be_longer_than_a_file_name(tmp_path: Path) -> None:
    names = [f"case-{number}" for number in range(1_000)]
    path = write(tmp_path / "a.json", eval_set(*map(case, names)))
    assert len(read_eval_file(*chosen_files([f"{path}:{','.join(names)}"])).cases) == 1_000


def test_an_unknown_case_is_reported_with_the_known_cases(tmp_path: Path) -> None:
    path = write(tmp_path / "a.json", eval_set(case("one")))
    with pytest.raises(InputError, match=r"there is no case 'two'; there are 'one'\."):
        read_eval_file(*chosen_files([f"{path}:two"]))
    with pytest.raises(InputError, match="no case is named after the colon"):
        chosen_files([f"{path}:"])


# --- criteria


def metrics(path: Path, given: Path | None = None, *, alone: bool = True) -> dict[str, float | None]:
    return {metric.name: metric.threshold for metric in criteria_for(path, given, alone=alone).plan.metrics}


def test_without_a_config_the_criteria_are_the_defaults_of_adk(tmp_path: Path) -> None:
    found = criteria_for(tmp_path / "a.test.json", None, alone=True)
    assert metrics(tmp_path / "a.test.json") == {"tool_trajectory_avg_score": 1.0, "response_match_score": 0.8}
    assert found.origin.startswith(
        "Google ADK's default criteria, tool_trajectory_avg_score 1.0, response_match_score 0.8"
    )


def test_a_config_beside_the_file_applies_where_adk_reads_it(tmp_path: Path) -> None:
    write(tmp_path / "test_config.json", {"criteria": {"response_match_score": 0.1}})
    configured, default_count = {"response_match_score": 0.1}, 2
    assert metrics(tmp_path / "a.test.json", alone=False) == configured
    assert metrics(tmp_path / "a.evalset.json", alone=True) == configured
    assert len(metrics(tmp_path / "a.evalset.json", alone=False)) == default_count
    assert "--config applies it to all" in criteria_for(tmp_path / "a.evalset.json", None, alone=False).origin


def test_the_option_config_applies_to_every_file(tmp_path: Path) -> None:
    write(tmp_path / "test_config.json", {"criteria": {"response_match_score": 0.1}})
    given = write(tmp_path / "mine.json", {"criteria": {"response_match_score": 0.2}})
    assert metrics(tmp_path / "a.test.json", given) == {"response_match_score": 0.2}
    with pytest.raises(InputError, match=r"no\.json: cannot be read"):
        metrics(tmp_path / "a.test.json", tmp_path / "no.json")


def test_an_unknown_metric_is_reported_with_its_file(tmp_path: Path) -> None:
    given = write(tmp_path / "mine.json", {"criteria": {"response_mach_score": 0.2}})
    with pytest.raises(ConfigError, match=r"mine\.json: criteria\.response_mach_score: there is no such metric"):
        metrics(tmp_path / "a.test.json", given)


def test_a_trailing_comma_in_a_config_is_reported_with_the_position(tmp_path: Path) -> None:
    given = write(tmp_path / "mine.json", '{"criteria": {\n"response_match_score": 0.2,}}')
    with pytest.raises(InputError, match="line 2, column 28: a comma before }"):
        metrics(tmp_path / "a.test.json", given)


def test_two_files_with_the_same_eval_id_cannot_share_sessions(tmp_path: Path) -> None:
    clashing([(Path("a"), "x"), (Path("a"), "y"), (Path("b"), "z")])
    with pytest.raises(InputError, match="b: case 'x' has the eval id of a case in a"):
        clashing([(Path("a"), "x"), (Path("b"), "x")])

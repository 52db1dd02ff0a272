"""What the documents show is true: code runs, commands parse, files, targets and variables exist."""

from __future__ import annotations

import doctest
import re
import stat
from importlib.util import find_spec
from pathlib import Path

import pytest
from tests.support.commands import VARIABLES, blocks, commands_in, parse, variables_in
from tests.support.paths import ROOT
from tests.support.redaction.measurement import measure

from traceweir.scorers import read_plan
from traceweir.scorers.redaction.redaction import redact_text
from traceweir.scorers.redaction.secret_formats import secret_formats
from traceweir.streams.base import settings_doc

pytestmark = pytest.mark.slow

PAGES = sorted(
    path for each in ("*.md", "docs/**/*.md", "k8s/*.md", "examples/**/*.md", "client/*.md") for path in ROOT.glob(each)
)
DECISIONS = sorted((ROOT / "docs" / "decisions").glob("[0-9]*.md"))
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
WIDTH = 119
"""Maximum length in characters of a line of prose."""
TARGETS = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE))


def name(path: object) -> str:
    return str(path.relative_to(ROOT)) if isinstance(path, Path) else str(path)


def commands() -> list[list[str]]:
    return [arguments for page in PAGES for arguments in commands_in(page.read_text("utf-8"))]


def test_the_python_examples_print_what_the_page_shows() -> None:
    found = doctest.testfile(str(ROOT / "docs" / "score-without-kafka.md"), module_relative=False)
    assert (found.failed, found.attempted > 5) == (0, True)


def test_the_list_of_settings_is_that_of_the_code() -> None:
    page = (ROOT / settings_doc.PAGE).read_text("utf-8")
    assert settings_doc.with_table(page) == page
    assert variables_in(settings_doc.settings_list()) == VARIABLES


def test_a_page_without_its_marks_is_refused() -> None:
    with pytest.raises(ValueError, match="settings: begin"):
        settings_doc.with_table("# Configuration\n")


@pytest.mark.parametrize("page", sorted((ROOT / "docs" / "api").glob("*.md")), ids=name)
def test_every_module_of_the_api_reference_exists(page: Path) -> None:
    for module in re.findall(r"^::: (\S+)", page.read_text("utf-8"), re.MULTILINE):
        assert find_spec(module), module


def test_the_example_config_makes_a_plan() -> None:
    (config,) = blocks((ROOT / settings_doc.PAGE).read_text("utf-8"), "json")
    plan = read_plan(config)
    assert [metric.name for metric in plan.metrics] == ["tool_trajectory_avg_score", "response_match_score"]


@pytest.mark.parametrize("arguments", commands(), ids=" ".join)
def test_every_command_is_one(arguments: list[str]) -> None:
    parse(arguments)


def test_there_are_commands_to_look_at() -> None:
    assert {arguments[0] for arguments in commands()} >= {"topics", "worker", "emit", "score"}


def test_every_link_to_a_file_leads_to_one() -> None:
    missing = [
        (name(page), target)
        for page in PAGES
        for target in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", page.read_text("utf-8"))
        if "://" not in target and not (page.parent / target).exists()
    ]
    assert missing == []


def long_lines(markdown: str) -> list[str]:
    """Returns the lines of prose that are longer than `WIDTH`. Tables, code blocks and link targets do not count."""
    prose = re.sub(r"^```.*?^```$", "", markdown, flags=re.DOTALL | re.MULTILINE)
    lines = [line for line in prose.splitlines() if not line.startswith("|")]
    return [line for line in lines if len(re.sub(r"\]\([^)]*\)", "]", line)) > WIDTH]


def test_prose_is_wrapped() -> None:
    assert [(name(page), line) for page in PAGES for line in long_lines(page.read_text("utf-8"))] == []


@pytest.mark.parametrize(
    ("markdown", "found"),
    [
        ("x" * 119, 0),
        ("- " + "x" * 118, 1),
        ("| " + "x" * 118, 0),
        ("```bash\n" + "x" * 120 + "\n```\n", 0),
        ("```bash\ny\n```\n" + "x" * 120, 1),
        ("[x](" + "y" * 118 + ")", 0),
    ],
)
def test_long_lines_of_prose_are_found(markdown: str, found: int) -> None:
    assert len(long_lines(markdown)) == found


def test_every_variable_is_read_by_somebody() -> None:
    unread = {name(page): variables_in(page.read_text("utf-8")) - VARIABLES for page in PAGES}
    assert {page: variables for page, variables in unread.items() if variables} == {}


def test_every_make_target_exists() -> None:
    for page in (*PAGES, ROOT / ".ci" / "run", *WORKFLOWS):
        text = page.read_text("utf-8")
        # In prose, "make" may also be a verb.
        if page.suffix == ".md":
            text = "\n".join([*blocks(text, "bash"), *re.findall(r"`make [a-z-]+`", text)])
        named = set(re.findall(r"(?:`|^|suite \d+ |run: )make ([a-z][a-z-]*)", text, re.MULTILINE))
        assert named <= TARGETS, name(page)


def test_a_decision_says_why_and_what_was_refused() -> None:
    for page in DECISIONS:
        text = page.read_text("utf-8")
        parts = re.findall(r"^\*\*(.+?)\.\*\*", text, re.MULTILINE)
        # The consequences are costs that were accepted; a decision can have none.
        parts = [part for part in parts if part != "Consequences" or parts.index(part) != 2]
        assert parts == ["Context", "Decision", "Refused"], name(page)
        assert text.startswith(f"# {page.name[:4]}: "), name(page)


def test_decisions_are_numbered_without_a_gap() -> None:
    assert [int(page.name[:4]) for page in DECISIONS] == list(range(1, len(DECISIONS) + 1))


def rows_of_the_architecture(heading: str) -> list[list[set[str]]]:
    """Returns the names in each cell of each row of a table."""
    text = (ROOT / "docs" / "architecture.md").read_text("utf-8")
    table = text.partition(heading)[2].partition("\n\n")[0]
    return [[set(re.findall(r"`([a-z_]+)`", cell)) for cell in row.split("|")[1:-1]] for row in table.splitlines()[2:]]


def packages_in(folder: str) -> set[str]:
    return {found.parent.name for found in ROOT.glob(f"{folder}/*/__init__.py")}


def test_the_architecture_names_every_room_of_scorers() -> None:
    named = {room for first, _ in rows_of_the_architecture("| room of `scorers` |") for room in first}
    assert named == packages_in("scorers/traceweir/scorers")


def test_the_architecture_names_every_wing_and_its_rooms() -> None:
    rows = rows_of_the_architecture("| wing of `streams` |")
    wings = {wing for first, *_ in rows for wing in first}
    public = set(
        re.findall(
            r"^## `traceweir\.streams\.(\w+)", (ROOT / "docs" / "public-api.md").read_text("utf-8"), re.MULTILINE
        )
    )
    assert wings == packages_in("streams/traceweir/streams") - public
    for (wing,), rooms, *_ in rows:
        assert rooms >= packages_in(f"streams/traceweir/streams/{wing}"), wing


def test_ci_runs_and_knows_no_machine() -> None:
    script = ROOT / ".ci" / "run"
    assert script.stat().st_mode & stat.S_IXUSR
    assert not re.findall(r"(?<![\w.}])/(?:home|root|work|opt|tmp|Users)/", script.read_text("utf-8"))


def test_the_table_of_redaction_is_that_of_the_measurement() -> None:
    page = (ROOT / "docs" / "redaction.md").read_text("utf-8")
    measured = measure(redact_text)
    rows = {form: re.search(rf"^\| {form} \| (\d+) \| \d+ \| (\d+) \|", page, re.MULTILINE) for form in measured.found}
    shown = {form: (int(row[2]), int(row[1])) for form, row in rows.items() if row}
    assert shown == measured.found
    assert f"now {len(measured.changed)} change" in page
    assert f"{len(secret_formats())} documented formats" in page


def test_a_silent_installation_is_announced() -> None:
    lines = (ROOT / "Makefile").read_text("utf-8").partition("\nbuild:")[0].splitlines()
    recipes = [number for number, line in enumerate(lines) if "pip install --quiet" in line]
    announced = [any("@echo" in line for line in lines[number - 3 : number]) for number in recipes]
    assert (announced, len(recipes)) == ([True] * len(recipes), 12)

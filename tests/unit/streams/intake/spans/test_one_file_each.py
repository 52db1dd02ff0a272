"""Conventions of spans: each is one value in one file, and the reader names neither a library nor its attributes."""

from __future__ import annotations

import ast
import pkgutil
import re
from collections import Counter
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from tests.support.acme_convention import ACME
from tests.support.spans import span

from traceweir.streams.intake import spans
from traceweir.streams.intake.spans import conventions
from traceweir.streams.intake.spans.conventions import CONVENTIONS, STANDARD_FIRST
from traceweir.streams.intake.spans.conventions.convention import Convention
from traceweir.streams.intake.spans.conventions.source import Source, SourceTable
from traceweir.streams.intake.spans.kinds import kind_of

INTERFACE = {"convention", "seen", "source"}
SHARED = {"input.value", "output.value"}
"""Attributes that several conventions write."""
COMMON = {
    *("agent", "agents", "ai", "code", "framework", "genai", "kernel"),
    *("microsoft", "of", "s", "sdk", "semantic", "spring"),
}
"""The words of the conventions' names that name no library."""
SHAPES = {"hosted_tools", "message", "messages"}
"""The files of the shapes of messages, which several libraries pass on, and of what stands in place of hidden content."""
EXAMPLES = {
    "missing": {"litellm", "openai"},
    "missing_calls": {"openai"},
    # Names what is not read, with what can be used in its place.
    "unread_instrumentations": {"llamaindex", "openinference"},
}
"""The libraries that a sentence for users gives as examples."""
NAMES = sorted(module.name for module in pkgutil.iter_modules(conventions.__path__) if module.name not in INTERFACE)
DOCS = Path(__file__).parents[5] / "docs"
DOCUMENTED = DOCS / "opentelemetry.md"


def keys_of(convention: Convention) -> Iterator[str]:
    """Yields the names of attributes in a convention."""
    for field in Convention.__dataclass_fields__:
        value = getattr(convention, field)
        if isinstance(value, tuple) and field not in ("frameworks", "switches", "no_runs", "answering_tools"):
            yield from (each.key if isinstance(each, Source) else each for each in value)


@pytest.mark.parametrize("name", NAMES)
def test_a_file_defines_one_convention_which_the_reader_asks(name: str) -> None:
    module = import_module(f"{conventions.__name__}.{name}")
    own = [each for each in vars(module).values() if isinstance(each, Convention)]
    defined = [each for each in own if each is getattr(module, name.upper())]
    assert len(defined) == 1
    assert CONVENTIONS.count(defined[0]) == 1


@pytest.mark.parametrize("name", NAMES)
def test_an_attribute_that_has_a_constant_is_not_written_a_second_time(name: str) -> None:
    tree = ast.parse(Path(conventions.__path__[0], f"{name}.py").read_text("utf-8"))
    texts = Counter(node.value for node in ast.walk(tree) if isinstance(node, ast.Constant))
    constants = (node.value for node in tree.body if isinstance(node, ast.Assign))
    named = [each.value for each in constants if isinstance(each, ast.Constant)]
    assert [text for text in named if texts[text] > 1] == []


def documented() -> set[str]:
    """Returns the names of conventions on the page: those of the list of switches, and of the sentence below it."""
    section = DOCUMENTED.read_text("utf-8").partition("\n## Conventions\n")[2].partition("\n## ")[0]
    rows = re.findall(r"^- ([^:]+):", section, re.MULTILINE)
    listed = re.split(
        ", | and ", " ".join(section.partition("with one of those above: ")[2].partition(".\n")[0].split())
    )
    names = [each.name for each in CONVENTIONS]
    # An entry says more than a name: "GenAI, current".
    of_rows = (next((name for name in names if re.match(rf"{re.escape(name)}\b", row)), row) for row in rows)
    return {*of_rows, *listed}


def test_names_are_different_and_documented() -> None:
    names = [each.name for each in CONVENTIONS]
    assert sorted(set(names)) == sorted(names)
    assert len(names) == len(NAMES)
    assert documented() == set(names), f"{DOCUMENTED.name}: the list of switches, or the sentence below it"


def test_the_standard_recognises_last_and_tells_values_first() -> None:
    assert CONVENTIONS[-1] is STANDARD_FIRST[0]
    assert CONVENTIONS[-1].name == "GenAI"
    both = {"gen_ai.operation.name": "chat", "openinference.span.kind": "TOOL"}
    assert kind_of(span(1, 0, "x", both)) == "tool"


@pytest.mark.parametrize("fields", [{"kind_keys": ("acme.kind",)}, {"kind": lambda _: "tool"}])
def test_what_tells_a_kind_and_the_attributes_by_which_it_is_asked_go_together(fields: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="Acme must have both `kind_keys` and `kind`, or neither"):
        Convention(name="Acme", **fields)


def code_of(path: Path) -> Iterator[str]:
    """Yields the names and the texts in the code of a module, without those in comments and docstrings."""
    tree = ast.parse(path.read_text("utf-8"))
    docstrings = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        fields = () if id(node) in docstrings else ("id", "attr", "arg", "name", "module", "value")
        yield from (text for field in fields if isinstance(text := getattr(node, field, None), str))


def libraries_in(text: str) -> set[str]:
    """Returns the words in a text that name a library, and the beginnings of instrumentation scopes."""
    words = {word for each in CONVENTIONS for word in re.split("[^a-z0-9]+", each.name.lower())} - COMMON
    scopes = {scope for each in CONVENTIONS for scope, _ in (*each.frameworks, *each.clients)}
    known = text.lower()
    return words.intersection(re.split("[^a-z0-9]+", known)) | {scope for scope in scopes if scope in known}


READER = sorted(Path(spans.__path__[0]).glob("*.py"))


@pytest.mark.slow
@pytest.mark.parametrize("path", READER, ids=lambda path: path.stem)
def test_the_reader_names_no_attribute_of_a_library(path: Path) -> None:
    known = {key for each in CONVENTIONS[:-1] for key in keys_of(each)} - SHARED - {*keys_of(CONVENTIONS[-1])}
    assert set(code_of(path)) & {key for key in known if "." in key} == set()


@pytest.mark.slow
@pytest.mark.parametrize("path", [each for each in READER if each.stem not in SHAPES], ids=lambda path: path.stem)
def test_the_reader_names_no_library(path: Path) -> None:
    named = {text: found for text in code_of(path) if (found := libraries_in(text) - EXAMPLES.get(path.stem, set()))}
    assert named == {}


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("openai_agents", {"openai", "openai_agents"}),
        ("is_google", {"google"}),
        ("traceweir.streams.intake.spans.conventions.mcp", {"mcp"}),
        ("gcp.vertex.agent", {"gcp.vertex.agent"}),
        ("gen_ai.agent.name", set()),
        ("framework_of", set()),
    ],
)
def test_a_library_is_recognised_in_code_by_each_word_of_its_name_and_by_its_scope(text: str, found: set[str]) -> None:
    assert libraries_in(text) == found


def test_a_convention_written_as_the_guide_says_reads_spans_of_its_own() -> None:
    texts = {"acme.input": '{"messages": [{"role": "user", "content": "Who?"}]}', "acme.output": '{"answer": "I."}'}
    run = span(1, 0, "run", {"acme.kind": "run", **texts})
    assert ACME.kind is not None
    assert ACME.kind(run) == "agent"
    assert ACME.kind(span(2, 1, "other", {})) is None
    assert list(SourceTable(ACME.questions).read_all(run)) == ["Who?"]
    assert list(SourceTable(ACME.answers).read_all(run)) == ["I."]
    assert [message.text for message in next(SourceTable(ACME.inputs).read_all(run))] == ["Who?"]
    assert list(SourceTable(ACME.results).read_all(run)) == [{"answer": "I."}]
    assert ACME.switches[0].applies({"acme.kind"}, set())
    assert not ACME.switches[0].applies({"gen_ai.system"}, {"acme"})

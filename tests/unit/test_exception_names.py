"""Tests the names of exceptions: an error ends in Error; an outcome that the caller handles has a comment."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Mapping, Set
from functools import cache
from typing import NamedTuple

import pytest
from tests.support.paths import ROOT

pytestmark = pytest.mark.slow

MARK = "# an outcome that the caller handles"


class ClassInfo(NamedTuple):
    """Contains the names of a class's bases, and whether its line has the mark."""

    bases: tuple[str, ...]
    marked: bool


@cache
def classes() -> Mapping[str, ClassInfo]:
    """Returns the classes of the product; a test asks for them, because every process would read them at collection."""
    found = {}
    for path in sorted(path for room in ("schemas", "scorers", "streams") for path in (ROOT / room).rglob("*.py")):
        text = path.read_text("utf-8")
        lines = text.splitlines()
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.ClassDef):
                bases = tuple(ast.unparse(base).rpartition(".")[2] for base in node.bases)
                found[node.name] = ClassInfo(bases, MARK in lines[node.lineno - 1])
    return found


def with_derived(names: Set[str]) -> Set[str]:
    """Returns the names, and the names of all classes that derive from one of these classes."""
    while more := {name for name, found in classes().items() if names & {*found.bases}} - names:
        names = names | more
    return names


BUILTIN = {name for name, kind in vars(builtins).items() if isinstance(kind, type) and issubclass(kind, BaseException)}


def exceptions() -> Set[str]:
    return with_derived(BUILTIN) - BUILTIN


def outcomes() -> Set[str]:
    return with_derived({name for name, found in classes().items() if found.marked})


def test_there_are_exceptions_of_both_kinds() -> None:
    assert {"ConfigError", "RecordRejected"} <= exceptions()
    assert {"RecordRejected", "AnswerUnusable"} <= outcomes()


def test_a_name_ends_in_error_unless_the_class_is_an_outcome() -> None:
    handled = outcomes()
    wrong = sorted(name for name in exceptions() if name.endswith("Error") == (name in handled))
    assert wrong == [], "see Exceptions in CONTRIBUTING.md"


def test_no_outcome_derives_from_an_error_and_no_error_from_an_outcome() -> None:
    known = classes()
    handled = outcomes()
    own_bases = [(name, base) for name in exceptions() for base in known[name].bases if base in known]
    assert [(name, base) for name, base in own_bases if (base in handled) != (name in handled)] == []

"""Tests the names of exceptions: an error ends in Error; an outcome that the caller handles has a comment."""

from __future__ import annotations

import ast
import builtins
from typing import NamedTuple

import pytest
from tests.support.paths import ROOT

MARK = "# an outcome that the caller handles"


class ClassInfo(NamedTuple):
    """Contains the names of a class's bases, and whether its line has the mark."""

    bases: tuple[str, ...]
    marked: bool


def classes() -> dict[str, ClassInfo]:
    found = {}
    for path in sorted(path for room in ("schemas", "scorers", "streams") for path in (ROOT / room).rglob("*.py")):
        text = path.read_text("utf-8")
        lines = text.splitlines()
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.ClassDef):
                bases = tuple(ast.unparse(base).rpartition(".")[2] for base in node.bases)
                found[node.name] = ClassInfo(bases, MARK in lines[node.lineno - 1])
    return found


CLASSES = classes()


def with_derived(names: set[str]) -> set[str]:
    """Returns the names, and the names of all classes that derive from one of these classes."""
    while more := {name for name, found in CLASSES.items() if names & {*found.bases}} - names:
        names = names | more
    return names


BUILTIN = {name for name, kind in vars(builtins).items() if isinstance(kind, type) and issubclass(kind, BaseException)}
EXCEPTIONS = sorted(with_derived(BUILTIN) - BUILTIN)
OUTCOMES = with_derived({name for name, found in CLASSES.items() if found.marked})


def test_there_are_exceptions_of_both_kinds() -> None:
    assert {"ConfigError", "RecordRejected"} <= set(EXCEPTIONS)
    assert {"RecordRejected", "AnswerUnusable"} <= OUTCOMES


@pytest.mark.parametrize("name", EXCEPTIONS)
def test_a_name_ends_in_error_unless_the_class_is_an_outcome(name: str) -> None:
    assert name.endswith("Error") != (name in OUTCOMES), f"{name}: see Exceptions in CONTRIBUTING.md"


@pytest.mark.parametrize("name", EXCEPTIONS)
def test_no_outcome_derives_from_an_error_and_no_error_from_an_outcome(name: str) -> None:
    own_bases = [base for base in CLASSES[name].bases if base in CLASSES]
    assert all((base in OUTCOMES) == (name in OUTCOMES) for base in own_bases)

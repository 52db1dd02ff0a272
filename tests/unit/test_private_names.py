"""Tests that tests access no private name through a string; ruff's SLF001 and PLC2701 check attributes and imports."""

from __future__ import annotations

import ast
import re

import pytest
from tests.support.paths import ROOT

pytestmark = pytest.mark.slow

BY_NAME = {"setattr", "getattr", "delattr", "hasattr", "attrgetter", "methodcaller", "patch", "object"}
"""Functions that take the name of an attribute as a string; `object` is `mock.patch.object`."""
FILES = sorted(path for folder in ("tests", "client/tests", "examples") for path in (ROOT / folder).rglob("*.py"))
CALL = re.compile(rf"\b({'|'.join(sorted(BY_NAME))})\(")
QUOTED = re.compile(r"""["'.]_[^_]""")
"""What a code with such a call has, and what its string has: most files lack one of both, and need not be parsed."""
PUBLIC = {"_replace", "_asdict", "_make", "_fields"}
"""Public methods of named tuples, which start with an underscore so that no field has the same name."""


def private_names(code: str) -> list[str]:
    """Returns the private names that the code passes to such a function as strings, with their lines."""
    if not (CALL.search(code) and QUOTED.search(code)):
        return []
    calls = [node for node in ast.walk(ast.parse(code)) if isinstance(node, ast.Call)]
    return [
        f"line {text.lineno}: {text.value}"
        for call in calls
        if ast.unparse(call.func).rpartition(".")[2] in BY_NAME
        for text in [each for each in call.args if isinstance(each, ast.Constant)][:1]
        if isinstance(text.value, str) and any(map(is_private, text.value.split(".")))
    ]


def is_private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__") and name not in PUBLIC


@pytest.mark.parametrize(
    ("code", "found"),
    [
        ("monkeypatch.setattr(worker, '_consumer', None)", ["line 1: _consumer"]),
        ("mock.patch('traceweir.streams.worker.run._exit_hard')", ["line 1: traceweir.streams.worker.run._exit_hard"]),
        ("monkeypatch.setattr(worker, 'consumer', '_'); getattr(worker, '__name__')", []),
        ("hasattr(pair, '_replace')", []),
        ("print('_consumer')", []),
    ],
)
def test_private_names_are_found_in_code(code: str, found: list[str]) -> None:
    assert private_names(code) == found


def test_no_test_accesses_a_private_name_through_a_string() -> None:
    found = {str(path.relative_to(ROOT)): private_names(path.read_text("utf-8")) for path in FILES}
    assert {path: names for path, names in found.items() if names} == {}, (
        "test the behaviour through public names, or pass what the test needs to the constructor"
    )

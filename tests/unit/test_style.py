"""Tests the rules of style in CONTRIBUTING.md that ruff has no rule for, in the code of the product."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from functools import cache, lru_cache
from itertools import pairwise

import pytest
from tests.support.paths import ROOT

# One process parses the code of the product.
pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("style")]

FILES = sorted(
    path
    for folder in ("schemas", "scorers", "streams", "client")
    for path in (ROOT / folder / "traceweir").rglob("*.py")
)
COMMENT_BEHIND = re.compile(r"^ *[^ #\n].*#", re.MULTILINE)
"""What a code with a comment behind code has: most files lack it, and need not be cut into tokens."""
DIRECTIVE = re.compile(r"# (noqa|type:|fmt:|pragma)")
MOST_LINES = 400
"""Most lines of a module. About 300 are the rule; one idea can need some more."""
LARGER = {
    "streams/traceweir/streams/board/store/answers.py": 480,
    "streams/traceweir/streams/board/store/duckdb_store.py": 480,
    "streams/traceweir/streams/pipeline/score/stage.py": 420,
    "streams/traceweir/streams/worker/runtime/checkpoint.py": 520,
    "streams/traceweir/streams/worker/runtime/lane.py": 460,
}
"""The modules that have more, with the most lines that each may have; the list gets no new member."""
Find = Callable[[str], Sequence[object]]
"""Returns what breaks a rule in a code."""
RIDDLES = {"how", "told", "_say", "became", "worthless", "letters"}
"""Names that do not say what they name."""


@lru_cache(maxsize=1)
def nodes_of(code: str) -> Sequence[ast.AST]:
    """Returns the nodes of a module; several rules read it one after the other."""
    return list(ast.walk(ast.parse(code)))


def tuple_assignments(code: str) -> list[int]:
    """Returns the lines that assign several values to several names, which a search for `name = ` does not find.

    Names that need each other's old values, and constants that share one docstring, are assigned together.
    """
    return [
        node.lineno
        for block in _blocks(nodes_of(code))
        for node, following in pairwise([*block, None])
        if isinstance(node, ast.Assign)
        and isinstance(names := node.targets[0], ast.Tuple)
        and isinstance(values := node.value, ast.Tuple)
        and not (_has_inner(names) or _is_text(following) or _needs_old_values(names.elts, values.elts))
    ]


def _blocks(nodes: Sequence[ast.AST]) -> Iterator[list[ast.stmt]]:
    for node in nodes:
        for name in ("body", "orelse", "finalbody"):
            block = getattr(node, name, None)
            if isinstance(block, list):
                yield block


def _has_inner(names: ast.Tuple) -> bool:
    return any(isinstance(each, ast.Tuple | ast.Starred) for each in names.elts)


def _is_text(node: ast.stmt | None) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def _needs_old_values(names: list[ast.expr], values: list[ast.expr]) -> bool:
    written = [ast.unparse(name) for name in names]
    return any(
        ast.unparse(part) in written[:number]
        for number, value in enumerate(values)
        for part in ast.walk(value)
        if isinstance(part, ast.expr)
    )


def comments_behind_code(code: str) -> list[int]:
    """Returns the lines that have a comment behind their code, where a formatter can move it to another line."""
    if not COMMENT_BEHIND.search(code):
        return []
    return [
        token.start[0]
        for token in tokenize.generate_tokens(io.StringIO(code).readline)
        if token.type == tokenize.COMMENT and token.line[: token.start[1]].strip() and not DIRECTIVE.match(token.string)
    ]


def riddles(code: str) -> list[str]:
    """Returns the names that the code gives, and that do not say what they name."""
    given: set[str | None] = {
        node.id if isinstance(node, ast.Name) else node.arg if isinstance(node, ast.arg) else node.name
        for node in nodes_of(code)
        if isinstance(node, ast.arg | ast.FunctionDef | ast.AsyncFunctionDef | ast.ExceptHandler)
        or (isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store))
    }
    return sorted(RIDDLES & given)


@pytest.mark.parametrize(
    ("code", "found"),
    [
        ("count, names = 0, []", [1]),
        ("if True:\n    self.a, self.b = a, b", [2]),
        ("left, right = right, left", []),
        ("old, self.rows = self.rows, {}", [1]),
        ("row, row.next = row.next, row", []),
        ("LEAST, MOST = 1, 10\n'''Limits of a name, in characters.'''", []),
        ("name, value = pair", []),
    ],
)
def test_tuple_assignments_are_found_in_code(code: str, found: list[int]) -> None:
    assert tuple_assignments(code) == found


@pytest.mark.parametrize(
    ("code", "found"),
    [
        ("a = 1  # one", [1]),
        ("# one\na = '# 1'", []),
        ("a = f()  # noqa: S101  # has no argument", []),
        ("[  # all\n]", [1]),
    ],
)
def test_comments_behind_code_are_found_in_code(code: str, found: list[int]) -> None:
    assert comments_behind_code(code) == found


def public_classes(code: str) -> list[str]:
    return [node.name for node in nodes_of(code) if isinstance(node, ast.ClassDef) and not node.name.startswith("_")]


@cache
def found_in_product() -> dict[Find, dict[str, Sequence[object]]]:
    """Returns what each function finds, by file. Each file is parsed once, and no tree is kept."""
    found: dict[Find, dict[str, Sequence[object]]] = defaultdict(dict)
    for path in FILES:
        code = path.read_text("utf-8")
        for find in (tuple_assignments, comments_behind_code, riddles, public_classes):
            if lines := find(code):
                found[find][str(path.relative_to(ROOT))] = lines
    return found


@pytest.mark.parametrize(
    ("find", "advice"),
    [
        (tuple_assignments, "give each name a statement of its own"),
        (comments_behind_code, "write the comment above the code, on a line of its own"),
        (riddles, "name what it is"),
    ],
)
def test_code_is_written_as_contributing_says(find: Find, advice: str) -> None:
    assert found_in_product().get(find, {}) == {}, advice


def test_a_module_is_small_enough_for_one_idea() -> None:
    sizes = {str(path.relative_to(ROOT)): path.read_bytes().count(b"\n") for path in FILES}
    too_large = {path: lines for path, lines in sizes.items() if lines > LARGER.get(path, MOST_LINES)}
    assert too_large == {}, "divide the module along an idea (decision 0093)"


def test_a_public_class_has_a_name_of_its_own() -> None:
    """`Dimensions` is one thing in two distributions: the client imports none of the other."""
    places = defaultdict(set)
    for path, names in found_in_product()[public_classes].items():
        for name in names:
            places[name].add(path)
    assert {name: sorted(found) for name, found in places.items() if len(found) > 1} == {
        "Dimensions": ["client/traceweir/client/dimensions.py", "schemas/traceweir/schemas/dimensions.py"]
    }

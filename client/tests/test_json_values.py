"""Any value of an agent becomes bounded JSON, and what is lost is said."""

from __future__ import annotations

import enum
import json
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import PurePosixPath
from types import MappingProxyType
from typing import Any
from uuid import UUID

import pytest
from traceweir.client.json_values import MAX_CHARS, encode, plain


class Colour(enum.Enum):
    RED = "red"


@dataclass
class Seat:
    row: int
    wishes: list[str]


class Opaque:
    pass


class Told:
    def __repr__(self) -> str:
        return "Told(1)"


class Model:
    def model_dump(self) -> dict[str, Any]:
        return {"a": 1}


class Hostile:
    def __repr__(self) -> str:
        raise RuntimeError("no")


class HostileDict(dict[str, Any]):
    def items(self) -> Any:
        raise RuntimeError("no")


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, None),
        ({"a": [1, 2.5, True, "x", {"b": None}]}, {"a": [1, 2.5, True, "x", {"b": None}]}),
        ((1, 2), [1, 2]),
        ({1: "a"}, {"1": "a"}),
        (datetime(2026, 1, 31, tzinfo=UTC), "2026-01-31T00:00:00+00:00"),
        (Decimal("1.10"), "1.10"),
        (UUID(int=1), "00000000-0000-0000-0000-000000000001"),
        (PurePosixPath("/a/b"), "/a/b"),
        (Colour.RED, "red"),
        (Seat(3, ["aisle"]), {"row": 3, "wishes": ["aisle"]}),
        (Model(), {"a": 1}),
        (Told(), "Told(1)"),
        (2**63, 2**63),
        (2**64, "18446744073709551616"),
    ],
)
def test_a_value_with_a_form_in_json_loses_nothing(value: Any, expected: Any) -> None:
    assert plain(value) == (expected, "")


def test_a_set_becomes_a_list() -> None:
    found, lost = plain({"a", "b"})
    assert (sorted(found), lost) == (["a", "b"], "")


def cycle() -> list[Any]:
    inside: list[Any] = []
    inside.append(inside)
    return inside


def nested(levels: int) -> Any:
    value: Any = 0
    for _ in range(levels):
        value = [value]
    return value


@pytest.mark.parametrize(
    ("value", "expected", "lost"),
    [
        (float("nan"), None, "a number is NaN or infinite"),
        ({"a": float("-inf"), "b": 1}, {"a": None, "b": 1}, "a number is NaN or infinite"),
        (b"abc", "<3 bytes>", "bytes are not JSON"),
        (Opaque(), "<Opaque>", "an object has no form in JSON"),
        (cycle(), [None], "it contains itself"),
        (1 << 100_000, None, "an integer has more than 1024 bits"),
        (Hostile(), None, "reading it raised RuntimeError"),
        (HostileDict(), None, "reading it raised RuntimeError"),
        ({1: "a", "1": "b"}, {"1": "a"}, "two of its keys have the same text"),
    ],
    ids=["NaN", "infinite", "bytes", "object", "cycle", "integer", "repr", "items", "keys"],
)
def test_what_json_cannot_hold_is_said(value: Any, expected: Any, lost: str) -> None:
    assert plain(value) == (expected, lost)


@pytest.mark.parametrize(
    "value",
    [
        "x" * 10_000_000,
        ["x" * 1_000] * 1_000,
        {str(number): "x" * 100 for number in range(100_000)},
        list(range(1_000_000)),
        {"x" * 1_000_000: 1},
        nested(5_000),
        ["\x00" * MAX_CHARS],
    ],
    ids=["text", "texts", "dict", "numbers", "key", "nesting", "control characters"],
)
def test_a_value_of_any_size_has_room_in_a_record(value: Any) -> None:
    found, lost = plain(value)
    assert lost
    assert len(encode(found)) < 800_000


def test_a_half_of_a_surrogate_pair_becomes_a_question_mark() -> None:
    assert json.loads(encode(plain({"a": "x\ud800"})[0])) == {"a": "x?"}


def _nested(levels: int) -> Any:
    value: Any = "x"
    for level in range(levels):
        value = {"a": value} if level % 2 else [value]
    return value


@pytest.mark.parametrize("max_chars", [1, 9, 33, 34, 35, 52, 53, 54, 60, 61, 62, MAX_CHARS])
@pytest.mark.parametrize(
    "value",
    [
        {"a": "xyz", "b": [1, {"c": None, "d": "t"}], "e": 1.5},
        {"a": 2**64, "b": "x"},
        {"a": [float("nan")]},
        {"a": {1: "x"}},
        {"a": (1, [2])},
        {"a": ["x"] * 10_000},
        *({"a": _nested(levels)} for levels in (29, 30, 31, 32)),
    ],
)
def test_a_dict_is_read_as_a_mapping_of_another_type_whatever_its_bounds(value: dict[str, Any], max_chars: int) -> None:
    assert repr(plain(value, max_chars)) == repr(plain(MappingProxyType(value), max_chars))


def test_a_value_that_the_agent_changes_later_keeps_what_it_was() -> None:
    value = {"a": {"b": [1]}}
    known, _ = plain(value)
    value["a"]["b"].append(2)
    assert known == {"a": {"b": [1]}}

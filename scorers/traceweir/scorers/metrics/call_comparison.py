"""Compares two tool calls: the names of the tools, and the arguments by the rules of `compare_args`."""

from __future__ import annotations

import json
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from itertools import chain
from typing import NamedTuple

from pydantic import JsonValue

from traceweir.schemas.invocation import FunctionCall
from traceweir.schemas.normal_form import normal_form
from traceweir.schemas.text import printable
from traceweir.scorers.metrics.argument_rules import Rule, Tolerance, ToolRules, is_loose, is_number, rules_of

MAX_STEPS = 1_000_000
"""The most values that are compared, and pairs that are tried, for one score. A long value takes more steps than one.

A bound in seconds would give another result on a busy machine.
"""
_CHARS_A_STEP = 1_000
_KEYS_A_STEP = 100
_BITS_A_STEP = 500
MAX_SHOWN_CHARS = 60
"""A longer value of an argument, or name, is cut in a rationale."""
_ABSENT = "nothing"


class TooManyComparisonsError(ValueError):
    """The calls have so many pairs, and arguments so many values, that comparing them would take too long."""

    def __init__(self) -> None:
        """Makes the error."""
        super().__init__(
            f"comparing the calls by compare_args takes more than {MAX_STEPS:,} steps, the most that is allowed; use "
            "'exact', 'folded', 'nfc' or 'ignore' in place of 'subset' and tolerances, because they need no pairs"
        )


class KeyedCall(NamedTuple):
    """A call with numbers that tell what it has in common with other calls."""

    call: FunctionCall
    kind: int
    """Equal for calls that are equal by the rules."""
    identity: int
    """Equal for calls of one kind that have exactly the same arguments, or whose kind alone tells that they are equal."""
    is_loose: bool
    """Whether two calls of the kind can still differ, because of a tolerance or of `subset`."""


class ArgumentDifference(NamedTuple):
    """An argument in which two calls differ."""

    argument: str
    expected: str
    """The expected value, shortened and printable."""
    actual: str
    """The actual value, shortened and printable."""


@dataclass(slots=True)
class CallComparison:
    """Compares calls for one score, and counts its steps."""

    compare_args: Mapping[str, JsonValue] = field(default_factory=dict)
    """The rules, as `compare_args` of the config."""
    ignore_args: bool = False
    """Whether only the names of tools are compared."""
    _steps: int = 0
    _rules: dict[str, ToolRules] = field(default_factory=dict)
    _numbers: dict[Hashable, int] = field(default_factory=dict)
    # By the id of a call, which the entry keeps alive.
    _fixed: dict[int, tuple[FunctionCall, Mapping[str, int]]] = field(default_factory=dict)

    def ignores_args_of(self, call: FunctionCall) -> bool:
        """Returns whether the arguments of a call do not matter."""
        return self.ignore_args or self._rules_of(call.name).ignore_all

    def keyed(self, calls: Iterable[FunctionCall]) -> list[KeyedCall]:
        """Returns the calls with their numbers, in time linear in the arguments."""
        return [self._keyed(call) for call in calls]

    def _keyed(self, call: FunctionCall) -> KeyedCall:
        if self.ignores_args_of(call):
            return self._numbered(call, call.name)
        rules = self._rules_of(call.name)
        if rules.are_exact:
            return self._numbered(call, call_key(call))
        whole = call_key(call) if rules.are_loose else None
        return self._numbered(call, (call.name, frozenset(self._fixed_of(call).items())), whole)

    def _numbered(self, call: FunctionCall, fixed: Hashable, whole: Hashable = None) -> KeyedCall:
        kind = self._numbers.setdefault(("kind", fixed), len(self._numbers))
        if whole is None:
            return KeyedCall(call, kind, kind, is_loose=False)
        identity = self._numbers.setdefault((kind, whole), len(self._numbers))
        return KeyedCall(call, kind, identity, is_loose=True)

    def are_equal(self, expected: FunctionCall, actual: FunctionCall) -> bool:
        """Returns whether two calls are equal.

        Raises:
            TooManyComparisonsError: the score has compared `MAX_STEPS` values already.
        """
        if expected.name != actual.name:
            return False
        if self.ignores_args_of(expected):
            return True
        if self._rules_of(expected.name).are_exact:
            return expected.args == actual.args
        return not self._differing(expected, actual, most=1)

    def differences(self, expected: FunctionCall, actual: FunctionCall) -> list[ArgumentDifference]:
        """Returns the arguments in which two calls of one tool differ; those of the expected call first."""
        rules = self._rules_of(expected.name)
        if rules.are_exact and (expected.args is None) != (actual.args is None):
            # As in Google ADK, `null` and `{}` differ.
            wanted = actual.args if expected.args is None else expected.args
            if not wanted:
                return [
                    ArgumentDifference(
                        "", *("no arguments" if call.args is None else "{}" for call in (expected, actual))
                    )
                ]
        return [
            ArgumentDifference(
                printable(name, MAX_SHOWN_CHARS), _shown(expected.args or {}, name), _shown(actual.args or {}, name)
            )
            for name in self._differing(expected, actual)
        ]

    def spend(self, steps: int = 1) -> None:
        """Counts steps.

        Raises:
            TooManyComparisonsError: the score has taken `MAX_STEPS` already.
        """
        self._steps += steps
        if self._steps > MAX_STEPS:
            raise TooManyComparisonsError

    def _rules_of(self, tool: str) -> ToolRules:
        found = self._rules.get(tool)
        if found is None:
            found = self._rules[tool] = rules_of(self.compare_args, tool)
        return found

    def _fixed_of(self, call: FunctionCall) -> Mapping[str, int]:
        """Returns a number for each argument whose rule is not loose; equal values have equal numbers.

        A call is compared with many others, so its values are folded once.
        """
        known = self._fixed.get(id(call))
        if known is None:
            rules = self._rules_of(call.name)
            values = {
                name: self._numbers.setdefault(("value", frozen(_folded(rule, value))), len(self._numbers))
                for name, value in (call.args or {}).items()
                if (rule := rules.of(name)) != "ignore" and not is_loose(rule)
            }
            known = self._fixed[id(call)] = call, values
        return known[1]

    def _differing(self, expected: FunctionCall, actual: FunctionCall, most: int | None = None) -> list[str]:
        """Returns the names of the differing arguments, at most `most` of them."""
        rules = self._rules_of(expected.name)
        wanted = expected.args or {}
        made = actual.args or {}
        fixed_wanted = self._fixed_of(expected)
        fixed_made = self._fixed_of(actual)
        found = []
        for name in chain(wanted, (each for each in made if each not in wanted)):
            self.spend(1 + len(name) // _CHARS_A_STEP)
            rule = rules.of(name)
            if rule == "ignore" or (rule == "subset" and name not in wanted):
                continue
            if is_loose(rule):
                is_same = name in wanted and name in made and self._same(rule, wanted[name], made[name])
            else:
                is_same = fixed_wanted.get(name) == fixed_made.get(name)
            if not is_same:
                found.append(name)
                if len(found) == most:
                    break
        return found

    def _same(self, rule: Rule, expected: JsonValue, actual: JsonValue) -> bool:
        """Returns whether two values are equal by a loose rule."""
        self.spend()
        if isinstance(expected, dict) and isinstance(actual, dict):
            self.spend(len(expected) // _KEYS_A_STEP + sum(map(len, expected)) // _CHARS_A_STEP)
            if rule != "subset" and expected.keys() != actual.keys():
                return False
            return all(name in actual and self._same(rule, value, actual[name]) for name, value in expected.items())
        if isinstance(expected, list) and isinstance(actual, list):
            return len(expected) == len(actual) and all(
                self._same(rule, one, other) for one, other in zip(expected, actual, strict=True)
            )
        if isinstance(rule, Tolerance) and is_number(expected) and is_number(actual):
            # To write an integer as a decimal number takes quadratic time.
            bits = sum(number.bit_length() for number in (expected, actual) if isinstance(number, int))
            self.spend((bits // _BITS_A_STEP) ** 2)
            return rule.allows(expected, actual)
        if isinstance(expected, str):
            self.spend(len(expected) // _CHARS_A_STEP)
        return expected == actual


def call_key(call: FunctionCall) -> Hashable:
    """Returns a key that is equal for calls of the same tool with exactly equal arguments."""
    return call.name, frozen(call.args)


def frozen(value: JsonValue) -> Hashable:
    """Returns a hashable value; two such values are equal exactly if the JSON values are equal."""
    if isinstance(value, dict):
        return "object", frozenset((key, frozen(item)) for key, item in value.items())
    if isinstance(value, list):
        return "array", tuple(map(frozen, value))
    return value


def _folded(rule: Rule, value: JsonValue) -> JsonValue:
    """Returns a value of which equal ones are equal by `==`; texts at any depth are folded, keys of objects are not."""
    if rule not in ("folded", "nfc"):
        return value
    if isinstance(value, str):
        if rule == "nfc":
            return normal_form("NFC", value)
        # Unicode's canonical caseless matching, D145.
        return " ".join(normal_form("NFD", normal_form("NFD", value).casefold()).split())
    if isinstance(value, dict):
        return {name: _folded(rule, item) for name, item in value.items()}
    return [_folded(rule, item) for item in value] if isinstance(value, list) else value


def _shown(args: Mapping[str, JsonValue], name: str) -> str:
    if name not in args:
        return _ABSENT
    value = args[name]
    # A long text is cut before it is written, and its quotation mark stays.
    if isinstance(value, str) and len(value) > MAX_SHOWN_CHARS:
        value = value[:MAX_SHOWN_CHARS] + "…"
    return printable(json.dumps(value, ensure_ascii=False), MAX_SHOWN_CHARS)

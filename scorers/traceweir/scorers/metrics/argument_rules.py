"""Reads `compare_args`, the option that says how the arguments of tool calls are compared."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Annotated, Literal, TypeGuard, get_args

from pydantic import AfterValidator, JsonValue

from traceweir.schemas.base import JsonObject
from traceweir.schemas.text import printable
from traceweir.scorers.spelling import did_you_mean

RULES_VERSION = "2"
"""Increase the version when a rule finds other values equal: it is in the digest of each metric with rules.

The version of a scorer stays, because scores without rules do not change.
"""
NamedRule = Literal["exact", "folded", "nfc", "subset", "ignore"]
RULES: tuple[NamedRule, ...] = get_args(NamedRule)
"""The rules that a config names.

- `exact`: equal under Python's `==`, as in Google ADK.
- `folded`: texts are equal without regard to case and white space, and to how Unicode composes their characters.
- `nfc`: texts are equal without regard to how Unicode composes their characters.
- `subset`: of an object, only the keys of the expected one are compared.
- `ignore`: the argument is not compared, also if only one of the calls has it.
"""
OTHERS = "*"
"""Stands for the tools, or for the arguments of a tool, that are not named."""
_SPELLINGS = {
    "tolerance": "tolerance",
    "relative_tolerance": "relative_tolerance",
    "relativeTolerance": "relative_tolerance",
}
_FORM = f'a rule is one of {", ".join(RULES)}, {{"tolerance": 0.01}} and {{"relative_tolerance": 0.01}}'


@dataclass(frozen=True, slots=True)
class Tolerance:
    """How far two numbers may be apart."""

    absolute: Decimal = Decimal(0)
    """The difference that is allowed."""
    relative: Decimal = Decimal(0)
    """The difference that is allowed, as a share of the number that is farther from 0."""

    def allows(self, one: float, other: float) -> bool:
        """Returns whether two numbers are near enough.

        The numbers are taken as JSON writes them: 0.3 and 0.29 differ by 0.01, and not by a little more as floats do.

        >>> Tolerance(Decimal("0.01")).allows(0.3, 0.29), Tolerance(relative=Decimal("0.1")).allows(100, 89)
        (True, False)
        """
        if one == other:
            return True
        if not (_is_finite(one) and _is_finite(other)):
            return False
        first = _decimal(one)
        second = _decimal(other)
        distance = abs(first - second)
        return distance <= self.absolute or distance <= self.relative * max(abs(first), abs(second))


Rule = NamedRule | Tolerance


@dataclass(frozen=True, slots=True)
class ToolRules:
    """How the arguments of one tool are compared."""

    named: Mapping[str, Rule]
    """The rules of arguments."""
    others: Rule
    """The rule of all other arguments."""

    def of(self, argument: str) -> Rule:
        """Returns the rule of an argument."""
        return self.named.get(argument, self.others)

    @property
    def are_exact(self) -> bool:
        """Whether all arguments are compared exactly; then `null` and `{}` as arguments differ, as in Google ADK."""
        return self.others == "exact" and all(rule == "exact" for rule in self.named.values())

    @property
    def are_loose(self) -> bool:
        """Whether an argument has a loose rule."""
        return is_loose(self.others) or any(map(is_loose, self.named.values()))

    @property
    def ignore_all(self) -> bool:
        """Whether no argument is compared."""
        return self.others == "ignore" and all(rule == "ignore" for rule in self.named.values())


def is_loose(rule: Rule) -> bool:
    """Returns whether equality by a rule is not transitive, so that each pair of values has to be compared."""
    return rule == "subset" or isinstance(rule, Tolerance)


def is_number(value: JsonValue) -> TypeGuard[int | float]:
    """Returns whether a value is a number; a truth value is none."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def rules_of(compare_args: Mapping[str, JsonValue], tool: str) -> ToolRules:
    """Returns the rules of a tool; without any, all arguments are compared exactly.

    >>> rules_of({"book": {"note": "ignore"}, "*": "folded"}, "find")
    ToolRules(named={}, others='folded')
    >>> rules_of({"book": {"note": "ignore"}, "*": "folded"}, "book")
    ToolRules(named={'note': 'ignore'}, others='exact')
    """
    found = compare_args.get(tool, compare_args.get(OTHERS, "exact"))
    if not isinstance(found, dict) or _is_tolerance(found):
        return ToolRules({}, _rule(found))
    return ToolRules(
        {name: _rule(rule) for name, rule in found.items() if name != OTHERS}, _rule(found.get(OTHERS, "exact"))
    )


def _checked(compare_args: JsonObject) -> JsonObject:
    """Returns the option with the keys of tolerances in snake_case.

    Raises:
        ValueError: a part of it is no rule; the message names the tool, the argument and the rules.
    """
    found: JsonObject = {}
    for tool, given in compare_args.items():
        if isinstance(given, dict) and not _is_tolerance(given):
            if not given:
                raise ValueError(
                    f"{_place(tool)}: names no argument; give a rule for each argument, or one for the tool; {_FORM}"
                )
            found[tool] = {name: _checked_rule(f"{tool}.{name}", rule) for name, rule in given.items()}
        else:
            found[tool] = _checked_rule(tool, given)
    return found


def _checked_rule(place: str, rule: JsonValue) -> JsonValue:
    if isinstance(rule, str):
        if rule not in RULES:
            name = place.rpartition(".")[2]
            limit = f"; as a {name} of all arguments it must be a number of at least 0" if name in _SPELLINGS else ""
            raise ValueError(f"{_place(place)}: {_shown(rule)} is not a rule; {did_you_mean(rule, RULES)}{limit}")
        return rule
    if not isinstance(rule, dict) or not rule or any(name not in _SPELLINGS for name in rule):
        raise ValueError(f"{_place(place)}: {printable(json.dumps(rule), 80)} is not a rule; {_FORM}")
    limits: dict[str, JsonValue] = {}
    for name, number in rule.items():
        if not is_number(number) or not _is_finite(number) or number < 0:
            raise ValueError(f"{_place(place)}: {name} must be a number of at least 0, not {_shown(str(number))}")
        if _SPELLINGS[name] in limits:
            raise ValueError(f"{_place(place)}: relative_tolerance is given twice, in two spellings; keep one")
        limits[_SPELLINGS[name]] = number
    return limits


CompareArgs = Annotated[JsonObject, AfterValidator(_checked)]
"""A rule for each tool, or an object with a rule for each of its arguments; `*` stands for all that are not named."""


def _rule(rule: JsonValue) -> Rule:
    if isinstance(rule, dict):
        limits = {name: _decimal(number) for name, number in rule.items() if isinstance(number, int | float)}
        return Tolerance(limits.get("tolerance", Decimal(0)), limits.get("relative_tolerance", Decimal(0)))
    return next(name for name in RULES if name == rule)


def _is_tolerance(given: JsonValue) -> TypeGuard[JsonObject]:
    """Returns whether an object is a tolerance; one whose values are rules names arguments."""
    return (
        isinstance(given, dict)
        and bool(given)
        and all(name in _SPELLINGS and not isinstance(value, str | dict) for name, value in given.items())
    )


def _is_finite(number: float) -> bool:
    return isinstance(number, int) or math.isfinite(number)


def _decimal(number: float) -> Decimal:
    return Decimal(number) if isinstance(number, int) else Decimal(repr(number))


def _shown(text: str) -> str:
    return repr(printable(text, 80))


def _place(path: str) -> str:
    return printable(path, 80)

"""Describes the problems of a config's options in the terms of the config."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import TypeGuard, TypeVar, get_args

from pydantic import BaseModel, RootModel, ValidationError
from pydantic.alias_generators import to_camel

from traceweir.schemas.base import JsonObject
from traceweir.schemas.text import printable
from traceweir.scorers.spelling import did_you_mean

Model = TypeVar("Model", bound=BaseModel)

MAX_PROBLEMS = 50
"""Maximum number of problems of a config that are reported."""
MAX_PROBLEM_CHARS = 1_900
"""Maximum number of characters of a problem."""
MAX_VALUES = 20_000
"""Maximum number of members of all objects and lists of a config. Reading a config takes time in proportion to it."""


class ConfigError(ValueError):
    """Raised for a config that cannot be used; `problems` lists its problems, up to 50."""

    def __init__(self, problems: Sequence[str]) -> None:
        self.problems = reported(problems)
        super().__init__(
            "the evaluation config cannot be used:\n" + "\n".join(f"  - {problem}" for problem in self.problems)
        )


def reported(problems: Sequence[str]) -> list[str]:
    """Returns the problems that are reported, each shortened to `MAX_PROBLEM_CHARS`."""
    found = [_shortened(problem) for problem in problems[:MAX_PROBLEMS]]
    if are_enough(problems):
        found.append(f"further problems are not listed; solve the first {MAX_PROBLEMS}, then check again")
    return found


def are_enough(problems: Sequence[str]) -> bool:
    """Returns whether no further problem would be reported, so that nobody needs to look for one."""
    return len(problems) > MAX_PROBLEMS


def is_too_large(document: Mapping[str, object]) -> bool:
    """Returns whether a config has more than `MAX_VALUES` values."""
    count = 0
    rest: list[object] = [document]
    while rest:
        value = rest.pop()
        if not isinstance(value, Mapping | list):
            continue
        count += len(value)
        if count > MAX_VALUES:
            return True
        rest += value.values() if isinstance(value, Mapping) else value
    return False


def _shortened(problem: str) -> str:
    """Keeps both ends: a long name stands before the rule that it breaks."""
    if len(problem) <= MAX_PROBLEM_CHARS:
        return problem
    half = MAX_PROBLEM_CHARS // 2
    return f"{problem[: half - 1]}…{problem[-half:]}"


def validated(
    model: type[Model], options: JsonObject, place: str, problems: list[str], known: Iterable[str] = ()
) -> Model | None:
    """Returns the validated options; if they are invalid, returns None and appends the reasons to `problems`.

    Args:
        model: The model of the options.
        options: The options in the config.
        place: The path of the options in the config; empty for the top level.
        problems: The list of problems to append to.
        known: Names of the options for the message about an unknown one; empty: those of the fields of the model.
    """
    try:
        return model.model_validate(options)
    except ValidationError as error:
        found = error.errors(include_url=False, include_context=False)
    unions = defaultdict(list)
    for item in found:
        unions[item["loc"][:1]].append(item)
    # An integer beyond the range of a double is of no branch's type; then the first error of the union is reported.
    of_no_branch = {place for place, union in unions.items() if all(each["type"] in _OF_A_BRANCH for each in union)}
    for item in found:
        if are_enough(problems):
            break
        place_of_union = item["loc"][:1]
        union = unions[place_of_union]
        is_reported = item is union[0] if place_of_union in of_no_branch else len(union) == 1
        if item["type"] in _OF_A_BRANCH and not is_reported:
            # An error of the other branch of "a number or an object".
            continue
        path = [str(part) for part in item["loc"] if not _BRANCH.fullmatch(str(part))]
        where = ".".join([place, *path] if place else path)
        if item["type"] == "extra_forbidden":
            names = known if known and len(path) == 1 else _options_at(model, path[:-1])
            problems.append(f"{where}: there is no such option; {did_you_mean(path[-1], names)}")
        elif item["type"] == "missing":
            path[-1] = _spelled(model, path, item["input"])
            problems.append(f"{'.'.join([place, *path] if place else path)}: is missing; the config must give it")
        elif (kind := _KINDS.get(item["type"])) is not None:
            problems.append(f"{where}: must be {kind}, not {kind_of(item['input'])}")
        else:
            rule = item["msg"].removeprefix("Value error, ").replace(" after validation", "")
            got = "" if isinstance(item["input"], dict | list) else f", not {shown(item['input'])}"
            problems.append(f"{where}: {rule}{got}")
    return None


_KINDS = {"model_type": "an object", "dict_type": "an object", "list_type": "a list"}
"""The JSON types that pydantic names by those of Python, by the type of the error."""


def _spelled(model: type[BaseModel], path: Sequence[str], beside: object) -> str:
    """Returns a missing key as a user would write it: in snake_case, unless a key beside it is in camelCase.

    Args:
        model: The model of the options.
        path: The place of the key, which ends with its alias.
        beside: The object without the key.
    """
    keys = beside if isinstance(beside, Mapping) else {}
    fields = [(name, field) for each in _models_at(model, path[:-1]) for name, field in each.model_fields.items()]
    if any(name != to_camel(name) == field.alias in keys for name, field in fields):
        return path[-1]
    return next((name for name, field in fields if path[-1] == field.alias == to_camel(name)), path[-1])


_OF_A_BRANCH = ("float_type", "dict_type")
_BRANCH = re.compile(r"float|constrained-float|dict\[.*\]|function-.*|scale-.*")
"""The names of the branches of a union in the location of an error: pydantic's, and the tags of a scale."""


def option_names(model: type[BaseModel]) -> set[str]:
    """Returns the names of the options of a model, in each spelling."""
    return _options_at(model, ())


def _options_at(model: type[BaseModel], path: Sequence[str]) -> set[str]:
    fields_of = [(name, field) for each in _models_at(model, path) for name, field in each.model_fields.items()]
    # A field with an alias of its own has a keyword of Python as its key.
    return {
        spelling
        for name, field in fields_of
        for spelling in (name, field.alias or name)
        if field.alias in (None, to_camel(name)) or spelling == field.alias
    }


def _models_at(model: type[BaseModel], path: Sequence[str]) -> list[type[BaseModel]]:
    models = [model]
    for part in path:
        fields = [field for each in models for name, field in each.model_fields.items() if part in (name, field.alias)]
        models = [kind for field in fields for kind in _models_in(field.annotation)] or models
    return models


def _models_in(annotation: object) -> list[type[BaseModel]]:
    if _is_model(annotation):
        return [annotation]
    return [kind for part in get_args(annotation) for kind in _models_in(part)]


def _is_model(kind: object) -> TypeGuard[type[BaseModel]]:
    # A RootModel is a single value, and has no options.
    return isinstance(kind, type) and issubclass(kind, BaseModel) and not issubclass(kind, RootModel)


def kind_of(value: object) -> str:
    """Returns the name of a value's JSON type, with its article."""
    kinds = {dict: "an object", list: "a list", str: "a string", bool: "a truth value", type(None): "null"}
    return kinds.get(type(value), "a number")


def shown(value: object) -> str:
    """Returns a value as printable text for a message, up to 60 characters."""
    try:
        text = json.dumps(value, ensure_ascii=False)
    except (TypeError, ValueError):
        text = repr(value)
    return printable(text, 60)

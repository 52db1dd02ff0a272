"""Describes the problems of a config's options in the terms of the config."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import TypeGuard, TypeVar, get_args

from pydantic import BaseModel, ValidationError

from traceweir.schemas.base import JsonObject
from traceweir.schemas.text import printable
from traceweir.scorers.spelling import did_you_mean

Model = TypeVar("Model", bound=BaseModel)


def validated(model: type[Model], options: JsonObject, place: str, problems: list[str]) -> Model | None:
    """Returns the validated options; if they are invalid, returns None and appends the reasons to `problems`.

    Args:
        model: The model of the options.
        options: The options in the config.
        place: The path of the options in the config; empty for the top level.
        problems: The list of problems to append to.
    """
    try:
        return model.model_validate(options)
    except ValidationError as error:
        found = error.errors(include_url=False, include_context=False)
    for item in found:
        union = [other for other in found if other["loc"][:1] == item["loc"][:1]]
        # An integer beyond the range of a double is of no branch's type; then the first error of the union is reported.
        is_of_no_branch = all(other["type"] in ("float_type", "dict_type") for other in union)
        is_reported = item is union[0] if is_of_no_branch else len(union) == 1
        if item["type"] in ("float_type", "dict_type") and not is_reported:
            continue  # an error of the other branch of "a number or an object"
        path = [str(part) for part in item["loc"] if not _BRANCH.fullmatch(str(part))]
        where = ".".join([place, *path] if place else path)
        if item["type"] == "extra_forbidden":
            problems.append(
                f"{where}: there is no such option; {did_you_mean(path[-1], _options_at(model, path[:-1]))}"
            )
        else:
            rule = item["msg"].removeprefix("Value error, ")
            got = "" if isinstance(item["input"], dict | list) else f", not {shown(item['input'])}"
            problems.append(f"{where}: {rule}{got}")
    return None


_BRANCH = re.compile(r"float|constrained-float|dict\[.*\]|function-.*")
"""The names that pydantic gives to branches of a union in the location of an error."""


def _options_at(model: type[BaseModel], path: Sequence[str]) -> set[str]:
    for part in path:
        fields = (field for name, field in model.model_fields.items() if part in (name, field.alias))
        inner = [kind for field in fields for kind in _models_in(field.annotation)]
        model = inner[0] if inner else model
    return {spelling for name, field in model.model_fields.items() for spelling in (name, field.alias or name)}


def _models_in(annotation: object) -> list[type[BaseModel]]:
    if _is_model(annotation):
        return [annotation]
    return [kind for part in get_args(annotation) for kind in _models_in(part)]


def _is_model(kind: object) -> TypeGuard[type[BaseModel]]:
    return isinstance(kind, type) and issubclass(kind, BaseModel)


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

"""What is wrong with a config's options, in the config's own terms."""

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
    """The model that the options make; None if they do not, and why is added to the problems.

    Args:
        model: What they are options of.
        options: As the config has them.
        place: Where they stand in the config.
        problems: What is wrong so far.
    """
    try:
        return model.model_validate(options)
    except ValidationError as error:
        found = error.errors(include_url=False, include_context=False)
    for item in found:
        union = [other for other in found if other["loc"][:1] == item["loc"][:1]]
        if item["type"] in ("float_type", "dict_type") and len(union) > 1:
            continue  # the branch of "a number or an object" that was not meant
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
"""How pydantic names a branch of a union in an error's place."""


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
    """What JSON calls a value."""
    kinds = {dict: "an object", list: "a list", str: "a string", bool: "a truth value", type(None): "null"}
    return kinds.get(type(value), "a number")


def shown(value: object) -> str:
    """A value as it may stand in a message."""
    try:
        text = json.dumps(value, ensure_ascii=False)
    except (TypeError, ValueError):
        text = repr(value)
    return printable(text, 60)

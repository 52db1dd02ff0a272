"""Finds the keys that a model reads, in each of their spellings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, get_args

from pydantic import BaseModel, JsonValue


@cache
def spellings(model: type[BaseModel]) -> Mapping[str, Sequence[type[BaseModel]]]:
    """Returns the keys of a model, in snake_case and as their alias, each with the models of its value."""
    return {
        spelling: models_in(field.annotation)
        for name, field in model.model_fields.items()
        for spelling in (name, field.alias or name)
    }


def models_in(annotation: Any) -> list[type[BaseModel]]:
    """Returns the models in an annotation, such as those of a union or of a list.

    >>> models_in(str | None)
    []
    """
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [model for part in get_args(annotation) for model in models_in(part)]


def inner_model(models: Sequence[type[BaseModel]], value: JsonValue) -> type[BaseModel]:
    """Returns the model of a union that knows most keys of a value."""
    return max(models, key=lambda model: len(spellings(model).keys() & value.keys()) if isinstance(value, dict) else 0)

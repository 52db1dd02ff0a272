"""Defines the base of a group of settings, and types of their values."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, SecretStr, field_validator

Seconds = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Count = Annotated[int, Field(ge=1)]

ENV_PREFIX = "TRACEWEIR_"
MAX_VALUE_CHARACTERS = 3_000
"""Characters of a value: enough for every path and every list of brokers, and few enough for a message to show all."""
MAX_SECRET_CHARACTERS = 8_192
"""Characters of a password or key, which can be a token; messages never show one."""


class SettingGroup(BaseModel):
    """Holds settings of one subject, which are fields of `Settings` too."""

    model_config = ConfigDict(frozen=True)

    @field_validator("*")
    @classmethod
    def _is_not_too_long(cls, value: object) -> object:
        """Refuses a long value where it is named: the system calls that get it name neither the variable nor a limit."""
        if isinstance(value, SecretStr):
            text = value.get_secret_value()
            limit = MAX_SECRET_CHARACTERS
        else:
            text = str(value)
            limit = MAX_VALUE_CHARACTERS
        if len(text) > limit:
            raise ValueError(
                f"the value (not shown) has {len(text)} characters, and at most {limit} are allowed; "
                "shorten the value, or unset the variable"
            )
        return value


def env(field: str) -> str:
    """Returns the variable of the environment that has a setting."""
    return ENV_PREFIX + field.upper()

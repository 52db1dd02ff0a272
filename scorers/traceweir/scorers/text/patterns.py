"""Compiles regular expressions from configs with RE2, which does not backtrack."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import re2

_MEMORY = 8 << 20


@lru_cache(maxsize=256)
def compiled(pattern: str) -> Any:
    """Returns the compiled pattern.

    Raises:
        ValueError: RE2 does not accept the pattern.

    >>> compiled("(?=a)")
    Traceback (most recent call last):
    ...
    ValueError: RE2 does not accept the pattern: invalid perl operator: (?=
    """
    options = re2.Options()
    options.log_errors = False
    options.max_mem = _MEMORY
    try:
        return re2.compile(pattern, options)
    except re2.error as error:
        raise ValueError(f"RE2 does not accept the pattern: {error.args[0].decode()}") from None

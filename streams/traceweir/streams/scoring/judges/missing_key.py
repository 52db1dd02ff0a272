"""Recognises a question that fails on this machine, before or because nothing names a key to the provider."""

from __future__ import annotations

import re
from typing import Any

from traceweir.streams.scoring.judges.http_limits import HttpExchange, causes

_OF_CREDENTIALS = re.compile(r"(KEY|KEY_ID|TOKEN|SECRET|PASSWORD|CREDENTIALS?)$")
"""How the name of a variable with credentials ends; the variables of a provider also hold addresses and versions."""

_ABOUT_KEY = re.compile(r"api.?key|credential", re.IGNORECASE)
_SEARCHED_CHARS = 300


def is_refused_here(error: BaseException, status: int, exchange: HttpExchange) -> bool:
    """Returns whether litellm refused a question itself: without a key, a setting or a package of the provider.

    litellm gives most such errors the status of a failed server or connection. The next attempt fails in the same way.

    Args:
        error: The error of litellm.
        status: The HTTP status that litellm gives it.
        exchange: What was sent meanwhile.
    """
    if exchange.is_sent or not hasattr(error, "llm_provider"):
        return False
    if status < 500:
        return _ABOUT_KEY.search(str(error)[:_SEARCHED_CHARS]) is not None
    # A package of a provider has connections of its own, for example to get a token.
    return not any(isinstance(each, OSError) and not isinstance(each, FileNotFoundError) for each in causes(error))


def missing_key(litellm: Any, model: str, exchange: HttpExchange) -> list[str]:
    """Returns the variables of the environment in which litellm looks for a model's key, if none was found.

    Args:
        litellm: The module.
        model: litellm's name of the model.
        exchange: What was sent; a request with a key lacks none.

    Returns:
        Empty if a key was sent, or if the provider needs none.
    """
    if exchange.is_authorized:
        return []
    try:
        names = litellm.validate_environment(model)["missing_keys"]
    except Exception:  # noqa: BLE001  # litellm does not know the variables of the provider
        return []
    return [name for name in names if _OF_CREDENTIALS.search(name)]

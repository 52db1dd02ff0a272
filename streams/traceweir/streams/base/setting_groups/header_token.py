"""Checks the secret that clients of a service send in a header."""

from __future__ import annotations

import re

from pydantic import SecretStr

_TOKEN = re.compile(r"[!-~]{16,}")


def is_header_token(text: str) -> bool:
    """Returns whether a header can contain this secret, and it is not easy to guess by its length.

    >>> is_header_token("a-token-of-20-letters"), is_header_token("short")
    (True, False)
    """
    return _TOKEN.fullmatch(text) is not None


def token_of_header(token: SecretStr | None) -> SecretStr | None:
    """Returns the secret.

    Raises:
        ValueError: a header cannot contain it, or it is easy to guess.
    """
    if token is not None and not is_header_token(token.get_secret_value()):
        raise ValueError(
            "the value (not shown) must be 16 characters or more, in ASCII and without spaces; for example the output "
            "of `openssl rand -hex 32`"
        )
    return token

"""What can go wrong with a question to a judge, in words that give no key away."""

from __future__ import annotations

import base64
import json
import os
import re
from collections.abc import Iterable
from urllib.parse import quote

from traceweir.schemas.text import printable

LONGEST = 300
_SHORTEST = 6
"""A secret of fewer characters would be found in ordinary words. Local servers are given such as `x`."""
_SECRET_NAMES = re.compile(r"(KEY|TOKEN|SECRET|PASSWORD|CREDENTIALS?)$")
_BEARER = re.compile(r"(?i)\b(bearer|basic)\s+[A-Za-z0-9._~+/=-]+|\bsk-[A-Za-z0-9_-]{6,}|\bAIza[A-Za-z0-9_-]{10,}")
HIDDEN = "[secret]"


class JudgeUnavailableError(RuntimeError):
    """Judges cannot be asked from here; the message says what would help."""


class Transient(Exception):  # noqa: N818  # an outcome that the caller handles
    """An attempt that failed, and may succeed later.

    Args:
        why: For a person.
        after_s: Seconds that the provider asks to wait.
        down: Whether it seems not to be there, rather than to be busy.
        unknown: Whether it may have been at work, and paid for, nevertheless.
    """

    def __init__(self, why: str, *, after_s: float | None = None, down: bool = True, unknown: bool = False) -> None:
        super().__init__(why)
        self.after_s, self.down, self.unknown = after_s, down, unknown


class Refused(Exception):  # noqa: N818  # an outcome that the caller handles
    """An attempt that failed, and would fail again.

    Args:
        why: For a person.
        down: Whether other questions would fare the same.
        unknown: Whether it was paid for, nevertheless.
    """

    def __init__(self, why: str, *, down: bool = False, unknown: bool = False) -> None:
        super().__init__(why)
        self.down, self.unknown = down, unknown


class Secrets:
    """Takes keys out of texts: providers repeat what they were sent.

    >>> Secrets(["hunter2-hunter2"]).hide("Incorrect API key: hunter2-hunter2, sent as Bearer abc123")
    'Incorrect API key: [secret], sent as [secret]'
    """

    def __init__(self, known: Iterable[str]) -> None:
        found = set()
        for secret in known:
            if len(secret) >= _SHORTEST:
                written = json.dumps(secret)[1:-1], quote(secret, safe=""), base64.b64encode(secret.encode()).decode()
                found |= {secret, *written, written[2].rstrip("=")}
        ordered = sorted(found, key=len, reverse=True)
        self._pattern = re.compile("|".join(map(re.escape, ordered))) if ordered else None

    @classmethod
    def of_environment(cls, *more: str) -> Secrets:
        """The values of all variables whose names say that they are secret, and these."""
        named = (value for name, value in os.environ.items() if _SECRET_NAMES.search(name.upper()))
        return cls([*named, *more])

    def known(self, text: str) -> str:
        """The text without the keys that are known here; anything else that looks like one stays."""
        return text if self._pattern is None else self._pattern.sub(HIDDEN, text)

    def hide(self, text: str) -> str:
        """The text on one line, without keys, and without what looks like one, cut to a length that fits a result."""
        return printable(_BEARER.sub(HIDDEN, self.known(text)), LONGEST)

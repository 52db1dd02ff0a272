"""Defines the failures of a question to a judge, and removes API keys from their messages."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable

from traceweir.schemas.score import Cause
from traceweir.schemas.text import printable
from traceweir.streams.base.known_secrets import HIDDEN, KnownSecrets
from traceweir.streams.scoring.judges.models import Spent

MAX_MESSAGE_CHARS = 300
_SECRET_NAMES = re.compile(r"(KEY|TOKEN|SECRET|PASSWORD|CREDENTIALS?)$")
_BEARER = re.compile(r"(?i)\b(bearer|basic)\s+[A-Za-z0-9._~+/=-]+|\bsk-[A-Za-z0-9_-]{6,}|\bAIza[A-Za-z0-9_-]{10,}")


class JudgeUnavailableError(RuntimeError):
    """This process cannot ask judges; the message names the way out."""


class Transient(Exception):  # noqa: N818  # an outcome that the caller handles
    """A failed attempt that can succeed later.

    Args:
        reason: Message for a person.
        after_s: Seconds that the provider asks to wait before the next attempt.
        down: Whether the provider seems to be down, rather than busy.
        unknown: Whether the provider can have processed and charged the failed attempt.
        unreachable: Whether no connection could be made.
        cause: What the judge lacked.
        overloaded: Whether the provider had more questions at once than it could answer in time.
    """

    def __init__(
        self,
        reason: str,
        *,
        after_s: float | None = None,
        down: bool = True,
        unknown: bool = False,
        unreachable: bool = False,
        cause: Cause = "judge_unavailable",
        overloaded: bool = False,
    ) -> None:
        super().__init__(reason)
        self.after_s = after_s
        self.down = down
        self.unknown = unknown
        self.unreachable = unreachable
        self.cause: Cause = cause
        self.overloaded = overloaded


class FinalFailure(Exception):  # noqa: N818  # an outcome that the caller handles
    """A failed attempt that would fail again.

    Args:
        reason: Message for a person.
        down: Whether other questions would fail in the same way.
        unknown: Whether the attempt was charged nevertheless.
        spent: Whether the account has nothing left, so that no other question is worth an attempt.
        used: What the provider says that the attempt used, or an estimate of it; None: not known.
        cause: What the judge lacked.
    """

    def __init__(
        self,
        reason: str,
        *,
        down: bool = False,
        unknown: bool = False,
        spent: bool = False,
        used: Spent | None = None,
        cause: Cause = "judge_unavailable",
    ) -> None:
        super().__init__(reason)
        self.down = down
        self.unknown = unknown
        self.spent = spent
        self.used = used
        self.cause: Cause = cause


class Secrets:
    """Removes API keys from texts, because providers repeat received keys, or parts of them, in their error messages.

    >>> Secrets(["hunter2-hunter2"]).hide("Incorrect API key: hunter2-hunter2, sent as Bearer abc123")
    'Incorrect API key: [secret], sent as [secret]'
    """

    def __init__(self, known: Iterable[str]) -> None:
        values = list(known)
        # Names of secrets can hold the path of a file, whose parts are words of other texts.
        self._known = KnownSecrets(values, fragments=[each for each in values if not each.startswith(("/", "~", "."))])

    @classmethod
    def of_environment(cls, *more: str) -> Secrets:
        """Collects the values of all environment variables with a secret-like name, and the values in `more`."""
        named = (value for name, value in os.environ.items() if _SECRET_NAMES.search(name.upper()))
        return cls([*named, *more])

    def known(self, text: str) -> str:
        """Returns the text without the known keys and their parts; other text that looks like a key stays."""
        return self._known.hide(text)

    def hide(self, text: str) -> str:
        """Returns the text on one line, without known keys and key-like text, truncated to `MAX_MESSAGE_CHARS` characters."""
        hidden = self._known.hide_in_beginning(text)
        return printable(_BEARER.sub(HIDDEN, hidden), MAX_MESSAGE_CHARS)

"""Reads from a refusal of a provider when the next attempt can succeed, and of what kind it is."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import datetime
from email.utils import parsedate_to_datetime
from typing import Any, NamedTuple

import orjson

_MAX_PAUSE_S = 1e9
_PAYMENT_REQUIRED = 402
_SPENT_CODES = (
    "insufficient_quota",
    "billing_hard_limit_reached",
    "billing_not_active",
    "exceeded_current_quota_error",
    "arrearage",
)
"""`error.code` or `error.type` in lower case: of OpenAI and of servers with its API, Moonshot, Alibaba Cloud."""
_FILTER_CODES = ("content_filter", "content_policy_violation")
_LENGTH_CODES = ("context_length_exceeded", "exceed_context_size_error")
"""The same for a question that a filter refuses, and for one that is too long (OpenAI, Azure; OpenAI, llama.cpp)."""
_SPENT_MESSAGE = re.compile(
    r"\s*(?:Error code: \d+ - )?(?:Your credit balance is too low|(?:You have )?insufficient[_ ](?:account )?"
    r"(?:quota|credits?|balance|funds)\b|Rate limit exceeded: free-models-per-day)",
    re.IGNORECASE,
)
"""How such a message begins; what follows can repeat the question. Several providers have no code for it: Anthropic has
only the status 400, OpenRouter 429 for the quota of a day."""
_PER_DAY = re.compile(r"PerDay", re.IGNORECASE)
"""Part of the name of a Gemini quota that lasts until midnight."""
_SECONDS = re.compile(r"(\d{1,9}(?:\.\d{1,9})?)s")


class RefusalHints(NamedTuple):
    """What a provider says with an error."""

    after_s: float | None = None
    """Seconds until an attempt can succeed; None: the provider says nothing."""
    is_spent: bool = False
    """Whether a daily quota or the credit is spent, so that no attempt succeeds for hours."""
    is_filtered: bool = False
    """Whether a filter of the provider refuses the question."""
    is_too_long: bool = False
    """Whether the question does not fit into the model."""


def refusal(headers: Mapping[str, str] | None, body: bytes, now: datetime, status: int | None = None) -> RefusalHints:
    """Returns what an error says.

    The pause is that of the header `retry-after-ms` (OpenAI), else of `Retry-After`, else of `RetryInfo` (Google). Of a
    message only the beginning counts, because the rest can repeat text of an agent.

    Args:
        headers: The headers of the answer.
        body: Its body; empty if it is not known.
        now: The current time.
        status: Its status; None if there is none.

    >>> from datetime import UTC
    >>> now = datetime(2026, 1, 31, 12, tzinfo=UTC)
    >>> refusal({"retry-after-ms": "1500", "retry-after": "2"}, b"", now)
    RefusalHints(after_s=1.5, is_spent=False, is_filtered=False, is_too_long=False)
    >>> refusal(None, b'{"error": {"details": [{"retryDelay": "27s"}]}}', now).after_s
    27.0
    >>> refusal(None, b'{"error": {"code": "insufficient_quota", "message": "Check your plan."}}', now).is_spent
    True
    """
    errors = list(errors_in(body))
    after_s = retry_after(headers, now)
    if after_s is None:
        after_s = next((delay for error in errors if (delay := _retry_delay_s(error)) is not None), None)
    codes = {str(error.get(name)) for error in errors for name in ("code", "type")}
    return RefusalHints(
        after_s,
        status == _PAYMENT_REQUIRED or any(map(_is_spent, errors)),
        is_filtered=not codes.isdisjoint(_FILTER_CODES),
        is_too_long=not codes.isdisjoint(_LENGTH_CODES),
    )


def retry_after(headers: Mapping[str, str] | None, now: datetime) -> float | None:
    """Returns the seconds of a reply's `retry-after-ms` or `Retry-After` header (a number or a date); None if absent or
    unreadable.

    >>> from datetime import UTC
    >>> now = datetime(2026, 1, 31, 12, tzinfo=UTC)
    >>> [retry_after({"retry-after": header}, now) for header in ("7", "Sat, 31 Jan 2026 12:00:30 GMT", "soon")]
    [7.0, 30.0, None]
    """
    found = headers or {}
    milliseconds = _number(found.get("retry-after-ms"))
    if milliseconds is not None:
        return milliseconds / 1000
    header = found.get("retry-after")
    if not header:
        return None
    if (seconds := _number(header)) is not None:
        return seconds
    try:
        return max(0.0, (parsedate_to_datetime(header) - now).total_seconds())
    except (ValueError, TypeError):
        return None


def _number(text: str | None) -> float | None:
    try:
        number = float(text or "")
    except ValueError:
        return None
    # Also not a number.
    return max(0.0, number) if number < _MAX_PAUSE_S else None


def errors_in(body: bytes) -> Iterator[dict[str, Any]]:
    """Yields the errors in the body of an answer; one that is a text is the message of an error."""
    try:
        document = orjson.loads(body)
    except orjson.JSONDecodeError:
        return
    # Google's API compatible with OpenAI's answers with a list.
    for each in document if isinstance(document, list) else [document]:
        if not isinstance(each, dict):
            continue
        # Mistral and Alibaba Cloud have the fields of an error at the top.
        error = each.get("error", each)
        if isinstance(error, str):
            yield {"message": error}
        elif isinstance(error, dict):
            yield error


def _details(error: Mapping[str, Any]) -> list[dict[str, Any]]:
    details = error.get("details")
    return [each for each in details if isinstance(each, dict)] if isinstance(details, list) else []


def _retry_delay_s(error: Mapping[str, Any]) -> float | None:
    for each in _details(error):
        if found := _SECONDS.fullmatch(str(each.get("retryDelay", ""))):
            return float(found[1])
    return None


def _is_spent(error: Mapping[str, Any]) -> bool:
    if any(str(error.get(name)).lower() in _SPENT_CODES for name in ("code", "type")):
        return True
    if _SPENT_MESSAGE.match(str(error.get("message", ""))):
        return True
    violations = [each.get("violations") for each in _details(error)]
    quotas = [each for found in violations if isinstance(found, list) for each in found if isinstance(each, dict)]
    return any(_PER_DAY.search(str(each.get("quotaId", ""))) for each in quotas)

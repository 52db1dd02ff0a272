"""Formats numbers for people: one rule for digits, and one for counts."""

from __future__ import annotations


def figure(value: float, threshold: float | None = None) -> str:
    """Returns a value in three decimals; from 100 on without decimals, and from 1e15 on with an exponent.

    If rounding would move the value to the other side of its threshold, or onto it, the text has as many digits as
    it takes to see on which side the value is.

    >>> figure(0.1), figure(2.0), figure(1_234.5), figure(1.7e300), figure(0.00001)
    ('0.100', '2.000', '1,234', '1.7e+300', '1e-05')
    >>> figure(0.7499, 0.75), figure(0.75, 0.75), figure(0.12, 0.75), figure(0.75001, 0.75)
    ('0.7499', '0.750', '0.120', '0.75001')
    """
    shown = _rounded(value)
    if threshold is None or _is_on_side(shown, value, threshold):
        return shown
    return next(text for digits in range(4, 18) if _is_on_side(text := f"{value:.{digits}g}", value, threshold))


def _is_on_side(shown: str, value: float, threshold: float) -> bool:
    rounded = float(shown.replace(",", ""))
    return (rounded < threshold, rounded > threshold) == (value < threshold, value > threshold)


def needed(value: float, threshold: float) -> str:
    """Returns what a value needs to pass, for a value that has FAILED on one side of its threshold.

    >>> needed(0.7, 0.75), needed(12, 10)
    ('>= 0.75', '<= 10')
    """
    return f"{'>=' if value < threshold else '<='} {threshold_figure(threshold)}"


def threshold_figure(threshold: float) -> str:
    """Returns a threshold as a person writes it.

    >>> threshold_figure(0.75), threshold_figure(1.0), threshold_figure(0.1234567)
    ('0.75', '1', '0.1234567')
    """
    short = f"{threshold:g}"
    return short if float(short) == threshold else repr(threshold)


def counted(count: int, noun: str, plural: str = "") -> str:
    """Returns a count with its noun.

    >>> counted(1, "session"), counted(1_000, "session"), counted(0, "dead letter"), counted(2, "match", "matches")
    ('1 session', '1000 sessions', '0 dead letters', '2 matches')
    """
    return f"{count} {noun if count == 1 else plural or noun + 's'}"


def _rounded(value: float) -> str:
    size = abs(value)
    if 99.9995 <= size < 100:
        return f"{round(value):d}"
    if value == 0:
        return "0.000"
    if size >= 1e15 or 0 < size < 0.0005:
        return f"{value:.3g}"
    return f"{value:.3f}" if size < 100 else f"{value:,.0f}"


def why_no_value(because: str, cause: str | None, rationale: str) -> str:
    """Returns why a score has no value: its reason, its rationale, and what its judge lacked if a judge is the cause.

    >>> why_no_value("error", "judge_refused", "it cannot help"), why_no_value("budget", None, "0 USD are left")
    ('error: it cannot help (cause: judge_refused)', 'budget: 0 USD are left')
    """
    return f"{because}: {rationale}" + ("" if cause is None else f" (cause: {cause})")

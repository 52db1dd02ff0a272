"""A status is final for a record only if it is about the content."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from traceweir.streams.tools.export.answers import Accepted, Answer, Later, Refused, Unfit, answer_to_status

NOW = datetime(2026, 5, 20, 12, 0, 0, tzinfo=UTC)


def answer(status: int, retry_after: str = "") -> Answer:
    return answer_to_status(status, {"Retry-After": retry_after} if retry_after else {}, "", "check the token", NOW)


@pytest.mark.parametrize("status", [200, 202, 204])
def test_success_is_accepted(status: int) -> None:
    assert answer(status) == Accepted()


@pytest.mark.parametrize("status", [400, 413, 422])
def test_what_is_said_about_the_content_refuses_it(status: int) -> None:
    assert isinstance(answer(status), Refused)


@pytest.mark.parametrize("status", [401, 403, 404, 410])
def test_what_is_said_about_the_exporter_is_no_answer_to_the_content(status: int) -> None:
    assert answer(status) == Unfit(f"the target answered {status}; check the token")


@pytest.mark.parametrize("status", [301, 307, 405, 407, 415, 451])
def test_another_refusal_is_not_final_and_the_reason_has_the_way_out(status: int) -> None:
    found = answer(status)
    assert isinstance(found, Later)
    assert not found.can_be_the_content
    assert found.reason.endswith("check the token")


@pytest.mark.parametrize(("status", "unclear"), [(429, False), (502, False), (503, False), (504, False), (500, True)])
def test_errors_of_the_target_are_repeated(status: int, unclear: bool) -> None:
    found = answer(status)
    assert isinstance(found, Later)
    assert found.can_be_the_content == unclear


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("7", 7.0),
        ("0", 0.0),
        ("-3", 0.0),
        ("999999", 600.0),
        ("Wed, 20 May 2026 12:00:30 GMT", 30.0),
        ("Wed, 20 May 2026 11:00:00 GMT", 0.0),
        ("soon", None),
        ("nan", None),
        ("inf", None),
        ("Wed, 20 May 2026 12:00:30", None),
    ],
)
def test_retry_after_is_a_number_or_a_date_and_is_bounded(text: str, seconds: float | None) -> None:
    found = answer(503, text)
    assert isinstance(found, Later)
    assert found.after_s == seconds

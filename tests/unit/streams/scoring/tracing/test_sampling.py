"""A share of the sessions is traced, the same in each process."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from traceweir.streams.base.errors import InvalidSettingsError
from traceweir.streams.scoring.tracing.sampling import DEFAULT_SHARE, bound_of, is_chosen, share_of_environment


@pytest.mark.parametrize(
    ("environment", "share"),
    [
        ({}, DEFAULT_SHARE),
        ({"OTEL_TRACES_SAMPLER_ARG": "0.5"}, DEFAULT_SHARE),
        ({"OTEL_TRACES_SAMPLER": "always_on"}, 1.0),
        ({"OTEL_TRACES_SAMPLER": "parentbased_always_off"}, 0.0),
        ({"OTEL_TRACES_SAMPLER": "traceidratio"}, 1.0),
        ({"OTEL_TRACES_SAMPLER": "traceidratio", "OTEL_TRACES_SAMPLER_ARG": "0.25"}, 0.25),
    ],
)
def test_the_environment_chooses_the_share(environment: Mapping[str, str], share: float) -> None:
    assert share_of_environment(environment) == share


@pytest.mark.parametrize(
    ("sampler", "argument", "message"),
    [
        ("jaeger_remote", "", "OTEL_TRACES_SAMPLER=jaeger_remote: the samplers are always_on"),
        ("traceidratio", "2", "OTEL_TRACES_SAMPLER_ARG=2: the share"),
        ("traceidratio", "nan", "OTEL_TRACES_SAMPLER_ARG=nan: the share"),
        ("traceidratio", "half\n", "OTEL_TRACES_SAMPLER_ARG=half\\n: the share"),
    ],
)
def test_another_sampler_is_refused(sampler: str, argument: str, message: str) -> None:
    with pytest.raises(InvalidSettingsError) as refused:
        share_of_environment({"OTEL_TRACES_SAMPLER": sampler, "OTEL_TRACES_SAMPLER_ARG": argument})
    assert str(refused.value).startswith(message)


@pytest.mark.parametrize("share", [0.0, 0.01, 0.5, 1.0])
def test_so_large_a_share_of_the_sessions_is_chosen(share: float) -> None:
    bound = bound_of(share)
    chosen = sum(is_chosen(f"session-{number}".encode(), bound) for number in range(10_000))
    assert chosen == pytest.approx(share * 10_000, rel=0.2)


def test_a_larger_share_has_the_sessions_of_a_smaller_one() -> None:
    names = [f"{number}".encode() for number in range(1_000)]
    few, many = [{name for name in names if is_chosen(name, bound_of(share))} for share in (0.1, 0.3)]
    assert few < many

"""`traceweir size`: prints what a load needs, from which figures, and what is assumed."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path

import orjson
import typer

from traceweir.schemas.figures import counted
from traceweir.streams.base.settings import load_settings
from traceweir.streams.cli.rows import print_aligned, write_line
from traceweir.streams.cli.score.commands import read_config
from traceweir.streams.lab.sizing.deployment import Needs, needs_of
from traceweir.streams.lab.sizing.figures import all_figures
from traceweir.streams.lab.sizing.judging import JudgedCriterion, judged_criteria
from traceweir.streams.lab.sizing.load import SessionLoad

_UNKNOWN = "unknown"


def run(load: SessionLoad, config: Path | None, *, as_json: bool) -> None:
    """Prints what a load needs.

    Raises:
        ConfigError: the config cannot be used.
        InvalidSettingsError: the environment cannot be used.
        BadParameter: a session of this size closes in several segments.
    """
    settings = load_settings()
    if (size := load.records * load.record_bytes) > settings.segment_max_bytes:
        raise typer.BadParameter(
            f"{load.records:,} records of {load.record_bytes:,} bytes are a session of {size:,} bytes, which closes in "
            f"segments of at most {settings.segment_max_bytes:,} (TRACEWEIR_SEGMENT_MAX_BYTES); give the records of a "
            "segment, and count each segment as a session",
            param_hint="--record-bytes",
        )
    plan = read_config(config)
    judged = asyncio.run(judged_criteria(plan, load, settings.judge_api_base))
    needs = needs_of(plan, load, judged, settings)
    if as_json:
        document = {
            "load": load._asdict(),
            "needs": asdict(needs),
            "judges": [asdict(each) for each in judged],
            "figures": {name: each._asdict() for name, each in all_figures().items()},
        }
        write_line(orjson.dumps(document).decode())
        return
    _section(f"{_number(load.sessions_per_day)} sessions a day need", _needed(needs))
    _section("Kafka, MB a day with one copy", _in_kafka(needs, load))
    if judged:
        _section("judges, a day", [_JUDGE_HEADINGS, *map(_judge_row, judged), *_total(judged)])
    _section("assumed", _assumed(load))


def _section(title: str, rows: Sequence[Sequence[str]]) -> None:
    write_line(f"{title}:")
    print_aligned(rows)


def _needed(needs: Needs) -> list[tuple[str, str, str]]:
    return [
        ("records/s", _number(needs.records_per_s), f"{_number(needs.peak_records_per_s)} at the peak"),
        ("partitions", str(needs.partitions), "TRACEWEIR_PARTITIONS, which cannot change later"),
        ("workers", str(needs.workers), "by main threads, scoring processes and state; at least two"),
        ("cores of workers", _number(needs.cores), f"{_number(needs.peak_cores)} at the peak, scoring included"),
        ("cores of brokers", _number(needs.broker_cores), "at the peak, for one copy"),
        ("memory of a worker", f"{_number(needs.memory_mb)} MB", "at the peak, with its scoring process"),
        ("state", f"{_number(needs.state_mb)} MB", "on the disks of all workers, and in the changelog"),
        ("restore", f"{_number(needs.restore_s)} s", "CPU of one worker that has lost its disk"),
        ("Kafka keeps", f"{_number(needs.kafka_mb)} MB", "all copies, after the longest retention"),
        ("the dashboard's store", f"{_number(needs.store_mb)} MB", "DuckDB, after TRACEWEIR_STORE_RESULTS_DAYS"),
    ]


def _in_kafka(needs: Needs, load: SessionLoad) -> list[tuple[str, str]]:
    rows = [(name, _number(size)) for name, size in needs.kafka_mb_per_day.items()]
    return [
        *rows,
        (f"all, with {load.replication} copies", _number(sum(needs.kafka_mb_per_day.values()) * load.replication)),
    ]


_JUDGE_HEADINGS = (
    "criterion",
    "sessions",
    "questions",
    "input tokens",
    "cacheable",
    "output tokens",
    "USD",
    "USD cached",
)


def _judge_row(each: JudgedCriterion) -> tuple[str, ...]:
    tokens = each.input_tokens, each.cacheable_tokens, each.output_tokens
    prices = each.usd, each.cached_usd
    return (
        each.criterion,
        f"{each.share:.0%}",
        _number(each.questions),
        *map(_number, tokens),
        *(_UNKNOWN if usd is None else _number(usd) for usd in prices),
    )


def _total(judged: Sequence[JudgedCriterion]) -> Iterator[tuple[str, ...]]:
    if len(judged) > 1:
        sums = [
            sum(getattr(each, name) for each in judged)
            for name in ("questions", "input_tokens", "cacheable_tokens", "output_tokens")
        ]
        prices = [[each.usd for each in judged], [each.cached_usd for each in judged]]
        paid = [_UNKNOWN if None in each else _number(sum(usd or 0.0 for usd in each)) for each in prices]
        yield ("all", "", *map(_number, sums), *paid)


def _assumed(load: SessionLoad) -> list[tuple[str, str]]:
    return [
        (
            "a session",
            ", ".join(
                (
                    counted(load.records, "record") + f" of {load.record_bytes} bytes",
                    counted(load.turns, "turn"),
                    counted(load.traces, "trace"),
                    counted(load.spans, "span"),
                )
            ),
        ),
        ("it is open for", f"{load.open_s:g} s"),
        ("the peak", f"{load.peak:g} times the mean"),
        (
            "vectors",
            f"{load.scopes} full scopes of {load.dimensions} dimensions; {load.embedding_ms:g} ms of CPU for a trace",
        ),
        ("`when` holds", f"in {load.passes_on:.0%} of sessions"),
        ("tokens", "3 bytes each, 250 an answer; each vote whole; no verdict is known before"),
        ("records", "not compressed; zstd saves what repeats"),
        *([("bytes of spans", "not counted, in Kafka and on disks")] if load.spans else []),
        ("batch prices", "not used: no judge is asked through a batch API"),
        ("machine", "two cores, where all figures were measured; `--json` lists them with their benchmarks"),
    ]


def _number(value: float) -> str:
    """Returns a number with three digits that count, and thousands.

    >>> _number(1234567.0), _number(0.01234), _number(45.67), _number(0)
    ('1,230,000', '0.0123', '45.7', '0')
    """
    if not value:
        return "0"
    rounded = float(f"{value:.3g}")
    return f"{rounded:,.0f}" if abs(rounded) >= 100 else f"{rounded:g}"

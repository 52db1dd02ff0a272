"""Runs `traceweir trust certify`, `certificates` and `withdraw`; escapes all text, which can be hostile."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from rich.console import Console
from rich.table import Table
from rich.text import Text

from traceweir.schemas.base import JsonObject
from traceweir.schemas.certificate import Certificate
from traceweir.schemas.text import printable
from traceweir.scorers.evaluation.config_problems import ConfigError
from traceweir.scorers.evaluation.plan import Plan, read_plan
from traceweir.streams.base.clock import utc_now
from traceweir.streams.cli.certificate_standing import IN_FORCE, standing, with_certificates
from traceweir.streams.cli.config.output import config_in_effect, read_file, read_state
from traceweir.streams.cli.config.push import push_chosen
from traceweir.streams.cli.errors import FAILED
from traceweir.streams.cli.terminal import complain
from traceweir.streams.cli.trust_output import read_records, say_unused
from traceweir.streams.cli.up_broker import kafka_settings
from traceweir.streams.lab.certification import Examined, examined
from traceweir.streams.lab.evals.writing import write_whole
from traceweir.streams.worker.config_topic import ConfigTopicError, TopicState

Change = Callable[[Sequence[Certificate]], Sequence[Certificate]]
"""Returns the certificates of the next version of a config."""


class PushTarget(NamedTuple):
    """Where a certificate goes."""

    selector: str
    by: str | None
    """Who pushes it; None: the user."""
    dry_run: bool
    """Whether nothing is written."""


def run_certify(
    criterion: str,
    labels: Path,
    results: Path,
    bar: float,
    into: Path | None,
    target: PushTarget | None,
    *,
    dry_run: bool,
    as_json: bool,
) -> int:
    """Prints what the labels prove about each judge of a criterion; writes and pushes the certificates; returns the exit code.

    Raises:
        InputError: a file cannot be read, or the results have no such criterion.
        ConfigError: the config of the file cannot be used.
        ConfigTopicError: there is no config to push again, or the topic cannot be read or written.
    """
    scores, given, unusable = read_records(labels, results, criterion)
    if not scores or not given:
        return FAILED
    found = examined(scores, given, criterion, bar, utc_now())
    for each in found:
        name = f"{printable(criterion, 100)} by {printable(each.measured.judge, 100) or 'no named judge'}"
        say_unused(each.unused, name)
        if each.problem is not None:
            complain(f"{name}: not certified: {each.problem}")
    if not found:
        complain(f"{printable(criterion, 100)}: no judge has a verdict on a session, so there is nothing to certify")
    certified = [each.certificate for each in found if each.certificate is not None and each.problem is None]
    if not as_json:
        _print_examined(found)
    elif target is None:
        for certificate in certified:
            sys.stdout.write(json.dumps(certificate.model_dump(mode="json"), ensure_ascii=True) + "\n")
    if certified:
        new = {each.key for each in certified}

        def change(present: Sequence[Certificate]) -> Sequence[Certificate]:
            return [*(each for each in present if each.key not in new), *certified]

        if into is not None:
            _write(into, change, dry_run=dry_run)
        if target is not None:
            _push(target, change, as_json=as_json)
    return FAILED if unusable or not certified else 0


def run_withdraw(criteria: Sequence[str], target: PushTarget, *, as_json: bool) -> int:
    """Pushes the config in effect without the certificates of some criteria; returns the exit code.

    Raises:
        ConfigTopicError: a criterion has no certificate, or the topic cannot be read or written.
    """

    def rest(present: Sequence[Certificate]) -> Sequence[Certificate]:
        known = {each.criterion for each in present}
        if unknown := [each for each in criteria if each not in known]:
            named = ", ".join(sorted(known)) or "none"
            raise ConfigTopicError(
                f"{printable(unknown[0], 100)}: the config has no certificate of it; it has: {printable(named, 1_000)}"
            )
        return [each for each in present if each.criterion not in criteria]

    return _push(target, rest, as_json=as_json)


def run_certificates(config: Path | None, *, as_json: bool) -> int:
    """Prints the certificates of a file, or of all configs in effect, and which are in force; returns the exit code.

    Raises:
        ConfigError: the file cannot be used.
        ConfigTopicError: the topic cannot be read.
    """
    rows: list[tuple[str, Certificate, str]] = []
    if config is not None:
        plan = read_file(config)[1]
        rows = [(str(config), each, standing(each, plan)) for each in plan.gate.certificates]
    else:
        for name, pushed in sorted(read_state(kafka_settings()).current.items()):
            try:
                plan = read_plan(pushed.config)
            except ConfigError as error:
                complain(f"{printable(name, 100)}: this config cannot be used here: {printable(str(error), 1_000)}")
                continue
            rows += [(name, each, standing(each, plan)) for each in plan.gate.certificates]
    if as_json:
        for where, each, stands in rows:
            document = {"config": where, "standing": stands, **each.model_dump(mode="json")}
            sys.stdout.write(json.dumps(document, ensure_ascii=True) + "\n")
        return 0
    if not rows:
        complain("no certificate")
        return 0
    table = Table("config", "criterion", "judge", "TPR above", "TNR above", "bar", "labels", "standing", box=None)
    for where, each, stands in rows:
        table.add_row(
            Text(printable(where, 100)),
            Text(printable(each.criterion, 100)),
            Text(printable(each.judge or "-", 60)),
            *_figures(each),
            Text(stands),
        )
    Console(highlight=False).print(table)
    return 0


def _write(file: Path, change: Change, *, dry_run: bool) -> None:
    present, plan, _ = read_file(file)
    document = with_certificates(present, change(plan.gate.certificates))
    # Before it is written: a config that cannot be used would replace one that can.
    new = read_plan(document)
    if not dry_run:
        write_whole(file, json.dumps(document, indent=2, ensure_ascii=False).encode() + b"\n")
    for each in new.gate.certificates:
        would = "would have the certificate" if dry_run else "certificate"
        complain(f"{file}: {would} of {printable(each.criterion, 100)}: {standing(each, new)}")


def _push(target: PushTarget, change: Change, *, as_json: bool) -> int:
    notes: list[str] = []

    def chosen(state: TopicState) -> tuple[JsonObject, Plan, str | None]:
        present = config_in_effect(state, target.selector).config or {}
        certificates = [*change(read_plan(present).gate.certificates)]
        document = with_certificates(present, certificates)
        plan = read_plan(document)
        # A push that another one comes before chooses again.
        notes[:] = [
            f"the certificate of {printable(each.criterion, 100)} by {printable(each.judge or 'no named judge', 100)}: {stands}"
            for each in certificates
            if (stands := standing(each, plan)) != IN_FORCE
        ]
        return document, plan, "certificates of judges"

    return push_chosen(target.selector, chosen, target.by, notes, dry_run=target.dry_run, as_json=as_json)


def _print_examined(found: Sequence[Examined]) -> None:
    table = Table("criterion", "judge", "TPR above", "TNR above", "bar", "labels", "certified", box=None)
    for each in found:
        if each.certificate is not None:
            table.add_row(
                Text(printable(each.measured.criterion, 100)),
                Text(printable(each.measured.judge or "-", 60)),
                *_figures(each.certificate),
                "yes" if each.problem is None else "no",
            )
    if table.row_count:
        Console(highlight=False).print(table)


def _figures(each: Certificate) -> list[str]:
    labels = f"{each.good:,} good, {each.bad:,} bad" + (f", {each.unsure:,} unsure" if each.unsure else "")
    return [f"{each.tpr_bound:.3f}", f"{each.tnr_bound:.3f}", f"{each.bar:g}", labels]

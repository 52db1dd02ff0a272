"""Declares `traceweir doctor` and `canary`."""

from __future__ import annotations

from typing import Annotated

import typer

from traceweir.streams.cli.common_options import DEFAULT_STAGES, AsJson, Config, Stages, chosen_stages


def doctor(
    stages: Stages = DEFAULT_STAGES,
    config: Config = None,
    minutes: Annotated[
        float, typer.Option(min=0.1, max=10_080, help="How far back the inputs are read, in minutes.")
    ] = 10.0,
    ask: Annotated[
        bool, typer.Option("--ask", help="Also ask each judge of the config one small question, which is paid.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Check what a worker needs: Kafka and its topics, rights, disk, models and keys; and what agents have sent lately.

    Changes nothing, asks no model without `--ask`, and shows no key. Says per producer which records cannot be read, which traces name no
    session, and which setting turns missing content on. Exit code 1: a check has failed. 2: the config or the environment
    cannot be used.

    Example: `traceweir doctor --config eval.json --stages collect,assemble,score,gate`
    """
    from traceweir.streams.cli.doctor import run_doctor

    run_doctor(chosen_stages(stages), config, minutes, as_json=as_json, ask=ask)


def canary(
    once: Annotated[bool, typer.Option("--once", help="Send one session, and end.")] = False,
    interval: Annotated[
        float, typer.Option(min=1, max=86_400, metavar="SECONDS", help="Seconds between two sessions.")
    ] = 60,
    timeout: Annotated[
        float, typer.Option(min=1, max=3_600, metavar="SECONDS", help="Seconds from sending a session to its decision.")
    ] = 60,
    port: Annotated[
        int | None,
        typer.Option(min=0, max=65_535, help="Serve /metrics on this port.", show_default="nothing is served"),
    ] = None,
) -> None:
    """Send a known session again and again, and wait for its decision: an alarm for every silent stall.

    Its app is `traceweir-canary`, and its trace is private: it never reaches `network`. Exit code 1: with --once, there
    was no decision in time; or the port is taken. 2: the environment cannot be used.

    Example: `traceweir canary --once --timeout 30`
    """
    from traceweir.streams.cli.canary import run

    raise typer.Exit(run(once=once, interval_s=interval, timeout_s=timeout, port=port))

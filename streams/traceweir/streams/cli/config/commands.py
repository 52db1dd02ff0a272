"""`traceweir config`: pushes evaluation configs to workers that run, and shows, compares and takes back what was pushed."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from traceweir.streams.cli.command_app import CommandApp
from traceweir.streams.cli.config.options import (
    comment_option,
    name_option,
    selector_option,
    share_option,
    usd_option,
)

config_app = CommandApp(
    help="Push evaluation configs to running workers, and show, compare and take back what was pushed.",
    no_args_is_help=True,
)

File = Annotated[Path, typer.Argument(metavar="FILE", help="Evaluation config, such as ADK's test_config.json.")]
App = Annotated[
    str | None,
    typer.Option(
        "--app", metavar="NAME", help="Only for sessions of this app. [default: all apps]", show_default=False
    ),
]
Environment = Annotated[
    str | None,
    typer.Option(
        "--environment",
        metavar="NAME",
        help="Only for sessions of this environment. [default: all environments]",
        show_default=False,
    ),
]
Comment = Annotated[
    str | None,
    typer.Option("--comment", metavar="TEXT", help="Why: kept with the version, at most 1,000 characters."),
]
By = Annotated[
    str | None,
    typer.Option(
        "--by", metavar="NAME", help="Who: kept with the version. [default: the user's name]", show_default=False
    ),
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Print what would change, and write nothing.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]


@config_app.command()
def validate(file: File, as_json: AsJson = False) -> None:
    """Check a config with the metrics that are installed here, and list every problem. Needs no Kafka.

    Exit code 2: the config cannot be used.

    Example: `traceweir config validate eval.json`
    """
    from traceweir.streams.cli.config.output import validate_file

    raise typer.Exit(validate_file(file, as_json=as_json))


@config_app.command()
def push(
    file: File,
    app: App = None,
    environment: Environment = None,
    challenger: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Score sessions with FILE beside the config in effect, into `results.shadow.NAME`, and change nothing else.",
        ),
    ] = None,
    sample: Annotated[
        float | None,
        typer.Option(
            metavar="SHARE", help="Share of the sessions that the challenger scores, such as 0.1. [default: 1]"
        ),
    ] = None,
    budget: Annotated[
        str | None,
        typer.Option(
            metavar="USD", help="Most that the challenger's judges can cost in all, such as 5usd. [default: no limit]"
        ),
    ] = None,
    comment: Comment = None,
    by: By = None,
    dry_run: DryRun = False,
    as_json: AsJson = False,
) -> None:
    """Put a config in effect in all workers, from the next session on, without a restart; or a challenger beside it.

    Prints what changes. FILE is the whole config: without a section `challenger`, a present challenger ends. The most
    specific config counts: app and environment, then app, then environment, then all. Without any, the workers' config
    file counts. Exit code 1: Kafka or the topic cannot be used, the name of the challenger is in use, or another push was
    faster. 2: the config or an option cannot be used; nothing is written.

    Example: `traceweir config push eval.json --app travel --comment "stricter threshold"`

    Example: `traceweir config push v2.json --challenger v2 --sample 0.1 --budget 5usd`
    """
    if challenger is not None:
        from traceweir.streams.cli.config.challenger import push_challenger

        raise typer.Exit(
            push_challenger(
                file,
                name_option(challenger, "--challenger"),
                share_option(sample),
                usd_option(budget),
                selector_option(app, environment),
                comment_option(comment),
                by,
                dry_run=dry_run,
                as_json=as_json,
            )
        )
    for option, value in (("--sample", sample), ("--budget", budget)):
        if value is not None:
            raise typer.BadParameter("needs --challenger", param_hint=option)
    from traceweir.streams.cli.config.push import push_file

    raise typer.Exit(
        push_file(
            file, selector_option(app, environment), comment_option(comment), by, dry_run=dry_run, as_json=as_json
        )
    )


@config_app.command()
def promote(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Name of the challenger.")],
    app: App = None,
    environment: Environment = None,
    comment: Comment = None,
    by: By = None,
    dry_run: DryRun = False,
    as_json: AsJson = False,
) -> None:
    """Make the config of a challenger the one that counts, from the next session on; the challenger ends.

    Exit code 1: there is no such challenger, or Kafka or the topic cannot be used. 2: its config cannot be used any more.

    Example: `traceweir config promote v2`
    """
    from traceweir.streams.cli.config.challenger import promote as promote_challenger

    selected = selector_option(app, environment)
    raise typer.Exit(
        promote_challenger(
            name_option(name, "NAME"), selected, comment_option(comment), by, dry_run=dry_run, as_json=as_json
        )
    )


@config_app.command()
def show(
    app: App = None,
    environment: Environment = None,
    version: Annotated[int | None, typer.Option(min=1, help="This version, in place of the one in effect.")] = None,
    digest: Annotated[
        str | None,
        typer.Option(
            metavar="DIGEST", help="The config of the scores with this `config_digest`, or its first characters."
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """List the configs in effect; with an option, print one config as JSON.

    Exit code 1: there is no such config, or Kafka or the topic cannot be used.

    Example: `traceweir config show --digest 3f2a91`
    """
    from traceweir.streams.cli.config.output import list_configs, show_config

    if digest is not None and (app, environment, version) != (None, None, None):
        raise typer.BadParameter(
            "names a config alone; remove --app, --environment and --version", param_hint="--digest"
        )
    if digest is not None and not digest:
        raise typer.BadParameter("is empty; give the first characters of a `config_digest`", param_hint="--digest")
    if (app, environment, version, digest) == (None, None, None, None):
        raise typer.Exit(list_configs(as_json=as_json))
    raise typer.Exit(show_config(selector_option(app, environment), version, digest, as_json=as_json))


@config_app.command()
def history(app: App = None, environment: Environment = None, as_json: AsJson = False) -> None:
    """List all versions of a config: who pushed them, when, why, and the digest of their scores.

    Exit code 1: Kafka or the topic cannot be used.

    Example: `traceweir config history --app travel --json | jq .comment`
    """
    from traceweir.streams.cli.config.output import list_history

    raise typer.Exit(list_history(selector_option(app, environment), as_json=as_json))


@config_app.command()
def diff(
    left: Annotated[
        str,
        typer.Argument(
            metavar="LEFT", help="`current`, the number of a version, a file, or `digest:` and first characters."
        ),
    ],
    right: Annotated[str, typer.Argument(metavar="RIGHT", help="The other config, as LEFT.")],
    app: App = None,
    environment: Environment = None,
    as_json: AsJson = False,
) -> None:
    """Print in which options two configs differ, and which scores mean something else.

    Exit code 1: a config does not exist, or Kafka or the topic cannot be used. 2: a file cannot be used.

    Example: `traceweir config diff current eval.json --app travel`
    """
    from traceweir.streams.cli.config.output import diff_configs

    raise typer.Exit(diff_configs(left, right, selector_option(app, environment), as_json=as_json))


@config_app.command()
def rollback(
    to: Annotated[
        int | None,
        typer.Option(
            "--to",
            min=1,
            help="The version. [default: the last one before the present that has another config]",
            show_default=False,
        ),
    ] = None,
    app: App = None,
    environment: Environment = None,
    comment: Comment = None,
    by: By = None,
    dry_run: DryRun = False,
    as_json: AsJson = False,
) -> None:
    """Put an earlier version in effect again, as a new version, without the challenger that it had.

    Exit code 1: there is no such version, or Kafka or the topic cannot be used. 2: the version cannot be used any more.

    Example: `traceweir config rollback --to 3 --app travel`
    """
    from traceweir.streams.cli.config.push import roll_back

    selected = selector_option(app, environment)
    raise typer.Exit(roll_back(selected, to, comment_option(comment), by, dry_run=dry_run, as_json=as_json))


@config_app.command()
def withdraw(
    app: App = None,
    environment: Environment = None,
    comment: Comment = None,
    by: By = None,
    challenger: Annotated[
        bool, typer.Option("--challenger", help="End only the challenger; the config stays in effect.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Take a config out of effect: a more general one, or the workers' config file, counts again. History stays.

    The scores of a challenger stay too; `traceweir shadow --name NAME --drop` removes them.

    Exit code 1: no config is in effect there, or Kafka or the topic cannot be used.

    Example: `traceweir config withdraw --app travel`
    """
    if challenger:
        from traceweir.streams.cli.config.challenger import end_challenger

        raise typer.Exit(
            end_challenger(selector_option(app, environment), comment_option(comment), by, as_json=as_json)
        )
    from traceweir.streams.cli.config.push import withdraw_config

    raise typer.Exit(withdraw_config(selector_option(app, environment), comment_option(comment), by, as_json=as_json))

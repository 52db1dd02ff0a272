"""Reads the options of `traceweir config`."""

from __future__ import annotations

import typer


def selector_option(app: str | None, environment: str | None) -> str:
    """Returns the selector of the options --app and --environment.

    Raises:
        BadParameter: a name cannot be that of an app or an environment.
    """
    from traceweir.streams.scoring.configs.selectors import parsed_selector, selector

    for option, name in (("--app", app), ("--environment", environment)):
        if name is not None:
            try:
                parsed_selector(selector(name))
            except ValueError:
                raise typer.BadParameter(
                    f"{name!r:.80} is no name of an app or an environment: a name has 1 to 256 characters; leave the option "
                    "out for all",
                    param_hint=option,
                ) from None
    return selector(app, environment)


def name_option(name: str, option: str) -> str:
    """Returns the name of a challenger.

    Raises:
        BadParameter: the name cannot be part of a topic's name.
    """
    from traceweir.streams.base.topics import Topics

    try:
        Topics.of().shadow_results(name)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint=option) from None
    return name


def share_option(sample: float | None) -> float:
    """Returns the share of sessions; without the option, all.

    Raises:
        BadParameter: the share is not above 0 and at most 1.
    """
    from traceweir.streams.lab.shadow.definition import read_sample
    from traceweir.streams.lab.shadow.errors import ShadowOptionError

    try:
        return 1.0 if sample is None else read_sample(sample)
    except ShadowOptionError as error:
        raise typer.BadParameter(str(error), param_hint="--sample") from None


def usd_option(budget: str | None) -> float | None:
    """Returns the USD of a budget; None without the option.

    Raises:
        BadParameter: the text is not an amount above 0.
    """
    from traceweir.streams.lab.shadow.definition import read_usd
    from traceweir.streams.lab.shadow.errors import ShadowOptionError

    try:
        return None if budget is None else read_usd(budget)
    except ShadowOptionError as error:
        raise typer.BadParameter(str(error), param_hint="--budget") from None


def comment_option(comment: str | None) -> str | None:
    """Returns the comment.

    Raises:
        BadParameter: it is too long.
    """
    from traceweir.schemas.pushed_config import MAX_COMMENT_CHARS

    if comment is not None and len(comment) > MAX_COMMENT_CHARS:
        raise typer.BadParameter(
            f"has {len(comment)} characters; the maximum is {MAX_COMMENT_CHARS}", param_hint="--comment"
        )
    return comment

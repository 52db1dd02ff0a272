"""Names the sessions that a config is for: those of an app, of an environment, of both, or all."""

from __future__ import annotations

from urllib.parse import quote, unquote

from traceweir.schemas.dimensions import MAX_SHORT_CHARS

ANY = "*"
Configs = tuple[tuple[str, str], ...]
"""The configs that are in effect together: pairs of selector and config id, in the order of the selectors."""
NO_CONFIGS: Configs = ()
"""No config of the topic is in effect; the worker's config file is."""


def selector(app: str | None = None, environment: str | None = None) -> str:
    """Returns the selector of an app and an environment; None selects all.

    Names are percent-encoded, so that a name with `@` or `:` has one meaning, and an app named `*` is not all apps.

    >>> selector(), selector("travel"), selector("travel", "production"), selector(None, "a@b")
    ('*', 'travel', 'travel@production', '*@a%40b')
    """
    name = ANY if app is None else quote(app, safe="")
    return name if environment is None else f"{name}@{quote(environment, safe='')}"


def parsed_selector(text: str) -> tuple[str | None, str | None]:
    """Returns the app and the environment of a selector; None stands for all.

    Raises:
        ValueError: the text is not a selector.

    >>> parsed_selector("travel@production")
    ('travel', 'production')
    """
    app, at, environment = text.partition("@")
    found = None if app == ANY else unquote(app), unquote(environment) if at else None
    usable = all(name is None or 0 < len(name) <= MAX_SHORT_CHARS for name in found)
    if not usable or selector(*found) != text:
        raise ValueError(
            f"{text!r:.200} is not a selector: use app, app@environment, *@environment or *, with percent-encoded names "
            f"of 1 to {MAX_SHORT_CHARS} characters"
        )
    return found


def in_words(text: str) -> str:
    """Returns what a selector selects, for a person.

    >>> in_words("travel@production"), in_words("*")
    ('app travel in environment production', 'all apps')
    """
    app, environment = parsed_selector(text)
    what = "all apps" if app is None else f"app {app}"
    return what if environment is None else f"{what} in environment {environment}"


def chosen(configs: Configs, app: str | None, environment: str | None) -> str | None:
    """Returns the id of the config of a session; None: the worker's config file counts.

    The most specific one counts: that of app and environment, then of the app, then of the environment, then of all.

    >>> configs = (("*", "one"), ("*@test", "two"), ("travel", "three"))
    >>> [chosen(configs, *each) for each in (("travel", "test"), ("other", "test"), (None, None))]
    ['three', 'two', 'one']
    """
    by_selector = dict(configs)
    for each in ((app, environment), (app, None), (None, environment), (None, None)):
        if (found := by_selector.get(selector(*each))) is not None:
            return found
    return None

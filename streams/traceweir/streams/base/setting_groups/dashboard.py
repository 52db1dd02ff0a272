"""Defines the settings of `traceweir dashboard` and its store."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, SecretStr, field_validator

from traceweir.streams.base.setting_groups.group import SettingGroup
from traceweir.streams.base.setting_groups.header_token import token_of_header


class DashboardSettings(SettingGroup):
    """Holds where the store is, how long it keeps what, and who sees which text."""

    store: Annotated[str, Field(min_length=1)] = "var/store/results.duckdb"
    """Store of `traceweir dashboard`: a DuckDB file, created if missing, for one process; or a ClickHouse database,
    `clickhouse://user:password@host:8123/database` (`clickhouses://` with TLS), whose password is never printed. A
    lost one is refilled from the topics, as far as they reach."""
    store_results_days: Annotated[int, Field(ge=1, le=36_500)] = 90
    """Days, 1 or more, for which results are kept."""
    store_figures_days: Annotated[int, Field(ge=1, le=36_500)] = 400
    """Days for which figures are kept, at least `TRACEWEIR_STORE_RESULTS_DAYS`; older than these, in DuckDB, by the
    hour and not the minute."""
    store_sessions_days: Annotated[int, Field(ge=1, le=36_500)] = 30
    """Days, 1 or more, for which sessions and dead letters are kept."""
    dashboard_host: Annotated[str, Field(min_length=1)] = "127.0.0.1"
    """Address of `traceweir dashboard`. Another than this machine's alone requires a token, such as
    `TRACEWEIR_DASHBOARD_TOKEN`. Use `0.0.0.0` in a container."""
    dashboard_port: Annotated[int, Field(ge=0, le=65_535)] = 4180
    """Its port. 0: any free port, which the command prints."""
    dashboard_token: SecretStr | None = None
    """Secret with every right that clients send as `Authorization: Bearer`: 16 or more ASCII characters without
    spaces. Without this and the next four, every client of this machine is let in. Never printed."""
    dashboard_label_token: SecretStr | None = None
    """Likewise, to read, label, send feedback, save views and add eval cases only."""
    dashboard_read_token: SecretStr | None = None
    """Likewise, to read only, such as for Grafana and a monitor of `/healthz`."""
    dashboard_feedback_token: SecretStr | None = None
    """Likewise, for an application's server, to send its users' feedback only."""
    dashboard_tokens_file: Path | None = None
    """File of [clients with a name](dashboard.md#tokens-with-a-name), read at the start: a JSON object a line,
    `{"name": "ana", "right": "label", "sha256": "…"}`, with the token's SHA-256."""
    dashboard_content: Literal["redacted", "full", "none"] = "redacted"
    """How much text of agents and judges is shown: `redacted` without secrets and identifiers, `full`, or `none`. The
    store has it whole."""
    dashboard_trace_url: Annotated[str, Field(pattern=r"^https?://[^\s\"'<>]+$")] | None = None
    """Address to which the page of a session links, with `{trace_id}` and `{span_id}`:
    `http://127.0.0.1:16686/trace/{trace_id}`. Unset: no link."""
    dashboard_config: Path | None = None
    """Eval config of the workers, whose daily budget of judges is compared with the spending. Read at the start.
    Unset: only the spending is shown."""
    dashboard_evalset: Path | None = None
    """Eval set of Google ADK, such as `cases.evalset.json`, to which the page of a session adds the session as a
    case, with the conversation verbatim; created if missing. Unset: the page shows the command."""

    dashboard_evals: Path | None = None
    """Folder of eval sets, and of runs `*.jsonl` of `traceweir eval --json`, for the page Evals."""
    dashboard_views: Path | None = None
    """File of saved views. Unset: `views.json` beside the DuckDB file; with ClickHouse, none can be saved."""

    _are_tokens_safe_in_a_header = field_validator(
        "dashboard_token", "dashboard_label_token", "dashboard_read_token", "dashboard_feedback_token"
    )(token_of_header)

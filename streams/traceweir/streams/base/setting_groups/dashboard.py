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
    """Where `traceweir dashboard` keeps what workers write. A DuckDB file, relative to the working directory and created if
    missing; one process at a time can open it. Or a database of ClickHouse: `clickhouse://user:password@host:8123/database`,
    `clickhouses://` with TLS. The password is never printed. A lost store is filled again from the topics, as far as their
    retention reaches."""
    store_results_days: Annotated[int, Field(ge=1, le=36_500)] = 90
    """Days, 1 or more, for which the store keeps results. Older figures are kept longer."""
    store_figures_days: Annotated[int, Field(ge=1, le=36_500)] = 400
    """Days for which the store keeps figures, at least `TRACEWEIR_STORE_RESULTS_DAYS`. A DuckDB file has figures by the
    minute as long as their results, and older ones by the hour."""
    store_sessions_days: Annotated[int, Field(ge=1, le=36_500)] = 30
    """Days, 1 or more, for which the store keeps sessions and dead letters."""
    dashboard_host: Annotated[str, Field(min_length=1)] = "127.0.0.1"
    """Address on which `traceweir dashboard` answers. Any other address than one of this machine alone requires
    `TRACEWEIR_DASHBOARD_TOKEN`. Use `0.0.0.0` in a container."""
    dashboard_port: Annotated[int, Field(ge=0, le=65_535)] = 4180
    """Port of `traceweir dashboard`. 0: any free port, which the command prints."""
    dashboard_token: SecretStr | None = None
    """Secret that clients of `traceweir dashboard` send as `Authorization: Bearer`: 16 characters or more, in ASCII and
    without spaces. It has every right. Without this and the next four, every client of this machine is let in. Never
    printed."""
    dashboard_label_token: SecretStr | None = None
    """As `TRACEWEIR_DASHBOARD_TOKEN`, for clients that may read, label, send feedback, save views and add eval cases, and nothing else."""
    dashboard_read_token: SecretStr | None = None
    """As `TRACEWEIR_DASHBOARD_TOKEN`, for clients that may only read, such as Grafana and a monitor of `/healthz`."""
    dashboard_feedback_token: SecretStr | None = None
    """As `TRACEWEIR_DASHBOARD_TOKEN`, for the server of an application, which may send feedback of its users and nothing else."""
    dashboard_tokens_file: Path | None = None
    """File with a JSON object a line, `{"name": "ana", "right": "label", "sha256": "…"}`, for [clients with a
    name](dashboard.md#tokens-with-a-name): the name, the right, and the SHA-256 of the token. It is read at the start."""
    dashboard_content: Literal["redacted", "full", "none"] = "redacted"
    """How much text of agents and judges `traceweir dashboard` shows: `redacted` without secrets and identifiers, `full`,
    or `none`. The store has the text whole."""
    dashboard_trace_url: Annotated[str, Field(pattern=r"^https?://[^\s\"'<>]+$")] | None = None
    """Address of an OpenTelemetry trace in another tool, to which the page of a session links. `{trace_id}` and
    `{span_id}` stand for the ids: `http://127.0.0.1:16686/trace/{trace_id}`. Unset: there is no link."""
    dashboard_config: Path | None = None
    """Evaluation config of the workers, whose daily budget of judges `traceweir dashboard` compares with what was spent.
    It is read at the start. Unset: only the spending is shown."""
    dashboard_evalset: Path | None = None
    """Eval set of Google ADK, such as `cases.evalset.json`, to which the page of a session adds the session as a case;
    created if missing. A case has the conversation verbatim. Unset: the page shows the command."""

    dashboard_evals: Path | None = None
    """Folder with eval sets, and with runs that `traceweir eval --json` has written as `*.jsonl`, which the page Evals shows.
    Unset: the page says how to name one."""
    dashboard_views: Path | None = None
    """File in which `traceweir dashboard` keeps saved views, which are names for addresses. Unset: `views.json` beside the
    DuckDB file; with ClickHouse, no view can be saved."""

    _are_tokens_safe_in_a_header = field_validator(
        "dashboard_token", "dashboard_label_token", "dashboard_read_token", "dashboard_feedback_token"
    )(token_of_header)

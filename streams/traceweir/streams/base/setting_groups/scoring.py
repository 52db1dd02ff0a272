"""Defines the settings of privacy and of scoring, with judges and embedders."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, SecretStr

from traceweir.streams.base.setting_groups.group import Count, Seconds, SettingGroup


class ScoringSettings(SettingGroup):
    """Holds how sessions are scored, and how scores name users."""

    user_ids: Literal["hashed", "plain"] = "hashed"
    """Scores and candidates have the user's id `hashed` or `plain`. Sessions always have what the agent sends."""
    user_id_key: Annotated[SecretStr, Field(min_length=16)] | None = None
    """Secret key of these hashes, 16 characters or more, the same for all workers; another key gives other hashes.
    Unset: whoever can list the possible ids can reverse a hash by trying them. Never printed."""

    score_concurrency: Count = 64
    """Sessions that a worker scores at the same time, 1 or more."""
    scoring_processes: Annotated[int, Field(ge=1, le=64)] | None = None
    """Processes in which a worker scores, 1 to 64. Unset: one for every two cores (a container's quota counts), at
    most 4. With a judge, or an embedding model for novelty, one."""
    score_window: Count | None = None
    """Sessions of a partition that are read and not finished, 1 or more; when full, reading stops. Unset: three times
    `TRACEWEIR_SCORE_CONCURRENCY`, at least 200."""
    score_timeout_s: Seconds = 60.0
    """Seconds per session, after which unfinished scores become NOT_EVALUATED `timeout`."""
    judge_timeout_s: Seconds = 600.0
    """The same for a score that asks a judge, with waits for rate limits and retries; a retry begins only if it can
    end in time."""
    judge_api_base: Annotated[str, Field(pattern=r"^https?://[^\s/@]+(/\S*)?$")] | None = None
    """Address of a server that speaks OpenAI's API, or of the provider, without user and password:
    `http://127.0.0.1:8000/v1`. Unset: each provider's own."""
    judge_api_key: SecretStr | None = None
    """API key of the judge models. Unset: the provider's variable, as litellm reads it (`GEMINI_API_KEY`). Never
    printed."""
    judge_tag_key: Annotated[SecretStr, Field(min_length=16)] | None = None
    """Secret key of the tag around text of agents in judges' prompts, 16 characters or more. Unset: the API key if it
    has 20 or more, else drawn by each process. The same key in all workers lets a provider's cache serve them all.
    Never printed."""
    judge_cache: Path = Path("var/judge/verdicts.sqlite3")
    """File in which `traceweir score` and `eval`, `evaluate_files` and pytest keep verdicts and the day's spending;
    workers use their state."""
    embedder: Annotated[str, Field(min_length=1)] = "auto"
    """`auto` (the default model if installed, else none), `none`, `hashing` (lexical, no model), the name or path of a
    sentence-transformers model, or a folder that `traceweir embedder` has made."""

    @property
    def sessions_in_window(self) -> int:
        """Maximum number of sessions of one partition that are read and not finished.

        A partition needs as many as are scored at the same time, and the next ones at hand; sessions that wait for an
        earlier revision of their own id take room too. More would only wait in memory: they leave the caches of the
        processor before they are scored.
        """
        return self.score_window or max(200, 3 * self.score_concurrency)

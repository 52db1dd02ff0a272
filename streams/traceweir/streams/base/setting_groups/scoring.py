"""Defines the settings of privacy and of scoring, with judges and embedders."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, SecretStr

from traceweir.streams.base.setting_groups.group import Count, Seconds, SettingGroup


class ScoringSettings(SettingGroup):
    """Holds how sessions are scored, and how scores name users."""

    user_ids: Literal["hashed", "plain"] = "hashed"
    """`hashed`: scores and candidates have a hash of the user's id. `plain`: they have the id as the agent sends it.
    Sessions always keep the events as the agent sends them."""
    user_id_key: Annotated[SecretStr, Field(min_length=16)] | None = None
    """Secret key of the hashes of user ids, 16 characters or more. Unset: a hash without a key, which anyone who
    can list the possible ids can reverse by trying them. All workers need the same key, and with another key a user
    has another hash. Never printed."""

    score_concurrency: Count = 64
    """Sessions that one worker scores at the same time, 1 or more."""
    scoring_processes: Annotated[int, Field(ge=1, le=64)] | None = None
    """Processes in which one worker scores sessions, from 1 to 64. Unset: one for every two cores, at most 4; the quota
    of a container counts. If a criterion asks a judge, or novelty uses an embedding model, one process scores."""
    score_window: Count | None = None
    """Sessions of one partition that are read and not finished, 1 or more. The worker stops reading the partition
    while the window is full. Unset: three times `TRACEWEIR_SCORE_CONCURRENCY`, at least 200."""
    score_timeout_s: Seconds = 60.0
    """Seconds per session, after which unfinished scores become NOT_EVALUATED `timeout`."""
    judge_timeout_s: Seconds = 600.0
    """Seconds after which a score that asks a judge becomes NOT_EVALUATED `timeout`; for these scores it replaces
    `TRACEWEIR_SCORE_TIMEOUT_S`. It is longer because a question can wait for rate limits and be retried several
    times; a retry begins only if it can end within this time."""
    judge_api_base: Annotated[str, Field(pattern=r"^https?://[^\s/@]+(/\S*)?$")] | None = None
    """Address of a server that speaks OpenAI's API, or of the model's provider, without user and password:
    `http://127.0.0.1:8000/v1`. Unset: the address of each provider."""
    judge_api_key: SecretStr | None = None
    """API key for the judge models. Unset: the variable of the provider, as litellm reads it (`GEMINI_API_KEY`).
    Never printed."""
    judge_tag_key: Annotated[SecretStr, Field(min_length=16)] | None = None
    """Secret key of the tag that delimits the text of agents in the prompts of judges, 16 characters or more. Unset: the
    API key if it has 20 characters or more; else a key that each process draws. With the same key in all workers, the
    cache of a provider serves the prompts of all. Never printed."""
    judge_cache: Path = Path("var/judge/verdicts.sqlite3")
    """File in which `traceweir score` and `eval`, `evaluate_files` and pytest keep the verdicts of judges and the
    spending of the day. A worker keeps both in its state."""
    embedder: Annotated[str, Field(min_length=1)] = "auto"
    """`auto` (the default model if it is installed, else none), `none`, `hashing` (lexical, no model), the name or
    path of a sentence-transformers model, or a folder that `traceweir embedder` has made."""

    @property
    def sessions_in_window(self) -> int:
        """Maximum number of sessions of one partition that are read and not finished.

        A partition needs as many as are scored at the same time, and the next ones at hand; sessions that wait for an
        earlier revision of their own id take room too. More would only wait in memory: they leave the caches of the
        processor before they are scored.
        """
        return self.score_window or max(200, 3 * self.score_concurrency)

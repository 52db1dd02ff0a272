"""What scoring without Kafka remembers of judges from run to run, in a file: verdicts, and what was paid today."""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path
from types import TracebackType

from traceweir.schemas.judge_config import VerdictCache
from traceweir.streams.judges.budget import MINUTES_A_DAY, Paid
from traceweir.streams.judges.errors import JudgeUnavailableError
from traceweir.streams.judges.verdicts import LONGEST, JudgeVerdict

_TABLES = """
CREATE TABLE IF NOT EXISTS verdicts (key BLOB PRIMARY KEY, at INTEGER NOT NULL, text TEXT NOT NULL) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS verdicts_at ON verdicts (at);
CREATE TABLE IF NOT EXISTS paid (minute INTEGER PRIMARY KEY, tokens INTEGER NOT NULL, usd REAL NOT NULL);
"""
VERSION = 1


class JudgeFile:
    """A SQLite file, which several processes may use at once. As a context, it is closed at the end.

    Args:
        path: Where it is; made if missing, readable to its owner only, as it quotes what agents said.
        limits: How old verdicts may be, and how many.

    Raises:
        JudgeUnavailable: it cannot be used.
    """

    def __init__(self, path: Path, limits: VerdictCache) -> None:
        self._path, self._limits = path, limits
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))
            self._base = sqlite3.connect(path, timeout=10, isolation_level=None)
            (version,) = self._base.execute("PRAGMA user_version").fetchone()
            if version not in (0, VERSION):
                raise JudgeUnavailableError(
                    f"the file of verdicts {path} was written by a newer Traceweir (format {version}; this one reads {VERSION}): set "
                    "TRACEWEIR_JUDGE_CACHE to another file, or delete it and pay for its verdicts again"
                )
            self._base.execute("PRAGMA journal_mode=WAL")
            self._base.execute("PRAGMA synchronous=NORMAL")
            self._base.executescript(_TABLES)
            self._base.execute(f"PRAGMA user_version={VERSION}")
        except (OSError, sqlite3.Error) as error:
            raise self._unusable(error) from error

    def __enter__(self) -> JudgeFile:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self._forget()
            self._base.close()
        except sqlite3.Error as failed:
            if error is None:
                raise self._unusable(failed) from failed

    def get(self, key: bytes, now: int) -> JudgeVerdict | None:
        """The verdict on a question, if it is remembered and not too old."""
        row = self._base.execute("SELECT at, text FROM verdicts WHERE key = ?", (key,)).fetchone()
        if row is None or now - row[0] > self._limits.max_age_s * 1000:
            return None
        return JudgeVerdict(key, *row)

    def put(self, verdict: JudgeVerdict) -> None:
        """Remember a verdict."""
        if self._limits.max_verdicts and len(verdict.text) <= LONGEST:
            text = verdict.text.encode("utf-8", "replace").decode()  # a lone surrogate has no place in UTF-8
            self._base.execute("INSERT OR REPLACE INTO verdicts VALUES (?, ?, ?)", (verdict.key, verdict.at, text))

    def pay(self, paid: Paid) -> None:
        """Remember what was paid."""
        self._base.execute(
            "INSERT INTO paid VALUES (?, ?, ?) "
            "ON CONFLICT (minute) DO UPDATE SET tokens = tokens + excluded.tokens, usd = usd + excluded.usd",
            paid,
        )

    def paid(self) -> list[Paid]:
        """What was paid on the latest day, minute by minute."""
        rows = self._base.execute(
            "SELECT minute, tokens, usd FROM paid WHERE minute / ? = (SELECT MAX(minute) / ? FROM paid) ORDER BY minute",
            (MINUTES_A_DAY, MINUTES_A_DAY),
        )
        return [Paid(*row) for row in rows]

    def _forget(self) -> None:
        """Of what is too old, or too much, nothing stays. The latest verdict is the clock: the file has none of its own."""
        latest = "(SELECT MAX(at) FROM verdicts)"
        self._base.execute(f"DELETE FROM verdicts WHERE at < {latest} - ?", (self._limits.max_age_s * 1000,))  # noqa: S608  # of our own
        self._base.execute(
            "DELETE FROM verdicts WHERE key IN (SELECT key FROM verdicts ORDER BY at DESC LIMIT -1 OFFSET ?)",
            (self._limits.max_verdicts,),
        )
        self._base.execute("DELETE FROM paid WHERE minute < (SELECT MAX(minute) FROM paid) - ?", (2 * MINUTES_A_DAY,))

    def _unusable(self, error: Exception) -> JudgeUnavailableError:
        return JudgeUnavailableError(
            f"the file of verdicts {self._path} cannot be used ({error}): set TRACEWEIR_JUDGE_CACHE to another file, or delete it and "
            "pay for its verdicts again"
        )

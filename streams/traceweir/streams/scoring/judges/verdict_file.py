"""Stores verdicts and the spending of the latest day in a SQLite file, for scoring without Kafka."""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path
from types import TracebackType

from traceweir.schemas.judge_config import VerdictCache
from traceweir.streams.scoring.judges.budget import ALL_JUDGES, MINUTES_A_DAY, Paid
from traceweir.streams.scoring.judges.errors import JudgeUnavailableError
from traceweir.streams.scoring.judges.verdicts import MAX_VERDICT_CHARS, JudgeVerdict

_TABLES = """
CREATE TABLE IF NOT EXISTS verdicts (key BLOB PRIMARY KEY, at INTEGER NOT NULL, text TEXT NOT NULL) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS verdicts_at ON verdicts (at);
CREATE TABLE IF NOT EXISTS paid (minute INTEGER PRIMARY KEY, tokens INTEGER NOT NULL, usd REAL NOT NULL);
CREATE TABLE IF NOT EXISTS paid_by_account (
    account TEXT NOT NULL, minute INTEGER NOT NULL, tokens INTEGER NOT NULL, usd REAL NOT NULL, PRIMARY KEY (account, minute)
);
"""
# The table `paid` has the sums of all questions, and earlier versions know it alone.
_ACCOUNTS = "SELECT *, '' AS account FROM paid UNION ALL SELECT minute, tokens, usd, account FROM paid_by_account"
VERSION = 1


class JudgeFile:
    """A SQLite file that several processes can use at the same time; the context manager closes the file.

    Args:
        path: Path of the file; a missing file is created, readable only by its owner, because verdicts quote agents.
        limits: The maximum age and number of verdicts.

    Raises:
        JudgeUnavailableError: the file cannot be used.
    """

    def __init__(self, path: Path, limits: VerdictCache) -> None:
        self._path = path
        self._limits = limits
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))
            self._connection = sqlite3.connect(path, timeout=10, isolation_level=None)
            (version,) = self._connection.execute("PRAGMA user_version").fetchone()
            if version not in (0, VERSION):
                raise JudgeUnavailableError(
                    f"the file of verdicts {path} was written by a newer Traceweir (format {version}; this version reads "
                    f"{VERSION}): set TRACEWEIR_JUDGE_CACHE to another file, or delete the file and pay for its verdicts "
                    "again"
                )
            self._connection.execute("PRAGMA journal_mode=WAL")
            self._connection.execute("PRAGMA synchronous=NORMAL")
            self._connection.executescript(_TABLES)
            self._connection.execute(f"PRAGMA user_version={VERSION}")
        except (OSError, sqlite3.Error) as error:
            raise self._unusable(error) from error

    def __enter__(self) -> JudgeFile:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self._delete_expired()
            self._connection.close()
        except sqlite3.Error as failed:
            if error is None:
                raise self._unusable(failed) from failed

    def get(self, key: bytes, now: int) -> JudgeVerdict | None:
        """Returns the verdict on a question; None if it is unknown or too old. `now` is in milliseconds since 1970."""
        row = self._connection.execute("SELECT at, text FROM verdicts WHERE key = ?", (key,)).fetchone()
        if row is None or now - row[0] > self._limits.max_age_s * 1000:
            return None
        return JudgeVerdict(key, *row)

    def put(self, verdict: JudgeVerdict) -> None:
        """Stores a verdict, unless its text is longer than `MAX_VERDICT_CHARS` characters."""
        if self._limits.max_verdicts and len(verdict.text) <= MAX_VERDICT_CHARS:
            # UTF-8 cannot encode a lone surrogate.
            text = verdict.text.encode("utf-8", "replace").decode()
            self._connection.execute(
                "INSERT OR REPLACE INTO verdicts VALUES (?, ?, ?)", (verdict.key, verdict.at, text)
            )

    def pay(self, paid: Paid) -> None:
        """Adds a payment to the sums of its minute."""
        added = "DO UPDATE SET tokens = tokens + excluded.tokens, usd = usd + excluded.usd"
        if paid.account == ALL_JUDGES:
            self._connection.execute(f"INSERT INTO paid VALUES (?, ?, ?) ON CONFLICT (minute) {added}", paid[:3])  # noqa: S608
        else:
            self._connection.execute(
                f"INSERT INTO paid_by_account VALUES (?, ?, ?, ?) ON CONFLICT (account, minute) {added}",  # noqa: S608
                (paid.account, *paid[:3]),
            )

    def paid(self) -> list[Paid]:
        """Returns the payments of the latest day, one per minute and account."""
        rows = self._connection.execute(
            f"SELECT minute, tokens, usd, account FROM ({_ACCOUNTS}) WHERE minute / ? = (SELECT MAX(minute) / ? FROM paid) "  # noqa: S608
            "ORDER BY account, minute",
            (MINUTES_A_DAY, MINUTES_A_DAY),
        )
        return [Paid(*row) for row in rows]

    def _delete_expired(self) -> None:
        """Deletes verdicts beyond the maximum age or number; the time of the latest verdict serves as the clock."""
        latest = "(SELECT MAX(at) FROM verdicts)"
        self._connection.execute(f"DELETE FROM verdicts WHERE at < {latest} - ?", (self._limits.max_age_s * 1000,))  # noqa: S608  # of our own
        self._connection.execute(
            "DELETE FROM verdicts WHERE key IN (SELECT key FROM verdicts ORDER BY at DESC LIMIT -1 OFFSET ?)",
            (self._limits.max_verdicts,),
        )
        for table in ("paid_by_account", "paid"):
            self._connection.execute(
                f"DELETE FROM {table} WHERE minute < (SELECT MAX(minute) FROM paid) - ?",  # noqa: S608
                (2 * MINUTES_A_DAY,),
            )

    def _unusable(self, error: Exception) -> JudgeUnavailableError:
        return JudgeUnavailableError(
            f"the file of verdicts {self._path} cannot be used ({error}): set TRACEWEIR_JUDGE_CACHE to another file, or "
            "delete the file and pay for its verdicts again"
        )

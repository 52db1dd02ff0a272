"""Stores verdicts of judges, and the spending of today, in rows of the score stage's checkpoint."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping
from hashlib import blake2b
from typing import Any

import msgspec

from traceweir.schemas.judge_config import VerdictCache
from traceweir.streams.base.stages.base import Rows
from traceweir.streams.scoring.judges.budget import Paid, Spending
from traceweir.streams.scoring.judges.verdicts import MAX_VERDICT_CHARS, JudgeUsage, JudgeVerdict

VERDICT = b"j"
KNOWN_CASES = b""
"""Stands for the session of verdicts on known cases: no session has this id."""
_PAID = b"$"
_VERSION = b"\x01"
_NAME = 8
VERDICT_KEY_BYTES = 16
_pack: Callable[[Any], bytes] = msgspec.msgpack.Encoder().encode
_verdict = msgspec.msgpack.Decoder(tuple[int, str]).decode
_paid = msgspec.msgpack.Decoder(list[Paid]).decode


class JudgeRows:
    """Holds the verdicts on the sessions of a partition, and their cost.

    The row of a verdict is written in the same checkpoint as the results that use the verdict. Therefore a session that
    is scored again, after a rebalance, with another threshold or as a later revision, pays for no question twice.

    Args:
        limits: Maximum age and number of verdicts.
        record_spend: Called with spending that counts against the budget of this process: positive for restored rows,
            negative when the partition is revoked.
    """

    def __init__(self, limits: VerdictCache, record_spend: Callable[[Paid], object] = lambda paid: None) -> None:
        self._limits = limits
        self._record_spend = record_spend
        # By row key, the oldest first.
        self._found: OrderedDict[bytes, JudgeVerdict] = OrderedDict()
        self._of_session: dict[bytes, list[bytes]] = {}
        self._changed: dict[bytes, bytes | None] = {}
        self._spending = Spending()

    def load(self, rows: Mapping[bytes, bytes]) -> None:
        """Restores verdicts and spending from the rows of the last finished checkpoint.

        Raises:
            ValueError: this version does not read the format of a row.
        """
        found = []
        for key, row in rows.items():
            if key[:1] in (VERDICT, _PAID) and row[:1] != _VERSION:
                raise ValueError(
                    f"a row of verdicts or spending has the format {row[0]}; this version reads the format {_VERSION[0]}"
                )
            if key.startswith(VERDICT):
                found.append((key, JudgeVerdict(key[-VERDICT_KEY_BYTES:], *_verdict(row[1:]))))
            elif key.startswith(_PAID):
                for paid in _paid(row[1:]):
                    self._spending.add(paid._replace(account=key[len(_PAID) :].decode()))
        for key, verdict in sorted(found, key=lambda item: item[1].at):
            self._remember(key, verdict)
        # The limit can be lower than before.
        self._make_room()
        for paid in self._spending.entries():
            self._record_spend(paid)

    def known(self, session: bytes) -> list[JudgeVerdict]:
        """Returns the stored verdicts of a session, and those on known cases."""
        if not self._found:
            return []
        return [self._found[key] for name in (session, KNOWN_CASES) for key in self._of_session.get(_name(name), ())]

    def learn(self, session: bytes, judged: JudgeUsage) -> None:
        """Stores the verdicts and the cost of judging a session."""
        for name, verdicts in ((session, judged.verdicts), (KNOWN_CASES, judged.known_cases)):
            for verdict in verdicts:
                if len(verdict.text) <= MAX_VERDICT_CHARS:
                    key = VERDICT + _name(name) + verdict.key
                    self._forget(key)
                    self._remember(key, verdict)
                    self._changed[key] = _VERSION + _pack((verdict.at, verdict.text))
        for paid in judged.paid:
            self._spending.add(paid)
            # Without the account, which is in the key: earlier versions read the row of all judges.
            entries = [each[:3] for each in self._spending.entries_of(paid.account)]
            self._changed[_PAID + paid.account.encode()] = _VERSION + _pack(entries)
        self._make_room()

    def tick(self, now: float) -> None:
        """Deletes expired verdicts; `now` is in seconds since 1970."""
        oldest = (now - self._limits.max_age_s) * 1000
        while self._found and next(iter(self._found.values())).at < oldest:
            self._drop_first()

    def rows(self) -> Rows:
        """Returns the changed rows since the last call."""
        rows = list(self._changed.items())
        self._changed = {}
        return rows

    def drop(self) -> None:
        """Subtracts the spending of this partition, which now belongs to another worker."""
        for paid in self._spending.entries():
            self._record_spend(paid.taken_back)
        self._spending = Spending()

    def _remember(self, key: bytes, verdict: JudgeVerdict) -> None:
        self._found[key] = verdict
        self._of_session.setdefault(key[1 : 1 + _NAME], []).append(key)

    def _make_room(self) -> None:
        while len(self._found) > self._limits.max_verdicts:
            self._drop_first()

    def _drop_first(self) -> None:
        key = next(iter(self._found))
        self._forget(key)
        self._changed[key] = None

    def _forget(self, key: bytes) -> None:
        if self._found.pop(key, None) is None:
            return
        name = key[1 : 1 + _NAME]
        self._of_session[name].remove(key)
        if not self._of_session[name]:
            del self._of_session[name]


def verdict_prefix(session: bytes) -> bytes:
    """Returns what the keys of the rows of verdicts on a session begin with; they end with `VERDICT_KEY_BYTES`."""
    return VERDICT + _name(session)


def _name(session: bytes) -> bytes:
    return blake2b(session, digest_size=_NAME).digest()

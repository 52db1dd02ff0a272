"""Draws pushes of configs: valid ones, rollbacks and withdrawals, and records that are no config."""

from __future__ import annotations

import json
import random
from collections import defaultdict
from collections.abc import Sequence
from typing import Any, NamedTuple

from tests.support.certificates import certificate_of, drawn_certificates
from tests.support.ledger import PRODUCTION

from traceweir.schemas.pushed_config import ENVELOPE, PushedConfig
from traceweir.scorers.evaluation.plan import read_plan
from traceweir.streams.base.clock import utc_now
from traceweir.streams.scoring.configs.records import HOME

Document = dict[str, Any]

ALL = "*"
TRAJECTORY, ADDED = "tool_trajectory_avg_score", "completeness"
MODELS = "openai/judge", "openai/judge", "openai/newer-judge"
"""The judges of pushed configs: two of three times the same."""


class Push(NamedTuple):
    """A version that is pushed."""

    what: str
    """For a person."""
    selector: str
    config: Document | None
    """None: a withdrawal."""


class Refusal(NamedTuple):
    """A record of another program that is never in effect."""

    what: str
    """For a person."""
    partition: int
    key: bytes
    value: bytes | None
    is_letter: bool
    """Whether it becomes a dead letter; otherwise a newer Traceweir wrote it."""


class Pushes:
    """Draws what people and programs do to the topic `configs`, and knows the versions that were written.

    Args:
        file: The config file of the workers; each pushed config changes some options of it.
        apps: The apps of the load: a push is for all sessions or an app, in all environments or in production.
        judged: The criterion whose judge gets certificates and loses them; None: none does.
    """

    def __init__(self, file: Document, apps: Sequence[str], judged: str | None = None) -> None:
        in_production = [f"{each}@{PRODUCTION}" for each in (ALL, *apps)]
        self._file, self._selectors, self._judged = file, (ALL, ALL, *apps, *in_production), judged
        self.versions: dict[str, list[Document | None]] = defaultdict(list)
        """The configs of the versions of each selector; None: a withdrawal."""
        self._number = 0

    def draw(self, rnd: random.Random) -> Push:
        """Returns the next push: a new config, a former one again, or a withdrawal."""
        selector = rnd.choice(self._selectors)
        known = self.versions[selector]
        former = [each for each in known[:-1] if each is not None]
        if known and known[-1] is not None and rnd.random() < 0.2:
            return Push(f"the config of {selector} is withdrawn", selector, None)
        if former and rnd.random() < 0.25:
            return Push(f"the config of {selector} is rolled back", selector, rnd.choice(former))
        return Push(f"a config for {selector} is pushed", selector, self._config(rnd, known[-1:]))

    def draw_of_certificates(self, rnd: random.Random) -> Push:
        """Returns a config in effect with or without a certificate of its judge, as `traceweir trust` pushes it.

        If no config requires one, the push is any other.
        """
        in_effect = {name: known[-1] for name, known in self.versions.items() if known}
        places = [name for name, config in in_effect.items() if config and config["gate"].get("require_certified")]
        if not places or self._judged is None:
            return self.draw(rnd)
        selector = rnd.choice(sorted(places))
        config = in_effect[selector] or {}
        given = config["gate"]["certificates"]
        rest = [each for each in given if each["criterion"] != self._judged]
        withdraws = rest != given and rnd.random() < 0.5
        what = "withdrawn" if withdraws else "pushed"
        new = rest if withdraws else [*rest, certificate_of(config, self._judged)]
        gate = {**config["gate"], "certificates": new}
        return Push(f"the certificate of the judge of {selector} is {what}", selector, {**config, "gate": gate})

    def draw_the_last(self, rnd: random.Random) -> list[Push]:
        """Returns pushes after which each session has another config: no specific one covers it any more."""
        specific = sorted(set(self._selectors) - {ALL})
        before = [Push(f"the config of {selector} is withdrawn", selector, None) for selector in specific]
        config = self._config(rnd)
        while config in (self._file, *self.versions[ALL][-1:]):
            config = self._config(rnd)
        return [*before, Push("the last config is pushed", ALL, config)]

    def version(self, push: Push) -> PushedConfig:
        """Returns the version that a push writes."""
        return PushedConfig(
            envelope=ENVELOPE,
            selector=push.selector,
            version=len(self.versions[push.selector]) + 1,
            digest=None if push.config is None else read_plan(push.config).digest,
            config=push.config,
            pushed_at=utc_now(),
        )

    def note(self, push: Push) -> None:
        """Notes that a push has written its version."""
        self.versions[push.selector].append(push.config)

    def refusal(self, rnd: random.Random, partitions: int, *, newer: str) -> Refusal:
        """Returns a record that is no config; its key or its value contains a number, so that no other is equal.

        Args:
            rnd: Draws the record.
            partitions: The number of partitions of the topic.
            newer: The selector of a record of a newer Traceweir. `traceweir config push` pushes nothing over it.
        """
        self._number += 1
        number = self._number
        valid = self._pushed(self._file, number)
        wrong = {**self._file, "criteria": {"no_such_metric": number}}
        another = rnd.randrange(1, partitions)
        kinds = (
            ("no JSON", HOME, b"*", b'{"number": %d' % number, True),
            ("nested very deeply", HOME, b"*", b"[" * 3000 + b"%d" % number + b"]" * 3000, True),
            ("a config with a metric that does not exist", HOME, b"*", self._pushed(wrong, number), True),
            ("a config of another selector than its key", HOME, b"agent", valid, True),
            ("under a key that is no selector", HOME, b"a b%d" % number, valid, True),
            ("an empty config", HOME, b"*", self._pushed(None, number), True),
            ("on a partition that has no configs", another, b"*", valid, True),
            ("a tombstone on a partition that has no configs", another, b"app-%d" % number, None, True),
            ("of a newer Traceweir", HOME, newer.encode(), self._pushed(self._file, number, ENVELOPE + 1), False),
        )
        return Refusal(*rnd.choice(kinds))

    def _config(self, rnd: random.Random, former: Sequence[Document | None] = ()) -> Document:
        criteria, gate = dict(self._file["criteria"]), dict(self._file["gate"])
        criteria[TRAJECTORY] = {
            "threshold": rnd.choice((0.3, 0.5, 0.9)),
            "match_type": rnd.choice(("EXACT", "IN_ORDER")),
        }
        for name in [name for name in criteria if name != TRAJECTORY and rnd.random() < 0.2]:
            del criteria[name]
        if rnd.random() < 0.4:
            criteria[ADDED] = rnd.choice((0.2, 0.5))
        gate["threshold"] = rnd.choice((0.5, 0.65, 0.8))
        gate["required"] = rnd.choice(([], [TRAJECTORY]))
        config = {**self._file, "criteria": criteria, "gate": gate}
        if self._judged is not None and self._judged in criteria:
            return self._judging(config, self._judged, former, rnd)
        gate.pop("require_certified", None)  # a gate that requires no judge cannot ask for certificates
        gate.pop("certificates", None)
        return config

    def _judging(
        self, config: Document, judged: str, former: Sequence[Document | None], rnd: random.Random
    ) -> Document:
        """Changes the judge of a config, and what the gate requires of it; certificates can be those of the former judge."""
        options = config["criteria"][judged]["judge_model_options"] | {"judge_model": rnd.choice(MODELS)}
        changed = {"threshold": rnd.choice((0.5, 0.5, 0.4)), "judge_model_options": options}
        config["criteria"][judged] = config["criteria"][judged] | changed
        gate = config["gate"]
        # Few traces reach a higher one, and the judge would decide on none.
        gate["threshold"] = rnd.choice((0.3, 0.5, 0.65))
        if rnd.random() < 0.8:
            gate["required"] = [*gate["required"], judged]
        gate["require_certified"] = judged in gate["required"] and rnd.random() < 0.9
        known = [each["gate"].get("certificates", []) for each in (*former, self._file) if each is not None]
        gate["certificates"] = known[0] if rnd.random() < 0.4 else drawn_certificates(config, judged, rnd)
        return config

    def _pushed(self, config: Document | None, number: int, envelope: int = ENVELOPE) -> bytes:
        document = {
            "envelope": envelope,
            "selector": ALL,
            "version": 1,
            "digest": "0" * 64,
            "config": config,
            "pushed_at": "2026-01-31T12:00:00Z",
            "comment": f"no config {number}",
        }
        return json.dumps(document).encode()

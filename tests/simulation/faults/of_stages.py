"""Faults of stages, of scoring processes, and of judges."""

from __future__ import annotations

from tests.simulation.faults.registry import Acts, Stumble, fault
from tests.simulation.models import Way

BAD_WAYS: tuple[Way, ...] = ("slow", "busy", "down", "refuses", "rubbish", "empty")


@fault(3.0, needs="stages_raise")
def raise_in_a_stage(f: Acts) -> None:
    """A stage raises once."""
    stage, method = f.rnd.choice(f.world.stages), f.rnd.choice(("apply", "apply", "apply", "cut", "tick", "load"))
    share = f.rnd.choice((0.0, 0.0, 0.5, 1.0))
    f.stumbles.append(Stumble(stage, method, [f.rnd.randint(0, 20)], share))


@fault(0.7)
def kill_scorer(f: Acts) -> None:
    """A scoring process ends."""
    running = f.world.scorers.mortal
    if running:
        scorer = f.rnd.choice(running)
        f.note("scorer killed", f"the scoring process of {scorer.name} ends")
        scorer.kill_later()


@fault(0.4)
def hang_scorer(f: Acts) -> None:
    """A scoring process hangs."""
    running = f.world.scorers.mortal
    if running:
        scorer = f.rnd.choice(running)
        f.note("scorer frozen", f"the scoring process of {scorer.name} hangs")
        scorer.hang()


@fault(0.2)
def fail_scorer_start(f: Acts) -> None:
    """The next scoring process does not start."""
    f.note("scorer does not start", "the next scoring process does not start")
    f.world.scorers.fails_to_start += 1


@fault(0.7)
def answer_twice(f: Acts) -> None:
    """A scoring process gives its next answers twice, as one that a scorer has forked."""
    f.world.scorers.twice += f.rnd.randint(1, 4)


@fault(4.0, only=("judged",))
def fail_judges(f: Acts) -> None:
    """All judges are slow, busy, down or useless for some seconds."""
    way, for_s, models = f.rnd.choice(BAD_WAYS), f.rnd.uniform(1, 8), f.world.models
    f.note("judges fail", f"the judges are {way} for {for_s:.1f} s")
    models.way = way
    f.world.after(for_s, lambda: setattr(models, "way", None))

"""What people and agents do: hostile records, records on which a stage raises always, and replays of dead letters; and more partitions."""

from __future__ import annotations

from tests.simulation.faults.registry import Acts, fault
from tests.support.ledger import PARTITIONS

SECOND_WITHIN_S = 0.15
"""How long after a replay the second one begins at the latest, in seconds, where they come in pairs. A replay takes 0.2 s."""


@fault(1.0)
def hostile(f: Acts) -> None:
    """An agent sends a record that is made to break its reader."""
    reason = f.world.send_hostile(f.rnd)
    f.note("hostile record", f"an agent sends a record that is {reason}")


@fault(1.0, only=("records", "judged"), needs="stages_raise")
def poison(f: Acts) -> None:
    """An agent sends a record on which the stage assemble raises, each time."""
    f.world.send_poison(f.rnd)
    f.note("poison record", "an agent sends a record on which the stage assemble raises each time")


@fault(1.5, only=("records", "judged"))
def replay(f: Acts) -> None:
    """Someone replays the dead letters, perhaps while another does."""

    def start() -> None:
        f.note("replay", f"{f.world.replays.start()} replays the dead letters")

    start()
    if f.world.scenario.replays_together:
        f.world.after(f.rnd.uniform(0, SECOND_WITHIN_S), start)


@fault(2.0, only=("records", "judged"), needs="partitions_added")
def add_partitions(f: Acts) -> None:
    """Someone adds partitions to an input."""
    name, count = f.rnd.choice(f.world.committed.sources), f.rnd.randint(1, PARTITIONS)
    f.world.cluster.add_partitions(f.world.settings.topic_prefix + name, count)
    f.note("partitions added", f"{name} gets {count} more partitions")

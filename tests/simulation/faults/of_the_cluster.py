"""Faults of nodes, of the network, and of what the nodes answer; and what nodes do to records over time."""

from __future__ import annotations

from tests.simulation.cluster.network import Link
from tests.simulation.faults.of_processes import NAMES
from tests.simulation.faults.registry import Acts, fault

REFUSALS: dict[int, tuple[int, ...]] = {
    0: (59,),
    22: (14, 15, 51),
    24: (14, 15, 51),
    25: (14, 15, 51),
    26: (14, 15, 51),
    28: (14, 15),
    12: (15, 16),
    11: (14, 15, 16),
    14: (14, 15),
}
"""Errors that a node can answer by the key of the request: the coordinator loads (14), is not available (15), is another
node (16), or ends another transaction (51); the producer is unknown (59), which older brokers answer."""


@fault(1.0, of_watches=True)
def stop_node(f: Acts) -> None:
    """A node is away for some seconds."""
    cluster, world = f.world.cluster, f.world
    if len(cluster.down) >= len(cluster.nodes) - 1:
        return
    node = f.rnd.choice([each for each in cluster.nodes if each not in cluster.down])
    for_s = f.rnd.uniform(0.5, 8)
    f.note("node stopped", f"node {node} stops for {for_s:.1f} s")
    cluster.stop_node(node)
    world.network.break_links(node)
    world.after(for_s, lambda: cluster.start_node(node))


@fault(1.0, of_watches=True)
def move_leaders(f: Acts) -> None:
    """Partitions get other leaders."""
    f.note("leaders moved", "partitions get other leaders")
    f.world.cluster.move_leaders()


@fault(1.0, of_watches=True)
def move_coordinators(f: Acts) -> None:
    """Groups and transactions get other coordinators."""
    f.note("coordinators moved", "groups and transactions get other coordinators")
    f.world.cluster.move_coordinators()


@fault(1.5, of_watches=True)
def cut(f: Acts) -> None:
    """Messages of one direction wait."""
    worker, world = f.worker(), f.world
    if worker is None:
        return
    node, to_node = f.rnd.choice(world.cluster.nodes), f.rnd.random() < 0.5
    for_s = f.rnd.choice((0.2, 2.0, 8.0)) * f.rnd.uniform(0.5, 1.5)
    way = f"from {worker.process.name} to node {node}" if to_node else f"from node {node} to {worker.process.name}"
    f.note("network cut", f"nothing comes {way} for {for_s:.1f} s")
    world.network.cut(worker.process, node, to_node=to_node, for_s=for_s)


@fault(3.0, of_watches=True)
def break_at_a_step(f: Acts) -> None:
    """A connection breaks with a request, or before its answer."""
    key, at_answer = f.rnd.choice([*NAMES]), f.rnd.random() < 0.7

    def strike(link: Link) -> None:
        who = link.process.name if link.process is not None else "the world"
        moment = "before the answer to" if at_answer else "with the request"
        f.note("connection broken", f"the connection of {who} breaks {moment} {NAMES[key]}")
        link.break_off()

    f.wait_for(key, strike, at_answer=at_answer, within=12)


@fault(0.7, of_watches=True)
def answer_twice(f: Acts) -> None:
    """A node answers a request twice. The client finds that the second answer belongs to no request, and disconnects."""
    key = f.rnd.choice([*NAMES])

    def strike(link: Link) -> None:
        who = link.process.name if link.process is not None else "the world"
        f.note("answered twice", f"node {link.node} answers {NAMES[key]} of {who} twice")
        link.answer_twice()

    f.wait_for(key, strike, at_answer=True, within=12)


@fault(2.0, of_watches=True)
def refuse(f: Acts) -> None:
    """The next request of a kind is answered with an error."""
    key = f.rnd.choice([*REFUSALS])
    f.refusals.append((key, f.rnd.choice(REFUSALS[key])))


@fault(0.7, of_watches=True)
def slow(f: Acts) -> None:
    """All messages take longer, and so do threads, scorings and writes to disks."""
    world = f.world
    factor, for_s = f.rnd.choice((5.0, 30.0, 200.0)), f.rnd.uniform(0.5, 4)
    f.note("everything slow", f"messages, threads, scorings and disks take {factor:g} times as long for {for_s:.1f} s")
    world.slow_down(factor)
    world.after(for_s, lambda: world.slow_down(1.0))


@fault(0.7, of_watches=True)
def throttle(f: Acts) -> None:
    """A node delays the requests of each connection, because of a quota."""
    cluster = f.world.cluster
    node, each_s, for_s = f.rnd.choice(cluster.nodes), f.rnd.choice((0.05, 0.5, 1.5)), f.rnd.uniform(1, 6)
    f.note("throttled", f"node {node} throttles each request for {each_s:g} s during {for_s:.1f} s")
    cluster.throttles[node] = each_s
    f.world.after(for_s, lambda: cluster.throttles.pop(node, None))


@fault(1.5, needs="bytes_per_s")
def take_few_bytes(f: Acts) -> None:
    """A node takes and gives a third of its bytes a second."""
    world, each_s = f.world, f.world.scenario.bytes_per_s
    node, for_s = f.rnd.choice(world.cluster.nodes), f.rnd.uniform(2, 10)
    f.note("few bytes a second", f"node {node} takes {each_s / 3:.0f} bytes a second for {for_s:.1f} s")
    world.limit_bytes([node], each_s / 3)
    world.after(for_s, lambda: world.limit_bytes([node], each_s))


@fault(0.7, of_watches=True)
def fetch_in_parts(f: Acts) -> None:
    """Fetches answer with less than was asked for, and cut the last batch."""
    cluster, for_s = f.world.cluster, f.rnd.uniform(1, 6)
    f.note("partial fetches", f"answers to fetches are cut for {for_s:.1f} s")
    cluster.most_fetched = f.rnd.choice((1, 300, 2_000))
    f.world.after(for_s, cluster.fetch_all)


@fault(0.7)
def delete_old_records(f: Acts) -> None:
    """Retention deletes records that the workers have consumed."""
    count = f.world.delete_consumed(f.rnd.choice((0.5, 1.0)))
    if count:
        f.note("retention", f"{count} consumed records are deleted")


@fault(0.7, of_watches=True)
def compact(f: Acts) -> None:
    """The changelog is compacted."""
    count = f.world.compact()
    if count:
        f.note("compaction", f"{count} rows of the changelog are compacted away")


@fault(0.7, of_watches=True)
def forget_producers(f: Acts) -> None:
    """The partitions forget the sequence numbers of producers without an open transaction."""
    f.note("producers forgotten", "the partitions forget their producers")
    for log in f.world.cluster.logs.values():
        log.forget_producers()


@fault(0.3, of_watches=True)
def forget_transactional_ids(f: Acts) -> None:
    """The coordinator of transactions forgets the ids without an open transaction."""
    f.note("transactional ids expired", "transactional ids without an open transaction expire")
    f.world.cluster.transactions.forget()

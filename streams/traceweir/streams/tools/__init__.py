"""What stands beside a worker: sending, reading and exporting records, checks, scoring without Kafka, tests of scenarios.

May know `worker` (its `kafka` and `runtime`), `pipeline`, `scoring`, `intake` and `base`. Each room is a tool of its own,
which a command or a user's code calls. Begin with the command that interests you, in `cli`, and follow it here.
"""

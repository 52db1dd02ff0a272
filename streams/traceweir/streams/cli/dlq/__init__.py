"""`traceweir dlq`: lists, mends and replays dead letters. Begin with `commands`."""

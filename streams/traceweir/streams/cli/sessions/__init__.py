"""`traceweir sessions`: shows what was read from files. Begin with `commands`."""

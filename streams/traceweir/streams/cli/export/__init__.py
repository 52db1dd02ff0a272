"""`traceweir export`: sends scores to other systems. Begin with `commands`."""

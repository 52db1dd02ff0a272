"""`traceweir shadow`: scores past sessions with another config. Begin with `commands`."""

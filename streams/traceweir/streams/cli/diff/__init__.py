"""`traceweir diff`: compares two sets of scores. Begin with `commands`; `run` reads both sides."""

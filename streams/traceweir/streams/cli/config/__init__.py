"""`traceweir config`: pushes configs to the topic `configs`, shows and withdraws them. Begin with `commands`."""

"""`traceweir results`: prints scores and decisions of the topic `results`. Begin with `commands`."""

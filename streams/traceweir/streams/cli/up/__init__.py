"""`traceweir up`: runs a broker, workers, the endpoint and the dashboard on this machine. Begin with `commands`."""

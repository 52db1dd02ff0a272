"""`traceweir score`: scores files without Kafka. Begin with `commands`."""

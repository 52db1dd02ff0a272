"""`traceweir label`: says what people think of sessions."""

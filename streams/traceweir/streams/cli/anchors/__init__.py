"""`traceweir anchors`: frozen sessions with labels of people, by which changes of judges are found."""

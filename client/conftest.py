"""Leaves out the modules of an extra that is not installed, so that their doctests are not collected."""

from importlib.util import find_spec

collect_ignore = [
    *(
        ["traceweir/client/otel.py"]
        if find_spec("opentelemetry") is None or find_spec("opentelemetry.sdk") is None
        else []
    ),
    *(["traceweir/client/adk.py"] if find_spec("google") is None or find_spec("google.adk") is None else []),
]

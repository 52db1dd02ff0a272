"""Formats a report as JUnit XML: a test suite per eval set, a test case per case."""

from __future__ import annotations

import re
from collections.abc import Sequence

# Used only for writing.
from xml.etree import ElementTree as ET

from traceweir.streams.lab.evals.results import CaseResult, Report
from traceweir.streams.lab.evals.text import failure_lines, turn_lines, verdict_line

_JUDGES = "judged criteria"
_NOT_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that XML 1.0 cannot represent, not even escaped: control characters, lone surrogates, U+FFFE and U+FFFF."""


def junit_xml(report: Report) -> bytes:
    """Returns the XML document. A FAILED case is a failure; a NOT_EVALUATED case is an error with the reason.

    Each judged criterion without any verdict is an error in a suite of its own, because its cases can be PASSED.
    Characters that XML cannot represent are written as Python escapes.
    """
    missing = [each for each in report.missing_verdicts() if each.are_all]
    root = ET.Element("testsuites", {"name": "traceweir eval", **_counts(report.cases, more_errors=len(missing))})
    for name, cases in report.by_set().items():
        suite = ET.SubElement(root, "testsuite", {"name": _legal(name), **_counts(cases)})
        for case in cases:
            test = ET.SubElement(
                suite, "testcase", classname=_legal(name), name=_legal(case.eval_id), file=_legal(str(case.file))
            )
            if case.status != "PASSED":
                reasons = list(failure_lines(case))
                kind = "failure" if case.status == "FAILED" else "error"
                verdict = ET.SubElement(
                    test, kind, message=_legal(reasons[0] if reasons else case.status), type=case.status
                )
                verdict.text = _legal(
                    "\n".join([*reasons, *(line for turn in case.turns for line in ("", *turn_lines(turn)))])
                )
    if missing:
        counts = {"tests": str(len(missing)), "failures": "0", "errors": str(len(missing))}
        suite = ET.SubElement(root, "testsuite", {"name": _JUDGES, **counts})
        for each in missing:
            test = ET.SubElement(suite, "testcase", classname=_JUDGES, name=_legal(each.metric))
            ET.SubElement(test, "error", message=_legal(verdict_line(each)), type="NOT_EVALUATED")
    ET.indent(root)
    text: bytes = ET.tostring(root, encoding="utf-8", xml_declaration=True)
    return text + b"\n"


def _counts(cases: Sequence[CaseResult], more_errors: int = 0) -> dict[str, str]:
    found = [case.status for case in cases]
    return {
        "tests": str(len(found) + more_errors),
        "failures": str(found.count("FAILED")),
        "errors": str(found.count("NOT_EVALUATED") + more_errors),
    }


def _legal(text: str) -> str:
    return _NOT_XML.sub(lambda found: found[0].encode("unicode_escape", "surrogatepass").decode("ascii"), text)

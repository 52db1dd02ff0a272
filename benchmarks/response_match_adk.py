"""Runs google-adk's side of `response_match.py`, in google-adk's own environment, without Traceweir.

Reads one JSON line of pairs, answers with one line of values, then with the seconds of a round for every further line.
"""

import json
import sys
import time

from google.adk.evaluation.eval_case import Invocation
from google.adk.evaluation.eval_metrics import EvalMetric
from google.adk.evaluation.final_response_match_v1 import RougeEvaluator
from google.genai import types


def invocation(text: str) -> Invocation:
    return Invocation(user_content=types.Content(), final_response=types.Content(parts=[types.Part(text=text)]))


pairs = json.loads(sys.stdin.readline())
actual, expected = [invocation(response) for response, _ in pairs], [invocation(reference) for _, reference in pairs]
evaluator = RougeEvaluator(EvalMetric(metric_name="response_match_score", threshold=0.8))
print(
    json.dumps([r.score for r in evaluator.evaluate_invocations(actual, expected).per_invocation_results]), flush=True
)
for _ in sys.stdin:
    began = time.perf_counter()
    evaluator.evaluate_invocations(actual, expected)
    print(time.perf_counter() - began, flush=True)

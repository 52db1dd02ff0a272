"""Contains the criteria that ask a language model, with a file for each criterion, and the code that they share.

The criteria use a judge through the protocol `traceweir.scorers.judge.Judge`, and import no client of any provider.
Start reading with `base`, then `safety_v1`. `prompt` builds a question from a file in `prompts`; `vote` counts the
replies.
"""

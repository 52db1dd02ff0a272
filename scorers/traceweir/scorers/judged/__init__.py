"""Criteria that ask a language model: one file for each, and what they share.

They know a judge only as the protocol `traceweir.scorers.judge.Judge`, and no client of any provider. Begin with
`base`, then `safety_v1`; `prompt` builds a question from a file in `prompts`, `vote` counts the answers.
"""

"""Removes particles, the copula and polite endings from runs of hiragana, without a dictionary."""

from __future__ import annotations

import re

_GRAMMAR = """
でしょうか ましたか ませんか ですか ますか でした ました ません でしょう ましょう です ます だった である ください くださいませ
いたします しました します して した する される された れる られる なります なる ている ています てください について
から まで より には では とは へは にも でも とも など だけ しか は が を に へ と も の で や か ね よ て た だ な い る
"""
# Backwards, because an expression finds what stands at the end of a long text only if it reads from there.
_ENDINGS = re.compile(f"(?:{'|'.join(ending[::-1] for ending in sorted(_GRAMMAR.split(), key=len, reverse=True))})*+")


def content(run: str) -> str:
    """Returns a run of hiragana without the grammar at its ends; empty if at most one character remains.

    One character is the end of a word whose beginning is in kanji, and says nothing alone.

    >>> [content(run) for run in ("きますか", "の", "りんごを", "れです")]
    ['', '', 'りんご', '']
    """
    endings = _ENDINGS.match(run[::-1])
    run = run[: len(run) - (endings.end() if endings else 0)]
    # Only a particle can stand before a word of hiragana; all else there is the word.
    if run.startswith(("は", "が", "を", "に", "の", "と", "も")) and len(run) > 2:
        run = run[1:]
    return run if len(run) > 1 else ""

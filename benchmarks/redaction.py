"""Measures the CPU time of redaction on text in several scripts, and its ratio to that of English text of the same size.

`BENCH_BASELINE=FOLDER` adds the code of another checkout, in turns, and the ratio to its time.
"""

import os
import subprocess
import sys
import time
import unicodedata
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from statistics import median

SIZE = 900_000
"""Bytes of each text in UTF-8."""
ROUNDS = 7
_KOREAN = "사용자가 환불 상태를 물었습니다. 대리인은 주문 12345 를 조회하고 사흘 안에 입금된다고 답했습니다. "
_CHINESE = "用户询问退款的状态，代理查询了订单 12345 并回复：退款将在三到五个工作日内到账。请稍候！"
_ENGLISH = "The user asked for the state of the refund; the agent looked up order 12345 and replied: it is on its way. "
SENTENCES = {
    "English": _ENGLISH,
    "English, a secret each 1 kB": _ENGLISH * 9 + "password: hunter2. ",
    "English, typeset": "The user’s “refund” was found… The agent\u00a0looked up order №\u00a012345 and replied: it is ½ done. ",
    "Chinese": _CHINESE,
    "Chinese, a secret each 1 kB": _CHINESE * 8 + "密码：hunter2。",
    "Japanese": "ユーザーは返金の状況を尋ねました。エージェントは注文　１２３４５　を調べ、「三日以内」と答えました！",
    "Japanese, half width": "ﾕｰｻﾞｰﾊ ﾍﾝｷﾝﾉ ｼﾞｮｳｷｮｳｦ ﾀｽﾞﾈﾏｼﾀ｡ ｴｰｼﾞｪﾝﾄﾊ ﾁｭｳﾓﾝ 12345 ｦ ｼﾗﾍﾞﾏｼﾀ｡ ",
    "Korean": _KOREAN,
    "Korean, in parts (NFD)": unicodedata.normalize("NFD", _KOREAN),
    "French, in parts (NFD)": unicodedata.normalize(
        "NFD", "L'élève a été très déçu : la commande 12345 n'est pas arrivée. "
    ),
    "zero-width spaces": "re\u200bfund of or\u200bder 12345, and \u200bmore; ",
}


def run() -> None:
    """Prints a line per text."""
    checkouts = {"": Path(__file__).parents[1]}
    if baseline := os.environ.get("BENCH_BASELINE"):
        checkouts["baseline"] = Path(baseline)
    with ExitStack() as stack:
        sides = {side: stack.enter_context(_redacting(folder)) for side, folder in checkouts.items()}
        times: dict[str, dict[str, list[float]]] = {side: {name: [] for name in SENTENCES} for side in sides}
        for _ in range(ROUNDS):
            for name in SENTENCES:
                for side, child in sides.items():
                    times[side][name].append(_asked(child, name))
    english = median(times[""]["English"])
    for name in SENTENCES:
        own = times[""][name]
        line = f"  {name:28} {median(own) * 1e3:6.1f} ms, {median(own) / english:4.1f} times English"
        if baseline:
            before = times["baseline"][name]
            ratio = median(new / old for new, old in zip(own, before, strict=True))
            line += f"; the baseline {median(before) * 1e3:6.1f} ms, ratio {ratio:.2f}"
        print(line, flush=True)


def answer() -> None:
    """Reads names of texts from stdin, and writes the seconds of CPU that redaction of each took."""
    from traceweir.scorers.redaction.redaction import redact_text

    for line in sys.stdin:
        sentence = SENTENCES[line.strip()]
        text = sentence * (SIZE // len(sentence.encode()))
        begun = time.process_time()
        redact_text(text)
        print(time.process_time() - begun, flush=True)


@contextmanager
def _redacting(checkout: Path) -> Iterator["subprocess.Popen[str]"]:
    roots = [str(checkout.resolve() / root) for root in ("schemas", "scorers", "streams")]
    command = [sys.executable, "-P", __file__]
    with subprocess.Popen(
        command,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(roots)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as child:
        yield child
        child.communicate()


def _asked(child: "subprocess.Popen[str]", name: str) -> float:
    assert child.stdin is not None
    assert child.stdout is not None
    child.stdin.write(f"{name}\n")
    child.stdin.flush()
    return float(child.stdout.readline())


if __name__ == "__main__":
    answer()

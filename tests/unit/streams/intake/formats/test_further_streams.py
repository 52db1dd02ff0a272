"""Tests that streams of Bedrock and Ollama, and texts of server-sent events, are read whole, and pieces alone are named."""

from __future__ import annotations

import json
from operator import itemgetter
from typing import Any

import pytest
from tests.support.chat_files import Document, answer, invocations, lines, read_traceweir
from tests.support.folding import folded
from tests.support.openai_chat import events_of

from traceweir.schemas.events import EVENT
from traceweir.schemas.invocation import Invocation

ASKED = [{"role": "user", "content": "Weather?"}]
REQUEST: Document = {"request": "Weather?"}


def deltas(index: int, *each: Document) -> list[Document]:
    return [{"contentBlockDelta": {"delta": delta, "contentBlockIndex": index}} for delta in each]


BEDROCK: list[Document] = [
    {"messageStart": {"role": "assistant"}},
    *deltas(0, {"reasoningContent": {"text": "Norway..."}}),
    {"contentBlockStop": {"contentBlockIndex": 0}},
    *deltas(1, {"text": "It "}, {"text": "rains."}),
    {"contentBlockStop": {"contentBlockIndex": 1}},
    {"contentBlockStart": {"start": {"toolUse": {"toolUseId": "k1", "name": "weather"}}, "contentBlockIndex": 2}},
    *deltas(2, {"toolUse": {"input": '{"city": '}}, {"toolUse": {"input": '"Oslo"}'}}),
    {"contentBlockStop": {"contentBlockIndex": 2}},
    {"messageStop": {"stopReason": "tool_use"}},
    {"metadata": {"usage": {"inputTokens": 3, "outputTokens": 4, "totalTokens": 7}, "metrics": {"latencyMs": 9}}},
]


def of_ollama(text: str, *, done: bool = False, **more: Any) -> Document:
    message = {"role": "assistant", "content": text, **more}
    end = {"done_reason": "stop", "prompt_eval_count": 3, "eval_count": 4} if done else {}
    return {"model": "llama3", "created_at": "2026-01-01T00:00:00.1Z", "message": message, "done": done, **end}


CALL = {"function": {"name": "weather", "arguments": {"city": "Oslo"}}}
OLLAMA = [of_ollama("It "), of_ollama("rains.", tool_calls=[CALL]), of_ollama("", done=True)]
GENERATED = [
    {"model": "llama3", "created_at": "2026-01-01T00:00:00Z", "response": "It ", "done": False},
    {"model": "llama3", "response": "rains.", "done": True, "done_reason": "stop", "context": [1, 2]},
]


def chunk(delta: Document, finish: str | None = None, name: str = "c1") -> Document:
    choice: Document = {"index": 0, "delta": delta, "finish_reason": finish}
    return {"id": name, "object": "chat.completion.chunk", "model": "m", "choices": [choice]}


OPENAI = [chunk({"role": "assistant", "content": "It "}), chunk({"content": "rains."}, "stop")]
USAGE: Document = {"id": "c1", "object": "chat.completion.chunk", "choices": [], "usage": {"prompt_tokens": 3}}
ANTHROPIC: list[Document] = [
    {"type": "message_start", "message": {"role": "assistant", "content": []}},
    {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "It rains."}},
    {"type": "message_delta", "delta": {"stop_reason": "end_turn"}},
    {"type": "message_stop"},
]


def sent(*pieces: Document, kinds: bool = False) -> str:
    return "".join(
        (f"event: {piece.get('type')}\n" if kinds else ": ping\n\n") + f"data: {json.dumps(piece)}\n\n"
        for piece in pieces
    )


def only(text: str) -> Invocation:
    (found,) = invocations(text)
    return found


def said(invocation: Invocation) -> list[str]:
    data = invocation.intermediate_data
    texts = [part.text or "" for _, parts in getattr(data, "intermediate_responses", ()) for part in parts]
    return [*texts, *([text] if (text := answer(invocation)) else [])]


@pytest.mark.parametrize("pieces", [BEDROCK, OLLAMA], ids=["bedrock", "ollama"])
def test_a_stream_is_one_answer_with_its_call_and_its_tokens(pieces: list[Document]) -> None:
    alone = only(lines(*pieces))
    beside = only(json.dumps({"messages": ASKED, "stream": pieces}))

    for found in (alone, beside):
        assert said(found) == ["It rains."]
        assert [(each.name, each.args) for each in found.tool_uses] == [("weather", {"city": "Oslo"})]
        assert found.reported_tokens is not None
        assert (found.reported_tokens.input_tokens, found.reported_tokens.output_tokens) == (3, 4)
        assert found.unread is None or not any("answer" in each for each in found.unread)
    assert beside.user_content is not None
    assert beside.user_content.text == "Weather?"


def test_the_pieces_of_generate_are_one_answer() -> None:
    assert said(only(lines(*GENERATED))) == ["It rains."]


def test_whole_answers_of_ollama_are_answers_of_their_own() -> None:
    found = invocations(lines(of_ollama("One.", done=True), of_ollama("Two.", done=True)))

    assert [answer(each) for each in found] == ["One.", "Two."]


def ollama_stream(*texts: str, begin: float, every: float, **end: Any) -> list[tuple[float, Document]]:
    """Returns the pieces of a stream with their times in seconds, as Ollama writes them."""
    times = [begin + every * number for number in range(len(texts) + 1)]
    pieces = [*map(of_ollama, texts), of_ollama("", done=True) | {"eval_count": len(texts) + 1, **end}]
    measured = {"eval_duration": int((times[-1] - begin + every) * 1e9)}
    return [
        (time, piece | {"created_at": f"2026-01-01T00:00:{time:09.6f}Z"} | (measured if piece["done"] else {}))
        for time, piece in zip(times, pieces, strict=True)
    ]


LONG = ("The ", "sun ", "shines ", "today.")
MIXES = {
    "both to the end": (("It ", "rains."), LONG[:2], 0.5, {}),
    "one is shorter": (("It ", "rains."), LONG, 0.5, {}),
    "one begins much later": (LONG, ("It ", "rains."), 2.5, {}),
    "a tool is called": (("It ",), LONG, 0.5, {"eval_count": 30}),
}


@pytest.mark.parametrize(("first", "second", "later", "end"), MIXES.values(), ids=MIXES)
def test_two_mixed_streams_of_a_model_of_ollama_are_not_joined_to_one_answer(
    first: tuple[str, ...], second: tuple[str, ...], later: float, end: dict[str, Any]
) -> None:
    pieces = [*ollama_stream(*first, begin=1, every=1, **end), *ollama_stream(*second, begin=1 + later, every=1)]
    in_time = [piece for _, piece in sorted(pieces, key=itemgetter(0))]

    found = invocations(lines(*in_time))

    assert [said(each) for each in found] == [[], []]
    for each in found:
        assert "the answer is not whole: pieces of another stream are mixed with its own" in (each.unread or ())


def test_streams_of_ollama_one_after_the_other_are_answers_of_their_own() -> None:
    apart = [*ollama_stream("It ", "rains.", begin=1, every=1), *ollama_stream(*LONG, begin=9, every=1)]
    at_once = [*ollama_stream(*LONG, begin=2, every=1), *ollama_stream("It ", "rains.", begin=1, every=1)]

    found = [invocations(lines(*(piece for _, piece in each))) for each in (apart, at_once)]

    assert [[answer(each) for each in both] for both in found] == [
        ["It rains.", "".join(LONG)],
        ["".join(LONG), "It rains."],
    ]


@pytest.mark.parametrize("pieces", [BEDROCK[:5], BEDROCK[3:], OLLAMA[:2], GENERATED[:1]])
def test_a_stream_with_missing_pieces_has_no_whole_answer(pieces: list[Document]) -> None:
    found = only(json.dumps({"messages": ASKED, "stream": pieces}))

    assert found.final_response is None
    assert "the answer is not whole: pieces of its stream are missing" in (found.unread or ())


def test_an_error_of_bedrock_ends_its_stream() -> None:
    error = {"modelStreamErrorException": {"message": "the model is busy"}}

    found = only(json.dumps({"messages": ASKED, "stream": [*BEDROCK[:5], error]}))

    assert found.error == "modelStreamErrorException: the model is busy"


@pytest.mark.parametrize("column", ["response", "outputs"])
@pytest.mark.parametrize(
    "text", [sent(*OPENAI) + "data: [DONE]\n\n", sent(*ANTHROPIC, kinds=True)], ids=["openai", "anthropic"]
)
def test_server_sent_events_as_the_response_of_a_row_are_read(text: str, column: str) -> None:
    request: Document = REQUEST if column == "response" else {"inputs": {"question": "Weather?"}}

    (found,) = read_traceweir(json.dumps({**request, column: text}))
    (turn,) = folded(events_of(found.records))

    assert found.problem is None
    assert answer(turn) == "It rains."
    assert turn.unread is None


def test_server_sent_events_that_were_cut_are_no_whole_answer() -> None:
    (found,) = read_traceweir(json.dumps({**REQUEST, "response": sent(*OPENAI[:1])}))
    (turn,) = folded(events_of(found.records))

    assert "the answer is not whole: pieces of its stream are missing" in (turn.unread or ())


def test_server_sent_events_that_no_reader_joins_are_no_answer() -> None:
    row = {**REQUEST, "response": 'data: {"token": "It"}\n\ndata: {"token": " rains."}\n\n'}
    event = {"type": "invocation.recorded", "session_id": "s", "row": row, "occurred_at": "2026-01-01T00:00:00Z"}

    (turn,) = folded([EVENT.validate_json(json.dumps(event))])

    assert answer(turn) is None
    assert turn.unread == ["the answer is the text of server-sent events, and not text, messages or choices"]


@pytest.mark.parametrize("alone", [USAGE, {"type": "ping"}, BEDROCK[-1]], ids=["openai", "anthropic", "bedrock"])
def test_pieces_without_the_text_of_their_answer_are_named(alone: Document) -> None:
    found = read_traceweir(lines(alone, alone))

    assert [str(each.problem) for each in found] == [
        f"f: document {number}: looks like a piece of a streamed answer, without the pieces that have its text: "
        "write all pieces of the stream into the file, in their order"
        for number in (1, 2)
    ]


def test_a_piece_before_its_stream_is_a_part_of_it() -> None:
    found = read_traceweir(lines({**USAGE, "id": "", "prompt_filter_results": []}, *OPENAI, USAGE))

    assert [each.problem for each in found] == [None]


def of_response(name: str, *kinds: Document) -> list[Document]:
    begin = {"type": "response.created", "response": {"id": name, "object": "response", "output": []}}
    item = {"type": "message", "id": f"m-{name}", "role": "assistant", "content": []}
    added = {"type": "response.output_item.added", "output_index": 0, "item": item}
    pieces: list[Document] = [begin, added, *({**each, "item_id": f"m-{name}", "output_index": 0} for each in kinds)]
    return [{**each, "sequence_number": number} for number, each in enumerate(pieces)]


def text_of(text: str) -> Document:
    return {"type": "response.output_text.delta", "delta": text}


@pytest.mark.parametrize("order", [1, -1])
def test_two_mixed_responses_that_were_cut_keep_their_own_texts(order: int) -> None:
    first = of_response("r1", text_of("It "), text_of("rains"))
    second = of_response("r2", text_of("The sun "), text_of("shines"))
    begun = [first[0], second[0], first[1], second[1]]
    mixed = [each for pair in zip(first[2:], second[2:], strict=True) for each in pair[::order]]

    found = invocations(lines(*begun, *mixed))

    assert [said(each) for each in found] == [["It rains"], ["The sun shines"]]
    assert all(each.final_response is None for each in found)


@pytest.mark.parametrize(
    ("error", "shown"),
    [
        ({"object": "error", "message": "too long", "type": "BadRequestError", "code": 400}, "400: too long"),
        ({"key": "k1", "response": {"error": {"code": 429, "message": "slow down"}}}, "429: slow down"),
        ({"throttlingException": {"message": "slow down"}}, "throttlingException: slow down"),
    ],
    ids=["vllm", "gemini", "bedrock"],
)
def test_an_error_alone_is_named(error: Document, shown: str) -> None:
    (found,) = read_traceweir(lines(error))

    assert not found.records
    assert shown in str(found.problem)
    assert "without the question" in str(found.problem)


def test_an_error_in_the_response_of_a_line_of_a_batch_of_gemini_is_that_of_its_question() -> None:
    request = {"contents": [{"role": "user", "parts": [{"text": "Weather?"}]}]}
    response = {"error": {"code": 429, "message": "slow down"}}

    found = only(lines({"key": "k1", "request": request, "response": response}))

    assert found.error == "429: slow down"

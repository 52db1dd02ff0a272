"""Texts of traces, each with a paraphrase and a text that is about something else.

The third text has some of the words, or the shape, of the first.
"""

from traceweir.scorers.embedding import embedded_text

_SENTENCES: dict[str, tuple[str, str, str]] = {
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
"""The objective of a trace and the contents of its steps, a sentence each."""


def _embedded(sentences: str) -> str:
    objective, *contents = sentences.split(". ")
    return embedded_text(objective, contents)


TRIPLES: dict[str, tuple[str, str, str]] = {
    about: (_embedded(text), _embedded(paraphrase), _embedded(other))
    for about, (text, paraphrase, other) in _SENTENCES.items()
}
"""A text, its paraphrase and another text, as they are embedded, by what they are about."""

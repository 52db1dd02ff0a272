"""Reads metrics as Prometheus does."""

from __future__ import annotations

from prometheus_client.parser import text_string_to_metric_families

from traceweir.streams.worker.telemetry.catalogue import CATALOGUE

_ATTRIBUTES = {instrument.prometheus_name: instrument.attributes for instrument in CATALOGUE}


def samples(text: bytes) -> dict[tuple[str, ...], float]:
    """Returns each value by its name without `traceweir_` and its labels, in the order of the catalogue."""
    found = [sample for family in text_string_to_metric_families(text.decode()) for sample in family.samples]
    return {
        (
            sample.name.removeprefix("traceweir_"),
            *(sample.labels[name] for name in _ATTRIBUTES.get(sample.name, sorted(sample.labels))),
        ): sample.value
        for sample in found
    }

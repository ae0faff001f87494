"""The operator's own metrics, as numbers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from prometheus_client.parser import text_string_to_metric_families

PREFIX = "supervisor_operator_"
WRITES = frozenset({"create", "update", "patch", "delete"})
LEASE = "leases"


@dataclass(frozen=True, slots=True)
class Scrape:
    """All samples at one moment; `later - earlier` is what happened between."""

    samples: dict[tuple[str, frozenset[tuple[str, str]]], float]

    @staticmethod
    def of(text: str) -> Scrape:
        return Scrape(
            {
                (sample.name.removeprefix(PREFIX), frozenset(sample.labels.items())): sample.value
                for family in text_string_to_metric_families(text)
                for sample in family.samples
            }
        )

    def __sub__(self, earlier: Scrape) -> Scrape:
        return Scrape(
            {key: value - earlier.samples.get(key, 0.0) for key, value in self.samples.items()}
        )

    def find(self, name: str) -> Iterator[tuple[dict[str, str], float]]:
        return (
            (dict(labels), value)
            for (found, labels), value in self.samples.items()
            if found == name
        )

    def total(self, name: str, **labels: str) -> float:
        return sum(value for found, value in self.find(name) if labels.items() <= found.items())

    def writes(self) -> dict[str, float]:
        """By verb, resource and answer, the leader's Lease left out."""
        return {
            f"{labels['verb']} {labels['resource']} {labels['code']}": count
            for labels, count in self.find("api_calls_total")
            if count and labels["verb"] in WRITES and labels["resource"] != LEASE
        }

    def quantile(self, histogram: str, share: float) -> float:
        """The upper edge of the bucket that holds it; 0 where nothing was observed."""
        buckets = sorted(
            (float(found["le"]), count) for found, count in self.find(f"{histogram}_bucket")
        )
        wanted = share * buckets[-1][1] if buckets else 0.0
        return next((edge for edge, count in buckets if wanted and count >= wanted), 0.0)

"""`docs/operations/sizing.md`: what fleets of three sizes cost, by the figures of this bench."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.bench.rows import show

USUAL_INTERVAL = 30
RENEWALS_PER_SECOND = 0.5
LARGEST = 10_000
NEEDED = {
    "memory.base_mib",
    "memory.per_agent_kib",
    "off.ms_per_beat",
    "off.api_ms",
    "file.per_second",
    "file.api_ms",
    "file.controller_ms",
    "cold.seconds",
}
TEMPLATE = Path(__file__).parent / "sizing.template"


@dataclass(frozen=True, slots=True)
class Costs:
    """What one fleet was measured to cost."""

    agents: int
    readings: Mapping[str, float]

    def row(self, size: int) -> str:
        found = self.readings
        beats, rate = size / USUAL_INTERVAL, found["file.per_second"]
        memory = found["memory.base_mib"] + size * found["memory.per_agent_kib"] / 1024
        api_seconds = size * found["file.api_ms"] / 1000
        own_seconds = size * found["file.controller_ms"] / 1000
        cells = [
            f"{size:,}",
            f"{show(beats * found['off.ms_per_beat'] / 1000)} cores",
            f"{memory:.0f} MiB",
            f"{beats * found['off.api_ms'] / 1000:.2f} cores",
            f"{beats + RENEWALS_PER_SECOND:.1f} /s",
            f"{size / rate:.0f} s, CPU {own_seconds:.0f} s + {api_seconds:.0f} s",
        ]
        return f"| {' | '.join(cells)} |"


def page(usual: Costs, large: Costs) -> str | None:
    """None where a figure is missing that it is made of."""
    if not usual.readings.keys() >= NEEDED or not large.readings.keys() >= NEEDED:
        return None
    rows = [usual.row(100), usual.row(usual.agents), large.row(large.agents)]
    if large.agents < LARGEST:
        rows.append(large.row(LARGEST))
    return TEMPLATE.read_text().format(
        usual_agents=f"{usual.agents}",
        large_agents=f"{large.agents}",
        interval=USUAL_INTERVAL,
        rows="\n".join(rows),
        cold=large.readings["cold.seconds"],
        cold_mib=large.readings["cold.mib"],
    )

"""The plots of `docs/benchmarks/`: SVG written by hand, so that no library is needed for them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

WIDTH, HEIGHT = 640, 320
LEFT, RIGHT, TOP, BOTTOM = 60, 20, 40, 50
COLOURS = ("#1f6feb", "#d1242f", "#1a7f37", "#9a6700")

Points = Sequence[tuple[float, float]]


@dataclass(frozen=True, slots=True)
class Frame:
    """The plane of one plot, from 0 to the largest value on each axis."""

    title: str
    across: str
    up: str
    most_across: float
    most_up: float

    def x(self, value: float) -> float:
        return LEFT + (WIDTH - LEFT - RIGHT) * value / (self.most_across or 1)

    def y(self, value: float) -> float:
        return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * value / (self.most_up or 1)

    def wrap(self, marks: Sequence[str]) -> str:
        style = 'font-family="sans-serif" font-size="12" fill="#57606a"'
        head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" {style}>'
        middle = (LEFT + WIDTH - RIGHT) / 2
        words = [
            '<rect width="100%" height="100%" fill="white"/>',
            _text(middle, 20, self.title, size=14),
            _text(middle, HEIGHT - 10, self.across),
            _text(LEFT, TOP - 6, self.up),
            *self._axes(),
        ]
        return "\n".join([head, *words, *marks, "</svg>"]) + "\n"

    def _axes(self) -> list[str]:
        found = []
        for step in range(5):
            right, high = self.most_across * step / 4, self.most_up * step / 4
            found.append(_line(LEFT, self.y(high), WIDTH - RIGHT, self.y(high)))
            found.append(_text(self.x(right), HEIGHT - BOTTOM + 16, _number(right)))
            found.append(_text(LEFT - 24, self.y(high) + 4, _number(high)))
        return found


def curves(title: str, across: str, up: str, series: Mapping[str, Points]) -> str:
    every = [point for points in series.values() for point in points]
    frame = Frame(title, across, up, max(x for x, _ in every), max(y for _, y in every))
    marks = []
    for number, (name, points) in enumerate(series.items()):
        colour = COLOURS[number % len(COLOURS)]
        path = " ".join(f"{frame.x(x):.1f},{frame.y(y):.1f}" for x, y in points)
        marks.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>')
        marks += [
            f'<circle cx="{frame.x(x):.1f}" cy="{frame.y(y):.1f}" r="3" fill="{colour}"/>'
            for x, y in (points if len(points) <= 10 else ())
        ]
        marks.append(_text(LEFT + 90 + 160 * number, TOP + 10, name, colour=colour))
    return frame.wrap(marks)


def histogram(title: str, across: str, values: Sequence[float], bins: int = 25) -> str:
    most = max(values) or 1.0
    counts = [0] * bins
    for value in values:
        counts[min(bins - 1, max(0, int(bins * value / most)))] += 1
    frame = Frame(title, across, "agents", most, max(counts))
    wide = frame.x(most / bins) - frame.x(0) - 1
    bars = [
        f'<rect x="{frame.x(most * number / bins):.1f}" y="{frame.y(count):.1f}" '
        f'width="{wide:.1f}" height="{frame.y(0) - frame.y(count):.1f}" fill="{COLOURS[0]}"/>'
        for number, count in enumerate(counts)
    ]
    return frame.wrap(bars)


def draw(
    folder: Path, samples: Mapping[str, object], by_size: Mapping[int, tuple[float, float]]
) -> list[str]:
    """Write what the samples allow; `by_size` is KiB and idle-free CPU per agent by fleet size."""
    plots: dict[str, str] = {}
    series = {
        name: _counted(found["running_at"])
        for key, name in BRING_UPS.items()
        if isinstance(found := samples.get(key), Mapping)
    }
    if series:
        plots["pods"] = curves("Pods that run", "seconds from the first request", "pods", series)
    late = samples.get("late")
    if isinstance(late, Sequence) and late:
        millis = [1000 * float(value) for value in late]
        plots["detection"] = histogram("Verdict after the deadline", "milliseconds", millis)
    if len(by_size) > 1:
        sizes = sorted(by_size)
        names = ("memory per agent, KiB", "operator CPU per agent, ms/s x 10")
        lines = {
            names[0]: [(size, by_size[size][0]) for size in sizes],
            names[1]: [(size, 10 * by_size[size][1]) for size in sizes],
        }
        plots["growth"] = curves("Cost per agent by fleet size", "agents", "", lines)
    for name, text in plots.items():
        (folder / f"{name}.svg").write_text(text)
    return list(plots)


BRING_UPS = {
    "bring_up_jobs": "Job controller",
    "bring_up_none": "source None",
    "bring_up_file": "source File",
}


def _counted(moments: Sequence[float]) -> list[tuple[float, float]]:
    """At most some hundred points of the curve that rises by one at each moment."""
    every = max(1, len(moments) // 100)
    return [(moments[place], place + 1) for place in range(0, len(moments), every)]


def _text(x: float, y: float, words: str, *, size: int = 12, colour: str = "#57606a") -> str:
    where = f'x="{x:.1f}" y="{y:.1f}" font-size="{size}" fill="{colour}"'
    return f'<text {where} text-anchor="middle">{escape(words)}</text>'


def _line(x1: float, y1: float, x2: float, y2: float) -> str:
    ends = f'x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"'
    return f'<line {ends} stroke="#d0d7de"/>'


def _number(value: float) -> str:
    return f"{value:.0f}" if value >= 10 or value == round(value) else f"{value:.2g}"

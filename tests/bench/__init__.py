"""The benchmark behind the figures of `docs/benchmarks.md`; `python -m tests.bench --help`.

One run is one story on one fresh cluster (`story`): fleets are brought up (`bringup`), beat
(`beating`) while the operator is measured (`steady`), freeze (`verdicts`) and crash (`restarts`).
Each stage returns plain numbers; `rows` says which of them have a goal, `page` writes them down.
"""

"""The run counters, rebuilt in every pass from what the pods and the status say.

Of status and newest pod the higher run wins, the pod on a tie: the pod is written first, so a
crash between the two loses nothing, and a wiped status refills no budget.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from supervisor_operator.api.v1alpha1.supervisor_status import SupervisorStatus
from supervisor_operator.core.observed import PodView


@dataclass(frozen=True, slots=True)
class Ledger:
    run: int = 0
    restarts: int = 0
    counted: int = 0
    forgiven: int = 0

    @property
    def is_forgiven(self) -> bool:
        """Whatever happened up to this run no longer counts."""
        return self.run <= self.forgiven

    def forgive(self) -> Ledger:
        return replace(self, forgiven=max(self.forgiven, self.run), counted=0)

    def next_run(self, *, counts: bool, is_restart: bool = True) -> Ledger:
        return replace(
            self,
            run=self.run + 1,
            restarts=self.restarts + is_restart,
            counted=self.counted + counts,
        )


def read_ledger(status: SupervisorStatus, pods: Sequence[PodView]) -> Ledger:
    newest = max(pods, key=lambda pod: pod.run, default=None)
    found = Ledger(status.run or 0, status.restarts or 0, status.restarts_counted or 0)
    if newest and newest.run >= found.run:
        found = Ledger(newest.run, newest.restarts, newest.counted)
    forgiven = max([status.forgiven_run or 0, *(pod.forgiven for pod in pods)])
    found = replace(found, forgiven=forgiven)
    return replace(found, counted=0) if found.is_forgiven else found

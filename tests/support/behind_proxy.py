"""The operator as a real process behind the proxy that makes trouble for it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.support.kubectl import Kubectl
from tests.support.operator import OperatorProcess
from tests.support.proxy import ApiProxy


@dataclass(frozen=True, slots=True)
class Troubled:
    """An operator of one namespace, and the proxy between it and the API server."""

    operator: OperatorProcess
    proxy: ApiProxy

    def creates(self, plural: str) -> int:
        """How many objects it has created so far."""
        ends = f"/{plural}"
        return sum(
            write.verb == "create" and write.path.endswith(ends) and write.status == 201
            for write in self.proxy.writes
        )


@contextmanager
def behind_proxy(kubectl: Kubectl, access: Path, folder: Path, *flags: str) -> Iterator[Troubled]:
    """Ready when given; ended with the context."""
    with ApiProxy(access) as proxy:
        mine = f"--namespace={kubectl.namespace}"
        operator = OperatorProcess(proxy.kubeconfig, folder / "operator.log", mine, *flags)
        operator.start().ready()
        try:
            yield Troubled(operator, proxy)
        finally:
            operator.kill()

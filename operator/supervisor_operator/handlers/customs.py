"""kopf's events of the custom kinds: each fills a store, which orders a pass. Nothing else."""

from __future__ import annotations

from typing import Any

import kopf

from supervisor_operator.kube.customs import Customs


def register(registry: kopf.OperatorRegistry, customs: Customs) -> None:
    resource = customs.resource

    @kopf.on.event(resource.group, resource.version, resource.plural, registry=registry)
    async def on_event(event: Any, **_: Any) -> None:
        customs.take(event["type"], event["object"])

"""The tiers, and which programs each of them runs."""

from __future__ import annotations

from tests.cluster.errors import UsageError

CONTROL = ("etcd", "kube-apiserver", "kube-controller-manager", "kubectl")
TIERS = {
    "control": CONTROL,
    "fake": (*CONTROL, "kube-scheduler", "kwok"),
    "node": (*CONTROL, "kube-scheduler", "kubelet", "pause"),
}


def programs_of(tier: str) -> tuple[str, ...]:
    if tier in TIERS:
        return TIERS[tier]
    raise UsageError(f"there is no tier {tier!r}: choose one of {', '.join(TIERS)}")

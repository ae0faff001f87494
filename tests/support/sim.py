"""A cluster of one Supervisor in memory: the pure core runs in it as it does in the real operator.

`Sim` plays API server, kubelet and clock. A test tells its story (`start`, `exit`, `beat`, `wait`,
`edit`, `wipe_status`) and looks at `status`, `pods` and `log` in between.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, Self

from supervisor_operator.api.v1alpha1.meta import OperatingMode
from supervisor_operator.api.v1alpha1.supervisor import SupervisorSpec
from supervisor_operator.api.v1alpha1.supervisor_status import SupervisorStatus
from supervisor_operator.core.actions import (
    Action,
    CreateHeartbeat,
    CreatePod,
    DeleteHeartbeat,
    DeletePod,
    KillPod,
    TryPod,
)
from supervisor_operator.core.events import Note
from supervisor_operator.core.link import TeamLink
from supervisor_operator.core.observed import (
    AgentEnd,
    BeatView,
    Now,
    Observed,
    PodView,
    Refusal,
    Sightings,
)
from supervisor_operator.core.plan import Plan, plan_supervisor
from supervisor_operator.core.pods import view_pod
from supervisor_operator.core.template import template_hash
from supervisor_operator.core.tree import TreeView, strictest
from supervisor_operator.reconcile import is_at_rest

NAME, UID = "hello", "uid-of-hello"
START = datetime(2026, 11, 18, 12, tzinfo=UTC)
TICK = 0.25


class Sim:
    def __init__(self, name: str = NAME, **spec: Any) -> None:
        self.name = name
        self.uid = UID if name == NAME else f"uid-of-{name}"
        self.link: TeamLink | None = None
        self.mode_above: OperatingMode | None = None
        self.spec_json: dict[str, Any] = {"agent": {"image": "a"}} | spec
        self.status = SupervisorStatus()
        self.generation = 1
        self.mono = 1000.0
        self.pods: dict[str, PodView] = {}
        self.log: list[str] = []
        self.notes: list[Note] = []
        self.created: list[str] = []
        self.deleted: list[str] = []
        self.killed: list[str] = []
        self.writes = 0
        self.refuse: Refusal | None = None
        self.refuse_try: Refusal | None = None
        self.policy_present = True
        self.storm = False
        self.node_grace = 60.0
        self.tree = TreeView()
        self._seen: dict[tuple[str, str], float] = {}
        self._beats: dict[str, float] = {}
        self._relay: dict[str, float] = {}
        self._busy = 0.0
        self._heartbeats: set[str] = set()
        self._missing: set[str] = set()
        self._first_hand = True
        self._uids = 0
        self.due: float | None = None

    # The clock

    @property
    def wall(self) -> datetime:
        return START + timedelta(seconds=self.mono - 1000.0 + self.skew)

    skew = 0.0

    def wait(self, seconds: float) -> Self:
        """Let time pass; passes happen when they are due, as the queue would have them."""
        end = self.mono + seconds
        while self.due is not None and self.mono + self.due < end:
            self.mono += max(self.due, TICK)
            self.due = None
            self.settle()
        if self.due is not None:
            self.due -= end - self.mono
        self.mono = max(self.mono, end)
        return self.settle()

    # The kubelet

    @property
    def pod(self) -> PodView:
        return max(self.pods.values(), key=lambda pod: pod.run)

    @property
    def unfinished(self) -> list[PodView]:
        return [pod for pod in self.pods.values() if not pod.finished]

    def _set(self, pod: PodView, **facts: Any) -> PodView:
        changed = replace(pod, **facts)
        self.pods[pod.name] = changed
        for fact in ("running", "terminating", "ended_by"):
            if getattr(changed, fact):
                self._seen.setdefault((changed.uid, fact), self.mono)
        return changed

    def start(self) -> Self:
        """The kubelet starts the newest pod."""
        self._set(self.pod, phase="Running", running=True, ready=True, node="node-1")
        return self.settle()

    def exit(self, code: int, reason: str = "") -> Self:
        """The agent of the newest pod ends by itself."""
        word = reason or ("Completed" if code == 0 else "Error")
        end = AgentEnd(exit_code=code, reason=word, message="last words")
        phase = "Succeeded" if code == 0 else "Failed"
        self._set(self.pod, phase=phase, running=False, ready=False, end=end)
        return self.settle()

    def change(self, **facts: Any) -> Self:
        self._set(self.pod, **facts)
        return self.settle()

    def finish_kill(self, code: int = 137) -> Self:
        """The kubelet has ended what the operator asked it to end."""
        end = AgentEnd(exit_code=code, reason="Error", message="last words")
        self._set(
            self.pod, phase="Failed", reason="DeadlineExceeded", running=False, ready=False, end=end
        )
        return self.settle()

    def remove(self, name: str | None = None) -> Self:
        """The pod is gone from the API server."""
        self.pods.pop(name or self.pod.name)
        return self.settle()

    # The agent

    def beat(self, busy: float = 0.0) -> Self:
        uid = self.pod.uid
        self._beats[uid] = self._relay[uid] = self.mono
        self._busy, self._first_hand = busy, True
        return self.settle()

    def relay_only(self) -> Self:
        """The relay reports, without a new beat of the agent."""
        self._relay[self.pod.uid] = self.mono
        return self

    def silent(self, seconds: float, *, relay: bool = True) -> Self:
        """The agent is silent for so long; its relay is not, unless told so."""
        for _ in range(int(seconds)):
            if relay:
                self.relay_only()
            self.wait(1)
        return self

    # The user

    def edit(self, **spec: Any) -> Self:
        self.spec_json |= spec
        self.generation += 1
        return self.settle()

    def wipe_status(self) -> Self:
        self.status = SupervisorStatus()
        return self

    # The operator

    def restart_operator(self) -> Self:
        """All that was only in memory is gone; beats count as seen now."""
        self._seen = {}
        for pod in self.pods.values():
            self._set(pod)
        self._beats = dict.fromkeys(self._beats, self.mono)
        self._relay = dict.fromkeys(self._relay, self.mono)
        self._first_hand = False
        return self.settle()

    def observe(self, refusal: Refusal | None = None) -> Observed:
        spec = SupervisorSpec.model_validate(self.spec_json)
        pods = tuple(sorted(self.pods.values(), key=lambda pod: pod.run))
        newest = pods[-1] if pods else None
        return Observed(
            name=self.name,
            namespace="default",
            uid=self.uid,
            generation=self.generation,
            spec=spec,
            template_hash=template_hash(spec),
            status=self.status,
            mode=self._mode(spec),
            team=self.link,
            pods=pods,
            sightings=self._sightings(newest.uid) if newest else Sightings(),
            beat=self._beat(newest.uid) if newest else None,
            refusal=refusal,
            policy_present=self.policy_present,
            storm=self.storm,
            node_grace_seconds=self.node_grace,
            relay_image="relay",
            tree=self.tree,
        )

    def _mode(self, spec: SupervisorSpec) -> OperatingMode:
        above = [self.link.mode] if self.link else []
        return strictest([spec.operating_mode, *above, *filter(None, [self.mode_above])])

    def now(self) -> Now:
        return Now(self.mono, self.wall)

    def plan(self) -> Plan:
        return plan_supervisor(self.observe(), self.now())

    def one_pass(self) -> bool:
        """One pass as `reconcile` makes it; tells whether anything happened."""
        plan = self.plan()
        refusal = None
        for action in plan.actions:
            refusal = self._apply(action)
            if refusal:
                break
        if plan.actions:
            plan = plan_supervisor(self.observe(refusal), self.now())
        acted = bool(plan.actions) and refusal is None
        self.due = TICK if acted else plan.check_in
        if plan.status == self.status:
            return self.due == 0
        self.status = SupervisorStatus.model_validate(
            plan.status.model_dump(by_alias=True, mode="json", exclude_none=True)
        )
        self.writes += 1
        self._check_rest(plan)
        self.notes += plan.notes
        self.log += [f"{note.reason}: {note.text}" for note in plan.notes]
        return True

    def _check_rest(self, plan: Plan) -> None:
        """Whoever is passed over when this status comes back would have had nothing to do."""
        if is_at_rest(plan):
            again = self.plan()
            assert not again.actions, again.actions
            assert again.status == self.status, (again.status, self.status)

    def settle(self) -> Self:
        for _ in range(20):
            if not self.one_pass():
                return self
        raise AssertionError(f"never settles: {self.log[-5:]}")

    def _apply(self, action: Action) -> Refusal | None:
        match action:
            case CreatePod(manifest=manifest):
                if self.refuse:
                    return self.refuse
                self._create(manifest)
            case TryPod():
                return self.refuse_try
            case DeletePod(pod=pod):
                self.deleted.append(pod.name)
                if pod.finished or not pod.running:
                    self.pods.pop(pod.name)
                else:
                    self._set(pod, terminating=True)
            case KillPod(pod=pod, ended_by=why):
                self.killed.append(pod.name)
                self._set(pod, ended_by=why)
            case CreateHeartbeat(pod=pod):
                self._heartbeats.add(pod.uid)
                self._missing.discard(pod.uid)
            case DeleteHeartbeat():
                pass
        return None

    def _create(self, manifest: dict[str, Any]) -> None:
        name = manifest["metadata"]["name"]
        assert name not in self.pods, "the name is taken"
        assert not self.unfinished, f"a second copy beside {self.unfinished[0].name}"
        self._uids += 1
        manifest["metadata"] |= {
            "uid": f"{self.name}-pod-{self._uids}",
            "resourceVersion": str(self._uids),
        }
        pod = view_pod(manifest)
        self.pods[name] = pod
        self._heartbeats.add(pod.uid)
        self.created.append(name)

    def _sightings(self, uid: str) -> Sightings:
        ages = {fact: self.mono - at for (one, fact), at in self._seen.items() if one == uid}
        return Sightings(
            running=ages.get("running"),
            terminating=ages.get("terminating"),
            ended_by=ages.get("ended_by"),
        )

    def _beat(self, uid: str) -> BeatView | None:
        if uid not in self._heartbeats:
            return None
        at, relay = self._beats.get(uid), self._relay.get(uid)
        return BeatView(
            silence=None if at is None else self.mono - at,
            relay_silence=None if relay is None else self.mono - relay,
            busy_seconds=self._busy,
            confirmed=True,
            first_hand=self._first_hand,
            missing=uid in self._missing,
        )

    def condition(self, kind: str) -> str:
        found = next((one for one in self.status.conditions or () if one.type == kind), None)
        return f"{found.status}/{found.reason}" if found else "-"

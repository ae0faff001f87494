"""The agent's pod and Heartbeat as JSON, and the hash that tells templates apart."""

from __future__ import annotations

import copy
import hashlib
import json
from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Any

from supervisor_operator.api.v1alpha1.agent import AgentSpec, HeartbeatPolicy
from supervisor_operator.api.v1alpha1.meta import GROUP, VERSION
from supervisor_operator.api.v1alpha1.policies import HeartbeatSource
from supervisor_operator.api.v1alpha1.supervisor import SupervisorSpec
from supervisor_operator.core.ledger import Ledger
from supervisor_operator.core.observed import Observed, PodView
from supervisor_operator.core.pods import AGENT, RELAY, agent_name
from supervisor_operator.core.words import MANAGED_BY, MANAGER, Label, Mark, RunReason

BEATS = "supervision-beats"
TOKEN = "supervision-token"  # noqa: S105 - the name of a volume
CONFIG = "supervision-config"
TOKEN_FOLDER = "/var/run/supervision-token"  # noqa: S105 - a folder
CONFIG_FOLDER = "/etc/supervision"
CONFIG_FILE = "config.json"
OUR_NAMES = {RELAY, BEATS, TOKEN, CONFIG}
NOBODY = 65532
TOKEN_SECONDS = 3600
RELAY_RESOURCES = {
    "requests": {"cpu": "5m", "memory": "24Mi"},
    "limits": {"memory": "48Mi"},
}
# Argo CD: pods and beats are no reason to look at an Application again, and a pod that is never
# restarted by the kubelet is as well as any other.
QUIET = {"argocd.argoproj.io/ignore-resource-updates": "true"}
QUIET_POD = QUIET | {"argocd.argoproj.io/ignore-restart-policy": "true"}
SYSTEM_FOLDERS = {"/", "/bin", "/dev", "/etc", "/lib", "/proc", "/sbin", "/sys", "/usr"}
HASHED_BEAT_FIELDS = {"source", "file", "interval_seconds"}

Json = dict[str, Any]


class TemplateProblemError(ValueError):
    """A template that no pod can be made from; the message is for its author."""


def template_hash(spec: SupervisorSpec) -> str:
    """Ten letters over all that shapes the pod; a field set to its default counts as absent."""
    shape = {
        "agent": _without_defaults(spec.agent),
        "config": spec.config,
        "heartbeat": _without_defaults(spec.heartbeat, HASHED_BEAT_FIELDS),
    }
    canonical = json.dumps(shape, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(canonical.encode()).hexdigest()[:10]


def _without_defaults(
    block: AgentSpec | HeartbeatPolicy | None, fields: set[str] | None = None
) -> Json | None:
    if block is None:
        return None
    return block.model_dump(by_alias=True, mode="json", exclude_defaults=True, include=fields)


def build_pod(observed: Observed, ledger: Ledger, reason: RunReason) -> Json:
    """The pod of the run that `ledger` describes; raises TemplateProblemError."""
    spec = observed.spec
    if spec.agent is None:
        raise TemplateProblemError("spec.agent is absent: there is nothing to run")
    meta = spec.agent.template.metadata if spec.agent.template else None
    pod_spec = _pod_spec(spec.agent)
    _check(pod_spec, spec.heartbeat)
    _secure(pod_spec)
    _connect(pod_spec, observed)
    labels = _labels(observed) | {str(Label.RUN): str(ledger.run)}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": pod_name(observed.name, ledger.run),
            "namespace": observed.namespace,
            "labels": (meta.labels if meta and meta.labels else {}) | labels,
            "annotations": QUIET_POD
            | (meta.annotations if meta and meta.annotations else {})
            | _marks(observed, ledger, reason),
            "ownerReferences": [_owner(f"{GROUP}/{VERSION}", "Supervisor", observed)],
        },
        "spec": pod_spec,
    }


def build_heartbeat(observed: Observed, pod: PodView) -> Json:
    return {
        "apiVersion": f"{GROUP}/{VERSION}",
        "kind": "Heartbeat",
        "metadata": {
            "name": pod.name,
            "namespace": pod.namespace,
            "labels": _labels(observed),
            "annotations": QUIET,
            "ownerReferences": [_owner("v1", "Pod", pod)],
        },
        "spec": {
            "podUID": pod.uid,
            "supervisor": observed.name,
            "intervalSeconds": observed.spec.heartbeat.interval_seconds,
        },
    }


def _labels(observed: Observed) -> dict[str, str]:
    return {MANAGED_BY: MANAGER, str(Label.SUPERVISOR): observed.name}


def pod_name(supervisor: str, run: int) -> str:
    return f"{supervisor}-r{run}"


def _owner(api_version: str, kind: str, owner: Observed | PodView) -> Json:
    reference = {"apiVersion": api_version, "kind": kind, "name": owner.name, "uid": owner.uid}
    return reference | {"controller": True}


def _marks(observed: Observed, ledger: Ledger, reason: RunReason) -> dict[str, str]:
    spec = observed.spec
    marks = {
        Mark.RESTARTS: str(ledger.restarts),
        Mark.COUNTED: str(ledger.counted),
        Mark.FORGIVEN: str(ledger.forgiven),
        Mark.TEMPLATE: observed.template_hash,
        Mark.REQUEST: spec.restart_request or "",
        Mark.REASON: reason,
    }
    if observed.team and observed.team.order:
        marks[Mark.ORDER] = str(observed.team.order)
    if observed.tree.order:
        marks[Mark.PARENT_ORDER] = str(observed.tree.order)
    if spec.config is not None:
        marks[Mark.CONFIG] = json.dumps(spec.config, sort_keys=True)
    return {str(key): str(value) for key, value in marks.items()}


def _pod_spec(agent: AgentSpec) -> Json:
    if agent.template:
        pod_spec = copy.deepcopy(dict(agent.template.spec))
        policy = pod_spec.get("restartPolicy", "Never")
        if policy != "Never":
            raise TemplateProblemError(
                f"spec.agent.template.spec.restartPolicy: is {policy!r}, must be Never or left "
                "out: the Supervisor restarts the agent"
            )
    else:
        fields = agent.model_dump(by_alias=True, mode="json", exclude_none=True)
        grace = fields.pop("terminationGracePeriodSeconds")
        pod_spec = {
            "terminationGracePeriodSeconds": grace,
            "containers": [{"name": AGENT} | fields],
        }
    return pod_spec | {"restartPolicy": "Never"}


def _check(pod_spec: Json, beat: HeartbeatPolicy) -> None:
    containers = pod_spec.get("containers")
    if not isinstance(containers, list) or not all(isinstance(one, dict) for one in containers):
        raise TemplateProblemError(
            "spec.agent.template.spec.containers: must be a list of containers"
        )
    if not containers:
        raise TemplateProblemError("spec.agent.template.spec.containers: Required value")
    for kind in ("containers", "initContainers", "volumes"):
        for item in pod_spec.get(kind) or ():
            if isinstance(item, dict) and item.get("name") in OUR_NAMES:
                raise TemplateProblemError(
                    f"spec.agent.template.spec.{kind}: the name {item['name']} is the operator's: "
                    "choose another"
                )
    folder = str(PurePosixPath(beat.file).parent)
    if beat.source is HeartbeatSource.FILE and folder in SYSTEM_FOLDERS:
        raise TemplateProblemError(
            f"spec.heartbeat.file: a volume would hide {folder}: "
            "put the file in a folder of its own"
        )


def _secure(pod_spec: Json) -> None:
    """What PSS restricted asks for, where the template is silent."""
    pod_spec.setdefault("automountServiceAccountToken", False)
    pod_spec.setdefault("enableServiceLinks", False)
    pod_spec["securityContext"] = {
        "runAsNonRoot": True,
        "seccompProfile": {"type": "RuntimeDefault"},
        "fsGroup": NOBODY,
    } | (pod_spec.get("securityContext") or {})
    for kind in ("containers", "initContainers"):
        for container in pod_spec.get(kind) or ():
            container["securityContext"] = _closed() | (container.get("securityContext") or {})
    agent = _agent(pod_spec)
    agent.setdefault("terminationMessagePolicy", "FallbackToLogsOnError")


def _closed() -> Json:
    return {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}


def _agent(pod_spec: Json) -> Json:
    name = agent_name(pod_spec)
    found: Json = next(one for one in pod_spec["containers"] if one.get("name", "") == name)
    return found


def _connect(pod_spec: Json, observed: Observed) -> None:
    """Give the agent its surroundings: variables, config file, the way its beats take."""
    spec, agent = observed.spec, _agent(pod_spec)
    _add_env(agent, _variables(observed.name, spec))
    if spec.config is not None:
        field = {"fieldPath": f"metadata.annotations['{Mark.CONFIG}']"}
        items = [{"path": CONFIG_FILE, "fieldRef": field}]
        _add(pod_spec, "volumes", {"name": CONFIG, "downwardAPI": {"items": items}})
        _add(agent, "volumeMounts", _mount(CONFIG, CONFIG_FOLDER, read_only=True))
    match spec.heartbeat.source:
        case HeartbeatSource.FILE:
            _add(pod_spec, "volumes", {"name": BEATS, "emptyDir": {"sizeLimit": "16Mi"}})
            _add(pod_spec, "volumes", _token_volume())
            folder = str(PurePosixPath(spec.heartbeat.file).parent)
            _add(agent, "volumeMounts", _mount(BEATS, folder))
            relays = [_relay(observed, folder), *(pod_spec.get("initContainers") or ())]
            pod_spec["initContainers"] = relays
        case HeartbeatSource.API:
            _add(pod_spec, "volumes", _token_volume())
            _add(agent, "volumeMounts", _mount(TOKEN, TOKEN_FOLDER, read_only=True))
        case HeartbeatSource.NONE:
            pass


def _relay(observed: Observed, folder: str) -> Json:
    mounts = [
        _mount(BEATS, folder, read_only=True),
        _mount(TOKEN, TOKEN_FOLDER, read_only=True),
    ]
    return {
        "name": RELAY,
        "image": observed.relay_image,
        "command": ["python3", "-m", "supervise", "relay"],
        "restartPolicy": "Always",
        "env": _variables(observed.name, observed.spec),
        "volumeMounts": mounts,
        "resources": RELAY_RESOURCES,
        "securityContext": _closed()
        | {"readOnlyRootFilesystem": True, "runAsNonRoot": True, "runAsUser": NOBODY},
    }


def _variables(name: str, spec: SupervisorSpec) -> list[Json]:
    beat = spec.heartbeat
    plain = {"SUPERVISION_SUPERVISOR": name}
    if beat.source is not HeartbeatSource.NONE:
        plain["SUPERVISION_INTERVAL_SECONDS"] = str(beat.interval_seconds)
        plain["SUPERVISION_TOKEN_DIR"] = TOKEN_FOLDER
    if beat.source is HeartbeatSource.FILE:
        plain["SUPERVISION_HEARTBEAT_FILE"] = beat.file
    if spec.config is not None:
        plain["SUPERVISION_CONFIG_FILE"] = f"{CONFIG_FOLDER}/{CONFIG_FILE}"
    fields = {
        "SUPERVISION_POD_NAME": "metadata.name",
        "SUPERVISION_NAMESPACE": "metadata.namespace",
    }
    return [{"name": key, "value": value} for key, value in plain.items()] + [
        {"name": key, "valueFrom": {"fieldRef": {"fieldPath": path}}}
        for key, path in fields.items()
    ]


def _add_env(agent: Json, variables: list[Json]) -> None:
    """The user's own value of a variable wins."""
    own = agent.get("env") or []
    taken = {variable.get("name") for variable in own if isinstance(variable, Mapping)}
    agent["env"] = [*own, *(one for one in variables if one["name"] not in taken)]


def _add(holder: Json, kind: str, item: Json) -> None:
    holder[kind] = [*(holder.get(kind) or ()), item]


def _mount(volume: str, folder: str, *, read_only: bool = False) -> Json:
    found: Json = {"name": volume, "mountPath": folder}
    return found | {"readOnly": True} if read_only else found


def _token_volume() -> Json:
    token = {"path": "token", "expirationSeconds": TOKEN_SECONDS}
    root = {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}
    sources = [{"serviceAccountToken": token}, {"configMap": root}]
    return {"name": TOKEN, "projected": {"sources": sources}}

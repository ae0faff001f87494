"""`make up` with KUBECONFIG set: on a cluster that somebody has, so it looks first and asks.

Every check comes before the first write, and each says in one line what is wrong and what to do.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from supervisor_operator.preflight import OLDEST
from tests.cluster import places
from tests.cluster.errors import ClusterError
from tests.cluster.programs import find_programs
from tests.support.in_cluster import DEPLOYMENT, OVERLAY, ROLLOUT_SECONDS
from tests.support.install import MANIFESTS, NAMESPACE

OURS = ("app.kubernetes.io/part-of", "supervisor-operator")
OF_THE_CLUSTER = (
    "namespaces",
    "customresourcedefinitions",
    "validatingadmissionpolicies",
    "clusterroles",
    "clusterrolebindings",
)
"""What the overlay has outside of its namespace; without one of them it would come half."""
OUR_IMAGE = "localhost/supervisor-operator:dev"

Json = dict[str, Any]


def up_elsewhere(kubeconfig: str) -> None:
    server = _check(kubeconfig)
    image = os.environ.get("IMAGE", "")
    if not image:
        raise ClusterError(
            "that cluster cannot pull an image of this machine: push it, then `make up IMAGE=…`"
        )
    text = _kubectl(kubeconfig, "kustomize", str(OVERLAY)).replace(OUR_IMAGE, image)
    _ask(f"Install supervisor-operator ({image}) on {server}?")
    apply = ("apply", "--server-side", "--force-conflicts", "-f", "-")
    _kubectl(kubeconfig, *apply, stdin=text)
    where = f"--namespace={NAMESPACE}"
    _kubectl(kubeconfig, "rollout", "status", DEPLOYMENT, where, f"--timeout={ROLLOUT_SECONDS}s")
    print("installed; next: kubectl apply -f manifests/samples/hello.yaml with an image of yours")


def _check(kubeconfig: str) -> str:
    """The address of the server, if nothing speaks against installing there."""
    try:
        found = json.loads(_kubectl(kubeconfig, "get", "--raw", "/version"))
    except ClusterError as error:
        raise ClusterError(f"no API server answers by KUBECONFIG={kubeconfig}: {error}") from error
    version = int(found["major"]), int(found["minor"].rstrip("+"))
    if version < OLDEST:
        raise ClusterError(
            f"the API server is Kubernetes {version[0]}.{version[1]}, "
            f"{OLDEST[0]}.{OLDEST[1]} or newer is needed: upgrade the cluster"
        )
    for look in (_rights, _namespace, _policies, _crds):
        if complaint := look(kubeconfig):
            raise ClusterError(complaint)
    jsonpath = "jsonpath={.clusters[0].cluster.server}"
    return _kubectl(kubeconfig, "config", "view", "--minify", "-o", jsonpath)


def _rights(kubeconfig: str) -> str | None:
    missing = [kind for kind in OF_THE_CLUSTER if not _may_create(kubeconfig, kind)]
    if not missing:
        return None
    return (
        f"you may not create {', '.join(missing)} there: have an administrator of the cluster "
        "install it, or use overlay namespaced"
    )


def _may_create(kubeconfig: str, kind: str) -> bool:
    try:
        return _kubectl(kubeconfig, "auth", "can-i", "create", kind).strip() == "yes"
    except ClusterError:
        return False  # kubectl ends with 1 where the answer is no


def _namespace(kubeconfig: str) -> str | None:
    found = _there(kubeconfig, "namespace", NAMESPACE)
    if not found or found["metadata"].get("labels", {}).get(OURS[0]) == OURS[1]:
        return None
    return (
        f"namespace {NAMESPACE} is there and not ours: install into another one by Helm, or say "
        f"that it is meant by `kubectl label namespace {NAMESPACE} {'='.join(OURS)}`"
    )


def _policies(kubeconfig: str) -> str | None:
    wanted = [
        (item["kind"], item["metadata"]["name"])
        for path in sorted((MANIFESTS / "policies").glob("*s.yaml"))
        for item in yaml.safe_load_all(path.read_text())
    ]
    missing = [f"{kind} {name}" for kind, name in wanted if not _there(kubeconfig, kind, name)]
    if len(missing) in (0, len(wanted)):
        return None
    return (
        f"the admission policies are half installed, {', '.join(missing)} is missing: "
        "`kubectl apply --server-side -k manifests/policies`, then try again"
    )


def _crds(kubeconfig: str) -> str | None:
    for path in sorted(places.CRDS.glob("*.yaml")):
        ours = yaml.safe_load(path.read_text())
        theirs = _there(kubeconfig, "crd", ours["metadata"]["name"])
        newer = sorted(set(_fields(theirs)) - set(_fields(ours))) if theirs else []
        if newer:
            return (
                f"CRD {ours['metadata']['name']} there is newer than this checkout (it has "
                f"{', '.join(newer[:3])}): take the release that it is of, going back loses these"
            )
    return None


def _fields(crd: Json) -> Iterator[str]:
    """Every version, and every field of its spec as a path."""
    for version in crd["spec"]["versions"]:
        yield version["name"]
        schema = version["schema"]["openAPIV3Schema"]["properties"]["spec"]
        yield from _paths(schema, "spec")


def _paths(schema: Json, path: str) -> Iterator[str]:
    yield path
    for name, inner in schema.get("properties", {}).items():
        yield from _paths(inner, f"{path}.{name}")
    if "items" in schema:
        yield from _paths(schema["items"], path + "[]")


def _ask(question: str) -> None:
    print(f"{question} [y/N] ", end="", file=sys.stderr, flush=True)
    answer = sys.stdin.readline().strip().lower()
    if answer not in ("y", "yes"):
        raise ClusterError("nothing was installed; unset KUBECONFIG to have a local cluster")


def _there(kubeconfig: str, kind: str, name: str) -> Json | None:
    text = _kubectl(kubeconfig, "get", kind, name, "--ignore-not-found", "-o", "json")
    return json.loads(text) if text.strip() else None


def _kubectl(kubeconfig: str, *words: str, stdin: str | None = None) -> str:
    program = shutil.which("kubectl") or str(find_programs(["kubectl"])["kubectl"])
    command = [program, f"--kubeconfig={kubeconfig}", "--request-timeout=10s", *words]
    done = subprocess.run(command, input=stdin, capture_output=True, text=True, check=False)
    if done.returncode:
        lines = done.stderr.strip().splitlines()
        raise ClusterError(lines[-1] if lines else f"kubectl {words[0]} failed")
    return done.stdout


def foreign_kubeconfig() -> str | None:
    """KUBECONFIG, unless it is that of the cluster `make up` itself has started."""
    given = os.environ.get("KUBECONFIG", "")
    is_own = given and Path(given).resolve().is_relative_to(places.kept_cluster().resolve())
    return given if given and not is_own else None

"""`python manifests/make_chart.py [--check]`: the chart's templates from the manifests.

Each template is the text of a manifest with some words swapped for values, comments and all, so
that there is one source for both ways to install. A word that is not there any more ends it: then
the swap needs a look. Values, their schema and the chart's own description are written by hand.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from supervisor_operator.crdgen.files import write_or_check

ROOT = Path(__file__).resolve().parents[1]
TEMPLATES = ROOT / "manifests/chart/templates"
HEADER = "{{- /* Generated from %s by `make manifests`. Do not edit. */ -}}\n"
NAMESPACE = {"namespace: supervision-system": "namespace: {{ .Release.Namespace }}"}
KEEP = {"\nmetadata:\n": "\nmetadata:\n  annotations: {helm.sh/resource-policy: keep}\n"}
IN_CLUSTER = 'eq .Values.scope "cluster"'
IN_NAMESPACE = 'eq .Values.scope "namespaced"'
PREFIX = f'{{{{ {IN_CLUSTER} | ternary "Cluster" "" }}}}'
OWN = (
    f"\n  {{{{- if {IN_NAMESPACE} }}}}\n  namespace: {{{{ .Release.Namespace }}}}\n  {{{{- end }}}}"
)
SCOPED = {
    "\nkind: ClusterRole\nmetadata:\n  name: supervisor-operator\n": (
        f"\nkind: {PREFIX}Role\nmetadata:\n  name: supervisor-operator{OWN}\n"
    ),
    "\nkind: ClusterRoleBinding\nmetadata:\n  name: supervisor-operator\n": (
        f"\nkind: {PREFIX}RoleBinding\nmetadata:\n  name: supervisor-operator{OWN}\n"
    ),
    "\n  kind: ClusterRole\n": f"\n  kind: {PREFIX}Role\n",
}
OPERATOR = {
    "replicas: 1": "replicas: {{ .Values.replicas }}",
    "image: localhost/supervisor-operator:dev": "image: {{ .Values.image | quote }}",
    'value: "localhost/supervisor-operator:dev"': (
        "value: {{ .Values.relayImage | default .Values.image | quote }}"
    ),
    "          ports:\n": (
        f"          {{{{- if {IN_NAMESPACE} }}}}\n"
        "            - {name: SUPERVISOR_OPERATOR_NAMESPACE,"
        " valueFrom: {fieldRef: {fieldPath: metadata.namespace}}}\n"
        "          {{- end }}\n          ports:\n"
    ),
    "resources:\n            requests: {cpu: 50m, memory: 128Mi}\n"
    "            limits: {memory: 512Mi}": (
        "resources: {{- .Values.resources | toYaml | nindent 12 }}"
    ),
}


@dataclass(frozen=True, slots=True)
class Template:
    source: str
    condition: str = ""
    swaps: Mapping[str, str] = field(default_factory=dict)

    def text(self) -> str:
        text = (ROOT / self.source).read_text(encoding="utf-8")
        if "{{" in text:
            raise SystemExit(f"{self.source} has {{{{ in it, which Helm would take for its own")
        for old, new in self.swaps.items():
            if old not in text:
                raise SystemExit(f"{self.source} has no {old!r} any more: look at {__file__}")
            text = text.replace(old, new)
        if self.condition:
            text = f"{{{{- if {self.condition} }}}}\n{text}{{{{- end }}}}\n"
        return HEADER % self.source + text


def templates() -> list[Template]:
    crds = sorted((ROOT / "crds").glob("*.yaml"))
    return [
        *(Template(f"crds/{path.name}", ".Values.crds", KEEP) for path in crds),
        Template("manifests/policies/heartbeats.yaml", ".Values.policies"),
        Template("manifests/policies/supervisors.yaml", ".Values.policies"),
        Template("manifests/roles/viewer.yaml", ".Values.roles"),
        Template("manifests/roles/editor.yaml", ".Values.roles"),
        Template(
            "manifests/overlays/cluster-parts/reader.yaml",
            f"and .Values.policies ({IN_NAMESPACE})",
        ),
        Template("manifests/rbac/account.yaml", "", NAMESPACE),
        Template("manifests/rbac/operator.yaml", "", SCOPED | NAMESPACE),
        Template("manifests/rbac/cluster-reader.yaml", IN_CLUSTER, NAMESPACE),
        Template("manifests/rbac/leader.yaml", "", NAMESPACE),
        Template("manifests/base/networkpolicy.yaml", ".Values.networkPolicy", NAMESPACE),
        Template("manifests/base/service.yaml", ".Values.metrics.service", NAMESPACE),
        Template("manifests/overlays/ha/disruption.yaml", "gt (int .Values.replicas) 1", NAMESPACE),
        Template("manifests/base/deployment.yaml", "", OPERATOR | NAMESPACE),
    ]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="change nothing; exit 1 on drift")
    check: bool = parser.parse_args().check
    texts = {TEMPLATES / Path(one.source).name: one.text() for one in templates()}
    stray = [path for path in TEMPLATES.glob("*.yaml") if path not in texts]
    if stray:
        raise SystemExit(f"{stray[0]} follows from no manifest: remove it")
    return write_or_check(texts, check=check, source="the manifests", remedy="make manifests")


if __name__ == "__main__":
    sys.exit(main())

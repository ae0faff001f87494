"""`python manifests/make_argocd.py [--check]`: the Lua scripts as Argo CD's ConfigMap has them."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import yaml

from supervisor_operator.api.v1alpha1.meta import GROUP
from supervisor_operator.crdgen.files import write_or_check

ARGOCD = Path(__file__).resolve().parent / "gitops/argocd"
HEADER = """\
---
# Generated from the Lua files beside it by `make manifests`. Do not edit.
# kubectl --namespace argocd patch configmap argocd-cm --patch-file argocd-cm.yaml
"""
IGNORED = {
    # Beats and what is shown of them: no reason to look at an Application again.
    "Heartbeat": ["/status"],
    "Supervisor": ["/status/lastHeartbeatTime", "/status/healthMetrics"],
}


class _Text(str):
    """Written as a block, line by line."""

    __slots__ = ()


class _Dumper(yaml.SafeDumper):
    pass


def _block(dumper: yaml.SafeDumper, text: _Text) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", str(text), style="|")


_Dumper.add_representer(_Text, _block)


def _dump(content: object) -> str:
    text: str = yaml.dump(content, Dumper=_Dumper, sort_keys=False, width=100)
    return text


def _actions(folder: Path) -> str:
    definitions = [
        {"name": path.parent.name, "action.lua": _Text(path.read_text())}
        for path in sorted(folder.glob("*/action.lua"))
    ]
    discovery = _Text((folder / "discovery.lua").read_text())
    return _dump({"discovery.lua": discovery, "definitions": definitions})


def config_map() -> str:
    data = {}
    for folder in sorted((ARGOCD / GROUP).iterdir()):
        kind = f"{GROUP}_{folder.name}"
        data[f"resource.customizations.health.{kind}"] = (folder / "health.lua").read_text()
        data[f"resource.customizations.actions.{kind}"] = _actions(folder / "actions")
    for name, pointers in IGNORED.items():
        key = f"resource.customizations.ignoreResourceUpdates.{GROUP}_{name}"
        data[key] = _dump({"jsonPointers": pointers})
    return HEADER + _dump({"data": {key: _Text(text) for key, text in data.items()}})


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="change nothing; exit 1 on drift")
    check: bool = parser.parse_args().check
    texts = {ARGOCD / "argocd-cm.yaml": config_map()}
    return write_or_check(texts, check=check, source="the Lua files", remedy="make manifests")


if __name__ == "__main__":
    sys.exit(main())

"""`python -m supervisor_operator.crdgen [--check] [DIRECTORY]`."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import yaml

from supervisor_operator.api.v1alpha1.kinds import KINDS
from supervisor_operator.crdgen.crd import build_crd, file_name
from supervisor_operator.crdgen.files import write_or_check
from supervisor_operator.crdgen.reference import render_reference

HEADER = "# Generated from operator/supervisor_operator/api by `make crds`. Do not edit.\n"


def render() -> dict[str, str]:
    return {
        file_name(kind): HEADER
        + "---\n"
        + yaml.safe_dump(build_crd(kind), sort_keys=False, width=100, allow_unicode=True)
        for kind in KINDS
    }


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="crdgen", description="Write the CRDs, or check them.")
    parser.add_argument("directory", nargs="?", type=Path, default=Path("crds"))
    parser.add_argument("--reference", type=Path, help="the page that describes every field")
    parser.add_argument("--check", action="store_true", help="change nothing; exit 1 on drift")
    options = parser.parse_args(argv)
    texts = {options.directory / name: text for name, text in render().items()}
    if options.reference:
        texts[options.reference] = render_reference([build_crd(kind) for kind in KINDS])
    return write_or_check(texts, check=options.check, source="the models", remedy="make crds")


if __name__ == "__main__":
    sys.exit(main())

"""Generated files: written where they differ, or only told of."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path


def write_or_check(texts: Mapping[Path, str], *, check: bool, source: str, remedy: str) -> int:
    """Write the files, or name those that are not as `source` has them; the exit code."""
    drifted = [path for path, text in texts.items() if not _holds(path, text)]
    for path in drifted:
        if check:
            print(f"{path} does not match {source}: run `{remedy}`", file=sys.stderr)
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(texts[path], encoding="utf-8")
            print(f"wrote {path}")
    return 1 if drifted and check else 0


def _holds(path: Path, text: str) -> bool:
    return path.exists() and path.read_text(encoding="utf-8") == text

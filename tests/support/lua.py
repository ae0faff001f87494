"""Runs a Lua script of Argo CD with a real Lua 5.1: `obj` in, what it returns out."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

from tests.cluster.packages import unpacked

Json = dict[str, Any]
WRITER = r"""
local function quoted(text)
  return '"' .. text:gsub('[%c"\\]', function(c) return ("\\u%04x"):format(c:byte()) end) .. '"'
end
function written(value)
  if type(value) ~= "table" then
    return type(value) == "string" and quoted(value) or tostring(value)
  end
  local parts = {}
  if #value > 0 then
    for _, one in ipairs(value) do parts[#parts + 1] = written(one) end
    return "[" .. table.concat(parts, ",") .. "]"
  end
  for key, one in pairs(value) do parts[#parts + 1] = quoted(key) .. ":" .. written(one) end
  return "{" .. table.concat(parts, ",") .. "}"
end
"""


def run_lua(script: Path, item: Json) -> Json:
    """What the script returns for an object; empty lists come back as empty objects."""
    program = f"{WRITER}\nobj = {literal(item)}\nio.write(written(dofile({quoted(str(script))})))"
    done = subprocess.run(
        [unpacked("lua5.1"), "-"],
        input=program,
        capture_output=True,
        text=True,
        check=False,
        timeout=10,
    )
    assert done.returncode == 0, done.stderr
    found: Json = json.loads(done.stdout)
    return found


def literal(value: Any) -> str:
    """The value as Lua writes it; null is the same as absent there."""
    match value:
        case None:
            return "nil"
        case bool():
            return str(value).lower()
        case str():
            return quoted(value)
        case list():
            return "{" + ",".join(map(literal, value)) + "}"
        case dict():
            pairs = (f"[{quoted(key)}]={literal(one)}" for key, one in value.items())
            return "{" + ",".join(pairs) + "}"
        case _:
            return repr(value)


def quoted(text: str) -> str:
    return '"' + "".join(map(_character, text.encode())) + '"'


def _character(byte: int) -> str:
    is_plain = chr(byte).isascii() and chr(byte).isprintable() and chr(byte) not in '"\\'
    return chr(byte) if is_plain else f"\\{byte:03d}"

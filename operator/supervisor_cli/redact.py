"""Takes secrets out of what leaves the cluster in a report: rather too much than too little."""

from __future__ import annotations

import re
from typing import Any

from supervisor_operator.core.words import Mark

GONE = "REDACTED"
SECRET = re.compile(
    r"pass(word|wd|phrase)?|token|secret|credential|api[-_]?key|private|auth", re.IGNORECASE
)
REFERENCE = re.compile(r"(Ref|Name|KeyRef|ServiceAccountToken|expirationSeconds)$")
TELLING = r"[\w-]*(?:passw(?:or)?d|passphrase|token|secret|credential|api[-_]?key)[\w-]*"
QUOTED = r"\"(?:[^\"\\]|\\.)*\"?|'(?:[^'\\]|\\.)*'?"
IN_TEXT = (
    re.compile(r"(-----BEGIN [A-Z ]*PRIVATE KEY-----).*?(?:-----END|\Z)", re.DOTALL),
    # A word that tells of a secret, a sign or a space after a flag, and the secret.
    re.compile(rf"(?i)({TELLING}[\"']?\s*[=:]\s*|--?{TELLING}\s+)(?:{QUOTED}|[^\s\"',;}}&]+)"),
    re.compile(r"(?i)\b((?:bearer|basic)\s+)[\w.~+/=-]+"),
    re.compile(r"(?im)\b((?:set-)?cookie\s*[=:]\s*).*$"),
    re.compile(r"(\w+://)[^\s/@]+(?=@)"),
)
KNOWN = re.compile(
    r"eyJ[\w-]{8,}\.[\w-]+\.[\w-]*"
    r"|\b(?:sk-|gh[opsu]_|github_pat_|glpat-|xox[abeprs]-|hf_)[\w-]{16,}"
    r"|\b(?:AKIA|ASIA|AIza)[\w-]{16,}"
)
"""Tokens by their looks: of Kubernetes, and of what agents often call."""
DROPPED = {"managedFields"}
ANNOTATIONS = {"kubectl.kubernetes.io/last-applied-configuration", str(Mark.CONFIG)}
FREE_FORM = {"config"}


def redact(found: Any, key: str = "") -> Any:
    """The same without values that may be secret; names and shapes stay."""
    if isinstance(found, dict):
        return _redact_fields(found)
    if isinstance(found, list):
        return _redact_items(found, key)
    if isinstance(found, str):
        is_secret = SECRET.search(key) and not REFERENCE.search(key)
        return GONE if is_secret else redact_text(found)
    return found


def redact_text(text: str) -> str:
    for pattern in IN_TEXT:
        text = pattern.sub(rf"\g<1>{GONE}", text)
    return KNOWN.sub(GONE, text)


def blank(found: Any) -> Any:
    """Only the keys of a free-form object: who knows what its values are."""
    if isinstance(found, dict):
        return {key: blank(value) for key, value in found.items()}
    if isinstance(found, list):
        return [blank(one) for one in found]
    return GONE


def _redact_fields(found: dict[str, Any]) -> dict[str, Any]:
    shown: dict[str, Any] = {}
    for key, value in found.items():
        if key in DROPPED:
            continue
        if key in ANNOTATIONS:
            shown[key] = GONE
        elif key in FREE_FORM and isinstance(value, dict):
            shown[key] = blank(value)
        elif key == "env" and isinstance(value, list):
            shown[key] = [_variable(one) for one in value]
        else:
            shown[key] = redact(value, key)
    return shown


def _redact_items(found: list[Any], key: str) -> list[Any]:
    """What follows a flag like --password is one too."""
    before = ["", *found[:-1]] if found else []
    return [
        GONE if _is_flag(flag) and isinstance(one, str) else redact(one, key)
        for flag, one in zip(before, found, strict=True)
    ]


def _is_flag(word: Any) -> bool:
    is_flag = isinstance(word, str) and word.startswith("-") and "=" not in word
    return is_flag and bool(SECRET.search(word))


def _variable(found: Any) -> Any:
    if not isinstance(found, dict):
        return GONE
    return {key: GONE if key == "value" else value for key, value in found.items()}

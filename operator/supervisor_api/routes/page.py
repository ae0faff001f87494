"""The live page: a few files, which everybody may read; whatever they show needs a token."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Annotated

from fastapi import APIRouter, Header, Response

FOLDER = Path(__file__).parents[1] / "page"
MEDIA_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}
POLICY = (
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "img-src 'self'",
    "connect-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
    # Text never becomes markup or a script, whatever an agent calls itself.
    "require-trusted-types-for 'script'",
    "trusted-types 'none'",
)
HEADERS = {
    "Cache-Control": "no-cache",
    "Content-Security-Policy": "; ".join(POLICY),
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
}

router = APIRouter(include_in_schema=False)


def _serve(path: Path) -> None:
    content = path.read_bytes()
    headers = HEADERS | {"ETag": f'"{hashlib.sha256(content).hexdigest()[:32]}"'}

    async def answer(if_none_match: Annotated[str | None, Header()] = None) -> Response:
        if if_none_match == headers["ETag"]:
            return Response(status_code=304, headers=headers)
        return Response(content, headers=headers, media_type=MEDIA_TYPES[path.suffix])

    router.add_api_route("/" if path.name == "index.html" else f"/{path.name}", answer)


for _path in sorted(FOLDER.iterdir()):
    _serve(_path)

"""The gateway: what stands between a caller and an upstream, and answers in its place."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable

from aiohttp import web

from safelight.lab.answers import hang, hang_up
from safelight.lab.knobs import Gateway
from safelight.lab.studio import Studio

_PAGE = "<html><head><title>{0}</title></head><body><center><h1>{0}</h1></center><hr>nginx</body></html>"
_STUB = json.dumps({"id": "lab-0123456789abcdef", "status": "accepted", "message": "your call"})
_CUTTING = {"truncated_json", "reset_after_head"}
CUT = web.RequestKey("CUT", object)
"""How a stream is to be cut; other answers are cut here."""
_PLAIN = {
    "html_502": (502, _PAGE.format("502 Bad Gateway"), "text/html"),
    "empty_500": (500, "", "application/json"),
    "empty_200": (200, "", "application/json"),
    "garbage_200": (200, "\x00\x1f{]lab:,,\ufffd", "application/json"),
    "json_200": (200, '{"message": "no Route matched with those values"}', "application/json"),
    "html_200": (200, _PAGE.format("Just a moment"), "text/html"),
}


async def through_gateway(
    request: web.Request,
    ask: Callable[[], Awaitable[web.StreamResponse]],
    *,
    name: str,
    role: str,
    studio: Studio,
) -> web.StreamResponse:
    """Ask the upstream called `name`, or let the gateway answer before or after it as the knobs say."""
    gateway = studio.moods.gateway(name, role)
    if gateway is None:
        return await ask()
    # A genuine answer can only be cut if it was given; a look does not change anything.
    is_look = role not in {"submit", "cancel"}
    if not gateway.is_accepted and not (is_look and gateway.how in _CUTTING):
        return await _misbehave(request, gateway, studio, None)
    request[CUT] = gateway.how if gateway.how in _CUTTING else None
    answered = await ask()
    if answered.prepared:
        return answered
    body = answered.body if isinstance(answered, web.Response) else None
    return await _misbehave(request, gateway, studio, body if isinstance(body, bytes) else None)


async def _misbehave(
    request: web.Request, gateway: Gateway, studio: Studio, genuine: bytes | None
) -> web.StreamResponse:
    if gateway.how in _PLAIN:
        status, text, content_type = _PLAIN[gateway.how]
        return web.Response(status=status, text=text, content_type=content_type)
    if gateway.how == "redirect":
        return web.Response(status=307, headers={"Location": str(request.url.with_path("/lab/elsewhere"))})
    if gateway.how == "truncated_json":
        body = genuine or _STUB.encode()
        return web.Response(body=body[: max(1, len(body) * 2 // 3)], content_type="application/json")
    if gateway.how == "reset_after_head":
        await _half(request, genuine or _STUB.encode())
    elif gateway.how == "hang":
        await hang(request, studio)
    return hang_up(request)


async def _half(request: web.Request, body: bytes) -> None:
    response = web.StreamResponse()
    response.content_type = "application/json"
    response.content_length = len(body)
    await response.prepare(request)
    await response.write(body[: len(body) // 2])

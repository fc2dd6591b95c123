"""Who may use the profiling routes, and how much of the server's time and memory a request may take."""

from __future__ import annotations

import asyncio
import hmac
import ipaddress
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from starlette.requests import Request

__all__ = ["BODY_BYTES", "BODY_SECONDS", "Refused", "check_access", "is_loopback", "read_json"]

BODY_BYTES = 64 << 10
"""Largest request body."""

BODY_SECONDS = 5.0
"""Time within which a request body has to arrive."""


#: Headers that proxies add. One that adds none, and hides the Host it was asked for, needs a token.
_OF_PROXIES = frozenset(
    [
        "forwarded",
        "via",
        "x-real-ip",
        "x-client-ip",
        "x-cluster-client-ip",
        "x-original-forwarded-for",
        "true-client-ip",
        "cf-connecting-ip",
        "fastly-client-ip",
        "x-envoy-external-address",
    ]
)


class Refused(Exception):
    """A request that is answered with an error status and one sentence."""

    def __init__(self, status: int, message: str, **more: Any) -> None:
        super().__init__(message)
        self.status = status
        self.body = {"error": message, **more}


def is_loopback(host: str) -> bool:
    """Whether a host name or address is this machine as seen from itself."""
    bare = host.strip("[]")
    if bare == "localhost":
        return True
    try:
        return ipaddress.ip_address(bare).is_loopback
    except ValueError:
        return False


def _host_of(header: str) -> str:
    """Host part of a Host header or an origin."""
    try:
        return urlsplit(header if "//" in header else f"//{header}").hostname or ""
    except ValueError:
        return ""


def check_access(request: Request, token: str | None) -> None:
    """Let a request through, or raise.

    With a token configured, a request must carry it. Without one, only direct requests from this machine
    pass: the client's address is local, no proxy forwarded it, and no foreign web page sent it through a
    local browser (recognised by Sec-Fetch-Site and Origin, or by a Host name that only resolves to this
    machine). A proxy on this machine that adds no header of its own cannot be told from a direct client.

    Raises
    ------
    Refused
        401 or 403.
    """
    if token is not None:
        scheme, _, given = request.headers.get("authorization", "").partition(" ")
        if scheme.lower() != "bearer" or not hmac.compare_digest(given.strip().encode(), token.encode()):
            raise Refused(401, "a valid bearer token is needed: Authorization: Bearer TOKEN")
        return
    client = request.client
    forwarded = any(name in _OF_PROXIES or name.startswith("x-forwarded") for name in request.headers)
    if client is None or not is_loopback(client.host) or forwarded:
        raise Refused(403, "profiling is open to this machine only; set a token to use it from elsewhere")
    if not is_loopback(_host_of(request.headers.get("host", ""))):
        raise Refused(403, "the request names another host than this machine")
    if request.headers.get("sec-fetch-site") == "cross-site":
        raise Refused(403, "requests of web pages from elsewhere are not taken")
    origin = request.headers.get("origin")
    if origin is not None and not is_loopback(_host_of(origin)):
        raise Refused(403, "requests of web pages from elsewhere are not taken")


async def read_json(request: Request) -> dict[str, Any]:
    """Read a JSON object as the request's body, {} when there is none.

    Raises
    ------
    Refused
        400, 408 or 413.
    """
    import orjson

    declared = request.headers.get("content-length", "0")
    if not declared.isdecimal() or int(declared) > BODY_BYTES:
        raise Refused(413, f"the body may have at most {BODY_BYTES} bytes")
    try:
        body = await asyncio.wait_for(_read(request), BODY_SECONDS)
    except TimeoutError:
        raise Refused(408, f"the body did not arrive within {BODY_SECONDS:g} s") from None
    if not body.strip():
        return {}
    try:
        document = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise Refused(400, f"the body is not JSON: {error}") from None
    if not isinstance(document, dict):
        raise Refused(400, "the body has to be a JSON object")
    return document


async def _read(request: Request) -> bytes:
    body = bytearray()
    async for block in request.stream():
        body += block
        if len(body) > BODY_BYTES:
            raise Refused(413, f"the body may have at most {BODY_BYTES} bytes")
    return bytes(body)

"""A limit that uvicorn does not have: the time a client may take to send a request's header.

Clients that send a header byte by byte would hold all the connections that ``limit_concurrency`` allows, and
nobody could stop a profile. What uvicorn and its surroundings offer does not help:

- ``timeout_keep_alive`` runs between a response and the next byte: not before the first request, and any byte
  ends it;
- ``h11_max_incomplete_event_size`` limits bytes, not time;
- an ASGI application or middleware is only called once the header is complete (the time for a body is limited
  there: `read_json`);
- asyncio has no timeout for a transport, and read timeouts of other servers begin anew with every byte.

``http=`` of ``uvicorn.Config`` takes a protocol class: that is where uvicorn lets such a rule be added.
"""

from __future__ import annotations

import asyncio

__all__ = ["HEADER_SECONDS", "timed_protocol"]

HEADER_SECONDS = 10.0


def timed_protocol(seconds: float = HEADER_SECONDS) -> type[asyncio.Protocol]:
    """Return uvicorn's HTTP protocol, closing connections whose next header takes more than ``seconds``."""
    # optional dependencies
    import h11
    from uvicorn.protocols.http.h11_impl import H11Protocol

    class TimedProtocol(H11Protocol):  # type: ignore[misc]
        """A connection whose header has to be complete in time."""

        _timer: asyncio.TimerHandle | None = None

        def connection_made(self, transport: asyncio.Transport) -> None:
            """Begin to wait for the first header."""
            super().connection_made(transport)
            self._wait()

        def data_received(self, data: bytes) -> None:
            """Go on waiting only while no header is complete."""
            super().data_received(data)
            if self.conn.their_state is h11.IDLE:
                self._wait()
            else:
                self._rest()

        def connection_lost(self, error: Exception | None) -> None:
            """Cancel the timer."""
            self._rest()
            super().connection_lost(error)

        def _wait(self) -> None:
            if self._timer is None:
                self._timer = self.loop.call_later(seconds, self._close)

        def _rest(self) -> None:
            if self._timer is not None:
                self._timer.cancel()
                self._timer = None

        def _close(self) -> None:
            self._timer = None
            if not self.transport.is_closing() and self.conn.their_state is h11.IDLE:
                self.transport.close()

    made: type[asyncio.Protocol] = TimedProtocol
    return made

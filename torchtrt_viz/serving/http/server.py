"""A limit that uvicorn lacks: how long a client may take to send a request's header."""

from __future__ import annotations

from typing import Any

__all__ = ["HEADER_SECONDS", "timed_protocol"]

HEADER_SECONDS = 10.0


def timed_protocol(seconds: float = HEADER_SECONDS) -> type[Any]:
    """Return uvicorn's HTTP protocol, closing connections whose next header takes more than ``seconds``."""
    import h11
    from uvicorn.protocols.http.h11_impl import H11Protocol

    class TimedProtocol(H11Protocol):  # type: ignore[misc]
        """A connection whose request header has to arrive in time."""

        _timer: Any = None

        def connection_made(self, transport: Any) -> None:
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

    return TimedProtocol

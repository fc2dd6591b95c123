"""The profiling routes against a real server: what they do, and what they refuse."""

from __future__ import annotations

import contextlib
import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from eventually import eventually
from staged_jobs import quick

httpx = pytest.importorskip("httpx")
pytest.importorskip("starlette")
pytest.importorskip("uvicorn")

from torchtrt_viz.errors import OptionError  # noqa: E402
from torchtrt_viz.serving import (  # noqa: E402
    ControlTimeoutError,
    ProfileActiveError,
    ProfileConfig,
    ProfileStartError,
    profile_routes,
    serve_profile_app,
)
from torchtrt_viz.serving.contract.status import ArtifactStatus, CollectionStatus, ProfileStatus  # noqa: E402
from torchtrt_viz.serving.http.access import BODY_BYTES, is_loopback  # noqa: E402
from torchtrt_viz.serving.http.server import timed_protocol  # noqa: E402

TOKEN = "correct-horse-battery-staple"


class Backend:
    """Notes what it is asked for."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, Any]] = []
        self.error: Exception | None = None
        self.held: threading.Event | None = None  # commands and waiting clients go on when it is set

    def start_profile(
        self, config: ProfileConfig, *, window: bool = False, session_id: str | None = None
    ) -> ProfileStatus:
        self._hold()
        if self.error is not None:
            raise self.error
        self.calls.append(("start", (config, window, session_id)))
        return ProfileStatus(CollectionStatus("recording", session_id or "s1"))

    def _hold(self) -> None:
        if self.held is not None:
            assert self.held.wait(250)

    def stop_profile(self) -> ProfileStatus:
        self._hold()
        self.calls.append(("stop", None))
        return ProfileStatus(CollectionStatus("idle", "s1"))

    def retry_profile_artifacts(self) -> ProfileStatus:
        self.calls.append(("retry", None))
        return ProfileStatus(CollectionStatus("idle", "s1"))

    def profile_status(self) -> ProfileStatus:
        return ProfileStatus(CollectionStatus("recording", "s1"), [ArtifactStatus("s1", 0, 0)])

    def wait_for_profile_artifacts(self, timeout: float | None = None) -> list[ArtifactStatus]:
        self._hold()
        self.calls.append(("wait", timeout))
        return [ArtifactStatus("s1", 0, 0, state="published", archive="/x")]


@contextmanager
def serving(backend: Any, **options: Any) -> Iterator[str]:
    server = serve_profile_app(backend, port=0, **options)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    eventually(lambda: server.started)
    port = server.servers[0].sockets[0].getsockname()[1]
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        server.should_exit = True
        thread.join(10)


@pytest.fixture
def backend() -> Backend:
    return Backend()


@pytest.fixture
def url(backend, tmp_path) -> Iterator[str]:
    with serving(backend, root=tmp_path / "root") as at:
        yield at


def test_start_status_stop_artifacts(backend, url, tmp_path):
    body = {"output_dir": "run/1", "record_shapes": True, "window": True, "session_id": "mine"}
    started = httpx.post(f"{url}/start_profile", json=body)
    assert started.status_code == 200
    assert started.json()["collection"]["session_id"] == "mine"
    ((_, (config, window, session_id)),) = backend.calls
    assert (window, session_id) == (True, "mine")
    assert config == ProfileConfig((tmp_path / "root").resolve() / "run" / "1", record_shapes=True)
    status = httpx.get(f"{url}/profile_status").json()
    assert (status["collection"]["state"], status["artifact_state"]) == ("recording", "processing")
    assert httpx.post(f"{url}/stop_profile").json()["collection"]["state"] == "idle"
    found = httpx.get(f"{url}/profile_artifacts", params={"timeout": "0.1"}).json()
    assert found["artifacts"][0]["archive"] == "/x"
    assert backend.calls[-1] == ("wait", 0.1)
    assert httpx.post(f"{url}/profile_retry").status_code == 200
    assert backend.calls[-1] == ("retry", None)


def test_an_empty_start_takes_the_servers_defaults(backend, tmp_path):
    with serving(backend, root=tmp_path, defaults={"active": 3, "with_stack": True}) as url:
        assert httpx.post(f"{url}/start_profile").status_code == 200
        assert httpx.post(f"{url}/start_profile", json={"active": 5}).status_code == 200
    configs = [config for _, (config, *_) in backend.calls]
    assert [(c.active, c.with_stack, c.output_dir) for c in configs] == [
        (3, True, tmp_path.resolve()),
        (5, True, tmp_path.resolve()),
    ]


@pytest.mark.parametrize(
    "folder",
    ["../outside", "/etc", "a/../../b", "a\\..\\b", "", "link/x", 5, None, ["a"], "a\0b"],
)
def test_output_stays_below_the_root(backend, url, tmp_path, folder):
    (tmp_path / "outside").mkdir(exist_ok=True)
    (tmp_path / "root" / "link").symlink_to(tmp_path / "outside")
    answer = httpx.post(f"{url}/start_profile", json={"output_dir": folder})
    assert answer.status_code in (400, 500)
    assert "error" in answer.json()
    assert backend.calls == []
    assert list((tmp_path / "outside").iterdir()) == []


@pytest.mark.parametrize(
    "body",
    [
        {"active": 0},
        {"session_id": 5},
        {"window": "yes"},
        {"activities": ["warp"]},
        {"window": None},
        {"record_shapes": 1},
    ],
)
def test_wrong_options_are_400_and_named(backend, url, body):
    answer = httpx.post(f"{url}/start_profile", json=body)
    assert answer.status_code == 400
    assert answer.json()["option"] == next(iter(body))
    assert backend.calls == []


@pytest.mark.parametrize("body", [b"{", b"[1]", b'"x"', b"\xff\xfe", b"[" * 50_000, b"nul"])
def test_bodies_that_are_no_object_are_400(backend, url, body):
    answer = httpx.post(f"{url}/start_profile", content=body)
    assert answer.status_code == 400
    assert backend.calls == []


def started_with(backend, url, body):
    answer = httpx.post(f"{url}/start_profile", json=body)
    assert answer.status_code == 200, answer.text
    return backend.calls[-1][1], answer.json()["notes"]


def test_the_body_of_sglangs_client(backend, url, tmp_path):
    """All fields that its client sends, as SGLang's ProfileReqInput has them."""
    body = {
        "output_dir": str((tmp_path / "root").resolve() / "run"),
        "start_step": None,
        "num_steps": "5",
        "activities": ["CPU", "GPU", "MEM", "CUDA_PROFILER"],
        "profile_by_stage": True,
        "with_stack": False,
        "record_shapes": True,
        "profile_id": "1764590000.5",
        "merge_profiles": True,
        "profile_prefix": None,
        "profile_stages": None,
    }
    (config, window, session_id), notes = started_with(backend, url, body)
    assert (window, session_id) == (False, "1764590000.5")
    assert config.output_dir == (tmp_path / "root").resolve() / "run"
    assert config.activities == ("cpu", "cuda")
    assert (config.record_shapes, config.with_stack, config.profile_memory) == (True, False, True)
    assert config.schedule() == {"wait": 0, "warmup": 0, "active": 5, "repeat": 1}
    assert [note.split(":")[0].split(" ")[0] for note in notes] == [
        "profile_by_stage",
        "merge_profiles",
        "CUDA_PROFILER",
    ]


def test_the_bodies_of_vllms_clients(backend, url):
    (config, window, _), notes = started_with(
        backend, url, {"profile_prefix": "a", "delay_iterations": 3, "max_iterations": 7}
    )
    assert not window
    assert config.schedule() == {"wait": 3, "warmup": 0, "active": 7, "repeat": 1}
    assert len(notes) == 1
    # the benchmark sends its own request, and stops when it is done
    benchmark = {
        "model": "m",
        "prompt": "one two",
        "max_tokens": 1,
        "temperature": 0.0,
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    (config, window, _), notes = started_with(backend, url, benchmark)
    assert window
    assert config.supplied_schedule == {}
    assert [note.split()[0] for note in notes] == [
        "'max_tokens'",
        "'temperature'",
        "'stream'",
        "'stream_options'",
    ]


def test_unknown_names_are_noted_and_bounded(backend, url):
    (config, window, _), notes = started_with(backend, url, {"windw": True, "active": 2})
    assert (config.active, window) == (2, False)
    assert notes == ["'windw' is not known here and was ignored"]
    many = {f"{'x' * 200}{n}": n for n in range(100)}
    _, notes = started_with(backend, url, many)
    assert len(notes) == 21
    assert notes[-1] == "80 more names are not known here and were ignored"
    assert max(map(len, notes)) < 150


def test_a_window_takes_no_schedule_of_the_servers(backend, tmp_path):
    with serving(backend, root=tmp_path, defaults={"active": 3, "with_stack": True}) as url:
        (config, window, _), _ = started_with(backend, url, {"window": True})
    assert window
    assert (config.supplied_schedule, config.with_stack) == ({}, True)


def test_errors_have_their_statuses(backend, url):
    for error, status in (
        (ProfileActiveError("session s0 is recording"), 409),
        (ProfileStartError("s2", {"D1": "no answer"}, {"P0": "no CUDA"}), 504),
        (ControlTimeoutError("the engine does not look"), 504),
        (OptionError("active", 0, "1 or more"), 400),
        (KeyError("what no one expected"), 500),
    ):
        backend.error = error
        answer = httpx.post(f"{url}/start_profile", json={})
        assert answer.status_code == status
        assert str(error) in answer.json()["error"]
    backend.error = ProfileStartError("s2", {"D1": "no answer"}, {"P0": "no CUDA"})
    body = httpx.post(f"{url}/start_profile", json={}).json()
    assert (body["missing"], body["failed"]) == ({"D1": "no answer"}, {"P0": "no CUDA"})


def test_methods_and_paths_are_only_those(url):
    assert httpx.get(f"{url}/start_profile").status_code == 405
    assert httpx.post(f"{url}/profile_status").status_code == 405
    assert httpx.get(f"{url}/").status_code == 404
    assert httpx.get(f"{url}/profile_artifacts/../../etc/passwd").status_code == 404


@pytest.mark.parametrize("timeout", ["-1", "61", "x", "nan", "inf", ""])
def test_waiting_times_are_bounded(url, timeout):
    assert httpx.get(f"{url}/profile_artifacts", params={"timeout": timeout}).status_code == 400


# -- access ------------------------------------------------------------------------------------------------


def test_without_or_with_a_wrong_token_nothing_is_done(backend, tmp_path):
    with serving(backend, root=tmp_path, token=TOKEN) as url:
        for headers in (
            {},
            {"authorization": "Bearer wrong"},
            {"authorization": f"Basic {TOKEN}"},
            {"authorization": TOKEN},
            {"authorization": f"Bearer {TOKEN[:-1]}"},
            {"authorization": f"Bearer {TOKEN}x"},
            {"authorization": "Bearer"},
            {"authorization": "Bearer \u00e9".encode()},
        ):
            for method, path in (
                ("POST", "start_profile"),
                ("POST", "stop_profile"),
                ("GET", "profile_status"),
                ("GET", "profile_artifacts"),
            ):
                answer = httpx.request(method, f"{url}/{path}", headers=headers)
                assert answer.status_code == 401, (headers, path)
                assert answer.headers["www-authenticate"] == "Bearer"
                assert TOKEN not in answer.text
        assert backend.calls == []
        good = {
            "authorization": f"bearer {TOKEN}",
            "host": "profiler.example",
            "origin": "https://elsewhere.example",
        }
        assert httpx.post(f"{url}/start_profile", headers=good, json={}).status_code == 200


def test_short_tokens_and_open_addresses_are_refused(backend, tmp_path):
    with pytest.raises(OptionError, match="16 characters"):
        profile_routes(backend, root=tmp_path, token="secret")
    with pytest.raises(OptionError, match="unless a token"):
        serve_profile_app(backend, root=tmp_path, host="0.0.0.0")
    assert serve_profile_app(backend, root=tmp_path, host="0.0.0.0", token=TOKEN)


@pytest.mark.parametrize(
    "headers",
    [
        {"host": "evil.example"},
        {"host": "127.0.0.1.evil.example"},
        {"origin": "https://evil.example"},
        {"origin": "null"},
        {"x-forwarded-for": "10.0.0.1"},
        {"forwarded": "for=10.0.0.1"},
        {"via": "1.1 proxy"},
        {"x-forwarded-proto": "https"},
        {"x-forwarded-host": "profiles.example"},
        {"cf-connecting-ip": "10.0.0.1"},
        {"sec-fetch-site": "cross-site"},
    ],
)
def test_without_a_token_only_this_machine_itself(backend, url, headers):
    answer = httpx.post(f"{url}/start_profile", headers=headers, json={})
    assert answer.status_code == 403
    assert backend.calls == []
    assert httpx.post(f"{url}/start_profile", headers={"origin": url}, json={}).status_code == 200


def test_other_machines_are_told_by_their_address(backend, tmp_path):
    """Over ASGI, since no packet of another machine can be sent here."""
    import asyncio

    from starlette.applications import Starlette

    app = Starlette(routes=profile_routes(backend, root=tmp_path, prefix="/admin"))

    async def ask(client: tuple[str, int] | None) -> int:
        sent: list[dict] = []
        scope = {
            "type": "http",
            "method": "POST",
            "path": "/admin/start_profile",
            "raw_path": b"",
            "root_path": "",
            "query_string": b"",
            "headers": [(b"host", b"localhost")],
            "client": client,
            "server": ("localhost", 80),
            "scheme": "http",
            "http_version": "1.1",
        }

        async def receive() -> dict:
            return {"type": "http.request", "body": b"{}", "more_body": False}

        async def send(message: dict) -> None:
            sent.append(message)

        await app(scope, receive, send)
        return sent[0]["status"]

    for client, status in (
        (("10.1.2.3", 5), 403),
        (None, 403),
        (("::1", 5), 200),
        (("127.0.0.9", 5), 200),
        (("localhost.evil", 1), 403),
    ):
        assert asyncio.run(ask(client)) == status


def test_loopback_names():
    assert all(map(is_loopback, ("127.0.0.1", "127.9.9.9", "::1", "[::1]", "localhost")))
    assert not any(
        map(
            is_loopback,
            ("0.0.0.0", "::", "10.0.0.1", "localhost.example", "", "1270.0.0.1", "::ffff:8.8.8.8"),
        )
    )


# -- size and time -----------------------------------------------------------------------------------------


def _raw(url: str, data: bytes, *, timeout: float = 120.0) -> bytes:
    host, port = url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=timeout) as connection:
        connection.sendall(data)
        out = b""
        while block := connection.recv(65536):
            out += block
    return out


def test_huge_bodies_are_refused_without_being_read(backend, url):
    answer = _raw(
        url,
        b"POST /start_profile HTTP/1.1\r\nhost: localhost\r\ncontent-length: 99999999999\r\n\r\n"
        + b"x" * 1000,
    )
    assert answer.startswith(b"HTTP/1.1 413")

    def chunks() -> Iterator[bytes]:
        for _ in range(10_000):
            yield b" " * 65536

    try:
        status = httpx.post(f"{url}/start_profile", content=chunks()).status_code
    except httpx.TransportError:
        status = 413  # the server answered and closed while we were still sending
    assert status == 413
    assert httpx.post(f"{url}/start_profile", content=b" " * (BODY_BYTES - 2) + b"{}").status_code == 200
    assert backend.calls[0][0] == "start"
    assert len(backend.calls) == 1


def test_slow_body_is_given_up(backend, url, monkeypatch):
    monkeypatch.setattr("torchtrt_viz.serving.http.access.BODY_SECONDS", 0.3)
    answer = _raw(url, b"POST /start_profile HTTP/1.1\r\nhost: localhost\r\ncontent-length: 100\r\n\r\n{")
    assert answer.startswith(b"HTTP/1.1 408")
    assert backend.calls == []


def _is_cut(connection: socket.socket) -> bool:
    try:
        return connection.recv(100) == b""
    except ConnectionResetError:
        return True


def _status(url: str) -> int:
    """Ask until an answer comes: a client that is not given a processor in time is cut off itself."""
    while True:
        try:
            return httpx.get(f"{url}/profile_status", timeout=120).status_code
        except httpx.TransportError:
            pass


def _second_request_is_cut(host: str, port: str) -> bool:
    """Whether half of a second request is cut, once a first one was answered in time."""
    while True:
        with (
            contextlib.suppress(ConnectionError),
            socket.create_connection((host, int(port)), timeout=120) as connection,
        ):
            connection.sendall(b"GET /profile_status HTTP/1.1\r\nhost: localhost\r\n\r\n")
            answer = b""
            while not answer.endswith(b'"ranks":[]}') and (block := connection.recv(65536)):
                answer += block
            if answer:
                assert answer.startswith(b"HTTP/1.1 200")
                connection.sendall(b"GET /prof")
                return _is_cut(connection)


def test_slow_header_is_cut_off_and_others_are_served_meanwhile(backend, tmp_path, monkeypatch):
    monkeypatch.setattr("torchtrt_viz.serving.http.server.timed_protocol", lambda: timed_protocol(0.5))
    with serving(backend, root=tmp_path) as url:
        host, port = url.removeprefix("http://").split(":")
        slow = [socket.create_connection((host, int(port)), timeout=120) for _ in range(20)]
        for connection in slow:
            with contextlib.suppress(ConnectionError):
                connection.sendall(b"POST /start_profile HT")
        assert _status(url) == 200
        for connection in slow:
            assert _is_cut(connection)
            connection.close()
        assert _second_request_is_cut(host, port)


def test_huge_header_is_refused(url):
    header = b"GET /profile_status HTTP/1.1\r\nhost: localhost\r\nx: " + b"a" * (4 << 20) + b"\r\n\r\n"
    try:
        answer = _raw(url, header)
    except ConnectionError:
        answer = b"HTTP/1.1 400"  # refused while it was still being sent
    assert answer.startswith((b"HTTP/1.1 400", b"HTTP/1.1 431"))


def _at_once(ask: Callable[[], int], clients: int, backend: Backend, refused: int) -> list[int]:
    """Let clients ask while the backend holds its answers back until so many of them have been refused."""
    backend.held = threading.Event()
    statuses: list[int] = []
    threads = [threading.Thread(target=lambda: statuses.append(ask()), daemon=True) for _ in range(clients)]
    for thread in threads:
        thread.start()
    eventually(lambda: len(statuses) == refused)
    backend.held.set()
    for thread in threads:
        thread.join()
    return statuses


def test_commands_do_not_queue_up(backend, url):
    def start() -> int:
        return httpx.post(f"{url}/start_profile", json={}, timeout=250).status_code

    assert _at_once(start, 5, backend, refused=4) == [409, 409, 409, 409, 200]
    assert httpx.get(f"{url}/profile_status").status_code == 200


def test_stops_at_the_same_time_are_all_answered(backend, url):
    def stop() -> int:
        return httpx.post(f"{url}/stop_profile", timeout=250).status_code

    assert _at_once(stop, 6, backend, refused=0) == [200] * 6
    assert backend.calls == [("stop", None)] * 6


def test_waiting_clients_are_few(backend, url):
    def wait() -> int:
        return httpx.get(f"{url}/profile_artifacts", params={"timeout": "5"}, timeout=250).status_code

    assert _at_once(wait, 9, backend, refused=5) == [503] * 5 + [200] * 4


# -- with a real profiler ----------------------------------------------------------------------------------


def test_a_session_of_an_engine_in_another_thread(tmp_path):
    pytest.importorskip("torch")
    import torch

    from torchtrt_viz.serving import LocalProfiler

    profiling = LocalProfiler(settings=quick(control_timeout_s=120))
    ready, stop = threading.Event(), threading.Event()

    def engine() -> None:
        profiling.attach()
        ready.set()
        while not stop.is_set():
            with profiling.engine_step():
                torch.ones(16) + 1
            time.sleep(0.001)
        profiling.close(60)

    thread = threading.Thread(target=engine)
    thread.start()
    assert ready.wait(60)
    try:
        with serving(profiling, root=tmp_path) as url:
            body = {"warmup": 1, "active": 3, "output_dir": "runs"}
            started = httpx.post(f"{url}/start_profile", json=body, timeout=60)
            assert started.status_code == 200, started.text
            session = started.json()["collection"]["session_id"]
            state: dict[str, Any] = {}
            while state.get("artifact_state") != "ready":
                httpx.get(f"{url}/profile_artifacts", params={"timeout": "5"}, timeout=120)
                state = httpx.get(f"{url}/profile_status").json()
            assert state["collection"]["ended_by"] == "schedule"
            assert state["artifact_state"] == "ready"
            archive = Path(state["artifacts"][0]["archive"])
            assert archive.is_relative_to(tmp_path.resolve() / "runs" / session)
            assert archive.exists()
            assert json.loads((archive.parents[1] / "manifest.json").read_text())["session_id"] == session
    finally:
        stop.set()
        thread.join()

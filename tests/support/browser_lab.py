"""A headless Chromium that can reach nothing but this machine, and a private JupyterLab.

Every request that leaves the machine is refused and remembered: `Visit.external` must stay empty.
"""

from __future__ import annotations

import ctypes
import json
import os
import secrets
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import torchtrt_viz

#: first lines of a notebook: where it finds the package that is being tested, installed or not, and a trace
PLACES = [str(Path(torchtrt_viz.__file__).parents[1]), str(Path(__file__).resolve().parent)]
SETUP = f"import sys; sys.path[:0] = {PLACES!r}\nfrom timeline_traces import model_trace\n"
FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
KERNEL_READY = """() => {
  const panel = window.jupyterapp?.shell.currentWidget;
  const kernel = panel?.sessionContext?.session?.kernel;
  return !!kernel && kernel.status === 'idle' && kernel.connectionStatus === 'connected';
}"""


class Visit:
    """One browser window and what it tried that it must not."""

    def __init__(self, browser, folder, **options):
        self.folder = folder
        self.external: list[str] = []
        self.errors: list[str] = []
        context = {"viewport": {"width": 1300, "height": 950}, "reduced_motion": "reduce", **options}
        self.context = browser.new_context(**context)
        self.context.set_default_timeout(60_000)
        self.context.route("**/*", self._gate)
        self.page = self.context.new_page()
        self.page.on("console", lambda m: m.type == "error" and self.errors.append(m.text[:300]))
        self.page.on("pageerror", lambda e: self.errors.append(f"{e}\n{e.stack}"[:2000]))

    def _gate(self, route):
        url = route.request.url
        if url.startswith(("http://127.0.0.1", "ws://127.0.0.1", "data:", "blob:", "file:")):
            route.continue_()
        else:
            self.external.append(url)
            route.abort()

    def settle(self):
        """Wait until the timeline has drawn what it asked for."""
        self.page.wait_for_function(
            "() => { const t = window.tvTimeline ?? document.querySelector('.tv-root')?.timeline;"
            " return t && t.draws > 0 && !t.fetching && !t.scheduled && t.view; }"
        )

    def run(self, expression):
        """Evaluate an expression in which ``t`` is the timeline."""
        return self.page.evaluate(
            f"async () => {{ const t = window.tvTimeline ?? document.querySelector('.tv-root').timeline;"
            f" return await ({expression}); }}"
        )

    def rectangle(self, place):
        """Pixel centre of a place (as a JS expression) in the window."""
        at = self.run(f"t.rectangleOf({place})")
        box = self.page.locator(".tv-lanes").first.bounding_box()
        return box["x"] + at["x"] + at["width"] / 2, box["y"] + at["y"] + at["height"] / 2

    def pixel(self, x, y):
        """Colour (r, g, b) of the lanes' canvas at a point in CSS pixels of the canvas."""
        return self.run(
            f"[...t.parts.lanes.getContext('2d').getImageData(Math.round({x} * t.ratio),"
            f" Math.round({y} * t.ratio), 1, 1).data].slice(0, 3)"
        )


class Lab:
    """JupyterLab, or with ``app="notebook"`` Notebook 7, on the loopback: own folders, token and settings."""

    def __init__(self, folder: Path, app: str = "jupyterlab"):
        self.app = app
        self.root = folder / "notebooks"
        self.root.mkdir()
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self.token = secrets.token_hex(16)
        self.settings = folder / "settings"
        self.set(
            "@jupyterlab/apputils-extension/notification", {"fetchNews": "false", "checkForUpdates": False}
        )
        self.set("@jupyterlab/notebook-extension/tracker", {"windowingMode": "none"})
        env = dict(
            os.environ,
            HOME=str(folder),
            JUPYTER_CONFIG_DIR=str(folder / "config"),
            JUPYTER_DATA_DIR=str(folder / "data"),
            JUPYTER_RUNTIME_DIR=str(folder / "runtime"),
            JUPYTERLAB_SETTINGS_DIR=str(folder / "settings"),
            JUPYTERLAB_WORKSPACES_DIR=str(folder / "workspaces"),
            IPYTHONDIR=str(folder / "ipython"),
            JUPYTER_PLATFORM_DIRS="1",
        )
        own = ["--LabApp.news_url=None", "--LabApp.extension_manager=readonly"] if app == "jupyterlab" else []
        log = folder / "lab.log"
        with log.open("w") as out:
            self.process = subprocess.Popen(
                [
                    *(sys.executable, "-m", app, "--no-browser", "--allow-root", "--ip=127.0.0.1"),
                    *(f"--port={self.port}", "--ServerApp.port_retries=0"),
                    *(f"--IdentityProvider.token={self.token}", f"--ServerApp.root_dir={self.root}"),
                    *own,
                    "--expose-app-in-browser",
                ],
                env=env,
                stdout=out,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                preexec_fn=lambda: ctypes.CDLL(None).prctl(
                    1, signal.SIGTERM
                ),  # no orphan when tests are killed
            )
        end = time.monotonic() + 90
        while True:
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{self.port}/api?token={self.token}", timeout=2)
                return
            except OSError:
                if time.monotonic() > end or self.process.poll() is not None:
                    raise RuntimeError(f"{app} did not start: {log.read_text()[-3000:]}") from None
                time.sleep(0.2)

    def set(self, plugin: str, values: dict) -> None:
        """Write a plugin's settings; pages that are opened from now on follow them."""
        file = self.settings / f"{plugin}.jupyterlab-settings"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(values))

    def url(self, notebook: str) -> str:
        where = "lab/tree" if self.app == "jupyterlab" else "notebooks"
        return f"http://127.0.0.1:{self.port}/{where}/{notebook}?reset&token={self.token}"

    def write(self, name: str, cells: list[str]) -> str:
        notebook = {
            "nbformat": 4,
            "nbformat_minor": 5,
            "metadata": {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}},
            "cells": [
                {
                    "cell_type": "code",
                    "id": f"c{i}",
                    "metadata": {},
                    "source": source,
                    "outputs": [],
                    "execution_count": None,
                }
                for i, source in enumerate(cells)
            ],
        }
        (self.root / name).write_text(json.dumps(notebook))
        return self.url(name)

    def stop(self) -> None:
        os.killpg(self.process.pid, signal.SIGTERM)  # our own group only: the server and its kernels
        self.process.wait(20)


class Notebook:
    """An open notebook whose cells have run."""

    def __init__(self, visit):
        self.visit = visit
        self.page = visit.page
        self.page.wait_for_selector(".jp-Notebook")
        self.page.wait_for_function(KERNEL_READY)
        self.page.click(".jp-Notebook .jp-Cell >> nth=0 >> .cm-content")
        self.page.evaluate("() => { window.jupyterapp.commands.execute('notebook:run-all-cells'); }")
        self.visit.settle()

    def python(self, code):
        """Run code in the notebook's kernel and return what it prints."""
        return self.page.evaluate(
            """async (code) => {
              const kernel = window.jupyterapp.shell.currentWidget.sessionContext.session.kernel;
              const future = kernel.requestExecute({ code, store_history: false });
              let text = '';
              future.onIOPub = (message) => {
                if (message.header.msg_type === 'stream') text += message.content.text;
                if (message.header.msg_type === 'error') text += message.content.traceback.join('\\n');
              };
              await future.done;
              return text.trim();
            }""",
            code,
        )

    def wait(self, condition):
        """Wait for a JS condition in which ``t`` is the timeline."""
        self.page.wait_for_function(
            f"() => {{ const t = document.querySelector('.tv-root').timeline; return {condition}; }}"
        )

    def wait_python(self, condition):
        for _ in range(100):
            if self.python(f"print({condition})") == "True":
                return
            self.page.wait_for_timeout(50)
        raise AssertionError(f"never true in the kernel: {condition}; {self.python(f'print({condition})')}")

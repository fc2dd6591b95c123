"""Entry point of the process that works on a job's files: ``python -I child_main.py < request``.

It turns a recording into tables, or reads an archive back. It is a process of its own for three reasons: it
never holds the engine's interpreter, a recording that crashes the parser or exhausts memory takes down
nothing else, and the system can give it the lowest priority. The request says where the package is: isolated
mode ignores ``PYTHONPATH``.
"""

import json
import os
import sys


def _limit(request: dict) -> None:  # type: ignore[type-arg]
    import ctypes
    import resource
    import signal

    os.nice(request["niceness"])
    if request["memory_bytes"]:
        _, hard = resource.getrlimit(resource.RLIMIT_AS)
        soft = (
            request["memory_bytes"] if hard == resource.RLIM_INFINITY else min(request["memory_bytes"], hard)
        )
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    # End with the parent: after a restart the job of a killed worker is found and done again.
    pr_set_pdeathsig = 1
    try:
        ctypes.CDLL(None).prctl(pr_set_pdeathsig, signal.SIGKILL)
    except (OSError, AttributeError):
        return
    if os.getppid() != request["parent"]:
        os._exit(9)


def _tables(folder: str) -> dict:  # type: ignore[type-arg]
    # slow to import: it needs pandas
    from torchtrt_viz.serving.artifacts.parse_tables import parse_job_folder

    return parse_job_folder(folder)


def _read_back(archive: str) -> dict:  # type: ignore[type-arg]
    # the request says where modules are found, and this process loads no more of them than its step needs
    from torchtrt_viz.formats.io.source import Source
    from torchtrt_viz.formats.session.health import check_archive
    from torchtrt_viz.serving.artifacts.pack import checksum

    size, digest = checksum(archive)
    check = check_archive(Source(archive))
    return {"bytes": size, "sha256": digest, "damage": check.damage, "members": check.members}


STEPS = {"tables": _tables, "read back": _read_back}


def main() -> int:
    """Read a request from stdin, run its step, and write to stdout what was made or what went wrong."""
    request = json.loads(sys.stdin.buffer.read())
    sys.path[:] = request["sys_path"]
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # so that a library's prints do not mix with the answer
    try:
        _limit(request)
        answer = STEPS[request["step"]](request["path"])
    except MemoryError:
        answer = {
            "error": f"not enough memory ({request['memory_bytes']} bytes are allowed) for {request['doing']}"
        }
    except Exception as error:
        answer = {"error": f"{type(error).__name__}: {error}"}
    json.dump(answer, out)
    out.flush()
    return 0 if "error" not in answer else 3


if __name__ == "__main__":
    sys.exit(main())

"""POSIX locks of files, on file systems that have them and on those that do not.

Network file systems may be mounted without locks; asking then fails with ENOLCK, which does not mean that
somebody else holds the lock.
"""

from __future__ import annotations

import errno
import fcntl
from typing import IO, Any

__all__ = ["NoFileLocksError", "lock_file"]

_MISSING = (errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP, errno.ENOTSUP)


class NoFileLocksError(OSError):
    """The file system has no locks."""


def lock_file(stream: IO[Any], *, wait: bool = False) -> bool:
    """Lock an open file for this process.

    Parameters
    ----------
    wait
        Wait for another process to release it.

    Returns
    -------
    bool
        False when another process holds it.

    Raises
    ------
    NoFileLocksError
        When the file system has no locks: whether another process works on the same is not known.
    OSError
        When locking fails for another reason.
    """
    try:
        fcntl.lockf(stream, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno in (errno.EACCES, errno.EAGAIN):
            return False
        if error.errno in _MISSING:
            message = f"the file system of {stream.name} has no file locks"
            raise NoFileLocksError(error.errno, message) from error
        raise
    return True

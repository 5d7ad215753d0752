"""Advisory locks on open files: take one for writing, or query whether another open file has one.

The system releases a lock when its file is closed, however the process ends, so there are no stale lock files and
nothing is written to the folder. A query takes no lock, so any number of queries cannot keep a writer out; trying a
lock and releasing it could.

On Linux the locks are open file description locks (fcntl(2), since 3.15), which work across machines on NFS. macOS and
the BSDs use flock(2), which their F_GETLK reports (fcntl(2) there: "locks are compatible"). Windows has no lock that
leaves the file readable.
"""

from __future__ import annotations

import sys

if sys.platform == "win32":

    def lock(descriptor: int) -> bool:
        """Lock the file; always True, because there are no locks on Windows."""
        return True

    def is_locked(descriptor: int) -> bool:
        """Whether the file is locked; always False, because there are no locks on Windows."""
        return False

else:
    import errno
    import fcntl
    import struct

    # struct flock for the whole file: type, whence, start, length, pid, in the order of each system's fcntl.h.
    _LINUX = sys.platform == "linux"

    def _whole_file(kind: int) -> bytes:
        return struct.pack("hhqqi4x", kind, 0, 0, 0, 0) if _LINUX else struct.pack("qqihh", 0, 0, 0, kind, 0)

    def _lock_type(answer: bytes) -> int:
        return int(struct.unpack("hhqqi4x", answer)[0] if _LINUX else struct.unpack("qqihh", answer)[3])

    def lock(descriptor: int) -> bool:
        """Lock a file open for writing until it is closed; False if another open file has the lock.

        Also True if the file system does not support locks: writers cannot be excluded there.
        """
        try:
            if _LINUX:
                fcntl.fcntl(descriptor, fcntl.F_OFD_SETLK, _whole_file(fcntl.F_WRLCK))
            else:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            return error.errno not in (errno.EAGAIN, errno.EACCES)
        return True

    def is_locked(descriptor: int) -> bool:
        """Whether another open file has the lock, without taking it. The file may be open read-only."""
        query = fcntl.F_OFD_GETLK if _LINUX else fcntl.F_GETLK
        try:
            return _lock_type(fcntl.fcntl(descriptor, query, _whole_file(fcntl.F_WRLCK))) != fcntl.F_UNLCK
        except OSError:  # the file system does not support locks
            return False

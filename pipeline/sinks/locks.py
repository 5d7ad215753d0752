"""Advisory locks on open files: taking one for writing, and seeing without taking it whether somebody else has.

The system lets go of a lock when its file is closed, however the process ends: there are no lock files that could be left
behind, and nothing is written to the folder. Whoever looks takes nothing, so that no number of lookers keeps a writer out;
a lock that is tried and given back at once would, in between.

On Linux the locks are open file description locks (fcntl(2), since 3.15), which NFS carries to other machines. macOS and
the BSDs have flock(2), which their F_GETLK sees (fcntl(2) there: "locks are compatible"). Windows has no lock that would
leave the file readable.
"""

from __future__ import annotations

import sys

if sys.platform == "win32":

    def lock(descriptor: int) -> bool:
        """Take the file; True, for there are no locks."""
        return True

    def is_locked(descriptor: int) -> bool:
        """Whether somebody has the file; False, for there are no locks."""
        return False

else:
    import errno
    import fcntl
    import struct

    # struct flock for all of a file: type, whence, start, length, process, in the order of each system's fcntl.h.
    _LINUX = sys.platform == "linux"

    def _whole_file(kind: int) -> bytes:
        return struct.pack("hhqqi4x", kind, 0, 0, 0, 0) if _LINUX else struct.pack("qqihh", 0, 0, 0, kind, 0)

    def _kind(answer: bytes) -> int:
        return int(struct.unpack("hhqqi4x", answer)[0] if _LINUX else struct.unpack("qqihh", answer)[3])

    def lock(descriptor: int) -> bool:
        """Take the file, open for writing, until it is closed; False where another one has it.

        True, too, where the file system has no locks: one cannot be kept from writing there.
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
        """Whether another open file has the lock; takes nothing. The file may be open for reading only."""
        query = fcntl.F_OFD_GETLK if _LINUX else fcntl.F_GETLK
        try:
            return _kind(fcntl.fcntl(descriptor, query, _whole_file(fcntl.F_WRLCK))) != fcntl.F_UNLCK
        except OSError:  # a file system without locks
            return False

"""Files that are replaced as a whole, however their writer ends; parts have the names and locks of src/support/part_file.h."""

import contextlib
import fcntl
import itertools
import os
import re
import time

_PART = re.compile(r"\..*\.\d+-[0-9a-f]+\.\d+\.part")
_numbers = itertools.count()
_cleared = set()


def write(path, parts, mode=0o666):
    """The bytes of `parts`, one after another. Until the new file is whole and on the disk the old one stays as it is; devices and
    pipes are written to directly. Raises OSError that names the file."""
    try:
        _write(os.path.realpath(path), parts, mode)
    except OSError as fault:
        raise OSError(fault.errno, f"cannot be written: {os.strerror(fault.errno)}", str(path)) from None


def _write(path, parts, mode):
    if os.path.exists(path) and not os.path.isfile(path):
        with open(path, "wb") as file:
            file.writelines(parts)
        return
    folder, name = os.path.split(path)
    if folder not in _cleared:
        remove_left(folder)
        _cleared.add(folder)
    beside, handle = _part(folder, name, mode)
    try:
        with os.fdopen(handle, "wb") as file:
            file.writelines(parts)
            file.flush()
            os.fsync(handle)
            os.replace(beside, path)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.remove(beside)
        raise
    _sync(folder)


def _part(folder, name, mode):
    """A new part file, locked: (path, descriptor)."""
    while True:
        beside = os.path.join(folder, f".{name[:200]}.{os.getpid()}-{time.time_ns():x}.{next(_numbers)}.part")
        handle = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
        fcntl.flock(handle, fcntl.LOCK_EX)
        if os.fstat(handle).st_nlink:  # nobody took it for abandoned before it was locked
            return beside, handle
        os.close(handle)


def remove_left(folder):
    """Removes the part files of writers that are gone, whose locks are free."""
    for entry in os.scandir(folder):
        if not _PART.fullmatch(entry.name):
            continue
        with contextlib.suppress(OSError):
            handle = os.open(entry.path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                os.remove(entry.path)
            finally:
                os.close(handle)


def _sync(folder):
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)

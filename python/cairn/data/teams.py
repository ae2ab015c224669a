"""Threads and processes that run a script's own functions, several rows at a time, in the order of the rows.

A process is a fork: it has the script's objects as they are when the first row is asked for. Rows go back and forth in memory that
both share. In a process Python's and NumPy's global random numbers begin anew with each row, from the iterator's seed, the epoch
and the row's number, so that any number of processes draws the same.
"""

import mmap
import os
import pickle
import random
import select
import signal
import struct
import sys
import traceback
import weakref
from collections import deque
from concurrent.futures import ThreadPoolExecutor

import numpy as np

_HEAD = struct.Struct("<Q")
_parents_ends = set()  # descriptors that keep workers alive; a new worker closes those it inherits


def starter(function, workers, processes):
    """What _data.host_parallel starts: function(columns, epoch, row) in so many threads or processes."""
    if workers < 1:
        raise ValueError(f"workers must be at least 1, found {workers}")
    return lambda seed: Processes(function, workers, seed) if processes else Threads(function, workers)


class Threads:
    """Runs functions in threads: they help where functions leave the interpreter, as NumPy's on large arrays do."""

    def __init__(self, function, workers):
        self._function, self.most = function, 2 * workers
        self._pool = ThreadPoolExecutor(workers, "cairn.data")
        self._begun = deque()
        weakref.finalize(self, self._pool.shutdown, wait=False, cancel_futures=True)

    def begin(self, columns, epoch, row):
        """Hands a row over."""
        self._begun.append(self._pool.submit(self._function, columns, epoch, row))

    def end(self):
        """The oldest row's results, or what its function raised."""
        return self._begun.popleft().result()

    def drop(self):
        """Nobody takes the oldest row."""
        self._begun.popleft().cancel()


class Processes:
    """Runs functions in processes, each of which takes every so-manieth row."""

    def __init__(self, function, workers, seed):
        self.most = 2 * workers
        self._workers = [_Worker(function, seed) for _ in range(workers)]
        self._begun, self._next = deque(), 0
        weakref.finalize(self, _stop, self._workers, os.getpid())

    def begin(self, columns, epoch, row):
        """Hands a row over."""
        worker = self._workers[self._next % len(self._workers)]
        self._next += 1
        self._begun.append(worker)
        worker.begin(columns, epoch, row)

    def end(self):
        """The oldest row's results, or what its function raised."""
        return self._begun.popleft().end()

    def drop(self):
        """Nobody takes the oldest row."""
        self._begun.popleft().drop()


def _stop(workers, process):
    if os.getpid() == process:
        for each in workers:
            each.close()
        for each in workers:
            each.stop()


class _Memory:
    """Memory that a worker and its parent share; it grows, and ends with the last of them."""

    def __init__(self):
        self.descriptor, self.map = os.memfd_create("cairn.data"), None

    def view(self, size):
        """At least so many bytes of it."""
        if self.map is None or len(self.map) < size:
            have = os.fstat(self.descriptor).st_size
            if have < size:
                os.posix_fallocate(self.descriptor, 0, 1 << (size - 1).bit_length())
            self.map = mmap.mmap(self.descriptor, 0)
        return self.map

    def put(self, arrays, begin=0):
        """Copies arrays to it; [(type, shape, place)] of them and where they end."""
        places = []
        for array in arrays:
            places.append((array.dtype.str, array.shape, begin))
            begin += -(-array.nbytes // 64) * 64
        view = self.view(begin) if begin else None
        for array, (_, shape, place) in zip(arrays, places):
            if array.nbytes:
                np.ndarray(shape, array.dtype, view, place)[...] = array
        return places, begin

    def get(self, places, end):
        """Views of arrays in it."""
        view = self.view(end) if end else b""
        return tuple(np.ndarray(shape, kind, view, place) if place < end else np.empty(shape, kind) for kind, shape, place in places)

    def close(self):
        """Views of it stay valid."""
        os.close(self.descriptor)
        self.map = None


class _Worker:
    """A process and the rows that it has, at most two."""

    def __init__(self, function, seed):
        self._function, self._seed = function, seed
        self._memories = [_Memory(), _Memory()]
        self._begun, self._number = deque(), 0
        self._start()

    def _start(self):
        tasks, self._tasks = os.pipe()
        self._results, results = os.pipe()
        _flush()
        self.process = os.fork()
        if self.process == 0:
            _child(self._function, self._seed, self._memories, tasks, results, _parents_ends | {self._tasks, self._results})
        self._ended_when = os.pidfd_open(self.process)
        os.close(tasks), os.close(results)
        _parents_ends.update((self._tasks, self._results))

    def begin(self, columns, epoch, row):
        memory = self._memories[self._number % 2]
        places, end = memory.put(columns)
        task = pickle.dumps((self._number, places, end, epoch, row))
        self._begun.append((self._number, task, row))
        self._number += 1
        self._send(task)

    def _send(self, task):
        try:
            _write(self._tasks, task)
        except BrokenPipeError:  # end() finds out
            pass

    def end(self):
        number, _, row = self._begun[0]
        answer = _read(self._results)
        if answer is None:
            raise RuntimeError(self._ended(row))
        self._begun.popleft()
        error, places, end, text = pickle.loads(answer)
        if places is None:
            raise _rebuilt(error, text)
        return tuple(np.array(each) for each in self._memories[number % 2].get(places, end))

    def drop(self):
        try:
            self.end()
        except Exception:  # nobody takes the row
            pass

    def _ended(self, row):
        """Starts another process for the rows that are left; how the one that made `row` ended."""
        code = self._reap()
        self.close()
        self._begun.popleft()
        how = f"by signal {-code} ({signal.Signals(-code).name})" if code < 0 else f"with status {code}"
        self._start()
        for _, task, _ in self._begun:
            self._send(task)
        return f"the process that made row {row} ended {how}; out of memory, or a fault in a library that the function calls?"

    def close(self):
        """The process ends when it has done what it does."""
        for each in (self._tasks, self._results):
            _parents_ends.discard(each)
            os.close(each)

    def stop(self):
        """Ends the process, at the end of what it does or, after a second, by force."""
        if not select.select([self._ended_when], [], [], 1.0)[0]:
            os.kill(self.process, signal.SIGKILL)
        self._reap()
        for each in self._memories:
            each.close()

    def _reap(self):
        os.close(self._ended_when)
        try:
            return os.waitstatus_to_exitcode(os.waitpid(self.process, 0)[1])
        except ChildProcessError:  # the script waited for all its children
            return 0


def _flush():
    for each in (sys.stdout, sys.stderr):
        if each is not None:
            each.flush()


def _write(descriptor, message):
    data = memoryview(_HEAD.pack(len(message)) + message)
    while data:
        data = data[os.write(descriptor, data) :]


def _read(descriptor):
    """A message, or None at the end."""
    parts, wanted = b"", _HEAD.size
    while len(parts) < wanted:
        got = os.read(descriptor, min(wanted - len(parts), 1 << 20))
        if not got:
            return None
        parts += got
        if len(parts) == wanted == _HEAD.size:
            wanted += _HEAD.unpack(parts)[0]
    return parts[_HEAD.size :]


def _rebuilt(error, text):
    """The exception of a worker, with the traceback that it had there."""
    try:
        made = pickle.loads(error)
    except Exception:  # of a class that cannot be sent
        made = RuntimeError(text.strip().splitlines()[-1])
    made.add_note("in a process of its own:\n" + text.rstrip())
    return made


def _child(function, seed, memories, tasks, results, parents):
    """What a worker's process does until its parent goes away."""
    status = 1
    try:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent's to handle
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        for each in parents:
            os.close(each)
        while (message := _read(tasks)) is not None:
            number, places, end, epoch, row = pickle.loads(message)
            _write(results, _answer(function, seed, memories[number % 2], places, end, epoch, row))
        status = 0
    except BrokenPipeError:
        status = 0
    except BaseException:
        traceback.print_exc()
    finally:
        try:
            _flush()
        finally:
            os._exit(status)


def _answer(function, seed, memory, places, end, epoch, row):
    try:
        words = [seed & 0xFFFFFFFF, seed >> 32, epoch & 0xFFFFFFFF, row & 0xFFFFFFFF, row >> 32]
        np.random.seed(words)
        random.seed(repr(words))
        made = [np.asarray(each) for each in function(memory.get(places, end), epoch, row)]
        if any(each.dtype == object for each in made):
            raise TypeError("a column must be an array of numbers or texts, not of objects")
        return pickle.dumps((None, *memory.put(made, end), ""))
    except BaseException as error:
        text = "".join(traceback.format_exception(error))
        try:
            sent = pickle.dumps(error)
            pickle.loads(sent)
        except Exception:
            sent = b""
        return pickle.dumps((sent, None, 0, text))

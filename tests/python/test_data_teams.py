"""A script's own functions in threads and processes, and rows kept in caches: the same rows, faults, ends."""

import gc
import os
import pathlib
import random
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from cairn import data
from cairn.data import transforms as t


def children():
    own = str(os.getpid())
    found = []
    for each in pathlib.Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = each.read_text().rsplit(")", 1)[1].split()
        except OSError:
            continue
        if fields[1] == own and fields[0] != "Z":
            found.append(int(each.parent.name))
    return found


def gone(processes, seconds=60):
    end = time.monotonic() + seconds
    while time.monotonic() < end and any(pathlib.Path(f"/proc/{each}").exists() for each in processes):
        time.sleep(0.02)
    return not any(pathlib.Path(f"/proc/{each}").exists() for each in processes)


def numbers(count=20):
    return data.slices({"x": np.arange(2 * count).reshape(count, 2), "name": np.array([f"n{i}" for i in range(count)])})


class Pictures:
    """Rows of several types, one of them random, of unequal sizes."""

    def __len__(self):
        return 17

    def __getitem__(self, index):
        return np.full((30, 40 + index, 3), index, np.uint8), np.random.rand() + random.random(), f"picture {index}", np.float16(index), np.empty((0, 3))


def rows(dataset, **options):
    return [{name: value.tolist() for name, value in row.items()} for row in dataset.iterate(epochs=2, **options)]


NAMES = ["image", "random", "name", "half", "none"]


def test_any_number_of_processes_gives_the_same_rows_and_random_numbers():
    expected = rows(data.generator(Pictures(), NAMES, workers=1, processes=True), seed=3)
    assert len(expected) == 17 and expected[4]["name"] == "picture 4" and expected[4]["none"] == []
    for count in (2, 5):
        assert rows(data.generator(Pictures(), NAMES, workers=count, processes=True), seed=3, workers=count) == expected
    assert rows(data.generator(Pictures(), NAMES, workers=2, processes=True), seed=4)[0]["random"] != expected[0]["random"]


def test_functions_give_the_same_in_the_callers_thread_in_threads_and_in_processes():
    def function(x, name):
        return x.astype(np.float32) / 3, np.char.add(name, "!"), x.sum()

    def made(**options):
        source = numbers().map(t.type_cast("int16"), "x").map(function, ["x", "name"], ["y", "name", "sum"], **options)
        return rows(source.filter(lambda total: int(total) % 3 != 0, "sum").shuffle(4).batch(3), seed=1)

    assert made() == made(workers=3) == made(workers=3, processes=True)


def test_a_pass_in_processes_goes_on_in_the_middle_and_into_the_next_epoch():
    dataset = data.generator(Pictures(), NAMES, shuffle=True, workers=3, processes=True)
    iterator = dataset.iterate(seed=5)
    whole = [[row["random"].tolist() for row in iterator] for _ in range(2)]
    for stop in (0, 1, 8, 17):
        first = dataset.iterate(seed=5)
        for _ in range(stop):
            next(first)
        rest = dataset.iterate(state=first.state())
        assert [row["random"].tolist() for row in rest] == whole[0][stop:]
        assert [row["random"].tolist() for row in rest] == whole[1]


def faulty(x):
    if x[0] == 10:
        raise KeyError("no such thing")
    if x[0] == 20:
        os.kill(os.getpid(), signal.SIGKILL)
    if x[0] == 30:
        return object()
    return x


def test_faults_tell_the_row_the_line_and_the_signal_and_the_next_row_follows():
    iterator, faults, seen = numbers().map(faulty, "x", workers=2, processes=True).iterate(epochs=1), [], []
    while True:
        try:
            seen.append(int(next(iterator)["x"][0]))
        except StopIteration:
            break
        except Exception as fault:
            faults.append(fault)
    assert seen == [each for each in range(0, 40, 2) if each not in (10, 20, 30)]
    assert [type(each) for each in faults] == [KeyError, RuntimeError, TypeError]
    notes = "\n".join(faults[0].__notes__)
    assert 'raise KeyError("no such thing")' in notes and "faulty of row 5 (test_data_teams.py:" in notes
    assert "row 10 ended by signal 9 (SIGKILL)" in str(faults[1]) and "faulty of row 10" in faults[1].__notes__[0]


def test_the_callers_thread_tells_the_row_of_a_fault_as_well():
    iterator = numbers().map(lambda x: 1 // (int(x[0]) - 4), "x").iterate(epochs=1)
    with pytest.raises(ZeroDivisionError) as fault:
        for _ in iterator:
            pass
    assert "<lambda> of row 2 (test_data_teams.py:" in fault.value.__notes__[0]
    assert len(list(iterator)) == 17


def test_dropping_and_stopping_an_iterator_leave_no_process_and_no_descriptor():
    before, descriptors = children(), len(os.listdir("/proc/self/fd"))
    for end in ("drop", "stop", "finish"):
        iterator = data.generator(Pictures(), NAMES, workers=3, processes=True).iterate(epochs=1)
        next(iterator)
        started = set(children()) - set(before)
        assert len(started) == 3
        if end == "stop":
            iterator.stop()
        elif end == "finish":
            assert len(list(iterator)) == 16
            iterator.stop()
        del iterator
        gc.collect()
        assert gone(started), end
    assert len(os.listdir("/proc/self/fd")) == descriptors


SCRIPT = """
import os, signal, sys, time
import numpy as np
from cairn import data
def slow(x):
    time.sleep({sleep})
    return x
rows = data.slices({{"x": np.arange(1000)}}).map(slow, workers=3, processes=True).iterate(epochs=1)
next(rows)
print(*open(f"/proc/self/task/{{os.getpid()}}/children").read().split(), flush=True)
for row in rows:
    pass
"""


@pytest.mark.parametrize("ended_by", [signal.SIGINT, signal.SIGKILL])
def test_the_end_of_the_script_ends_its_processes(ended_by):
    script = subprocess.Popen([sys.executable, "-c", SCRIPT.format(sleep=0.05)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    processes = script.stdout.readline().split()
    assert len(processes) == 3
    script.send_signal(ended_by)
    _, told = script.communicate(timeout=20)
    assert gone(processes)
    assert ended_by == signal.SIGKILL or told.rstrip().splitlines()[-1] == "KeyboardInterrupt"


def test_a_cache_makes_each_row_once_and_holds_no_more_than_its_size(tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    made = []

    def function(x):
        made.append(int(x[0]))
        return np.full(1000, x[0], np.float64)

    source = data.slices({"x": np.arange(40).reshape(20, 2)}, shuffle=True)
    expected = [row["x"].tolist() for row in source.map(function).batch(4).iterate(epochs=1, seed=2)]
    for cache, held, in_file in ((data.Cache(), 20, 0), (data.Cache(40_000, spill=True), 5, 15), (data.Cache(40_000), 5, 0)):
        made.clear()
        iterator = source.map(function).cache(cache).batch(4).iterate(seed=2)
        first = [row["x"] for row in iterator]
        assert [each.tolist() for each in first] == expected
        for each in first:
            each += 1  # a caller's rows are its own
        assert sorted(value for row in iterator for value in row["x"][:, 0]) == sorted(range(0, 40, 2))
        stats = cache.stats()
        assert (stats["rows_in_memory"], stats["rows_in_file"], stats["bytes"]) == (held, in_file, 8000 * held)
        assert stats["found"] >= held + in_file
    assert not os.listdir(tmp_path)

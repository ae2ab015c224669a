"""Collectives of real processes: equal to NumPy, and every survivor says who is at fault."""

import contextlib
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time

import numpy as np
import pytest
from rank_jobs import free_port

PRELUDE = """
import os, signal, sys, time
import numpy as np
import cairn
cairn.job.join()
rank, size = cairn.job.group().rank, cairn.job.group().size
def given(dtype, shape):
    return [(np.random.default_rng(i).standard_normal(shape) * 10).astype(dtype) for i in range(size)]
"""

EQUAL = """
def reduced(xs, reduction):
    dtype = xs[0].dtype
    if dtype == bool:
        return (np.logical_or if reduction in ("sum", "max") else np.logical_and).reduce(xs)
    wide = [x.astype(np.float32) if dtype == np.float16 else x for x in xs]
    function = {"sum": np.add, "prod": np.multiply, "max": np.maximum, "min": np.minimum}[reduction]
    total = wide[0]
    with np.errstate(all="ignore"):
        for x in wide[1:]:
            total = function(total, x)
        return total.astype(dtype)
def same(y, expected):
    np.testing.assert_array_equal(y, expected)
types = ["float32", "float64", "float16", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "bool"]
for dtype in types:
    for shape in [(3,), (0,), (), (7, 11), (70001,)]:
        xs = given(dtype, shape)
        for reduction in ["sum", "prod", "max", "min"]:
            same(cairn.ops.all_reduce(xs[rank], reduction=reduction, ranks=size), reduced(xs, reduction))
        same(cairn.ops.broadcast_from(xs[rank], root=size - 1, ranks=size), xs[-1])
        total = reduced(xs, "max")
        same(cairn.ops.reduce_to(xs[rank], reduction="max", root=0, ranks=size), total if rank == 0 else np.zeros_like(total))
        if shape == ():
            continue
        joined = np.concatenate(xs)
        same(cairn.ops.all_gather(xs[rank], ranks=size), joined)
        same(cairn.ops.gather_to(xs[rank], root=0, ranks=size), joined if rank == 0 else np.zeros_like(joined))
        same(cairn.ops.scatter_from(joined if rank == 0 else np.zeros_like(joined), root=0, ranks=size), xs[rank])
        rows = [np.concatenate([x] * size) for x in xs]
        same(cairn.ops.all_to_all(rows[rank], ranks=size), joined)
        same(cairn.ops.reduce_scatter(rows[rank], reduction="min", ranks=size), reduced(xs, "min"))
x = np.arange(1000.0) + rank
counts = np.array([(rank + other) % 3 + 1 for other in range(size)])
places = np.array([10 * other for other in range(size)])
y = cairn.ops.all_to_all_v(x, counts, places, counts, places, ranks=size)
for other in range(size):
    same(y[10 * other : 10 * other + counts[other]], np.arange(1000.0)[10 * rank : 10 * rank + counts[other]] + other)
if size > 1:
    cairn.ops.send(np.full(5000, rank, np.int32), to=(rank + 1) % size, tag=7)
    before = (rank - 1) % size
    same(cairn.run_op("receive", [], **{"from": before, "tag": 7, "dtype": "i32", "shape": [5000]}), np.full(5000, before))
cairn.ops.barrier()
cairn.job.leave()
print("done")
"""


def start(script, size, **options):
    port = free_port()
    processes = []
    for rank in range(size):
        job = {"rank": rank, "size": size, "address": f"127.0.0.1:{port}", "token": f"token {port}", "timeout": 60, **options}
        environment = {**os.environ, "CAIRN_JOB": json.dumps(job)}
        processes.append(subprocess.Popen([sys.executable, "-c", PRELUDE + script], env=environment, text=True,
                                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT))  # fmt: skip
    return processes, port


def finish(processes, seconds=240):
    outputs = []
    try:
        for process in processes:
            outputs.append(process.communicate(timeout=seconds)[0])
    finally:
        for process in processes:
            process.kill()
    return outputs


def until(process, word):
    for line in process.stdout:
        if word in line:
            return
    raise AssertionError(f"no {word}")


@pytest.mark.parametrize("size", [1, 2, 3])
def test_collectives_equal_numpy_through_shared_memory(size):
    for output in finish(start(EQUAL, size)[0]):
        assert output.strip().endswith("done"), output


@pytest.mark.long
@pytest.mark.parametrize("way", [{}, {"shared_memory": False, "transport": "gloo"}], ids=["shared memory", "gloo"])
@pytest.mark.parametrize("size", [4, 5, 6, 7, 8])
def test_collectives_equal_numpy_with_many_ranks(size, way):
    for output in finish(start(EQUAL, size, **way)[0], 400):
        assert output.strip().endswith("done"), output


@pytest.mark.parametrize("size", [2, 3])
def test_collectives_equal_numpy_through_gloo(size):
    for output in finish(start(EQUAL, size, shared_memory=False, transport="gloo")[0], 200):
        assert output.strip().endswith("done"), output


@pytest.mark.parametrize("shared", [True, False])
def test_ranks_that_disagree_are_told_who_differs(shared):
    script = "cairn.ops.all_reduce(np.ones(3 + (rank == 1), np.float32), ranks=size, name='w')"
    for output in finish(start(script, 3, shared_memory=shared)[0]):
        assert "ranks disagree on collective 1 of group world: rank" in output
        assert re.search(r'rank 1 (\(process \d+ on [^)]*\) )?calls all_reduce "w" f32\[4\] sum', output), output


@pytest.mark.parametrize("shared", [True, False])
def test_a_killed_rank_is_named_by_all_others(shared):
    script = """
if rank == 1:
    time.sleep(0.3)
    os.kill(os.getpid(), signal.SIGKILL)
cairn.ops.all_reduce(np.ones(3, np.float32), ranks=size)
"""
    outputs = finish(start(script, 3, shared_memory=shared)[0])
    for rank in (0, 2):
        assert "rank 1 (process" in outputs[rank] and "has ended without leaving the job" in outputs[rank]


@pytest.mark.parametrize("step", [0, 3])  # while the group's memory is created, and after it
@pytest.mark.parametrize("stopped", [0, 1])
def test_a_stopped_rank_is_named_within_the_timeout(stopped, step):
    script = f"""
for step in range(1000000):
    if (rank, step) == ({stopped}, {step}):
        print("stops", flush=True)
        os.kill(os.getpid(), signal.SIGSTOP)
    cairn.ops.all_reduce(np.ones(3, np.float32), ranks=size)
"""
    processes, _ = start(script, 3, timeout=10)
    until(processes[stopped], "stops")
    for process in processes[:stopped] + processes[stopped + 1 :]:
        output = process.communicate(timeout=60)[0]
        assert f"rank {stopped} (process" in output and "does not answer" in output, output
    processes[stopped].kill()  # it would not end by itself
    processes[stopped].communicate(timeout=30)


@pytest.mark.parametrize("shared", [True, False])
def test_ranks_that_disagree_tell_the_lines_of_their_scripts(shared):
    script = """
if rank == 1:
    cairn.ops.barrier()
cairn.run_op("all_reduce", [np.ones(3, np.float32)], group="world", ranks=size)
"""
    first = (PRELUDE + script).splitlines().index("    cairn.ops.barrier()") + 1
    for output in finish(start(script, 3, shared_memory=shared)[0]):
        assert re.search(rf"rank 1 .*calls barrier at <string>:{first}, rank [02] calls all_reduce f32\[3\] sum at <string>:{first + 1}", output), output


def test_a_rank_that_makes_fewer_steps_is_named():
    script = """
for step in range(3 if rank == 0 else 4):
    cairn.ops.all_reduce(np.ones(3, np.float32), ranks=size, name=f"step {step}")
"""
    outputs = finish(start(script, 2)[0])
    assert "rank 0 (process" in outputs[1] and "has left the job" in outputs[1] and "step 3" in outputs[1]


@contextlib.contextmanager
def waiting(process):
    """The rank has not joined: it is stopped while Python starts."""
    process.send_signal(signal.SIGSTOP)
    try:
        yield
    finally:
        process.send_signal(signal.SIGCONT)


def connected(port):
    """A connection to rank 0, once it listens."""
    deadline = time.monotonic() + 60
    while True:
        try:
            return socket.create_connection(("127.0.0.1", port), timeout=60)
        except ConnectionRefusedError:
            assert time.monotonic() < deadline
            time.sleep(0.05)


def test_strangers_and_garbage_are_refused_without_disturbing_the_job():
    processes, port = start(EQUAL, 2)
    with waiting(processes[1]):
        for data in (b"GET / HTTP/1.0\r\n\r\n", b"\xff" * 5000, b'\x02\x00\x00\x00{}'):
            with connected(port) as stranger:
                stranger.sendall(data)
    for output in finish(processes):
        assert output.strip().endswith("done"), output


def test_jobs_with_other_tokens_do_not_mix():
    processes, port = start("", 2)
    job = {"rank": 1, "size": 2, "address": f"127.0.0.1:{port}", "token": "another"}
    with waiting(processes[1]):
        stranger = subprocess.run([sys.executable, "-c", "import cairn; cairn.job.join()"], text=True, capture_output=True,
                                  env={**os.environ, "CAIRN_JOB": json.dumps(job)}, timeout=240)  # fmt: skip
    assert stranger.returncode != 0 and "another token" in stranger.stderr
    for process in processes:
        process.communicate(timeout=240)
        assert process.returncode == 0


def test_groups_have_ranks_of_their_own():
    script = """
cairn.job.group_create("ends", [2, 0])
group = cairn.job.group("ends")
assert (group.rank, group.size) == ({2: 0, 0: 1}.get(rank, -1), 2)
if rank != 1:
    y = cairn.ops.all_gather(np.array([rank]), group="ends", ranks=2)
    np.testing.assert_array_equal(y, [2, 0])
cairn.job.leave()
print("done")
"""
    for output in finish(start(script, 3)[0]):
        assert output.strip().endswith("done"), output


def test_a_group_that_cannot_share_memory_exchanges_messages_where_the_world_shares_memory():
    script = """
import resource
if rank == 2:  # no file of this process may grow, so that the group's memory cannot be made
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, resource.RLIM_INFINITY))
cairn.job.group_create("ends", [2, 0])
ways = {name: group["transport"] for name, group in cairn.job.describe()["groups"].items()}
assert ways["world"] == "shared memory" and (rank == 1 or ways["ends"].startswith("gloo, as the ranks cannot share memory")), ways
for count in (3, 100_000):
    x = np.arange(count, dtype=np.float32) + rank
    if rank != 1:
        np.testing.assert_array_equal(cairn.ops.all_reduce(x, group="ends", ranks=2), 2 * np.arange(count) + 2)
        np.testing.assert_array_equal(cairn.ops.broadcast_from(x, root=0, group="ends", ranks=2), np.arange(count) + 2)
    np.testing.assert_array_equal(cairn.ops.all_reduce(x, ranks=3), 3 * np.arange(count) + 3)
cairn.job.leave()
print("done")
"""
    for output in finish(start(script, 3)[0]):
        assert output.strip().endswith("done"), output


def test_the_timeout_of_a_job_can_be_changed():
    script = """
cairn.job.set_timeout(2.5)
assert cairn.job.describe()["timeout"] == 2.5
for wrong in (0, -1, float("nan")):
    try:
        cairn.job.set_timeout(wrong)
    except cairn.Error as error:
        assert "expected more than 0" in str(error)
    else:
        raise SystemExit("no error")
cairn.ops.barrier()
if rank == 1:
    time.sleep(60)
cairn.ops.barrier()
"""
    processes, _ = start(script, 2)
    output = processes[0].communicate(timeout=240)[0]
    processes[1].kill()
    processes[1].communicate()
    assert processes[0].returncode != 0 and "while rank 0 waited 2.5" in output, output


@pytest.mark.parametrize("shared", [True, False])
def test_buckets_of_large_small_and_empty_tensors_equal_their_reductions_one_by_one(shared):
    """Large tensors are sent from where they lie, many small ones together."""
    script = """
for counts in ([3, 0, 70001, 5, 262144, 1], [1] * 40 + [9000], [2_300_000, 17, 300_001]):
    for dtype in ("float32", "float16", "int64"):
        xs = [given(dtype, (count,))[rank] for count in counts]
        one_by_one = [cairn.ops.all_reduce(x, ranks=size) for x in xs]
        made = cairn.run_op("all_reduce_bucket", xs, ranks=size, names=[str(i) for i in range(len(xs))])
        for x, y in zip(one_by_one, made):
            np.testing.assert_array_equal(x, y)
cairn.job.leave()
print("done")
"""
    for output in finish(start(script, 3, shared_memory=shared)[0]):
        assert output.strip().endswith("done"), output


def listening(pid):
    """The addresses at which a process listens, as /proc writes them."""
    inodes = set()
    for name in os.listdir(f"/proc/{pid}/fd"):
        with contextlib.suppress(OSError):
            inodes.update(re.findall(r"socket:\[(\d+)\]", os.readlink(f"/proc/{pid}/fd/{name}")))
    found = []
    for table in ("tcp", "tcp6", "udp", "udp6"):
        with open(f"/proc/{pid}/net/{table}") as file:
            for row in (line.split() for line in file.readlines()[1:]):
                if row[9] in inodes and (row[3] == "0A" or table.startswith("udp")):
                    found.append(row[1].split(":")[0])
    return found


def test_ranks_listen_at_the_addresses_of_the_job_alone():
    """While they meet and while they exchange by Gloo."""
    script = "cairn.ops.barrier()\nprint('ready', flush=True)\nsys.stdin.read()"
    port = free_port()
    processes = []
    try:
        for rank in range(2):
            job = {"rank": rank, "size": 2, "address": f"127.0.0.1:{port}", "token": "t", "transport": "gloo", "shared_memory": False}
            processes.append(subprocess.Popen([sys.executable, "-c", PRELUDE + script], env={**os.environ, "CAIRN_JOB": json.dumps(job)},
                                              text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT))  # fmt: skip
            if rank == 0:
                connected(port).close()  # it listens
                assert listening(processes[0].pid) == ["0100007F"]
        for each in processes:
            until(each, "ready")
            assert set(listening(each.pid)) <= {"0100007F"}  # 127.0.0.1
    finally:
        for each in processes:
            each.kill()
            each.communicate()

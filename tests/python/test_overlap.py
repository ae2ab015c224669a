"""all_reduce nodes of models: put together by every strategy with equal bits, and exchanged beside the steps after them."""

import re
import sys

import pytest
import rank_jobs

FUSED = """
import sys
import cairn, numpy as np
cairn.job.join()
rank, size = cairn.job.group().rank, cairn.job.group().size

def results(number=None, **strategy):
    "What a chain of gradients gives, the bits of it, and how many exchanges that took."
    cairn.job.set_fusion(**strategy)
    builder = cairn.Builder("net")
    x, gradients = builder.input("x", "float32", [5, 7]), []
    for i in range(6):
        x = x.sin() * (i + 0.3)
        gradients.append(x)
    for i, gradient in enumerate(reversed(gradients)):
        more = dict(fusion=2, fusion_id=number(i)) if number else {}
        builder.output(f"y{i}", gradient.all_reduce(reduction="mean" if i < 2 else "sum", name=f"w{i}", ranks=size, **more) * 2.0)
    model = cairn.load(builder.save(f"{sys.argv[1]}/{rank}.om"))
    given = np.random.default_rng(rank).standard_normal((5, 7)).astype(np.float32)
    before = cairn.job.describe()["collectives"].get("all_reduce", {}).get("calls", 0)
    made = model.run(given)
    return made, cairn.job.describe()["collectives"]["all_reduce"]["calls"] - before

plain, calls = results(none=True)
assert calls == 6
for expected, number, strategy in [(2, None, {}), (3, None, dict(bytes=300)), (4, None, dict(indices=[0])), (4, None, dict(percents=[50, 50])),
                                   (5, lambda i: i % 3 + 2, {}), (2, lambda i: 5, {})]:
    made, calls = results(number, **strategy)
    assert calls == expected, (strategy, calls)
    for name in plain:
        assert made[name].tobytes() == plain[name].tobytes(), (strategy, name)
cairn.job.leave()
print("done")
"""


def test_gradients_in_buckets_have_the_bits_of_those_exchanged_one_by_one(tmp_path):
    for size in (2, 3):
        assert rank_jobs.outputs_of(rank_jobs.processes([sys.executable, "-c", FUSED, tmp_path], size)) == ["done\n"] * size


BESIDE = """
import pathlib, sys, time
import cairn, numpy as np
cairn.job.join()
rank, folder = cairn.job.group().rank, pathlib.Path(sys.argv[1])

def await_file(name):
    for _ in range(3000):
        if (folder / name).exists():
            return
        time.sleep(0.01)
    raise TimeoutError(name)

@cairn.op("test.rest_of_the_backward_pass")
def rest(x):
    (folder / "backward pass goes on").touch()
    await_file("exchanged")
    return x + 1

if rank == 0:
    builder = cairn.Builder("net")
    x = builder.input("x", "float32", [1000])
    first = x * 2.0
    reduced = first.all_reduce(name="w", ranks=2)
    builder.output("y", rest(first.exp().log()) + reduced)
    model = cairn.load(builder.save(folder / "net.om"))
    y = model.run(np.ones(1000, np.float32))["y"]
    np.testing.assert_allclose(y, 3 + 7, 1e-6)
else:
    await_file("backward pass goes on")
    cairn.ops.all_reduce(np.full(1000, 5, np.float32), name="w", ranks=2)
    (folder / "exchanged").touch()
cairn.job.leave()
print("done")
"""


def test_an_exchange_begins_and_ends_while_the_backward_pass_goes_on(tmp_path):
    assert rank_jobs.outputs_of(rank_jobs.processes([sys.executable, "-c", BESIDE, tmp_path], 2)) == ["done\n"] * 2



# The arguments are a folder, what goes wrong and the rank with which it does. Both tensors travel as one bucket while the operator
# `rest` runs. Ranks with which nothing goes wrong run until they hear of it.
FAULTS = """
import os, pathlib, signal, sys, threading, time
import cairn, numpy as np
folder, what, who = pathlib.Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
cairn.job.join()
rank, size = cairn.job.group().rank, cairn.job.group().size

@cairn.op("test.rest_of_the_backward_pass")
def rest(x):
    if rank == who and what == "killed":
        os.kill(os.getpid(), signal.SIGKILL)
    if rank == who and what == "stopped":
        os.kill(os.getpid(), signal.SIGSTOP)
    if rank == who and what == "raises":
        raise ValueError("this rank ends")
    return x + 1

many = 1000003
builder = cairn.Builder("net")
x = builder.input("x", "float32", [many + (rank == who and what == "differs")])
gradients = [x * 2.0, x * 3.0]
other = rest(gradients[1].exp())
reduced = [each.all_reduce(name=name, ranks=size) for each, name in zip(gradients, "wv")]
builder.output("y", other + reduced[0] + reduced[1])
model = cairn.load(builder.save(folder / f"{rank}.om"))
if rank == who and what == "late":
    time.sleep(1000)
while True:
    model.run(np.ones(model.inputs[0].shape, np.float32))
"""

SILENT = r"rank {0} \(process \d+ on .+\) does not answer"
SENTENCES = {
    "killed": r"rank {0} \(process \d+ on .+\) has ended without leaving the job|the connection to rank {0} broke",
    "stopped": SILENT,
    "raises": r"rank {0} has given up in all_reduce|rank {0} \(process \d+ on .+\) has ended without leaving the job",
    "differs": r"ranks disagree on collective 1 of group world: .*rank {0} (\(process \d+ on [^)]+\) )?calls all_reduce \"w,v\" f32\[1000004 \+ 1000004\] sum",
    "late": r"rank {0} \(process \d+ on .+\) has not called any collective of the group while rank \d waited",
}


@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize("what", SENTENCES)
@pytest.mark.parametrize("who", [0, 1])
def test_faults_while_a_bucket_is_under_way_name_the_rank(what, who, shared, tmp_path):
    options = {"timeout": 10 if what in ("stopped", "late") else 60, "shared_memory": shared}
    ranks = rank_jobs.processes([sys.executable, "-c", FAULTS, tmp_path, what, who], 3, **options)
    try:
        for rank, process in enumerate(ranks):
            if rank != who:
                out, err = process.communicate(timeout=120)
                assert process.returncode == 1 and re.search(SENTENCES[what].format(who), err), (rank, out, err)
    finally:
        for process in ranks:  # one that is late or stopped does not end by itself
            process.kill()
            process.communicate()


# Rank 1 - who waits for rank `who`, which comes too late or is stopped, and is told to end. What it waits for is the last step of its
# model or goes on beside another.
CANCELLED = """
import os, pathlib, signal, sys, threading, time
import cairn, numpy as np
folder, (what, where, how), who = pathlib.Path(sys.argv[1]), sys.argv[2:5], int(sys.argv[5])
cairn.job.join()
rank = cairn.job.group().rank

def await_file(name):
    while not (folder / name).exists():
        time.sleep(0.01)

@cairn.op("test.rest_of_the_backward_pass")
def rest(x):
    if rank != who:
        (folder / "under way").touch()
    return x + 1

builder = cairn.Builder("net")
x = builder.input("x", "float32", [1000])
if where == "beside":
    doubled = x * 2.0
    builder.output("y", doubled.all_reduce(name="w", ranks=2) + rest(doubled.exp()))
else:
    builder.output("y", rest(x.exp()).all_reduce(name="w", ranks=2) * 2.0)
model = cairn.load(builder.save(folder / f"{rank}.om"))

def run(**options):
    return model.run(np.ones(1000, np.float32), **options)

if rank == who:
    await_file("under way")
    if how == "stopped":
        os.kill(os.getpid(), signal.SIGSTOP)
    await_file("ended")
    run()
if what == "interrupt":
    def interrupt():
        await_file("under way")
        time.sleep(0.2)
        os.kill(os.getpid(), signal.SIGINT)
    threading.Thread(target=interrupt).start()
try:
    run(max_seconds=1 if what == "limit" else 0)
except KeyboardInterrupt:
    ended = "interrupt"
except cairn.Error as fault:
    assert fault.kind == "cancelled" and "stopped after 1 seconds" in str(fault), fault
    ended = "limit"
(folder / "under way").touch()
(folder / "ended").touch()
print(ended)
"""


@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize("who, how", [(0, "stopped"), (1, "late")])
@pytest.mark.parametrize("where", ["beside", "in place"])
@pytest.mark.parametrize("what", ["limit", "interrupt"])
def test_a_run_that_waits_for_another_rank_can_be_ended(what, where, who, how, shared, tmp_path):
    words = [sys.executable, "-c", CANCELLED, tmp_path, what, where, how, who]
    ranks = rank_jobs.processes(words, 2, timeout=1000, shared_memory=shared)
    try:
        out, err = ranks[1 - who].communicate(timeout=120)
        assert ranks[1 - who].returncode == 0 and out == what + "\n", (out, err)
        if how == "late":
            out, err = ranks[who].communicate(timeout=120)
            assert re.search(rf"rank {1 - who} .*(has given up in all_reduce|has left the job|has ended)", err), err
    finally:
        for process in ranks:
            process.kill()
            process.communicate()

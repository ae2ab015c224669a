"""A training of least squares in NumPy whose gradients all ranks add up. Rank 0 keeps a checkpoint of each step, from which a start goes
on; what goes wrong is an option. Rank 0 writes the losses of all steps into OUT/losses.json."""

import argparse
import contextlib
import json
import os
import signal
import socket
import threading
import time
from pathlib import Path

import cairn
import numpy as np

ROWS = 24


def fail(how, step):
    if how == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    if how == "stop":
        os.kill(os.getpid(), signal.SIGSTOP)
    if how == "raise":
        raise RuntimeError(f"this rank ends in step {step}")
    if how == "hang":
        time.sleep(1000)
    if how == "other":
        cairn.ops.all_reduce(np.ones(5, np.float32), name="other", ranks=cairn.job.group().size)


def cut_off(asked, done):
    """When a file asks for it, shuts this process's connections to others down; another file tells how many."""
    while not asked.exists():
        time.sleep(0.02)
    asked.unlink()
    found = 0
    for name in os.listdir("/proc/self/fd"):
        with contextlib.suppress(OSError), socket.socket(fileno=os.dup(int(name))) as end:
            if end.family == socket.AF_INET:
                end.shutdown(socket.SHUT_RDWR)
                found += 1
    done.with_suffix(".part").write_text(str(found))
    done.with_suffix(".part").rename(done)


def keep(out, state):
    """A checkpoint is whole or not there."""
    (out / "new.json").write_text(json.dumps(state))
    (out / "new.json").rename(out / "checkpoint.json")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("out", type=Path)
    parser.add_argument("--steps", type=int, default=6)
    parser.add_argument("--how", default="")
    parser.add_argument("--at", type=int, default=3)
    parser.add_argument("--who", type=int, default=1)
    parser.add_argument("--pause", type=float, default=0)
    parser.add_argument("--messages", action="store_true", help="instead of shared memory")
    args = parser.parse_args()
    rank = os.environ["RANK_ID"]
    threading.Thread(target=cut_off, args=(args.out / f"cut.{rank}", args.out / f"was_cut.{rank}"), daemon=True).start()
    cairn.job.join(shared_memory=not args.messages)
    start = os.environ.get("CAIRN_RESTART", "0")
    print("joined start", start)
    job = cairn.job.group()
    random = np.random.RandomState(0)
    x, y = random.normal(size=(ROWS, 4)).astype(np.float32), random.normal(size=ROWS).astype(np.float32)
    mine = slice(ROWS * job.rank // job.size, ROWS * (job.rank + 1) // job.size)
    state = {"step": 0, "weights": [0.0] * 4, "losses": []}
    if (args.out / "checkpoint.json").exists():
        state = json.loads((args.out / "checkpoint.json").read_text())
        print(f"goes on behind step {state['step']}")
    for step in range(state["step"], args.steps):
        if args.how and job.rank == args.who and step == args.at and start == "0":
            fail(args.how, step)
        time.sleep(args.pause)
        weights = np.array(state["weights"], np.float32)
        error = x[mine] @ weights - y[mine]
        sums = np.concatenate([x[mine].T @ error, [error @ error]]).astype(np.float32)
        sums = np.asarray(cairn.ops.all_reduce(sums, name="gradients", ranks=job.size)) / ROWS
        state = {"step": step + 1, "weights": (weights - 0.1 * sums[:4]).tolist(), "losses": [*state["losses"], float(sums[4])]}
        if job.rank == 0:
            keep(args.out, state)
            print(f"kept {state['step']} in start {start}")
    if job.rank == 0:
        (args.out / "losses.json").write_text(json.dumps(state["losses"]))


if __name__ == "__main__":
    main()

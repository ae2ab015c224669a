"""Faults at random times in trainings of four ranks under `cairn launch --restarts 1`, from outside: a rank is killed, stopped, or loses its
connections. Nothing hangs, every survivor says which rank it was and from which line of the script, and the job that goes on from the last
checkpoint has the losses of one without faults.

    python tests/python/random_faults.py [--faults 300] [--seed 0] [--out FOLDER]     prints a line of JSON for each
"""

import argparse
import json
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from rank_jobs import alive

SCRIPT = Path(__file__).parent / "ranks" / "train_in_steps.py"
BIN = Path(__file__).resolve().parents[2] / ".venv" / "bin"
RANKS, STEPS, TIMEOUT, CONNECT = 4, 12, 10, 25
MOST = 2 * (CONNECT + TIMEOUT) + 120  # seconds that a job may take with a fault, its restart, and what else the machine does


def start(out, *words):
    command = [BIN / "cairn", "launch", "-n", str(RANKS), "--timeout", str(TIMEOUT), "--grace", "5", *map(str, words[:2]), SCRIPT, out, "--steps", str(STEPS), *words[2:]]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                            env={**os.environ, "HCCL_CONNECT_TIMEOUT": str(CONNECT)})  # fmt: skip


def cut_off(folder, rank, pid):
    """Has the rank shut its connections to others down; whether it had any."""
    done = folder / f"was_cut.{rank}"
    done.unlink(missing_ok=True)
    (folder / f"cut.{rank}").touch()
    while alive(pid) and not done.exists():
        time.sleep(0.01)
    return done.exists() and int(done.read_text()) > 0


def strike(launcher, folder, how, chance):
    """(rank, when) of a fault that a living rank has met; None: the job ended before. One of five may come before the training has begun."""
    begun = time.monotonic()
    trains = chance.random() < 0.8
    while trains and launcher.poll() is None and not (folder / "checkpoint.json").exists():
        time.sleep(0.01)
    time.sleep(chance.uniform(0, 1))
    victim = chance.randrange(RANKS)
    while launcher.poll() is None:
        try:
            children = Path(f"/proc/{launcher.pid}/task/{launcher.pid}/children").read_text().split()
            by_rank = {rank_of(pid): int(pid) for pid in children}
            pid = by_rank.get(victim)
            if pid and alive(pid):
                if how != "cut":
                    os.kill(pid, signal.SIGKILL if how == "kill" else signal.SIGSTOP)
                if how != "cut" or cut_off(folder, victim, pid):
                    return victim, round(time.monotonic() - begun, 2)
            elif len(by_rank) == RANKS:
                return None
        except (FileNotFoundError, ProcessLookupError):
            pass
        time.sleep(0.01)
    return None


def rank_of(pid):
    found = re.search(rb"\0RANK_ID=(\d+)\0", Path(f"/proc/{pid}/environ").read_bytes())
    return int(found[1]) if found else None


def faults_of(victim, out, err):
    """What the survivors, the launcher and the restart have done wrong."""
    (line,) = re.findall(r"^error: launch: (.*); all start again \(1 of 1 restarts\)$", err, re.M)
    first, wrong = err.split("; all start again")[0], []
    if not re.search(rf"\b{victim}\b", re.sub(r"status \d+|after [\d.]+ s", "", line)):
        wrong.append(f"the launcher does not name rank {victim}")
    joined = {int(rank) for rank in re.findall(r"^\[(\d)\] joined start 0$", out, re.M)}
    for rank in set(range(RANKS)) - {victim}:
        said = "\n".join(text for text in first.splitlines() if text.startswith(f"[{rank}]"))
        ended = re.search(rf"ranks? [\d, ]*\b{rank}\b[\d, ]* ended with status 0", line)
        if ended or (len(joined) < RANKS and "cairn.Error" not in said):  # ranks that wait for the others to come are ended
            continue
        names = rf"rank {victim} \(process \d+|socket of rank {victim}\b|rank {victim}\b.* broke|ranks? .*\b{victim}\b.* did not come|did not reach rank {victim}\b"
        if not re.search(names, said) or 'train_in_steps.py", line' not in said:
            wrong.append(f"rank {rank} does not say who failed and where")
    kept = [0, *map(int, re.findall(r"^\[0\] kept (\d+) in start 0$", out, re.M))][-1]
    behind = {int(step) for step in re.findall(r"goes on behind step (\d+)$", out, re.M)} or {0}
    if len(behind) > 1 or not behind <= {kept, kept + 1}:  # the process may have ended before it told of the last one
        wrong.append(f"goes on behind {behind}, kept {kept}")
    return wrong


def one(folder, whole, how, messages, chance):
    """What became of one job, as a row."""
    folder.mkdir()
    launcher = start(folder, "--restarts", 1, "--pause", "0.05", *["--messages"] * messages)
    struck = strike(launcher, folder, how, chance)
    row = {"how": how, "messages": messages, "rank": struck and struck[0], "at": struck and struck[1]}
    try:
        out, err = launcher.communicate(timeout=MOST)
    except subprocess.TimeoutExpired:
        launcher.kill()
        return {**row, "wrong": ["hangs"], "err": launcher.communicate()[1][-3000:]}
    row["restarted"] = "all start again" in err
    wrong = faults_of(struck[0], out, err) if row["restarted"] and struck else []
    if launcher.returncode != 0:
        wrong.append(f"ends with status {launcher.returncode}")
    elif json.loads((folder / "losses.json").read_text()) != whole:
        wrong.append("losses differ")
    return {**row, "wrong": wrong, **({"out": out[-2000:], "err": err[-6000:]} if wrong else {})}


def run(folder, seed, count, show=print):
    """Whether all is well, of each of so many faults."""
    chance = random.Random(seed)
    (folder / "whole").mkdir()
    launcher = start(folder / "whole", "--restarts", 0)
    _, err = launcher.communicate(timeout=MOST)
    assert launcher.returncode == 0, err
    whole, number, good = json.loads((folder / "whole" / "losses.json").read_text()), 0, []
    while len(good) < count:
        row = one(folder / str(number), whole, chance.choice(["kill", "stop", "cut"]), chance.random() < 0.3, chance)
        number += 1
        show(json.dumps({"seed": seed, "number": number, **row}), flush=True)
        if row["rank"] is not None or row["wrong"]:  # else the job was faster than the fault
            good.append(not row["wrong"])
    return good


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--faults", type=int, default=300)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    good = run(args.out or Path(tempfile.mkdtemp()), args.seed, args.faults)
    print(f"{len(good)} faults, {good.count(False)} with something wrong")
    sys.exit(not all(good))

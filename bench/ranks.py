"""Training steps of several ranks of one thread each beside one process with as many threads and the same whole batch:

    python bench/ranks.py [NET ...] [--ranks N] [--rounds N] [--json FILE]          in .venv; the nets of bench/training_steps.py

Each side stays alive and is stopped while the others run; rounds alternate. Ranks have a core each, as `cairn launch` binds them. A ratio is
the median over rounds of the fastest step of the ranks over that of the one process; the ratio of processor time is of all ranks together.
The last ratio is of the ranks' processor time to that of as many processes that train such a part alone: what the exchange adds, without what smaller
batches cost. --buckets: the same with gradients in buckets of so many bytes each, of which every one is a side. --record FOLDER records some steps
of the ranks instead, and prints how much of the exchange other steps hide."""

import argparse
import json
import os
import secrets
import signal
import socket
import statistics
import subprocess
import sys
from pathlib import Path

import training_steps

CORES = sorted(os.sched_getaffinity(0))


def serve(name, threads, parts):
    """One rank, or the one process, with one of so many parts of the batch: answers as training_steps.worker()."""
    from npu_bridge.npu_init import get_npu_rank_id, get_npu_rank_size, npu_distributed_optimizer_wrapper

    rank, size = get_npu_rank_id(), get_npu_rank_size()
    part = slice(rank, None, max(size, parts))
    training_steps.worker(training_steps.step_of(name, "cairn", threads, part=part, wrapped=npu_distributed_optimizer_wrapper))


class Team:
    """Ranks that are stopped while others run; one rank is a process without a job."""

    def __init__(self, name, ranks, threads, parts=1, before=(), **variables):
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            job = {"size": ranks, "address": f"127.0.0.1:{probe.getsockname()[1]}", "token": secrets.token_hex(8), "local_size": ranks, "timeout": 600}
        self.processes = []
        for rank in range(ranks):
            own = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", "PYTHONWARNINGS": "ignore", **variables}
            if ranks > 1:
                own.update(CAIRN_JOB=json.dumps({**job, "rank": rank, "local_rank": rank}), RANK_ID=str(rank), RANK_SIZE=str(ranks))
            cores = CORES[rank * len(CORES) // ranks : max((rank + 1) * len(CORES) // ranks, rank * len(CORES) // ranks + 1)]
            words = ["taskset", "-c", ",".join(map(str, cores)), *before, sys.executable, __file__, name, "--serve", "--threads", str(threads), "--parts", str(parts)]
            self.processes.append(subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=own, text=True))
        self.first = self.answers()

    def answers(self):
        lines = [each.stdout.readline() for each in self.processes]
        if not all(lines):
            raise SystemExit("a worker ended")
        self.signal(signal.SIGSTOP)
        return [json.loads(line) for line in lines]

    def signal(self, number):
        for each in self.processes:
            each.send_signal(number)

    def run(self, steps):
        self.signal(signal.SIGCONT)
        for each in self.processes:
            each.stdin.write(f"run {steps}\n")
            each.stdin.flush()
        made = self.answers()
        return {"t": min(made[0]["t"]), "cpu": sum(each["cpu"] for each in made), "loss": statistics.mean(each["loss"] for each in made),
                "peak": sum(each["peak"] for each in made)}  # fmt: skip

    def end(self):
        self.signal(signal.SIGKILL)
        for each in self.processes:
            each.wait()


def record(name, ranks, folder, steps):
    """A recording of each rank, put together."""
    cairn = Path(sys.executable).parent / "cairn"
    team = Team(name, ranks, 1, before=[str(cairn), "profile", "-o", folder, "--"])
    for each in team.processes:
        each.send_signal(signal.SIGCONT)
        each.stdin.write(f"run {steps}\n")
        each.stdin.close()
    for each in team.processes:
        each.wait()
    subprocess.run([cairn, "profile", "merge", folder, "-o", Path(folder) / "job.perfetto-trace"], check=True)


def compare(name, ranks, rounds, seconds, buckets):
    teams = [Team(name, 1, ranks), Team(name, 1, 1, ranks)]
    teams += [Team(name, ranks, 1, FUSION_TENSOR_SIZE=str(each)) if each else Team(name, ranks, 1) for each in buckets]
    try:
        steps = max(1, int(seconds / max(team.run(2)["t"] for team in teams)))
        made = [[team.run(steps) for team in teams[:: 1 if turn % 2 else -1]][:: 1 if turn % 2 else -1] for turn in range(rounds)]
    finally:
        for team in teams:
            team.end()
    one, alone, *sides = zip(*made)
    return [summary(name, ranks, rounds, bucket, several, one, alone) for bucket, several in zip(buckets, sides)]


def summary(name, ranks, rounds, bucket, several, one, alone):
    made = list(zip(several, one))
    return {
        "bucket": bucket, "of_alone": statistics.median(a["cpu"] / (ranks * b["cpu"]) for a, b in zip(several, alone)),
        "net": name, "batch": training_steps.STEPS[name][2], "ranks": ranks, "rounds": rounds,
        "ranks_ms": statistics.median(each["t"] for each in several) * 1e3, "one_ms": statistics.median(each["t"] for each in one) * 1e3,
        "ratio": statistics.median(a["t"] / b["t"] for a, b in made), "processor_ratio": statistics.median(a["cpu"] / b["cpu"] for a, b in made),
        "losses": [several[-1]["loss"], one[-1]["loss"]], "peak_mib": [several[-1]["peak"], one[-1]["peak"]],
    }  # fmt: skip


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("nets", nargs="*", default=["resnet224"])
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--seconds", type=float, default=1.0, help="of one side's turn")
    parser.add_argument("--buckets", type=lambda text: list(map(int, text.split(","))), default=[0], help="bytes,...; 0: as usual")
    parser.add_argument("--record", help="folder")
    parser.add_argument("--steps", type=int, default=5, help="to record")
    parser.add_argument("--json")
    parser.add_argument("--parts", type=int, default=1, help=argparse.SUPPRESS)
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--threads", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        return serve(options.nets[0], options.threads, options.parts)
    if options.record:
        return record(options.nets[0], options.ranks, options.record, options.steps)
    print(f"{'net':10} {'batch':>5} {'ranks':>5} {'ranks ms':>10} {'one ms':>10}  ratio  of processor time  of parts alone      bucket  peak MiB            losses")
    rows = []
    for name in options.nets:
        for row in compare(name, options.ranks, options.rounds, options.seconds, options.buckets):
            rows.append(row)
            print(f"{name:10} {row['batch']:5} {row['ranks']:5} {row['ranks_ms']:10.2f} {row['one_ms']:10.2f}  {row['ratio']:.3f} {row['processor_ratio']:18.3f}  {row['of_alone']:14.3f}  {row['bucket'] or 'usual':>10}"
                  f" {row['peak_mib'][0]:8.0f} {row['peak_mib'][1]:8.0f}  {row['losses'][0]:.5f} {row['losses'][1]:.5f}", flush=True)  # fmt: skip
    training_steps.write_json(options.json, rows)


if __name__ == "__main__":
    main()

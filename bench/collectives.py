"""All-reduce in place of Cairn beside torch.distributed (Gloo) and Open MPI, on this machine:

    python bench/collectives.py [--ranks N] [--rounds N] [--sizes BYTES,...] [--json FILE]

All ranks of all stay alive and sleep while it is not their turn. A round takes every size by each peer, in turns of some
milliseconds that alternate; a peer's time in a round is that of its fastest turn, since neighbours only ever add time. Ratios are medians over the
rounds, below 1 Cairn is faster: of Python's calls to torch's, and of C's to Open MPI's. Ranks of Cairn have one core each, as `cairn launch`
and mpirun bind them; those of torch move freely, since each has several threads.
"""

import argparse
import json
import os
import secrets
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
CORES = sorted(os.sched_getaffinity(0))
PYTHON = ROOT / ".venv-peers" / "bin" / "python"
SIZES = (1 << 10, 64 << 10, 1 << 20, 100 << 20)
TURN_SECONDS, TURNS = 0.004, 8  # of one peer in a round and size
MUSTS = {"torch": ("cairn", 1.0), "mpi": ("cairn_c", 1.1)}


def functions_of(peer, rank, ranks, folder):
    """barrier, and what makes an all-reduce of so many floats."""
    import numpy as np

    if peer == "cairn":
        import cairn

        cairn.job.join()

        def prepared(count):
            x = np.zeros(count, np.float32)
            return lambda: cairn.ops.all_reduce(x, ranks=ranks, out=x)

        return cairn.ops.barrier, prepared
    import torch
    import torch.distributed

    torch.distributed.init_process_group("gloo", f"file://{folder}/meeting", rank=rank, world_size=ranks)

    def prepared(count):
        x = torch.zeros(count)
        return lambda: torch.distributed.all_reduce(x)

    return torch.distributed.barrier, prepared


def serve(peer, folder):
    """A rank in Python that does what bench/collectives.c does."""
    rank, ranks = int(os.environ["RANK_ID"]), int(os.environ["RANK_SIZE"])
    barrier, prepared = functions_of(peer, rank, ranks, folder)
    size, all_reduce = 0, None
    with open(f"{folder}/{rank}") as orders, open(f"{folder}/answers" if rank == 0 else os.devnull, "w", 1) as answers:
        for line in orders:
            bytes_, count = map(int, line.split())
            if bytes_ != size:
                size, all_reduce = bytes_, prepared(bytes_ // 4)
                all_reduce()
            barrier()
            begin = time.perf_counter()
            for _ in range(count):
                all_reduce()
            answers.write(f"{(time.perf_counter() - begin) / count:.9g}\n")


class Peer:
    """The ranks of one peer, and the pipes to them."""

    def __init__(self, name, ranks, folder):
        self.name, folder = name, folder / name
        folder.mkdir()
        pipes = [folder / str(rank) for rank in range(ranks)] + [folder / "answers"]
        for pipe in pipes:
            os.mkfifo(pipe)
        self.processes = self._start(ranks, folder)
        self.orders = [open(pipe, "w", 1) for pipe in pipes[:-1]]  # noqa: SIM115
        self.answers = open(pipes[-1])  # noqa: SIM115

    def _start(self, ranks, folder):
        if self.name == "mpi":
            program = compiled(folder, ["mpicc", "-DOPEN_MPI"], [])
            more = ["--allow-run-as-root"] if os.geteuid() == 0 else []
            if ranks > len(CORES):
                more += ["--oversubscribe", "--bind-to", "none"]
            return [subprocess.Popen(["mpirun", *more, "-n", str(ranks), program, folder])]
        words = [PYTHON, __file__, "--serve", self.name, folder]
        if self.name == "cairn_c":
            library = [f"-I{ROOT}/include", f"-L{ROOT}/build", "-lcairn", f"-Wl,-rpath,{ROOT}/build"]
            words = [compiled(folder, ["cc"], library), folder]
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            job = {"size": ranks, "address": f"127.0.0.1:{probe.getsockname()[1]}", "token": secrets.token_hex(8)}
        common = {**os.environ, "RANK_SIZE": str(ranks), "OMP_NUM_THREADS": "1"}
        started = []
        for rank in range(ranks):
            core = [] if self.name == "torch" else ["taskset", "-c", str(CORES[rank % len(CORES)])]
            own = {**common, "RANK_ID": str(rank), "CAIRN_JOB": json.dumps({**job, "rank": rank})}
            started.append(subprocess.Popen([*core, *words], env=own))
        return started

    def seconds(self, size, count):
        for pipe in self.orders:
            pipe.write(f"{size} {count}\n")
        return float(self.answers.readline())

    def end(self):
        for pipe in self.orders:
            pipe.close()
        for process in self.processes:
            process.wait(60)


def compiled(folder, compiler, libraries):
    program = folder / "rank"
    subprocess.run([*compiler, "-O2", ROOT / "bench" / "collectives.c", "-o", program, *libraries], check=True)
    return program


def measure(peers, sizes, rounds):
    """{size: {peer: the fastest turn of each round}}"""
    found = {size: {peer.name: [] for peer in peers} for size in sizes}
    for size in sizes:
        counts = {peer: max(1, int(TURN_SECONDS / min(peer.seconds(size, 3) for _ in range(3)))) for peer in peers}
        for number in range(rounds):
            fastest = {}
            for turn in range(TURNS if size < sizes[-1] else 2):
                for peer in peers if (number + turn) % 2 else reversed(peers):
                    fastest[peer.name] = min(fastest.get(peer.name, 1e9), peer.seconds(size, counts[peer]))
            for name, seconds in fastest.items():
                found[size][name].append(seconds)
    return found


def summary(found, ranks):
    """A row for each size: medians of the times in us, and of the ratios."""
    rows = []
    for size, times in found.items():
        row = {"ranks": ranks, "bytes": size, **{f"{name}_us": statistics.median(each) * 1e6 for name, each in times.items()}}
        for other, (own, _) in MUSTS.items():
            if other in times:
                row[f"to_{other}"] = statistics.median(a / b for a, b in zip(times[own], times[other]))
        rows.append(row)
    return rows


def main():
    if sys.argv[1:2] == ["--serve"]:
        return serve(*sys.argv[2:4])
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--sizes", type=lambda text: tuple(map(int, text.split(","))), default=SIZES)
    parser.add_argument("--peers", default="cairn,torch,cairn_c,mpi")
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        peers = [Peer(name, args.ranks, Path(folder)) for name in args.peers.split(",")]
        rows = summary(measure(peers, args.sizes, args.rounds), args.ranks)
        for peer in peers:
            peer.end()
    print("all-reduce, us".ljust(18) + "".join(f"{peer.name:>12}" for peer in peers) + "    of torch   of Open MPI")
    for row in rows:
        times = "".join(f"{row[peer.name + '_us']:12.1f}" for peer in peers)
        print(f"{row['bytes']:>12} bytes{times}" + "".join(f"{row.get('to_' + other, float('nan')):12.2f}" for other in MUSTS))
    if args.json:
        args.json.write_text(json.dumps({"ranks": args.ranks, "rounds": args.rounds, "musts": {k: v[1] for k, v in MUSTS.items()}, "rows": rows}, indent=1))


if __name__ == "__main__":
    main()

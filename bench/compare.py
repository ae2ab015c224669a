"""Interleaved comparison of programs, each in its own process.

  ./dev bench                                        the standard table
  ./dev bench cairn:resnet50:1:2 openvino:resnet50:1:2 --rounds 8 --json out/bench.json

A case is PEER[/MODE][+DTYPE]:MODEL[:BATCH[:THREADS]], both 1 when left out. Peers: cairn ort openvino torch tf, and peak
(peak:GFLOP:1:THREADS: that much register-only arithmetic, the live peak of the machine). Cases are compared with the
first of the same model, batch and threads (peak with all). Every round runs each case once, in alternating order; the
ratio is the median over rounds of fastest iteration / the first case's fastest iteration of the same round: neighbours
on the machine only ever add time, and they add it to whole rounds. A worker is stopped while it is not its turn, so that
spinning pools cost the others nothing."""

import argparse
import itertools
import json
import math
import os
import re
import select
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

import nets
import worker

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
sys.path.insert(0, str(ROOT / "tools" / "dev"))
ENVIRONMENT = {"tf": ".venv", "cairn": ".venv-peers", "ort": ".venv-peers", "openvino": ".venv-peers", "torch": ".venv-peers"}
STANDARD = [
    f"{peer}:{model}:1:{threads}"
    for model, threads in (("resnet50", 1), ("resnet50", 2), ("mobilenetv2", 1), ("mobilenetv2", 2), ("lenet", 1), ("mlp", 1))
    for peer in ("cairn", "openvino", "ort", "tf")
]
# Variables that hold programs to older vectors. ONNX Runtime's kernels, which OpenVINO calls for f32 products of matrices, know none.
HELD = {"avx2": {"CAIRN_ISA": "avx2", "ONEDNN_MAX_CPU_ISA": "AVX2", "ATEN_CPU_CAPABILITY": "avx2"}}
READY_SECONDS, TURN_SECONDS = 300, 600


@dataclass
class Case:
    name: str
    peer: str
    mode: str
    dtype: str
    model: str
    batch: int
    threads: int
    worker: subprocess.Popen = None
    errors: object = None
    ready: dict = field(default_factory=dict)
    fastest: list = field(default_factory=list)  # seconds, one a round
    medians: list = field(default_factory=list)
    processor: list = field(default_factory=list)  # seconds of the processor's time, by the fastest iteration of each round
    rss_mb: float = 0
    problem: str = ""

    @property
    def group(self):
        return (self.model, self.batch, self.threads, self.dtype)


def parse_case(text):
    match = re.fullmatch(r"(\w+)(?:/(\w+))?(?:\+(\w+))?:([\w.]+)(?::(\d+))?(?::(\d+))?", text)
    if not match or match[1] not in (*ENVIRONMENT, "peak"):
        raise argparse.ArgumentTypeError(f"expected PEER[/MODE][+DTYPE]:MODEL[:BATCH[:THREADS]], found {text}")
    peer, mode, dtype, model, batch, threads = match.groups()
    if peer != "peak" and model not in nets.NETS:
        raise argparse.ArgumentTypeError(f"no net '{model}'; there are {', '.join(nets.NETS)}")
    return Case(text, peer, mode or "default", dtype or "fp32", model, int(batch or 1), int(threads or 1))


# Files ----------------------------------------------------------------------------------------------------------------


def ensure_files(cases):
    """Makes the model files that the cases need, once per content of the scripts; returns their folder."""
    import machine
    from steps import run, step

    makers = [HERE / name for name in ("make_models.py", "nets.py", "torch_net.py", "tf_net.py")]
    folder = machine.cache_folder("bench", *(maker.read_bytes() for maker in makers))
    for case in cases:
        formats = ["onnx"] + [case.dtype] * (case.dtype in worker.FILES) + ["pb"] * (case.peer == "tf")
        for kind in formats if case.peer != "peak" else ():
            made = folder / f"{case.model}.{kind}.made"
            if made.exists():
                continue
            with step(f"model {case.model}, {kind}"), machine.exclusive(folder / "make"):
                python = ROOT / (".venv" if kind == "pb" else ".venv-peers") / "bin/python"
                run([python, HERE / "make_models.py", kind, case.model, folder])
                made.touch()
    return folder


def peak_program():
    program = ROOT / "build" / "bench-peak"
    source = HERE / "peak.cpp"
    if not program.exists() or program.stat().st_mtime < source.stat().st_mtime:
        options = ["-std=c++20", "-O2", "-march=native", "-pthread"]
        subprocess.run(["g++", *options, source, "-o", program], check=True)
    return program


# Workers --------------------------------------------------------------------------------------------------------------


def start(case, models):
    if case.peer == "peak":
        command = [peak_program(), case.dtype, case.model, case.threads]
    else:
        command = [ROOT / ENVIRONMENT[case.peer] / "bin/python", HERE / f"peer_{case.peer}.py", "--models", models]
        for option in ("model", "batch", "threads", "mode", "dtype"):
            command += [f"--{option}", getattr(case, option)]
    processors = sorted(os.sched_getaffinity(0))[: case.threads]
    environment = {
        **os.environ,
        "OMP_NUM_THREADS": str(case.threads),
        "TF_CPP_MIN_LOG_LEVEL": "3",
        "PYTHONWARNINGS": "ignore",
        "PEER_T0": repr(time.time()),
    }
    case.errors = tempfile.TemporaryFile("w+")
    case.worker = subprocess.Popen(
        [str(word) for word in command],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=case.errors,
        env=environment,
        text=True,
        start_new_session=True,
        preexec_fn=lambda: os.sched_setaffinity(0, processors),
    )
    answer = receive(case, "READY", READY_SECONDS)
    if answer is not None:
        case.ready = answer
        case.rss_mb = answer.get("rss_mb", 0)
        os.killpg(case.worker.pid, signal.SIGSTOP)


def receive(case, word, seconds):
    """The JSON after `word` on the worker's next such line; None, with case.problem set, when it does not come."""
    end = time.time() + seconds
    while time.time() < end:
        if not select.select([case.worker.stdout], [], [], 1.0)[0]:
            continue
        line = case.worker.stdout.readline()
        if not line:
            break
        if line.startswith(word):
            return json.loads(line[len(word) :])
    case.errors.seek(0)
    lines = [line for line in case.errors.read().splitlines() if line.strip()]
    case.problem = lines[-1] if lines else f"no answer in {seconds} s"
    return None


def take_turn(case, seconds, minimum):
    os.killpg(case.worker.pid, signal.SIGCONT)
    case.worker.stdin.write(f"run {seconds} {minimum}\n")
    case.worker.stdin.flush()
    answer = receive(case, "TIMES", TURN_SECONDS)
    if answer is None:
        return
    os.killpg(case.worker.pid, signal.SIGSTOP)
    case.fastest.append(min(answer["t"]))
    case.medians.append(statistics.median(answer["t"]))
    case.processor.append(answer.get("cpu", math.nan))
    case.rss_mb = max(case.rss_mb, answer.get("rss_mb", 0))


def end(case):
    if case.worker and case.worker.poll() is None:
        os.killpg(case.worker.pid, signal.SIGKILL)
        case.worker.wait()


def measure(cases, options):
    """Runs the rounds of cases that are compared with one another."""
    models = ensure_files(cases)
    try:
        for case in cases:
            start(case, models)
        for turn in range(options.rounds):
            for case in cases if turn % 2 == 0 else reversed(cases):
                if not case.problem:
                    take_turn(case, options.seconds, options.minimum)
    finally:
        for case in cases:
            end(case)


# Results --------------------------------------------------------------------------------------------------------------


def result(case, first, peak):
    row = {"case": case.name, **{key: getattr(case, key) for key in ("model", "batch", "threads", "dtype")}}
    if case.problem:
        return {**row, "problem": case.problem}
    row |= {
        "fastest_ms": min(case.fastest) * 1e3,
        "median_ms": statistics.median(case.medians) * 1e3,
        "ratio": statistics.median(a / b for a, b in zip(case.fastest, first.fastest)),
        "processor_ms": min(case.processor) * 1e3,
        "processor_ratio": statistics.median(a / b for a, b in zip(case.processor, first.processor)),
        "rounds": len(case.fastest),
        "rss_mb": case.rss_mb,
        **case.ready,
    }
    if peak and case is not peak:
        gflop = nets.NETS[case.model][2] * case.batch
        share = statistics.median(p / c for p, c in zip(peak.fastest, case.fastest))
        row["share_of_peak"] = share * gflop / float(peak.model)
    return row


def print_rows(rows):
    width = max(len(row["case"]) for row in rows)
    print(f"{'case':{width}}  fastest ms  median ms  RSS MB  first s  peak %  processor ms  ratio to the first: time, processor")
    for row in rows:
        if "problem" in row:
            print(f"{row['case']:{width}}  FAILED: {row['problem']}")
            continue
        share = f"{row['share_of_peak'] * 100:6.0f}" if "share_of_peak" in row else " " * 6
        print(
            f"{row['case']:{width}}  {row['fastest_ms']:10.3f} {row['median_ms']:10.3f} {row['rss_mb']:7.0f} "
            f"{row.get('first_s', 0):8.2f}  {share}  {row['processor_ms']:12.3f}  {row['ratio']:.3f} {row['processor_ratio']:.3f}"
        )
    norms = [row["norm"] for row in rows if row.get("norm") and row["dtype"] == "fp32"]
    if norms and max(norms) > min(norms) * (1 + 1e-3):
        print(f"outputs differ: norms {', '.join(f'{norm:.6g}' for norm in norms)}")
    print(flush=True)


def main():
    parser = argparse.ArgumentParser(prog="./dev bench", description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("cases", nargs="*", type=parse_case)
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--seconds", type=float, default=1.0, help="length of one turn")
    parser.add_argument("--minimum", type=int, default=3, help="iterations of one turn at least")
    parser.add_argument("--json", default="out/bench.json", help="where the rows go (default %(default)s)")
    parser.add_argument("--isa", choices=HELD, help="hold Cairn, and of its peers what can be held, to older vectors")
    options = parser.parse_args()
    os.environ.update(HELD.get(options.isa, {}))
    cases = options.cases or [parse_case(text) for text in STANDARD]
    peaks = [case for case in cases if case.peer == "peak"]
    rest = sorted((case for case in cases if case.peer != "peak"), key=lambda case: list(map(str, case.group)))
    rows = []
    for _, group in itertools.groupby(rest, key=lambda case: case.group) if rest else [(None, [])]:
        group = list(group)
        threads = group[0].threads if group else None
        peak = next((case for case in peaks if threads in (None, case.threads)), None)
        together = group + ([parse_case(peak.name)] if peak else [])
        measure(together, options)
        first = next((case for case in together if case.fastest), None)
        rows += [result(case, first, together[-1] if peak and group else None) for case in together]
        print_rows(rows[-len(together) :])
    file = ROOT / options.json
    file.parent.mkdir(parents=True, exist_ok=True)
    load = os.getloadavg()
    file.write_text(json.dumps({"processors": os.cpu_count(), "load": load, "isa": options.isa, "rows": rows}, indent=1))
    print(f"load {load[0]:.1f}; written to {options.json}")
    return 1 if any("problem" in row for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())

"""The protocol between compare.py and a worker process. The worker builds everything, runs once, prints `READY {json}`,
then obeys lines on stdin: `run SECONDS MINIMUM` is answered by `TIMES {"t": [seconds of each iteration], "cpu": processor time of
the fastest, "rss_mb": peak}`."""

import argparse
import json
import os
import sys
import time

KEPT = 2000  # times of one answer
FILES = ("int8", "w4", "w8", "w4a8", "w8a8", "w8c")  # types with a file of their own
_started = float(os.environ.get("PEER_T0", time.time()))


def arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", required=True)
    parser.add_argument("--models", required=True, help="folder of the model files")
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--mode", default="default")
    parser.add_argument("--dtype", default="fp32", choices=("fp32", "bf16", *FILES))
    return parser.parse_args()


def onnx_file(options):
    return f"{options.models}/{options.model}{'.' + options.dtype if options.dtype in FILES else ''}.onnx"


def peak_megabytes():
    """VmHWM: ru_maxrss would inherit the parent's."""
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) / 1024 for line in status if line.startswith("VmHWM"))


def serve(iteration, note, warm_up=3):
    """iteration() does the work once and returns the output as an array; never returns."""
    import numpy as np

    output = np.asarray(iteration(), dtype=np.float64).ravel()
    ready = {
        "note": note,
        "first_s": time.time() - _started,
        "out": output[:4].tolist(),
        "norm": float(np.sqrt((output**2).sum())),
    }
    for _ in range(warm_up):
        iteration()
    ready["rss_mb"] = peak_megabytes()
    print("READY " + json.dumps(ready), flush=True)
    for line in sys.stdin:
        _, seconds, minimum = line.split()
        times, processor = _measure(iteration, float(seconds), int(minimum))
        print("TIMES " + json.dumps({"t": times[-KEPT:], "cpu": processor, "rss_mb": peak_megabytes()}), flush=True)
    os._exit(0)  # some peers hang in their destructors


def _measure(iteration, seconds, minimum):
    times, processor, end = [], [], time.perf_counter() + seconds
    while len(times) < minimum or time.perf_counter() < end:
        start, used = time.perf_counter(), time.process_time()
        iteration()
        times.append(time.perf_counter() - start)
        processor.append(time.process_time() - used)
    return times, min(processor)

"""A training script in a process of its own, and what it recorded there (see record): `cairn port` and `cairn diff --script`."""

import contextlib
import json
import os
import select
import shutil
import signal
import subprocess
import sys

import numpy as np


ABOUT = ("roundoff", "eager")  # the run as a whole


class DoesNotRun(Exception):
    """The script ended with a fault, or recorded nothing; a sentence with the end of its log."""


class TakesTooLong(DoesNotRun):
    pass


class Server:
    """Runs scripts in forks of one process that has imported TensorFlow (see served)."""

    def __init__(self, environment=None):
        self._process, self._environment = None, environment or os.environ

    def run(self, words, folder, environment, log, timeout):
        """The exit code, or None when it takes too long."""
        if self._process is None:
            command = [sys.executable, "-m", "cairn_tf1.served"]
            quiet = {"TF_CPP_MIN_LOG_LEVEL": "2", **self._environment}
            self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=quiet, text=True,
                                             start_new_session=True)  # fmt: skip
        request = {"words": words, "folder": str(folder), "environment": environment, "log": str(log)}
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.write(json.dumps(request) + "\n")
            self._process.stdin.flush()
        if not select.select([self._process.stdout], [], [], timeout)[0]:
            self.close()
            return None
        answer = self._process.stdout.readline()
        if not answer:  # it cannot even import TensorFlow; it said so on standard error
            self.close()
            return 1
        return int(answer)

    def close(self):
        if self._process:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
            self._process = None


def train(script, options, name, engine, environment, words=(), server=None):
    """{key: array} of the run `name`, in the folder options.output, which keeps its log as well; "trained" tells whether some run
    updated variables. `words` stand before the script. Each run begins in an empty folder: it may leave checkpoints."""
    folder = options.output.resolve()
    record, log, home = folder / f"{name}.npz", folder / f"{name}.log", folder / f"{name}.run"
    record.unlink(missing_ok=True)
    shutil.rmtree(home, ignore_errors=True)
    home.mkdir()
    environment = {**os.environ, "CAIRN_ENGINE": engine, "CAIRN_RECORD": str(record), **environment}
    words = [*words, str(script), *options.arguments]
    code = (server.run if server else alone)(words, home, environment, log, options.timeout)
    if code is None:
        raise TakesTooLong(f"{name} ran longer than {options.timeout:.0f} s; log: {log}")
    if code or not record.exists():
        lines = log.read_text(errors="replace").strip().splitlines()[-6:] if log.exists() else []
        raise DoesNotRun(f"the script does not run on {engine} (exit {code}); log: {log}\n  " + "\n  ".join(lines))
    with np.load(record) as arrays:
        return {key: arrays[key] for key in arrays.files if key not in ABOUT}


def alone(words, folder, environment, log, timeout):
    """In an interpreter of its own; the exit code, or None when it takes too long."""
    command = [sys.executable, "-m", "cairn_tf1", *words]
    with open(log, "wb") as file:
        try:
            return subprocess.run(command, cwd=folder, env=environment, stdout=file, stderr=file, timeout=timeout).returncode
        except subprocess.TimeoutExpired:
            return None


def widened(array):
    """bfloat16, which NumPy's files do not know, as float32."""
    if array.dtype.name != "bfloat16" and array.dtype.kind != "V":
        return array
    return (array.view(np.uint16).astype(np.uint32) << 16).view(np.float32)


def difference(found, expected):
    """Largest difference, and the largest element; values that are not finite on one side only make it infinite."""
    if found.shape != expected.shape:
        return float("inf"), 1.0
    found, expected = found.astype(np.complex128), expected.astype(np.complex128)
    finite = np.isfinite(expected)
    if not np.array_equal(finite, np.isfinite(found)):
        return float("inf"), 1.0
    size = float(np.abs(expected[finite]).max(initial=0))
    return float(np.abs(found[finite] - expected[finite]).max(initial=0)), size

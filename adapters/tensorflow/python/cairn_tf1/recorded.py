"""A training script in a process of its own, and what it recorded there (see record): `cairn port` and `cairn diff --script`."""

import os
import shutil
import subprocess
import sys

import numpy as np


class DoesNotRun(Exception):
    """The script ended with a fault, or recorded nothing; a sentence with the end of its log."""


class TakesTooLong(DoesNotRun):
    pass


def train(script, options, name, engine, environment, words=()):
    """{key: array} of the run `name`, in the folder options.output, which keeps its log as well; "trained" tells whether some run
    updated variables. `words` stand before the script. Each run begins in an empty folder: it may leave checkpoints."""
    folder = options.output.resolve()
    record, log, home = folder / f"{name}.npz", folder / f"{name}.log", folder / f"{name}.run"
    record.unlink(missing_ok=True)
    shutil.rmtree(home, ignore_errors=True)
    home.mkdir()
    environment = {**os.environ, "CAIRN_ENGINE": engine, "CAIRN_RECORD": str(record), **environment}
    command = [sys.executable, "-m", "cairn_tf1", *words, str(script), *options.arguments]
    with open(log, "wb") as file:
        try:
            code = subprocess.run(command, cwd=home, env=environment, stdout=file, stderr=file, timeout=options.timeout).returncode
        except subprocess.TimeoutExpired:
            raise TakesTooLong(f"{name} ran longer than {options.timeout:.0f} s; log: {log}") from None
    if code or not record.exists():
        lines = log.read_text(errors="replace").strip().splitlines()[-6:]
        raise DoesNotRun(f"the script does not run on {engine} (exit {code}); log: {log}\n  " + "\n  ".join(lines))
    with np.load(record) as arrays:
        return {key: arrays[key] for key in arrays.files}


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

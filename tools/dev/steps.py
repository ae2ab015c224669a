"""One line per step on the terminal, everything else in build/log; the log's last lines are shown when a step fails."""

import contextlib
import os
import re
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LOG = ROOT / "build" / "log"
TAIL = 40
_interactive = sys.stdout.isatty()


class StepFailed(Exception):
    """The step's line and the log's tail are already printed."""


def start_log(command):
    LOG.parent.mkdir(exist_ok=True)
    LOG.write_text(f"{time.strftime('%Y-%m-%d %H:%M:%S')} ./dev {command}\n")


def note(text):
    LOG.parent.mkdir(exist_ok=True)
    with LOG.open("a", buffering=1) as log:
        log.write(text + "\n")


@contextlib.contextmanager
def step(name):
    """Prints "name ... 12.3 s" when the block ends; inside, call run()."""
    start = time.time()
    if _interactive:
        print(f"        {name}", end="\r", flush=True)
    note(f"== {name}")
    try:
        yield
    except subprocess.CalledProcessError as error:
        _finish(start, name + ": FAILED")
        for line in LOG.read_text(errors="replace").splitlines()[-TAIL:]:
            print("    " + line)
        print(f"dev: {name} failed (exit {error.returncode}); whole log: {LOG.relative_to(ROOT)}", flush=True)
        raise StepFailed(name) from error
    _finish(start, name)


def _finish(start, name):
    print(f"{time.time() - start:6.1f} s {name}" + (" " * 20 if _interactive else ""), flush=True)


def run(command, cwd=ROOT, **environment):
    """Runs a command with its output in the log; counters such as ninja's [3/120] are mirrored on a terminal."""
    note("$ " + " ".join(map(str, command)))
    process = subprocess.Popen(
        [str(word) for word in command],
        cwd=cwd,
        env={**os.environ, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    )
    with LOG.open("a", buffering=1) as log:
        for line in process.stdout:
            log.write(line)
            counter = re.match(r"\s*\[\d+/\d+\]", line)
            if counter and _interactive:
                print(f"{counter.group().strip():>8}", end="\r", flush=True)
    if process.wait():
        raise subprocess.CalledProcessError(process.returncode, command)

"""A training script in a process of its own, and what it recorded there (see record): `cairn port` and `cairn diff --script`."""

import contextlib
import json
import os
import re
import select
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
from cairn import _cairn
from cairn._ending import WORK_MARK

ABOUT = ("roundoff", "eager", "races")  # the run as a whole
COPIED_FILE = 16 << 20  # bytes; a larger file is linked, not copied, into the folder of a run
COPIED_BYTES, COPIED_ENTRIES = 1 << 30, 20_000  # in all; what lies beyond is linked as well


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
            with open(log, "wb") as file:  # where it says why it cannot import TensorFlow
                self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=file, env=quiet,
                                                 text=True, start_new_session=True)  # fmt: skip
        request = {"words": words, "folder": str(folder), "environment": environment, "log": str(log)}
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.write(json.dumps(request) + "\n")
            self._process.stdin.flush()
        if not select.select([self._process.stdout], [], [], timeout)[0]:
            self.close()
            return None
        answer = self._process.stdout.readline()
        if not answer:  # it cannot even import TensorFlow
            self.close()
            return 1
        return int(answer)

    def close(self):
        if self._process:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
            self._process = None


def train(script, options, name, engine, environment, words=(), server=None, project=None):
    """{key: array} of the run `name`, in the folder options.output, which keeps its log as well; "trained" tells whether some run
    updated variables. `words` stand before the script. Each run begins in a folder of its own with the files of `project`,
    else of the script's folder (see lay_out): relative paths start there, and it may leave checkpoints."""
    folder = options.output.resolve()
    record, log, home = folder / f"{name}.npz", folder / f"{name}.log", folder / f"{name}.run"
    record.unlink(missing_ok=True)
    shutil.rmtree(home, ignore_errors=True)
    (folder / WORK_MARK).touch()
    project = project or script.parent
    lay_out(project, home)
    environment = {**os.environ, "CAIRN_ENGINE": engine, "CAIRN_RECORD": str(record), **environment}
    words = [*words, str(home / script.relative_to(project)), *options.arguments]
    code = (server.run if server else alone)(words, home, environment, log, options.timeout)
    if code is None:
        raise TakesTooLong(f"{name} ran longer than {options.timeout:.0f} s; log: {log}")
    if code or not record.exists():
        raise DoesNotRun(f"the script does not run on {engine} (exit {code}): {cause(log)}; log: {log}")
    with np.load(record) as arrays:
        return {key: arrays[key] for key in arrays.files if key not in ABOUT}


def lay_out(project, folder):
    """`folder` gets the files of `project`: copies of small ones, so that a run changes nothing outside its folder, and links to
    large ones, to hidden folders and to what lies beyond the bounds. What `folder` has already stays; work folders are left
    out: each would hold copies of the others."""
    pending, entries, size = [(Path(project), Path(folder))], COPIED_ENTRIES, COPIED_BYTES
    while pending:
        source, target = pending.pop(0)
        target.mkdir(parents=True, exist_ok=True)
        for entry in sorted(os.scandir(source), key=lambda entry: entry.name):
            path, place = Path(entry.path), target / entry.name
            entries -= 1
            if entry.name == "__pycache__" or (path / WORK_MARK).exists():
                continue
            if entry.is_dir(follow_symlinks=False) and entries > 0 and not entry.name.startswith("."):
                pending.append((path, place))
            elif not os.path.lexists(place):
                own = entry.stat().st_size if entry.is_file(follow_symlinks=False) else COPIED_BYTES
                if own <= min(size, COPIED_FILE) and entries > 0:
                    shutil.copy2(path, place)
                    size -= own
                else:
                    place.symlink_to(os.path.abspath(path))


FRAME = re.compile(r'^\s+File "([^"]+)", line (\d+)', re.MULTILINE)
FOREIGN = re.compile(r"-packages/|/cairn_tf1/|^<|/lib/python3")
RAISED = re.compile(r"^[A-Za-z_][\w.]*(?:: .*)?$")  # the line of a traceback that names the exception
NOT_A_CAUSE = re.compile(r"^(Graph execution error:|\d+ root error\(s\) found\.|\s*\[\[|\s*$)")


def cause(log):
    """What ended a script, from the end of its log: the exception's own words with the line of the script, else the last line."""
    text = log.read_text(errors="replace").strip() if log.exists() else ""
    begin = text.rfind("Traceback (most recent call last):")
    lines = text[begin:].splitlines() if begin >= 0 else []
    last = next((at for at, line in enumerate(lines[1:], 1) if RAISED.match(line)), None)
    if last is None:
        return (text.splitlines() or ["it said nothing"])[-1]
    name, _, first = lines[last].partition(": ")
    words = [first, *lines[last + 1 :]]
    frames_end = max((at + 1 for at, line in enumerate(words) if line.startswith("Node: ")), default=0)  # TensorFlow's own frames
    words = [line for line in words[frames_end:] if not NOT_A_CAUSE.match(line)]
    own = [(file, line) for file, line in FRAME.findall("\n".join(lines[:last])) if not FOREIGN.search(file)]
    place = "".join(f"{os.path.basename(file)}:{line}: " for file, line in own[-1:])
    return place + name.rpartition(".")[2] + (f": {words[0].strip()}" if words else "")


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
    far = _cairn._distance(*(parts(array) for array in (found, expected)))
    return float("inf") if far["unlike"] else far["most"], far["largest"]


def parts(array):
    """A complex number as two."""
    return np.ascontiguousarray(array).view(array.real.dtype) if array.dtype.kind == "c" else array


def first_faults(fails, nodes):
    """The operators of {name: fails} that fail although none does that they were made from; `nodes`: {name: {"inputs": names}}."""
    places = {name: place for place, name in enumerate(nodes)}
    inputs = [[places[each] for each in node["inputs"] if each in places] for node in nodes.values()]
    first = _cairn._first_faults([fails.get(name) for name in nodes], inputs)
    return {name for name, place in places.items() if first[place]}

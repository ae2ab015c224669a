"""A process that holds one side of a comparison. It answers each line by one line of JSON on a pipe of its own, and stands still
while the other sides work. What it prints goes to a log file."""

import contextlib
import json
import os
import signal
import subprocess
from pathlib import Path


class Failed(Exception):
    """A case that a side cannot run; the text says why."""


class Side:
    def __init__(self, name, command, log, **environment):
        self.name, self.log = name, log
        answers, out = os.pipe()
        env = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "1", "PYTHONHASHSEED": "0", "BREADTH_ANSWERS": str(out), **environment}
        with open(log, "w") as file:
            self.process = subprocess.Popen(
                list(map(str, command)),
                env=env,
                stdin=subprocess.PIPE,
                stdout=file,
                stderr=file,
                pass_fds=[out],
                start_new_session=True,
                text=True,
            )
        os.close(out)
        self.answers = os.fdopen(answers)

    def ask(self, line):
        self.process.send_signal(signal.SIGCONT)
        try:
            self.process.stdin.write(line + "\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            pass
        text = self.answers.readline()
        if not text:
            raise Failed(f"{self.name} ended with {self.process.wait()}: {self.log}")
        answer = json.loads(text)
        if "error" in answer:
            raise Failed(f"{self.name}: {answer['error']}")
        self.process.send_signal(signal.SIGSTOP)
        return answer

    def end(self):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)  # OpenVINO leaves a process of its own behind
        self.process.wait()
        self.answers.close()


def report_file(stem):
    """Which clusters Cairn made of TensorFlow's graphs."""
    return Path(f"{stem}.report.json")


def steps_file(stem):
    """Which steps of Cairn's plans run on the engine `reference`."""
    return Path(f"{stem}.steps.tsv")


def watched(stem):
    """The environment in which Cairn writes these files, from nothing."""
    files = {"CAIRN_REPORT": report_file(stem), "CAIRN_REFERENCE_STEPS": steps_file(stem)}
    for file in files.values():
        file.unlink(missing_ok=True)
    return {name: str(file) for name, file in files.items()}


def reference(stem):
    """The operators that ran on the engine `reference`."""
    file = steps_file(stem)
    return sorted({line.split("\t")[0] for line in file.read_text().splitlines()}) if file.exists() else []


def serve(commands):
    """The worker's part: obeys lines `COMMAND [ARGUMENT]` from the driver until it is killed."""
    import sys
    import traceback

    with os.fdopen(int(os.environ["BREADTH_ANSWERS"]), "w") as out:
        for line in sys.stdin:
            name, *arguments = line.split()
            try:
                answer = commands[name](*arguments)
            except Exception as error:  # the driver tells it beside the case
                traceback.print_exc()
                answer = {"error": f"{type(error).__name__}: {str(error)[:1000]}"}
            print(json.dumps(answer), file=out, flush=True)


def peak():
    """The most memory that this process has held, in MiB."""
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) / 1024 for line in status if line.startswith("VmHWM"))

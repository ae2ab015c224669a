"""`python -m cairn_tf1.served`: imports TensorFlow once, then runs scripts, each in a fork of this process: importing takes longer
than many a run. A request is a line of JSON on standard input, {"words", "folder", "environment", "log"}; its answer is a line with
the exit code."""

import json
import os
import runpy
import sys


def main():
    import tensorflow  # noqa: F401: what the forks share

    for line in sys.stdin:
        request = json.loads(line)
        child = os.fork()
        if child == 0:
            return run(request)
        _, status = os.waitpid(child, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)


def run(request):
    """In the fork, which ends as a process of its own would."""
    nothing = os.open(os.devnull, os.O_RDONLY)
    log = os.open(request["log"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    for target, source in ((0, nothing), (1, log), (2, log)):
        os.dup2(source, target)
    sys.stdin = open(0)
    os.environ.clear()
    os.environ.update(request["environment"])
    os.chdir(request["folder"])
    sys.argv = ["cairn_tf1", *request["words"]]
    sys.path[0] = request["folder"]
    runpy.run_module("cairn_tf1", run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()

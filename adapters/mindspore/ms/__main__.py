"""cairn ms: runs a MindSpore script, or a module, on Cairn's engine."""

import os
import runpy
import sys
import time

_HELP = """cairn ms: run a MindSpore script on the engine
Usage: cairn ms [OPTIONS] SCRIPT [ARGUMENTS...]
       cairn ms [OPTIONS] -m MODULE [ARGUMENTS...]

Options:
  -h, --help               print this help
  --level LEVEL            0.5, 1.1 or 1.10: whose meaning names have that changed theirs
                           [CAIRN_MS_LEVEL, else 1.10]
  --strict                 what a graph cannot capture is an error, instead of running eagerly
  --support [SCRIPT...]    which names of MindSpore are supported; of scripts: what they use

Examples:
  cairn ms train.py --epochs 1
  cairn ms --level 0.5 lenet.py --device_target CPU
  cairn ms -m pytest tests/
  cairn launch -n 4 cairn ms train.py      on four processes
  cairn ms --support train.py              what it needs and lacks, with lines"""


# Variables of which one describes a job of several ranks, beside those of mpirun.
_JOBS = ("CAIRN_JOB", "RANK_TABLE_FILE", "MINDSPORE_HCCL_CONFIG_PATH", "CM_WORKER_SIZE")


class _Fault(Exception):
    """What is wrong with the command line."""


def _options(words):
    """(options, what is left: a script or -m MODULE with its arguments)."""
    options = {"level": None, "strict": False, "support": False, "help": False}
    words = list(words)
    while words and words[0].startswith("-") and words[0] != "-m":
        word, _, value = words.pop(0).partition("=")
        if word in ("-h", "--help"):
            return {**options, "help": True}, []
        if word == "--level":
            if not value and not words:
                raise _Fault("--level needs a value")
            options["level"] = value or words.pop(0)
        elif word in ("--strict", "--support"):
            options[word[2:]] = True
        else:
            raise _Fault(f"no option is called {word}")
    if not words and not options["support"]:
        raise _Fault("a script or -m MODULE is needed")
    if words == ["-m"]:
        raise _Fault("-m needs a module")
    return options, words


def main(words):
    options, rest = _options(words)
    if options["help"]:
        return _told(lambda: print(_HELP))
    if options["strict"]:
        os.environ["CAIRN_MS_STRICT"] = "1"
    if options["level"]:
        from cairn.ms import level

        try:
            level.select(options["level"])
        except ValueError as error:
            raise _Fault(str(error)) from None
        os.environ["CAIRN_MS_LEVEL"] = options["level"]
    if options["support"]:
        from cairn.ms import support

        return _told(lambda: support.main(rest))
    if "OMPI_COMM_WORLD_SIZE" in os.environ:
        from cairn.ms import ranks

        ranks.take_over_mpi()
    elif not any(name in os.environ for name in _JOBS):
        for name, value in {"DEVICE_ID": "0", "RANK_ID": "0", "RANK_SIZE": "1"}.items():
            os.environ.setdefault(name, value)
    time.clock = getattr(time, "clock", time.perf_counter)  # which scripts of Python 3.7 call
    _restore_numpy()
    if rest[0] == "-m":
        sys.argv = rest[1:]
        sys.path.insert(0, os.getcwd())
        runpy.run_module(rest[1], run_name="__main__", alter_sys=True)
        return 0
    if not os.path.exists(rest[0]):
        raise _Fault(f"{rest[0]}: no such file")
    sys.argv = rest
    sys.path.insert(0, os.path.dirname(os.path.abspath(rest[0])))
    runpy.run_path(rest[0], run_name="__main__")
    return 0


def _restore_numpy():
    """Names that NumPy had in MindSpore's time and lost since, by which scripts say bool and float."""
    import numpy

    for name, value in {"bool": bool, "int": int, "float": float, "complex": complex, "object": object, "str": str}.items():
        if name not in vars(numpy):
            setattr(numpy, name, value)
    for name, now in {"float_": "float64", "int0": "intp", "complex_": "complex128", "unicode_": "str_", "NaN": "nan", "Inf": "inf", "PINF": "inf", "infty": "inf",
                      "product": "prod", "cumproduct": "cumprod", "alltrue": "all", "sometrue": "any", "trapz": "trapezoid"}.items():  # fmt: skip
        if name not in vars(numpy):
            setattr(numpy, name, getattr(numpy, now))


def _told(tell):
    """The status of what prints to standard output; output that is lost is a fault, which says why unless its reader left."""
    try:
        status = tell() or 0
        if sys.stdout is None:
            raise OSError("standard output is closed")
        sys.stdout.flush()
        return status
    except BrokenPipeError:
        reason = None
    except OSError as error:
        reason = error.strerror or error
    if sys.stdout is not None:  # nothing is left for Python to flush when it ends
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    if reason:
        raise _Fault(reason)
    return 1


def _refuse(fault):
    try:
        print(f"error: ms: {fault}", file=sys.stderr, flush=True)
    except (OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stderr.fileno())
    return 1


if __name__ == "__main__":
    # python -m puts the working folder first on the path; a script's own folder takes its place.
    if sys.path and sys.path[0] in ("", os.getcwd()):
        sys.path.pop(0)
    try:
        ended = main(sys.argv[1:])
    except _Fault as fault:
        ended = _refuse(fault)
    sys.exit(ended)

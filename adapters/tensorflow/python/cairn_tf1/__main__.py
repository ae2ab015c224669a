"""`python -m cairn_tf1 train.py args`: looks through the script and the modules beside it for names that nothing supplies, tells
all of them with their lines, and runs the script when there are none. `--tf2` runs a TensorFlow 2 script as it is."""

import argparse
import os
import re
import runpy
import sys
import threading
import traceback

from cairn import _ending as ending

from cairn_tf1 import recorded

USAGE = "python -m cairn_tf1 [--anyway | --tf2] script.py [arguments of the script]"


def main():
    parser = ending.Parser(prog="cairn tf1", usage=USAGE, description="runs a TensorFlow 1 script on 2.15")
    parser.add_argument("--anyway", action="store_true", help="run although names are missing")
    parser.add_argument("--tf2", action="store_true", help="a script of TensorFlow 2: nothing is supplied or looked for")
    parser.add_argument("script")
    parser.add_argument("arguments", nargs=argparse.REMAINDER)
    options = ending.parsed("tf1", parser)
    if not os.path.isfile(options.script):
        sys.exit(ending.refuse("tf1", f"{options.script}: no such file", 2))
    folder = os.path.dirname(os.path.abspath(options.script))
    sys.path[0] = folder  # as Python itself does for a script
    sys.argv = [options.script, *options.arguments]

    record, scan = load_tensorflow(options.tf2)
    findings = scan.Findings([], []) if options.tf2 else scan.look_through(options.script)
    if findings.missing:
        lines = "".join(f"  {item}\n" for item in findings.missing)
        count = len(findings.missing)
        ending.tell(f"{'note' if options.anyway else 'error'}: tf1: {count} name{'s' if count > 1 else ''} of TensorFlow 1 not supplied:\n{lines[:-1]}")
        if not options.anyway:
            ending.tell("not run; --anyway runs it nevertheless")
            sys.exit(3)
    record.install()
    try:
        runpy.run_path(options.script, run_name="__main__")
    except Exception as error:
        if not (fault := lack_of_room(error)):
            raise
        sys.exit(ending.refuse("tf1", fault, 1))


def load_tensorflow(second):
    """What needs TensorFlow, which cannot be loaded without threads, memory and a folder for temporary files."""
    try:
        threading.Thread(target=int).start()
        from cairn_tf1 import alias, record, scan

        if not second:
            alias.install()
    except (RuntimeError, MemoryError, OSError, ImportError) as error:
        sys.exit(ending.refuse("tf1", f"TensorFlow cannot be loaded: {str(error) or 'memory ran out'}", 1))
    return record, scan


def lack_of_room(error):
    """Of a disk that is full or cannot be written to: the line of the script and the system's words; else None."""
    said = re.search("|".join(map(re.escape, map(os.strerror, ending.NO_ROOM))), str(error))
    if not said:
        return None
    own = [frame for frame in traceback.extract_tb(error.__traceback__) if not recorded.FOREIGN.search(frame.filename)]
    place = f"{own[-1].filename}:{own[-1].lineno}: " if own else ""
    named = re.search(r"[^\s;:'\"]+(?=[;:\s]+" + re.escape(said[0]) + ")", str(error))
    file = getattr(error, "filename", None) or (named[0] if named else "a file")
    return f"{place}{file}: cannot be written: {said[0]}"


if __name__ == "__main__":
    main()

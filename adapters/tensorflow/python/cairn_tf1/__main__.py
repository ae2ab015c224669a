"""`python -m cairn_tf1 train.py args`: looks through the script and the modules beside it for names that nothing supplies, tells
all of them with their lines, and runs the script when there are none. `--tf2` runs a TensorFlow 2 script as it is."""

import argparse
import os
import runpy
import sys

from cairn_tf1 import ending

USAGE = "python -m cairn_tf1 [--anyway | --tf2] script.py [arguments of the script]"


def main():
    parser = ending.Parser(prog="cairn tf1", usage=USAGE, description="runs a TensorFlow 1 script on 2.15")
    parser.add_argument("--anyway", action="store_true", help="run although names are missing")
    parser.add_argument("--tf2", action="store_true", help="a script of TensorFlow 2: nothing is supplied or looked for")
    parser.add_argument("script")
    parser.add_argument("arguments", nargs=argparse.REMAINDER)
    options = ending.parsed("cairn tf1", parser)
    if not os.path.isfile(options.script):
        parser.exit(2, f"cairn tf1: there is no file {options.script}\n")
    folder = os.path.dirname(os.path.abspath(options.script))
    sys.path[0] = folder  # as Python itself does for a script
    sys.argv = [options.script, *options.arguments]

    from cairn_tf1 import alias, record, scan

    if not options.tf2:
        alias.install()
    findings = scan.Findings([], []) if options.tf2 else scan.look_through(options.script)
    if findings.missing:
        lines = "".join(f"  {item}\n" for item in findings.missing)
        count = len(findings.missing)
        ending.tell(f"cairn tf1: {count} name{'s' if count > 1 else ''} of TensorFlow 1 not supplied:\n{lines[:-1]}")
        if not options.anyway:
            ending.tell("cairn tf1: not run; --anyway runs it nevertheless")
            sys.exit(3)
    record.install()
    runpy.run_path(options.script, run_name="__main__")


if __name__ == "__main__":
    main()

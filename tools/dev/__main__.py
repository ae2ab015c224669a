"""./dev: see HELP. The work of each command is in the module of its name."""

import os
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
sys.dont_write_bytecode = True

import build  # noqa: E402
import lint  # noqa: E402
import machine  # noqa: E402
import suite  # noqa: E402
from steps import LOG, ROOT, StepFailed, run, start_log, step  # noqa: E402

HELP = """usage: ./dev COMMAND

  demo                 train a small CNN, convert it, run it, compare: out/demo/index.html
  test [FILTER...]     all tests; FILTER keeps the programs and files whose name holds one of the words
       --all           also the long ones; continues where an earlier --all stopped
       --sanitize      C++ tests under the address and undefined-behaviour sanitizers, those of threads under the
                       thread sanitizer too; --sanitize-threads: that alone (docs/dev/sanitizers.md)
       --shard i/n     the i-th of n equal parts, i from 1
  fuzz [NAME...]       damaged input to what reads files, with clang (./dev fuzz --help)
  check                format, lint, build, test: what to run before handing in
  build                compile build/ and install the wheel into the Python environments
  bench [CASE...]      Cairn and its peers in interleaved rounds (./dev bench --help); bench --families [WORD...]: operators
                       one by one; bench --breadth [WORD...]: many training graphs and nets of all kinds (each with --help)
  fmt [--check]        clang-format the C++ files
  lint                 the rules a formatter does not know
  docs                 write the reference pages from the op and option tables
  doctor               what this machine has and lacks
  new-op NAME          an op row and its test, to be filled in

Everything needed is installed on first use. Whole output: build/log."""


def setup(peers=False, mindspore=False, compiled=True):
    """`compiled`: a build follows, part of which can be done meanwhile."""
    machine.ensure_packages()
    names = [".venv", *[".venv-peers"] * peers, *[".venv-mindspore"] * mindspore]
    environments = (machine.ensure_environment(name) and name for name in names)
    if compiled:
        build.compile_beside(environments)
    else:
        list(environments)


def demo(arguments):
    setup()
    build.build(tests=False)
    return subprocess.call([ROOT / ".venv/bin/python", ROOT / "examples/digits/demo.py", *arguments], cwd=ROOT)


def test(arguments):
    options = suite.parse(arguments)
    setup(peers=True, mindspore=options.all, compiled=not options.sanitize)
    if options.sanitize:
        for sanitizers, programs in suite.sanitized(options):
            build.sanitized(sanitizers, programs)
    else:
        build.build(tests=True, peers=True)
    return suite.run_suite(options)


def check(arguments):
    return fmt(["--check"]) or lint.main([]) or test(arguments)


def build_all(arguments):
    setup(peers=(ROOT / ".venv-peers").exists())
    build.build(tests=True, peers=(ROOT / ".venv-peers").exists())
    return 0


def bench(arguments):
    script = "compare.py"
    if arguments[:1] in (["--families"], ["--breadth"]):
        script, *arguments = {"--families": "families.py", "--breadth": "breadth"}[arguments[0]], *arguments[1:]
    setup(peers=True)
    if not {"-h", "--help"} & set(arguments):
        build.build(tests=False, peers=True)
    return subprocess.call([ROOT / ".venv-peers/bin/python", ROOT / "bench" / script, *arguments], cwd=ROOT)


def fuzz(arguments):
    import fuzz as command

    options = command.parse(arguments)
    setup()
    machine.ensure_packages("debian-fuzz.txt")
    build.build(tests=False)
    return command.main(options)


def fmt(arguments):
    machine.ensure_packages()
    folders = ("include", "src", "tests", "tools", "bench", "python", "fuzz", "adapters", "examples")
    files = [f for d in folders for e in ("cpp", "h", "c") for f in sorted((ROOT / d).rglob(f"*.{e}"))]
    mode = ["--dry-run", "--Werror"] if "--check" in arguments else ["-i"]
    with step(f"format ({len(files)} files)"):
        run(["clang-format", "--style=file", *mode, *files])
    return 0


def docs(arguments):
    setup()
    build.build(tests=False)
    folder = ROOT / "docs" / "reference"
    folder.mkdir(parents=True, exist_ok=True)
    with step("reference pages"):
        run(["cmake", "--build", build.BUILD, "--target", "reference", "-j", build.jobs()])
        run([build.BUILD / "reference", folder])
    with step("table of API support"):
        for test in ("test_migrate_tables.py", "mindspore/test_support.py"):
            run([build.PYTHON, "-m", "pytest", "-q", ROOT / "tests/python" / test], CAIRN_TEST_UPDATE="1")
    return 0


def doctor(arguments):
    import doctor as command

    return command.main()


def new_op(arguments):
    import new_op as command

    return command.main(arguments)


COMMANDS = {
    "demo": demo,
    "test": test,
    "check": check,
    "build": build_all,
    "bench": bench,
    "fuzz": fuzz,
    "fmt": fmt,
    "lint": lint.main,
    "docs": docs,
    "doctor": doctor,
    "new-op": new_op,
}

NO_ARGUMENTS = ("build", "docs", "doctor")


def main():
    if len(sys.argv) < 2 or sys.argv[1] in ("help", "-h", "--help"):
        print(HELP)
        return 0
    command = COMMANDS.get(sys.argv[1])
    if command is None:
        print(f"dev: no command '{sys.argv[1]}'; see ./dev help", file=sys.stderr)
        return 2
    if sys.argv[1] in NO_ARGUMENTS and sys.argv[2:]:
        asked = sys.argv[2:] in (["--help"], ["-h"])
        print(HELP if asked else f"dev: {sys.argv[1]} takes no '{sys.argv[2]}'", file=sys.stdout if asked else sys.stderr)
        return 0 if asked else 2
    start_log(" ".join(sys.argv[1:]))
    os.environ["PATH"] = "/usr/bin" + os.pathsep + os.environ["PATH"]  # Debian's cmake, ninja and g++ are the pinned ones
    for variable, value in (("CC", "gcc"), ("CXX", "g++"), ("TF_CPP_MIN_LOG_LEVEL", "2")):
        os.environ.setdefault(variable, value)
    try:
        return command(sys.argv[2:])
    except StepFailed:
        return 1
    except KeyboardInterrupt:
        print(f"dev: interrupted; log: {LOG.relative_to(ROOT)}", file=sys.stderr)
        return 130


sys.exit(main())

"""Compiles build/ once and installs its wheel into the Python environments; for --sanitize a folder of its own."""

import hashlib
import os
import shutil
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from machine import exclusive
from steps import ROOT, run, step

BUILD = ROOT / "build"
TENSORFLOW = ROOT / "adapters" / "tensorflow"
PYTHON = ROOT / ".venv" / "bin" / "python"
SOURCES = ("CMakeLists.txt", "LICENSE", "README.md", "adapters", "cmake", "include", "pyproject.toml", "python", "src", "tools")
# A fixed clock makes equal contents equal bytes, so that an unchanged wheel is recognised.
WHEEL_CLOCK = "1700000000"
MAKE_WHEEL = """
import sys
from scikit_build_core.build import build_wheel
build_wheel(sys.argv[1], {"build-dir": sys.argv[2], "cmake.args": "-GNinja", "logging.level": "WARNING"})
"""


def jobs():
    """One compiler per processor, but not more than memory allows at about 1.5 GiB each."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return max(1, min(len(os.sched_getaffinity(0)), int(memory / 1.5)))


def compile_beside(environments):
    """Compiles what needs no Python package while `environments` makes them one by one (and gives their names), and the adapter
    as soon as it can be: pip keeps one processor busy at most."""

    def make():
        for name in environments:
            if name == ".venv":
                _adapter()

    with exclusive(BUILD / "compile"), ThreadPoolExecutor(1) as beside:
        made = beside.submit(make)
        if not (BUILD / ".ninja_log").exists():
            with step("compile the library and the commands"):
                run(["cmake", "-S", ROOT, "-B", BUILD, "-GNinja", "-DCAIRN_PYTHON=OFF", "-DCAIRN_TESTS=ON"])
                run(["cmake", "--build", BUILD, "-j", jobs(), "--target", "cairn_wheel"])
        made.result()


def build(tests, peers=False):
    """`tests` compiles the C++ tests too; `peers` installs into .venv-peers as well."""
    with exclusive(BUILD / "compile"):
        # One configuration, so that nothing is compiled twice.
        wheel = _wheel("compile and pack the wheel", ROOT, BUILD, CAIRN_TESTS="ON")
        if tests:
            with step("compile the tests"):
                run(["cmake", "--build", BUILD, "-j", jobs()])
        adapter = _adapter()
        for name in [".venv", ".venv-peers"] if peers else [".venv"]:
            _install(wheel, ROOT / name)
        _install(adapter, ROOT / ".venv")


def _adapter():
    return _wheel("compile and pack the TensorFlow adapter", TENSORFLOW, BUILD / "tensorflow")


def _wheel(title, project, folder, **environment):
    """The wheel of the project whose pyproject.toml is in `project`, compiled in `folder`."""
    wheels = folder / "wheel"
    made = list(wheels.glob("*.whl"))
    if made and made[0].stat().st_mtime > _changed():
        return made[0]
    started = time.time()
    unfinished = folder / "wheel.unfinished"
    for old in (wheels, unfinished):
        shutil.rmtree(old, ignore_errors=True)
    environment |= {"CMAKE_BUILD_PARALLEL_LEVEL": str(jobs()), "SOURCE_DATE_EPOCH": WHEEL_CLOCK}
    with step(title):
        run([PYTHON, "-c", MAKE_WHEEL, unfinished, folder], cwd=project, **environment)
    unfinished.rename(wheels)
    (wheel,) = wheels.glob("*.whl")
    os.utime(wheel, (started, started))  # what is edited meanwhile may not be in it
    return wheel


def _changed():
    """When a file of the sources was last written, or a folder of them, which tells of one that was removed."""
    paths = [ROOT / name for name in SOURCES]
    paths += [Path(folder, name) for top in paths for folder, _, files in os.walk(top) for name in (".", *files)]
    return max(path.stat().st_mtime for path in paths if "__pycache__" not in path.parts)


def _install(wheel, environment):
    stamp = environment / (wheel.name.partition("-")[0] + "-wheel")
    digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
    if stamp.exists() and stamp.read_text() == digest:
        return
    with step(f"install the wheel into {environment.name}"):
        stamp.unlink(missing_ok=True)
        pip = [environment / "bin" / "python", "-m", "pip", "install", "--disable-pip-version-check", "--no-deps"]
        run([*pip, "--no-index", "--force-reinstall", wheel])
        stamp.write_text(digest)


def test_programs():
    """The names of the C++ test programs: one for each folder of tests that has sources."""
    return [f"test_{tests.name}" for tests in sorted((ROOT / "tests").iterdir()) if any(tests.glob("*.cpp"))]


def sanitized(sanitizers, programs):
    """Compiles these test programs under these sanitizers."""
    folder = sanitized_folder(sanitizers)
    with step(f"compile with sanitizers ({sanitizers})"):
        options = ["-DCAIRN_TESTS=ON", "-DCAIRN_PYTHON=OFF", f"-DCAIRN_SANITIZE={sanitizers}"]
        run(["cmake", "-S", ROOT, "-B", folder, "-GNinja", *options])
        if programs:
            run(["cmake", "--build", folder, "-j", jobs(), "--target", *programs])


def sanitized_folder(sanitizers):
    return ROOT / ("build-" + sanitizers.replace(",", "-"))

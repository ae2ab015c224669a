"""./dev doctor: one table of what this machine has and lacks for Cairn; exit 1 when something is missing."""

import os
import platform
import shutil
import subprocess
import sys
from pathlib import Path

import machine
from steps import ROOT

# What the fast kernels ask for; without them Cairn runs, slower.
CPU_FLAGS = ("avx2", "fma", "avx512f", "avx512_vnni", "avx512_bf16", "amx_int8", "amx_bf16")


def main():
    rows = list(_rows())
    width = max(len(name) for _, name, _ in rows)
    for good, name, value in rows:
        print(f"{'ok     ' if good else 'missing'}  {name:{width}}  {value}")
    return 0 if all(good for good, _, _ in rows) else 1


def _rows():
    yield True, "system", f"{platform.platform()}, {len(os.sched_getaffinity(0))} processors, {_memory_gib():.0f} GiB"
    yield True, "python", f"{sys.version.split()[0]} ({sys.executable})"
    yield _compiler()
    flags = _cpu_flags()
    yield True, "processor", " ".join(flag for flag in CPU_FLAGS if flag in flags) or "no vector extension known to us"
    missing = machine.missing_packages() if shutil.which("dpkg-query") else ["dpkg"]
    yield not missing, "Debian packages", ", ".join(missing) or "all of requirements/debian.txt"
    for name in machine.LOCKS:
        made = (ROOT / name / "bin" / "python").exists()
        yield made, name, "made" if made else "not made yet: any ./dev command that needs it makes it"
    command = ROOT / ".venv" / "bin" / "cairn"
    yield command.exists(), "cairn", str(command.relative_to(ROOT)) if command.exists() else "not built: ./dev build"
    yield True, "cache", f"{machine.CACHE} ({_gib(machine.CACHE):.1f} GiB; may be deleted at any time)"
    free = shutil.disk_usage(ROOT).free / 2**30
    yield free > 5, "disk", f"{free:.0f} GiB free, about 8 needed from nothing"


def _compiler():
    compiler = shutil.which("g++")
    if not compiler:
        return False, "compiler", "g++ 12"
    return True, "compiler", "g++ " + subprocess.check_output([compiler, "-dumpfullversion"], text=True).strip()


def _cpu_flags():
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("flags"):
            return set(line.split(":", 1)[1].split())
    return set()


def _memory_gib():
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30


def _gib(folder):
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file() and not file.is_symlink()) / 2**30

"""What the tree needs around it: Debian packages, and the Python environments .venv, .venv-peers and .venv-mindspore.

An environment's packages live in a cache folder named by the hash of its lock file, so a second clone takes seconds.
The environment itself is a thin one in the clone that sees the cached packages through a .pth file: Cairn's own wheel
is installed there, and two clones never share it."""

import contextlib
import fcntl
import fnmatch
import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

from steps import ROOT, StepFailed, run, step

CACHE = Path(os.environ.get("CAIRN_CACHE") or Path.home() / ".cache" / "cairn")
LIBRARY = Path("lib", f"python{sys.version_info[0]}.{sys.version_info[1]}", "site-packages")
LOCKS = {f".{name}": ROOT / "requirements" / f"{name}.txt" for name in ("venv", "venv-peers", "venv-mindspore")}


def debian_packages(name="debian.txt"):
    """A pinned list as {name: version pattern}."""
    lines = (ROOT / "requirements" / name).read_text().splitlines()
    return dict(line.split("=", 1) for line in lines if line and not line.startswith("#"))


def installed_packages():
    query = ["dpkg-query", "-W", "-f", "${db:Status-Status} ${Package}=${Version}\n"]
    lines = subprocess.run(query, capture_output=True, text=True, check=True).stdout.splitlines()
    return dict(line.split(" ", 1)[1].split("=", 1) for line in lines if line.startswith("installed "))


def missing_packages(name="debian.txt"):
    have = installed_packages()
    return [
        f"{package}={pattern}"
        for package, pattern in debian_packages(name).items()
        if not fnmatch.fnmatchcase(have.get(package, ""), pattern)
    ]


def ensure_packages(name="debian.txt"):
    if not shutil.which("dpkg-query"):
        print("dev: needs Debian 12 (no dpkg here); the list is in requirements/debian.txt")
        raise StepFailed("packages")
    missing = missing_packages(name)
    if not missing:
        return
    if os.geteuid() != 0:
        quoted = " ".join(f"'{name}'" for name in missing)
        print(f"dev: packages are missing; run once: sudo apt-get install -y --no-install-recommends {quoted}")
        raise StepFailed("packages")
    with step(f"Debian packages ({len(missing)})"):
        run(["apt-get", "update"])
        run(["apt-get", "install", "-y", "--no-install-recommends", *missing], DEBIAN_FRONTEND="noninteractive")


@contextlib.contextmanager
def exclusive(path):
    """One process at a time may make `path`; says so when it waits for another."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(f"{path}.lock", "w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            print(f"dev: waiting for another ./dev that makes {path.name}", flush=True)
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def cache_folder(kind, *contents):
    """The cache folder for something made from `contents` (bytes): CACHE/kind-<hash>."""
    digest = hashlib.sha256(b"\0".join(contents)).hexdigest()[:16]
    return CACHE / f"{kind}-{digest}"


def ensure_cached(folder, make):
    """make(folder) unless it was made completely before; a half-made one is removed first."""
    done = folder / ".complete"
    if done.exists():
        return
    with exclusive(folder):
        if done.exists():
            return
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        make(folder)
        done.touch()


def ensure_environment(name):
    """Makes ROOT/name from its lock file; returns its python."""
    lock = LOCKS[name]
    base = cache_folder("venv", lock.read_bytes(), sys.version.encode(), sys.base_prefix.encode())
    link = ROOT / name / LIBRARY / "cairn_environment.pth"
    expected = f"# for {ROOT}\nimport site; site.addsitedir({str(base / LIBRARY)!r})\n"

    def ready():
        return (base / ".complete").exists() and link.exists() and link.read_text() == expected

    if not ready():
        with step(f"environment {name}"), exclusive(ROOT / "build" / name):
            ensure_cached(base, lambda folder: _install(folder, lock))
            if not ready():
                _make_thin(ROOT / name, base)
                link.write_text(expected)  # last: it marks the environment as whole
    return ROOT / name / "bin" / "python"


def _install(folder, lock):
    run([sys.executable, "-m", "venv", "--clear", folder])
    pip = [folder / "bin" / "python", "-m", "pip", "install", "--disable-pip-version-check", "--progress-bar=off"]
    run([*pip, "-r", lock])


def _make_thin(environment, base):
    """An environment without packages of its own; the cached ones' commands are repeated for its own python."""
    if environment.is_symlink():
        environment.unlink()
    run([sys.executable, "-m", "venv", "--clear", "--without-pip", environment])
    for script in (base / "bin").iterdir():
        target = environment / "bin" / script.name
        if not target.exists() and script.read_bytes().startswith(b"#!"):
            body = script.read_bytes().split(b"\n", 1)[1]
            target.write_bytes(f"#!{environment}/bin/python\n".encode() + body)
            target.chmod(0o755)

"""Migrates whole packages from PyPI and checks what must hold for any tree: no file lost, outputs compile as the inputs
did, bytes outside edits identical, a second run has nothing to do, names resolve or are reported; packages that have
nothing to do with TensorFlow are not touched. Run: python tests/migrate/trees.py path/to/cairn_migrate_cli [cache folder]
"""
import ast
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
import warnings
import zipfile

TREES = ["tensor2tensor==1.15.7", "bert-tensorflow==1.0.4", "dm-sonnet==1.36", "tensorflow-probability==0.8.0",
         "keras-applications==1.0.8", "tf_slim==1.1.0", "horovod==0.28.1"]
UNTOUCHED = ["scikit-learn", "requests", "black"]
SOURCE_ONLY = ("tensor2tensor", "horovod")


def fetch(requirement, cache):
    """The package's archive, by pip, without installing anything."""
    stem = requirement.split("==")[0].replace("-", "_").lower()
    found = [f for f in cache.iterdir() if f.name.replace("-", "_").lower().startswith(stem)] if cache.exists() else []
    if not found:
        form = "--no-binary" if stem in SOURCE_ONLY else "--only-binary"
        extra = ["--no-build-isolation"] if stem in SOURCE_ONLY else []
        subprocess.run([sys.executable, "-m", "pip", "download", "-q", "--no-deps", form, ":all:", *extra, "-d", str(cache),
                        requirement], check=True)
        found = [f for f in cache.iterdir() if f.name.replace("-", "_").lower().startswith(stem)]
    return found[0]


def unpack(archive, folder):
    if archive.suffix == ".gz":
        with tarfile.open(archive) as tar:
            tar.extractall(folder, filter="data")
    else:
        with zipfile.ZipFile(archive) as wheel:
            wheel.extractall(folder)


def files_of(folder):
    return {str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_file() or p.is_symlink()}


def compiles(data):
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            compile(data, "x", "exec", dont_inherit=True)
        return True
    except (SyntaxError, ValueError):
        return False


def outside_edits_identical(before, after, edits):
    at = shift = 0
    for edit in edits:
        if edit["begin"] < at or before[at:edit["begin"]] != after[at + shift:edit["begin"] + shift]:
            return False
        text = edit["text"].encode()
        if after[edit["begin"] + shift:edit["begin"] + shift + len(text)] != text:
            return False
        shift += len(text) - (edit["end"] - edit["begin"])
        at = edit["end"]
    return before[at:] == after[at + shift:]


def line_before(line, before, after, edits):
    """The line of the old text that a line of the new text comes from."""
    offset = shift = 0
    for _ in range(line - 1):
        offset = after.index(b"\n", offset) + 1
    for edit in edits:
        length = len(edit["text"].encode())
        if edit["begin"] + shift + length > offset:
            break
        shift += length - (edit["end"] - edit["begin"])
    return before.count(b"\n", 0, max(0, offset - shift)) + 1


def dotted(node):
    parts = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return [node.id, *reversed(parts)] if isinstance(node, ast.Name) else None


def unresolved_names(text, roots):
    """(line, name) of chains on TensorFlow's plain import that the installed TensorFlow does not have."""
    tree = ast.parse(text)
    alias = {a.asname or a.name: a.name for n in ast.walk(tree) if isinstance(n, ast.Import) for a in n.names}
    names = {k for k, v in alias.items() if v in roots}
    for node in ast.walk(tree):
        chain = dotted(node) if isinstance(node, ast.Attribute) else None
        if not chain or chain[0] not in names or isinstance(node.ctx, ast.Store):
            continue
        value = roots[alias[chain[0]]]
        for part in chain[1:]:
            try:
                value = getattr(value, part)
            except AttributeError:
                yield node.lineno, ".".join(chain)
                break
            if isinstance(value, type) or callable(value):
                break


def check_tree(tool, name, folder, roots, must_not_change):
    problems = []
    out = folder.parent / (folder.name + ".out")
    began = time.time()
    run = subprocess.run([tool, str(folder), "-o", str(out), "--json"], capture_output=True, timeout=300)
    seconds = time.time() - began
    if run.returncode not in (0, 1):
        return [f"{name}: exit code {run.returncode}: {run.stderr.decode()[-300:]}"]
    result = json.loads(run.stdout)
    lost = files_of(folder) - files_of(out)
    if lost:
        problems.append(f"{len(lost)} files lost: {sorted(lost)[:3]}")
    changed = [f for f in result["files"] if f["state"] == "changed"]
    if must_not_change and changed:
        problems.append(f"changed: {[f['path'] for f in changed][:5]}")
    unresolved = 0
    if roots:
        roots = {**roots, "tensorflow": roots[f"tensorflow{result['tf']}"]}
    for file in result["files"]:
        if not file["path"].endswith(".py") or file["state"] == "failed":
            continue
        before, after = (folder / file["path"]).read_bytes(), (out / file["path"]).read_bytes()
        if file["state"] != "changed" and before != after:
            problems.append(f"{file['path']}: changed without saying so")
        if not outside_edits_identical(before, after, file["edits"]):
            problems.append(f"{file['path']}: bytes outside of the edits differ")
        if compiles(before) and not compiles(after):
            problems.append(f"{file['path']}: does not compile any more")
        if roots and compiles(after):
            reported = {f["line"] for f in file["findings"]}
            reported |= {r["line"] for r in file["references"] if r["status"] not in ("runs", "migrated")}
            for line, chain in unresolved_names(after, roots):
                if line_before(line, before, after, file["edits"]) not in reported:
                    unresolved += 1
                    if unresolved <= 5:
                        problems.append(f"{file['path']}:{line}: {chain} does not resolve and is not reported")
    again = subprocess.run([tool, str(out), "--json"], capture_output=True, timeout=300)
    second = [f["path"] for f in json.loads(again.stdout)["files"] if f["state"] == "changed"]
    if second:
        problems.append(f"second run changes {second[:5]}")
    lines = sum(f["lines"] for f in result["files"])
    edits = sum(len(f["changes"]) for f in changed)
    print(f"{name:<32} {len(result['files']):>5} files {lines:>7} lines {len(changed):>4} changed {edits:>4} edits {seconds:6.2f} s  {'ok' if not problems else 'FAILED'}")
    return [f"{name}: {problem}" for problem in problems]


def main():
    tool = sys.argv[1]
    cache = pathlib.Path(sys.argv[2] if len(sys.argv) > 2 else os.environ.get("CAIRN_CACHE", os.path.expanduser("~/.cache/cairn")) + "/trees")
    cache.mkdir(parents=True, exist_ok=True)
    try:
        os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
        import tensorflow as tf
        roots = {"tensorflow1": tf.compat.v1, "tensorflow2": tf, "tensorflow.compat.v1": tf.compat.v1, "tensorflow.compat.v2": tf}
    except ImportError:
        print("tensorflow is not installed: names are not resolved")
        roots = None
    problems = []
    with tempfile.TemporaryDirectory() as temporary:
        for requirement in TREES + UNTOUCHED:
            folder = pathlib.Path(temporary) / requirement.split("==")[0]
            unpack(fetch(requirement, cache), folder)
            problems += check_tree(tool, requirement, folder, roots, requirement in UNTOUCHED)
            shutil.rmtree(folder)
    for problem in problems:
        print(problem)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())

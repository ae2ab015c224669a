"""Whole packages from PyPI are migrated, and what must hold for any tree is checked: no file lost, outputs compile as the inputs
did, bytes outside edits identical, edits leave no name unbound, a second run has nothing to do, names of TensorFlow resolve or
are reported; no script without TensorFlow is touched, and each is judged to be of the interface that its label says
(data/migrate_generations.txt). The archives (requirements/migrate-trees.txt) are downloaded once; the small ones by default."""

import ast
import builtins
import json
import re
import shutil
import subprocess
import sys
import warnings

import pytest
from conftest import BIN, ROOT

sys.path.insert(0, str(ROOT / "tools" / "dev"))
import machine  # noqa: E402

REQUIREMENTS = ROOT / "requirements" / "migrate-trees.txt"
PACKAGES = re.findall(r"^([\w-]+)==", REQUIREMENTS.read_text(), re.MULTILINE)
UNTOUCHED = {"scikit-learn", "requests", "black"}
SOURCE_ONLY = {"tensor2tensor", "horovod"}
SMALL = ("bert-tensorflow", "keras-applications", "requests")
GENERATIONS = ROOT / "tests" / "python" / "data" / "migrate_generations.txt"
HERE = {"runs", "runs on the engine", "runs in TensorFlow", "runs, partly in TensorFlow", "migrated"}


@pytest.fixture(scope="session")
def archives():
    folder = machine.cache_folder("migrate-trees", REQUIREMENTS.read_bytes())
    machine.ensure_cached(folder, lambda folder: download(folder, REQUIREMENTS))
    return folder


@pytest.fixture(scope="session")
def small_archives(tmp_path_factory):
    lines = [line for line in REQUIREMENTS.read_text().splitlines() if line.startswith(SMALL)]
    requirements = tmp_path_factory.mktemp("small") / "requirements.txt"
    requirements.write_text("\n".join(lines) + "\n")
    folder = machine.cache_folder("migrate-trees-small", requirements.read_bytes())
    machine.ensure_cached(folder, lambda folder: download(folder, requirements))
    return folder


def download(folder, requirements):
    """By pip, which checks the hashes; nothing is installed."""
    form = ["--only-binary", ":all:", "--no-binary", ",".join(sorted(SOURCE_ONLY)), "--no-build-isolation"]
    pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--require-hashes", *form]
    subprocess.run([*pip, "--dest", folder, "--requirement", requirements], check=True)


@pytest.fixture(scope="session")
def roots():
    import tensorflow as tf

    return {"tensorflow1": tf.compat.v1, "tensorflow2": tf, "tensorflow.compat.v1": tf.compat.v1, "tensorflow.compat.v2": tf}


@pytest.mark.parametrize("package", SMALL)
def test_a_small_package_of_pypi(package, small_archives, roots, tmp_path):
    check_package(package, small_archives, roots, tmp_path)


@pytest.mark.long
@pytest.mark.parametrize("package", PACKAGES)
def test_a_package_of_pypi(package, archives, roots, tmp_path):
    check_package(package, archives, roots, tmp_path)


def test_the_labels_are_of_two_hundred_scripts_of_every_kind():
    kinds = [label for labels in read_labels().values() for label in labels.values()]
    assert len(kinds) >= 200
    assert min(kinds.count(kind) for kind in ("none", "tf1", "tf2", "both")) >= 30


def check_package(package, archives, roots, tmp_path):
    stem = package.replace("-", "_").lower()
    (archive,) = [file for file in archives.iterdir() if file.name.replace("-", "_").lower().startswith(stem + "_")]
    folder = tmp_path / package
    shutil.unpack_archive(archive, folder, "gztar" if archive.suffix == ".gz" else "zip")
    out = tmp_path / "out"
    result = migrate(folder, "-o", out)
    assert not files_of(folder) - files_of(out)
    changed = [file["path"] for file in result["files"] if file["state"] == "changed"]
    assert not changed or package not in UNTOUCHED, changed[:5]
    users = users_of_tensorflow(folder)
    assert not [path for path in changed if path.endswith(".py") and path not in users]
    found = {file["path"]: file["generation"] for file in result["files"]}
    wrong = {path: (label, found.get(path, "none")) for path, label in read_labels()[package].items()
             if found.get(path, "none") != label}
    assert not wrong
    for file in result["files"]:
        if file["path"].endswith(".py") and file["state"] != "failed":
            tensorflow = {**roots, "tensorflow": roots[f"tensorflow{file['tf'] or 2}"]}
            check_file(file, (folder / file["path"]).read_bytes(), (out / file["path"]).read_bytes(), tensorflow)
    again = migrate(out)
    assert not [file["path"] for file in again["files"] if file["state"] == "changed"]


def migrate(folder, *words):
    done = subprocess.run([BIN / "cairn", "migrate", folder, *words, "--json"], capture_output=True, timeout=300)
    assert done.returncode in (0, 1), done.stderr
    return json.loads(done.stdout)


def check_file(file, before, after, roots):
    if file["state"] != "changed":
        assert before == after, file["path"]
    assert outside_edits_identical(before, after, file["edits"]), file["path"]
    assert compiles(after) or not compiles(before), file["path"]
    if compiles(after):
        assert not unbound_names(after) - unbound_names(before) if compiles(before) else True, file["path"]
        reported = {finding["line"] for finding in file["findings"]}
        reported |= {reference["line"] for reference in file["references"] if reference["status"] not in HERE}
        for line, chain in unresolved_names(after, roots):
            assert line_before(line, before, after, file["edits"]) in reported, f"{file['path']}:{line}: {chain}"


def read_labels():
    """{package: {path: none, tf1, tf2 or both}}; labelled by tests/python/data/label_generations.py and by hand."""
    labels = {package: {} for package in PACKAGES}
    for line in GENERATIONS.read_text().splitlines():
        if line and not line.startswith("#"):
            label, package, path = line.split()
            labels[package][path] = label
    return labels


def imported_names(tree):
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = "." * node.level + (node.module or "")
            yield base
            yield from (f"{base}{'' if base.endswith('.') else '.'}{alias.name}" for alias in node.names)


def users_of_tensorflow(folder):
    """Scripts that import TensorFlow or what stands on it, or a module of the tree that does."""
    wraps = re.compile(r"(tensorflow|keras|tf_slim|tf_keras|horovod\.(tensorflow|keras)|npu_bridge|npu_device)\b")
    imports = {}
    for path in folder.rglob("*.py"):
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                imports[str(path.relative_to(folder))] = set(imported_names(ast.parse(path.read_bytes())))
        except (SyntaxError, ValueError):
            continue
    users = {path for path, names in imports.items() if any(wraps.match(name) for name in names)}
    while True:
        ends = {re.sub(r"(/__init__)?\.py$", "", path).split("/")[-1] for path in users}
        more = {path for path, names in imports.items() if path not in users and any(name.split(".")[-1] in ends for name in names)}
        if not more:
            return users
        users |= more


def unbound_names(data):
    tree = ast.parse(data)
    nodes = list(ast.walk(tree))
    bound = set(dir(builtins)) | {node.id for node in nodes if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load)}
    bound |= {node.name for node in nodes if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef))}
    bound |= {node.arg for node in nodes if isinstance(node, ast.arg)}
    bound |= {node.name for node in nodes if isinstance(node, ast.ExceptHandler) and node.name}
    bound |= {(alias.asname or alias.name).split(".")[0] for node in nodes if isinstance(node, (ast.Import, ast.ImportFrom))
              for alias in node.names}
    return {node.id for node in nodes if isinstance(node, ast.Name)} - bound


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

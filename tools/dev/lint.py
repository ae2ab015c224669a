"""./dev lint: the rules of this tree that a formatter does not know. Prints file:line: sentence, exit 1 on any."""

import ast
import re
import subprocess

from steps import ROOT

FILE_LINES = 1000
FUNCTION_LINES = 100
FOREIGN = re.compile(r'#include\s+[<"](tensorflow/|torch/|ATen/|c10/|onnx/|google/protobuf|mpi\.h|opencv|Python\.h|nanobind/)')
MACHINE_PATH = re.compile(r"(?<![\w.])/(home|root|Users)/\w")
FUNCTION_START = re.compile(r"^( {0,4})[A-Za-z_~\[].*\)[^;=]*\{$")
NOT_FUNCTION = re.compile(r"^\s*(if|for|while|switch|namespace|struct|class|enum|else|do|extern|return|case)\b")
TEXT = {".cpp", ".h", ".c", ".py", ".md", ".cmake", ".txt", ".toml", ".sh", ".test", ""}


def main(arguments):
    findings = []
    files = _tracked()
    order = _folder_order()
    for file in files:
        try:
            text = (ROOT / file).read_text()
        except (UnicodeDecodeError, FileNotFoundError):
            continue
        findings += [f"{file}:{line}: {sentence}" for line, sentence in _check(file, text, order)]
    findings += _undeclared_folders(files, order)
    print("\n".join(findings) if findings else f"lint: {len(files)} files, nothing found")
    return 1 if findings else 0


def _tracked():
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    return sorted(set(subprocess.check_output(command, cwd=ROOT, text=True).splitlines()))


def _folder_order():
    """Folders of the core, in the order that cmake/folders.cmake gives them."""
    text = (ROOT / "cmake" / "folders.cmake").read_text()
    return re.findall(r"^ *cairn_folder\(([\w/]+)", text, re.MULTILINE)


def _undeclared_folders(files, order):
    sources = [file[len("src/") :] for file in files if file.startswith("src/") and file.endswith((".cpp", ".h"))]
    tops = sorted({file.split("/")[0] for file in sources if "/" in file and _folder(file, order) is None})
    # A library beside the core has its own CMakeLists.txt.
    strays = [folder for folder in tops if not (ROOT / "src" / folder / "CMakeLists.txt").exists()]
    return [f"src/{folder}:1: folder is neither in cmake/folders.cmake nor a library of its own" for folder in strays]


def _folder(path, order):
    """The declared folder that `path` (relative to src/) lies in."""
    return max((folder for folder in order if path.startswith(folder + "/")), key=len, default=None)


def _check(file, text, order):
    lines = text.splitlines()
    suffix = "." + file.rsplit(".", 1)[1] if "." in file.rsplit("/", 1)[-1] else ""
    if suffix not in TEXT:
        return
    if len(lines) > FILE_LINES and suffix != ".txt" and not file.startswith("docs/reference/"):  # tables excepted
        yield 1, f"file has {len(lines)} lines, at most {FILE_LINES}"
    for number, line in enumerate(lines, 1):
        if MACHINE_PATH.search(line) and not file.startswith("tests/"):
            yield number, "path of one machine"
        if line != line.rstrip() and not (suffix == ".md" and line == " "):  # an empty line of a diff
            yield number, "blank at the end of the line"
    if suffix in (".cpp", ".h", ".c"):
        yield from _check_native(file, lines, order)
    elif suffix == ".py":
        yield from _check_python(file, text)


def _check_native(file, lines, order):
    spoken_for = (ROOT / file).with_suffix(".h").exists()  # a source's own header says it
    if lines and not lines[0].startswith(("//", "/*")) and (file.endswith(".h") or not spoken_for):
        yield 1, "file does not open by saying what it is for"
    if file.startswith(("src/", "tools/cairn/")) and not file.startswith("src/transports/"):  # plug-ins beside the core
        for number, line in enumerate(lines, 1):
            if FOREIGN.search(line):
                yield number, "the core includes no framework"
    if file.startswith("src/"):
        yield from _check_includes(file[len("src/") :], lines, order)
    yield from _check_lengths(lines)


def _check_includes(path, lines, order):
    own = _folder(path, order)
    for number, line in enumerate(lines, 1):
        match = re.match(r'#include "([^"]+)"', line)
        other = _folder(match[1], order) if match else None
        if own and other and order.index(other) > order.index(own):
            yield number, f"{own} includes {other}, which comes after it in cmake/folders.cmake"


def _check_lengths(lines):
    """Rough on purpose: a line that ends a signature with an open brace, up to the brace of the same indent."""
    start = indent = None
    for number, line in enumerate(lines, 1):
        if start is None:
            match = FUNCTION_START.match(line)
            if match and not NOT_FUNCTION.match(line):
                start, indent = number, match[1]
        elif line.startswith(indent + "}"):
            if number - start > FUNCTION_LINES:
                yield start, f"function has {number - start} lines, at most {FUNCTION_LINES}"
            start = None


def _check_python(file, text):
    try:
        tree = ast.parse(text)
    except SyntaxError as error:
        yield error.lineno or 1, "not Python"
        return
    if text.strip() and not ast.get_docstring(tree) and not text.startswith("#"):
        yield 1, "file does not open by saying what it is for"
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            length = node.end_lineno - node.lineno + 1
            if length > FUNCTION_LINES:
                yield node.lineno, f"function {node.name} has {length} lines, at most {FUNCTION_LINES}"

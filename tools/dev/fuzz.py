"""./dev fuzz [NAME...] [--seconds N]: the programs of fuzz/, each fed by clang's libFuzzer from files of the tests.

What a program learnt stays in out/fuzz/NAME/corpus; bytes that ended it lie beside that folder, and the exit is 1. The last
line counts the programs, inputs and failures."""

import argparse
import re
import shutil
import subprocess
import textwrap

import build
from steps import ROOT, run, step

FOLDER = ROOT / "build-fuzz"
OUT = ROOT / "out" / "fuzz"
CAIRN = ROOT / ".venv" / "bin" / "cairn"
DATA = ROOT / "tests" / "frontends" / "data"
SETTINGS = [
    '{"output": "/tmp", "training_trace": "on", "task_trace": "l1", "fp_point": "a", "storage_limit": "200MB"}',
    '{"dump_path": "/tmp", "dump_step": "0|5|10-20", "dump_mode": "all", "dump_layer": "a b", "dump_budget": "1MB"}',
    "aipp_op { aipp_mode: static input_format: RGB888_U8 mean_chn_0: 1 var_reci_chn_0: 0.5 crop: true crop_size_w: 8 }",
    '{"black-list": {"to-add": ["MatMul"], "to-remove": ["Add"]}, "gray-list": {"to-add": []}}',
    "conv1::InputDtype:float16,float32,OutputDtype:float32\nOpType::Conv2D:InputDtype:float16",
    '{"version": 1, "batch_num": 2, "skip_fusion_layers": [], "conv1": {"quant_enable": true, "activation_quant_params":'
    ' {"num_bits": 8, "act_algo": "ifmr"}, "weight_quant_params": {"num_bits": 8}}}',
    'record { key: "conv1" value { scale_d: 0.0799 offset_d: 1 scale_w: 0.002 scale_w: 0.003 offset_w: 0 shift_bit: 0 } }',
]
# Rows and images, written by the package itself into the folder of its argument.
WRITE_ROWS = """
import os, struct, sys
import numpy as np
import cairn, cairn.data
os.chdir(sys.argv[1])
row = {"x": np.arange(9) * 999, "y": np.array("text"), "z": np.frombuffer(b"bytes", np.uint8)}
schema = {"x": ("int32", [-1]), "y": ("string", None), "z": ("bytes", None)}
for writer in (cairn.data.MindRecordWriter("rows", schema, header_size=1 << 14, page_size=1 << 15), cairn.data.TFRecordWriter("a.tfrecord")):
    for _ in range(3):
        writer.write(row)
    writer.commit()
open("a.csv", "w").write('name,n\\n"x, ""y",1\\n,2.5\\n')
image = np.arange(8 * 9 * 3, dtype=np.uint8).reshape(8, 9, 3)
open("a.png", "wb").write(cairn._data.encode_png(image))
lines = b"".join(line.tobytes() + b"\\0" for line in image)
open("a.bmp", "wb").write(struct.pack("<2sIIIIiiHHIIiiII", b"BM", 54 + len(lines), 0, 54, 40, 9, 8, 1, 24, 0, len(lines), 0, 0, 0, 0) + lines)
"""
LIMITS = ["-timeout=30", "-rss_limit_mb=3000", "-malloc_limit_mb=2000"]


def parse(arguments):
    names = sorted(path.stem for path in (ROOT / "fuzz").glob("*.cpp"))
    parser = argparse.ArgumentParser(prog="./dev fuzz", description="Feeds damaged input to what reads files.")
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(names))
    parser.add_argument("--seconds", type=int, default=60, help="for each program (60)")
    options = parser.parse_args(arguments)
    unknown = [name for name in options.names if name not in names]
    if unknown:
        parser.error(f"no program '{unknown[0]}'; there are {', '.join(names)}")
    options.names = options.names or names
    return options


def main(options):
    with step("compile the fuzz programs"):
        compilers = ["-DCMAKE_C_COMPILER=clang-16", "-DCMAKE_CXX_COMPILER=clang++-16"]
        run(["cmake", "-S", ROOT, "-B", FOLDER, "-GNinja", "-DCAIRN_FUZZ=ON", "-DCAIRN_TESTS=OFF", *compilers])
        run(["cmake", "--build", FOLDER, "-j", build.jobs(), "--target", *(f"fuzz_{name}" for name in options.names)])
    with step("files to begin with"):
        _write_seeds()
    ran = {name: _fuzz(name, options.seconds) for name in options.names}
    failed = [name for name, (_, good) in ran.items() if not good]
    inputs = sum(inputs for inputs, _ in ran.values())
    print(f"{len(ran)} programs, {inputs} inputs: {'FAILED ' + ', '.join(failed) if failed else 'nothing found'}", flush=True)
    return 1 if failed else 0


def _fuzz(name, seconds):
    """Runs one program; how many inputs it tried, and whether it held."""
    folder = OUT / name
    (folder / "corpus").mkdir(parents=True, exist_ok=True)
    command = [FOLDER / "fuzz" / f"fuzz_{name}", "corpus", "seeds", f"-max_total_time={seconds}", "-artifact_prefix=./"]
    done = subprocess.run([*command, *LIMITS], cwd=folder, capture_output=True, text=True, errors="replace")
    (folder / "log").write_text(done.stderr)
    counts = re.findall(r"^#(\d+)\s+\w+\s+cov: (\d+)", done.stderr, re.MULTILINE)
    ran, covered = counts[-1] if counts else ("0", "0")
    print(f"{name:12} {ran:>9} inputs, {covered:>6} places reached", flush=True)
    if done.returncode == 0 and counts:
        return int(ran), True
    reason = re.search(r"^(?:==\d+== ?ERROR|SUMMARY|.*runtime error|not one sentence).*", done.stderr, re.MULTILINE)
    kept = re.search(r"Test unit written to \./(\S+)", done.stderr)
    print(f"  FAILED: {reason.group() if reason else f'exit {done.returncode}'}")
    print(f"  {folder.relative_to(ROOT)}/{kept.group(1) if kept else 'log'}", flush=True)
    return int(ran), False


def _write_seeds():
    def files(name, paths):
        folder = OUT / name / "seeds"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        for number, path in enumerate(paths):
            shutil.copy(path, folder / f"{number}-{path.name}")
        return folder

    made = OUT / "made"
    shutil.rmtree(made, ignore_errors=True)
    made.mkdir(parents=True)
    run([CAIRN, "convert", DATA / "control.pb", "-o", made / "control.om"])
    run([CAIRN, "run", made / "control.om", "--dump", made / "dump", "--dump-format", "dump"])
    run([CAIRN, "bench", made / "control.om", "--seconds", "0", "--runs", "3", "--profile", made / "profile"])
    models = [path for path in DATA.iterdir() if path.is_file()]
    files("models", [*models, DATA / "caffe/tiny.prototxt", *(ROOT / "tests/python/data").glob("*.keras")])
    files("om", [made / "control.om"])
    arrays = (ROOT / "tests/compare/data").glob("*.np*")
    files("tensors", [*arrays, *(path for path in (made / "dump").rglob("*.*") if path.suffix != ".json")])
    files("recordings", (made / "profile").rglob("cairn.events"))
    run([build.PYTHON, "-c", WRITE_ROWS, made])
    files("records", [made / name for name in ("rows", "rows.db", "a.tfrecord", "a.csv")])
    files("images", [made / "a.png", made / "a.bmp", ROOT / "tests/python/data/waves.jpg"])
    files("caffe", (DATA / "caffe").iterdir())
    files("checkpoints", DATA.rglob("*.index"))
    files("scripts", (ROOT / "examples").rglob("*.py"))
    folder = files("settings", [])
    for number, text in enumerate(SETTINGS):
        (folder / str(number)).write_text(text)
    folder = files("modules", [])
    for path in (ROOT / "tests/passes").glob("*.test"):
        functions = path.read_text().partition("\nout:\n")[2]
        (folder / path.stem).write_text("module @m {\n" + textwrap.indent(functions, "  ") + "}\n")

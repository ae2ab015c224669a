"""Bounds of time: what would run for ever ends with a sentence, in the commands, in Python, and by Ctrl-C."""

import os
import pathlib
import re
import subprocess
import sys

import cairn
import hostile_files
import numpy as np
import pytest

CAIRN = str(pathlib.Path(sys.executable).parent / "cairn")

LOOP = """module @loop {
  func @main(%x: i64[]) -> (%y: i64[]) {
    %y = while %x {carried = 1} : i64[]
      region(%i: i64[]) {
        %no = constant {value = i64[] (-7)} : i64[]
        %c = not_equal %i, %no : bool[]
        yield %c
      }
      region(%j: i64[]) {
        %two = constant {value = i64[] (2)} : i64[]
        %n = mul %j, %two : i64[]
        yield %n
      }
    return %y
  }
}
"""

# Files of a few bytes that ask for very much: each ends with a result or a sentence.
GREEDY = {
    "repeats": """%s = constant {value = i64[1] (1099511627776)} : i64[1]
    %y = broadcast_to %x, %s : f32[?n]""",
    "tiles": """%s = constant {value = i64[1] (1152921504606846976)} : i64[1]
    %y = tile %x, %s : f32[?n]""",
    "pads": """%s = constant {value = i64[1, 2] (4611686018427387904, 4611686018427387904)} : i64[1, 2]
    %y = pad %x, %s : f32[?n]""",
    "counts": """%a = constant {value = i64[] (0)} : i64[]
    %b = constant {value = i64[] (4611686018427387904)} : i64[]
    %c = constant {value = i64[] (1)} : i64[]
    %i = iota %a, %b, %c {dtype = i64} : i64[?n]
    %y = cast %i {dtype = f32} : f32[?n]""",
    "windows": """%s = constant {value = i64[4] (1, 1, 1, 1)} : i64[4]
    %i = reshape %x, %s : f32[1, 1, 1, 1]
    %p = max_pool2d %i {window = [2147483647, 2147483647], padding = same} : f32[1, 1, 1, 1]
    %t = constant {value = i64[1] (1)} : i64[1]
    %y = reshape %p, %t : f32[?n]""",
    "means": """%s = constant {value = i64[4] (1, 1, 1, 1)} : i64[4]
    %i = reshape %x, %s : f32[1, 1, 1, 1]
    %p = avg_pool2d %i {window = [2147483647, 2147483647], padding = same} : f32[1, 1, 1, 1]
    %t = constant {value = i64[1] (1)} : i64[1]
    %y = reshape %p, %t : f32[?n]""",
}


def _run(*words):
    return subprocess.run([CAIRN, *map(str, words)], capture_output=True, text=True, timeout=120)


def _expect_sentence(done, *parts):
    lines = [line for line in done.stderr.splitlines() if not line.startswith(("note:", "cairn:"))]
    assert done.returncode == 1 and len(lines) == 1 and lines[0].startswith("error: "), (done.returncode, done.stderr)
    assert all(part in lines[0] for part in parts), lines


@pytest.fixture
def loop(tmp_path):
    path = tmp_path / "loop.ir"
    path.write_text(LOOP)
    return path


@pytest.mark.parametrize("verb", ["run", "bench"])
def test_a_loop_without_end_ends(loop, verb):
    _expect_sentence(_run(verb, loop, "--max-seconds", "0.3"), "stopped after 0.3 seconds, the time it was given")


@pytest.mark.parametrize("name", GREEDY)
def test_a_small_file_that_asks_for_very_much_gets_a_sentence(tmp_path, name):
    path = tmp_path / "greedy.ir"
    path.write_text("module @m {\n  func @main(%x: f32[1]) -> (%y: f32[?n]) {\n    " + GREEDY[name] +
                    "\n    return %y\n  }\n}\n")
    done = _run("run", path, "--max-seconds", "20")
    if done.returncode != 0:
        _expect_sentence(done)


def test_constant_folding_has_a_limit(tmp_path):
    path = tmp_path / "fold.ir"
    path.write_text("""module @m {
  func @main() -> (%y: f32[790, 790]) {
    %half = constant {value = f32[] (0.5)} : f32[]
    %size = constant {value = i64[2] (790, 790)} : i64[2]
    %x = broadcast_to %half, %size : f32[790, 790]
    %y = matmul %x, %x : f32[790, 790]
    return %y
  }
}
""")
    output = tmp_path / "fold.om"
    _expect_sentence(_run("convert", path, "-o", output, "--max-seconds", "0.01"), "stopped after 0.01 seconds")
    assert not output.exists()


def test_a_limit_in_python(loop):
    model = cairn.load(loop)
    with pytest.raises(cairn.Error, match="stopped after 0.2 seconds") as caught:
        model.run(np.int64(3), max_seconds=0.2)
    assert caught.value.kind == "cancelled"
    assert model.run(np.int64(-7), max_seconds=60)["y"] == -7


def test_control_c_ends_a_run_in_python(loop):
    script = f"""
import cairn, numpy, os, signal, threading
signal.signal(signal.SIGINT, signal.default_int_handler)  # a program started in the background ignores it
model = cairn.load({str(loop)!r})
threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
try:
    model.run(numpy.int64(3))
except KeyboardInterrupt:
    print("ended", model.run(numpy.int64(-7))["y"])
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60)
    assert done.stdout == "ended -7\n", done.stderr


def test_memory_of_shapes_is_bounded(tmp_path):
    path = tmp_path / "net.ir"
    path.write_text("""module @m {
  func @main(%x: f32[?n, 4]) -> (%y: f32[4]) {
    %t = tanh %x : f32[?n, 4]
    %u = mul %t, %x : f32[?n, 4]
    %y = reduce_sum %u {axes = [0]} : f32[4]
    return %y
  }
}
""")
    model = cairn.load(path, plan_memory=1 << 20)
    pages = lambda: int(pathlib.Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    for n in range(1, 300):
        model.run(np.zeros((n, 4), "float32"))
    before = pages()
    for n in range(300, 3000):
        model.run(np.zeros((n, 4), "float32"))
    assert pages() - before < 16 << 20


@pytest.mark.parametrize("kind", hostile_files.KINDS)
def test_a_run_of_any_kind_ends_at_its_limit(tmp_path, kind):
    _, done = hostile_files.run(tmp_path, kind, 0.3)
    text = " ".join(line for line in done.stderr.splitlines() if line.startswith("error: "))
    assert done.returncode == 1 and re.match(
        r"error: run: (stopped after 0.3 seconds, the time it was given|the run takes about \de\+\d+ operations|.* of memory are needed)",
        text), done.stderr  # fmt: skip


@pytest.mark.parametrize("kind", ["product", "suppression", "sorting"])
def test_reading_a_model_without_inputs_ends_at_its_limit(tmp_path, kind):
    path = tmp_path / "folded.ir"
    path.write_text(hostile_files.text_of(kind, folded=True))
    with pytest.raises(cairn.Error, match="stopped after 0.3 seconds|memory are needed|operations") as caught:
        cairn.load(path, max_seconds=0.3).run(max_seconds=0.3)
    assert caught.value.kind in ("cancelled", "out_of_memory")


def test_the_estimate_of_a_run_leaves_out_taps_beyond_the_image(tmp_path):
    path = tmp_path / "pool.ir"
    path.write_text("""module @m {
  func @main(%x: f32[1, 4, 4, 1]) -> (%y: f32[1, 4, 4, 1]) {
    %y = max_pool2d %x {window = [2147483647, 2147483647], padding = same} : f32[1, 4, 4, 1]
    return %y
  }
}
""")
    done = _run("run", path, "--max-seconds", "20")
    assert done.returncode == 0, done.stderr

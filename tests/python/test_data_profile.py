"""What data pipelines did, in cairn profile."""

import csv
import json
import os
import subprocess
import sys

import numpy as np
from conftest import BIN

import cairn
from cairn import data

SCRIPT = """
import time
import numpy as np
from cairn import data
def slow(x):
    time.sleep(0.004)
    return x
rows = data.slices({"x": np.zeros((60, 8, 8, 3), np.uint8)}).map(data.transforms.resize(16), "x").map(slow).batch(4)
for _ in range(2):
    for row in rows.iterate(workers=2, epochs=1):
        pass
"""


def table(folder):
    (file,) = (folder / "mindstudio_profiler_output").glob("data_pipeline*.csv")
    return list(csv.DictReader(file.open()))


def test_a_script_without_a_model_shows_its_operations_and_which_is_slow(tmp_path):
    (tmp_path / "feed.py").write_text(SCRIPT)
    done = subprocess.run([BIN / "cairn", "profile", "-o", tmp_path, "--", sys.executable, tmp_path / "feed.py"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "most of whose time goes into slow" in done.stdout and "slow (feed.py:8)" in done.stdout
    (folder,) = tmp_path.glob("PROF_*")
    rows = table(folder)
    assert [(row["Pipeline"], row["Operation"], row["Rows"]) for row in rows] == [
        (number, *each) for number in "12" for each in (("slices", "60"), ("map", "60"), ("slow", "60"), ("batch", "15"))]  # fmt: skip
    assert all(float(row["Busy(us)"]) > 60 * 4000 for row in rows if row["Operation"] == "slow")
    assert all(float(row["Waited For(us)"]) > 60 * 4000 for row in rows if row["Operation"] == "batch")
    assert "most of whose time" in (folder / "index.html").read_text()


def test_a_profiler_in_a_script_tells_the_iterators_that_ran_while_it_was_open(tmp_path):
    with cairn.Profiler(output_path=tmp_path) as profiler:
        rows = data.slices({"x": np.arange(6)}).batch(2).iterate(epochs=1)
        assert len(list(rows)) == 3
        running = data.slices({"x": np.arange(6)}).iterate()
        next(running)
    told = json.loads(open(os.path.join(profiler.folder, "host/data/data_pipelines.json"), encoding="utf-8").read())
    assert sorted([each["operation"] for each in one["operations"]] for one in told) == [["slices"], ["slices", "batch"]]
    running.stop()


def test_a_damaged_file_of_pipelines_is_told(tmp_path):
    with cairn.Profiler(output_path=tmp_path) as profiler:
        list(data.slices({"x": np.arange(6)}).iterate(epochs=1))
    with open(os.path.join(profiler.folder, "host/data/data_pipelines.json"), "w", encoding="utf-8") as file:
        file.write("[{")
    done = subprocess.run([BIN / "cairn", "profile", "export", tmp_path], capture_output=True, text=True, check=False)
    assert done.returncode == 1 and "data_pipelines.json: is damaged" in done.stderr


def test_more_lies_ready_where_rows_take_unequal_time():
    import time


    # one row in eight takes long in the workers: a large picture among small ones
    pictures = [np.zeros((900, 900, 3) if each % 8 == 0 else (8, 8, 3), np.uint8) for each in range(160)]
    rows = data.generator(type("Pictures", (), {"__len__": lambda self: 160, "__getitem__": lambda self, index: pictures[index]})(), "image")
    iterator = rows.map(data.transforms.resize(64), "image").iterate(workers=2, epochs=1)
    for _ in iterator:
        time.sleep(0.001)
    (last,) = [each for each in iterator.report()["operations"] if each["operation"] == "map"]
    assert 4 <= last["ahead"] <= 32

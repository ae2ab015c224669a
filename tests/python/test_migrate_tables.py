"""The tables of `cairn migrate` that are written from other tables are current."""

import os
import subprocess
import sys

from conftest import ROOT

DATA = ROOT / "src" / "migrate" / "data"


def test_the_verdicts_on_tensorflows_names_are_the_engines_and_the_layers_own():
    found = subprocess.run([sys.executable, DATA / "api_support.py"], capture_output=True, text=True)
    assert found.returncode == 0, found.stderr[-2000:]
    path = DATA / "api_support.txt"
    if os.environ.get("CAIRN_TEST_UPDATE") == "1":
        path.write_text(found.stdout)
    written = path.read_text()
    rows = [set(text.splitlines()) for text in (found.stdout, written)]
    assert found.stdout == written, f"./dev docs writes it; differs: {sorted(rows[0] ^ rows[1])[:6]}"


def test_the_verdicts_say_what_is_known():
    rows = dict(line.split(" ", 1) for line in (DATA / "api_support.txt").read_text().splitlines() if line[0] != "#")
    for name in ("tf.nn.relu", "tf.nn.conv2d", "tf.matmul", "tf.nn.softmax", "tf.nn.dropout", "tf.losses.sparse_softmax_cross_entropy"):
        assert rows[name] == "engine", name
    for name, op in (("tf.strings.join", "StringJoin"), ("tf.io.decode_jpeg", "DecodeJpeg"), ("tf.summary.scalar", "ScalarSummary")):
        assert rows[name].startswith("host ") and op in rows[name], name
    assert rows["tf.contrib.layers.layer_norm"] == "layer tf_slim.layers.layers"
    assert rows["tf.contrib.slim.learning.create_train_op"].startswith("layer tf_slim")
    assert "tf.contrib.gan" not in rows and rows["tf.contrib.*"].startswith("missing")

"""Reports on converted TensorFlow models name the script lines that the files know."""

import inspect

import pytest

tf = pytest.importorskip("tensorflow")


def line_of(mark):
    """"test_script_lines.py:12" of the line in this file that ends in `# mark`."""
    lines = inspect.getsource(inspect.getmodule(line_of)).splitlines()
    (number,) = [at for at, line in enumerate(lines, 1) if line.endswith(f"  # {mark}")]
    return f"test_script_lines.py:{number}"


DEBUG = tf.saved_model.SaveOptions(save_debug_info=True)


class Net(tf.Module):
    @tf.function(input_signature=[tf.TensorSpec([2, 3], tf.float32, name="x")])
    def run(self, x):
        return self.inner(tf.nn.relu(x))  # relu

    @tf.function
    def inner(self, x):
        x = tf.cast(x, tf.int32)  # cast
        return tf.sets.size(tf.sets.intersection(x, x))  # sets


def test_a_saved_model_with_debug_info(command, tmp_path):
    net = Net()
    tf.saved_model.save(net, str(tmp_path / "model"), signatures=net.run, options=DEBUG)
    said = command("cairn", "show", "model").stdout
    assert f"({line_of('sets')})" in said, said
    done = command("cairn", "convert", "model", "--out_nodes=Cast", "-o", "m.om")
    assert done.returncode == 0, done.stderr
    said = command("cairn", "why", "m.om", "Cast").stdout + command("cairn", "why", "m.om", "Relu").stdout
    assert line_of("cast") in said and line_of("relu") in said, said


def test_damaged_debug_info_costs_the_lines_alone(command, tmp_path):
    net = Net()
    tf.saved_model.save(net, str(tmp_path / "model"), signatures=net.run, options=DEBUG)
    file = tmp_path / "model" / "debug" / "saved_model_debug_info.pb"
    file.write_bytes(file.read_bytes()[:-7])
    done = command("cairn", "convert", "model", "--out_nodes=Cast", "-o", "m.om")
    assert done.returncode == 0, done.stderr


def test_a_graph_with_debug_info(command, tmp_path):
    graph = tf.Graph()
    with graph.as_default():
        x = tf.compat.v1.placeholder(tf.float32, [2, 3], name="x")
        tf.strings.join([tf.raw_ops.Fact(name="odd"), tf.strings.as_string(tf.nn.relu(x, name="r"))])
    definition = graph.as_graph_def()
    frames = definition.debug_info.traces["odd@"].file_line_cols
    definition.debug_info.files.extend(["/home/me/export.py", "/v/site-packages/tensorflow/ops.py"])
    for file, line in ((0, 12), (0, 41), (1, 7)):
        frames.add(file_index=file, line=line)
    (tmp_path / "m.pb").write_bytes(definition.SerializeToString())
    for words in (["cairn", "convert", "m.pb", "-o", "m.om"], ["atc", "--model=m.pb", "--framework=3", "--output=m"]):
        done = command(*words)
        assert "odd (export.py:41)" in done.stdout + done.stderr, done.stdout + done.stderr

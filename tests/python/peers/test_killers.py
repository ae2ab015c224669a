"""Small ONNX files that are known to kill or hang readers: each is refused in one sentence, in time. Runs in .venv-peers."""

import subprocess
import sys

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

F, I = TensorProto.FLOAT, TensorProto.INT64  # noqa: E741
# Loads the file, runs it on ones, and ends like a command: 1 with a sentence for what is refused.
CHILD = """
import sys, resource
resource.setrlimit(resource.RLIMIT_AS, (8 << 30, 8 << 30))
resource.setrlimit(resource.RLIMIT_CPU, (60, 60))
import cairn, numpy as np
try:
    model = cairn.load(sys.argv[1], threads=1)
    model.run({e.name: np.ones([2 if d is None or isinstance(d, str) else d for d in e.shape], e.dtype) for e in model.inputs})
except (cairn.Error, ValueError, MemoryError) as error:
    sys.exit(str(error))
"""


def graph(nodes, weights=(), inputs=(("x", F, [2, 4, 8, 8]),), output="y"):
    made = [numpy_helper.from_array(np.asarray(value), name) for name, value in dict(weights).items()]
    inputs = [helper.make_tensor_value_info(*each) for each in inputs]
    return helper.make_graph(nodes, "g", inputs, [helper.make_empty_tensor_value_info(output)], made)


def model(nodes, *arguments, functions=(), **named):
    opsets = [helper.make_opsetid("", 18), helper.make_opsetid("ai.onnx.ml", 3), helper.make_opsetid("com.microsoft", 1), helper.make_opsetid("f", 1)]
    return helper.make_model(graph(nodes, *arguments, **named), opset_imports=opsets, functions=functions, ir_version=9)


def one(op, *inputs, weights=(), **attributes):
    return model([helper.make_node(op, list(inputs), ["y"], **attributes)], weights)


def child(file):
    return subprocess.run([sys.executable, "-c", CHILD, str(file)], capture_output=True, text=True, timeout=120)


def assert_a_sentence(done):
    text = done.stderr.strip()
    assert done.returncode == 1, f"ended with {done.returncode}: {text[-500:]}"
    assert "Traceback" not in text and 8 < len(text) < 1500 and len(text.splitlines()) <= 3, text[-1500:]


BIG = 1 << 40
BOMBS = {
    "a constant of a shape": one("ConstantOfShape", "s", weights={"s": [BIG, BIG]}),
    "a constant of a negative shape": one("ConstantOfShape", "s", weights={"s": [-3]}),
    "expand": one("Expand", "x", "s", weights={"s": [1 << 31, 1 << 31, 2, 4, 8, 8]}),
    "tile": one("Tile", "x", "s", weights={"s": [BIG, BIG, 1, 1]}),
    "range": one("Range", "a", "b", "c", weights={"a": np.int64(0), "b": np.int64(1 << 62), "c": np.int64(1)}),
    "pad": one("Pad", "x", "p", weights={"p": [0, 0, BIG, 0, 0, 0, BIG, 0]}),
    "one hot": one("OneHot", "i", "d", "v", weights={"i": [1, 2], "d": np.int64(BIG), "v": np.float32([0, 1])}),
    "resize": one("Resize", "x", "", "s", weights={"s": np.float32([1, 1, 1e9, 1e9])}),
    "a convolution with huge pads": one("Conv", "x", "w", weights={"w": np.ones((4, 4, 3, 3), np.float32)}, pads=[BIG] * 4),
    "many repeated doublings": model(
        [helper.make_node("Concat", [f"x{i}" if i else "x"] * 2, [f"x{i + 1}" if i < 49 else "y"], axis=0) for i in range(50)]),
}  # fmt: skip


@pytest.mark.parametrize("name", BOMBS)
def test_a_shape_bomb_is_refused(name, tmp_path):
    onnx.save(BOMBS[name], tmp_path / "m.onnx")
    assert_a_sentence(child(tmp_path / "m.onnx"))


def test_a_cycle_of_nodes_is_refused(tmp_path):
    nodes = [helper.make_node("Add", ["x", "y"], ["a"]), helper.make_node("Relu", ["a"], ["y"])]
    onnx.save(model(nodes), tmp_path / "m.onnx")
    assert_a_sentence(child(tmp_path / "m.onnx"))


def test_a_function_that_calls_itself_is_refused(tmp_path):
    opset = [helper.make_opsetid("", 18), helper.make_opsetid("f", 1)]
    again = helper.make_function("f", "again", ["a"], ["b"], [helper.make_node("again", ["a"], ["b"], domain="f")], opset)
    onnx.save(model([helper.make_node("again", ["x"], ["y"], domain="f")], functions=[again]), tmp_path / "m.onnx")
    assert_a_sentence(child(tmp_path / "m.onnx"))


def test_functions_that_double_the_graph_sixty_times_are_refused(tmp_path):
    opset = [helper.make_opsetid("", 18), helper.make_opsetid("f", 1)]
    made = []
    for i in range(60):
        inner = {"op_type": f"f{i - 1}", "domain": "f"} if i else {"op_type": "Relu"}
        nodes = [helper.make_node(inputs=["a"], outputs=["t"], **inner), helper.make_node(inputs=["t"], outputs=["b"], **inner)]
        made.append(helper.make_function("f", f"f{i}", ["a"], ["b"], nodes, opset))
    onnx.save(model([helper.make_node("f59", ["x"], ["y"], domain="f")], functions=made), tmp_path / "m.onnx")
    assert_a_sentence(child(tmp_path / "m.onnx"))


def test_trees_with_a_cycle_are_refused(tmp_path):
    lists = {"treeids": [0, 0], "nodeids": [0, 1], "featureids": [0, 0], "values": [0.0, 0.0], "truenodeids": [1, 0], "falsenodeids": [1, 0]}
    node = helper.make_node(
        "TreeEnsembleRegressor", ["x"], ["y"], domain="ai.onnx.ml", n_targets=1, nodes_modes=["BRANCH_LEQ"] * 2, target_ids=[0],
        target_treeids=[0], target_nodeids=[0], target_weights=[1.0], **{f"nodes_{key}": value for key, value in lists.items()})  # fmt: skip
    onnx.save(model([node], inputs=[("x", F, [2, 3])]), tmp_path / "m.onnx")
    assert_a_sentence(child(tmp_path / "m.onnx"))


def field(number, content):
    """A message field of protobuf."""
    size, length = len(content), b""
    while size > 127:
        length, size = length + bytes([size & 127 | 128]), size >> 7
    return bytes([number << 3 | 2]) + length + bytes([size]) + content


@pytest.mark.parametrize("what", ["graphs", "types"])
def test_ten_thousand_levels_are_refused(what, tmp_path):
    inner = b""
    for _ in range(10_000):
        # A node with an attribute that is a graph with such a node; a sequence of sequences.
        inner = field(1, field(5, field(6, inner))) if what == "graphs" else field(4, field(1, inner))
    outer = inner if what == "graphs" else field(11, field(1, b"x") + field(2, inner))
    (tmp_path / "m.onnx").write_bytes(b"\x08\x09" + field(8, b"\x10\x12") + field(7, outer + field(12, field(1, b"x"))))
    assert_a_sentence(child(tmp_path / "m.onnx"))


def external(location, tmp_path, **entries):
    tensor = helper.make_tensor("w", F, [4, 4, 3, 3], np.zeros(4 * 4 * 9, np.float32).tobytes(), raw=True)
    tensor.ClearField("raw_data")
    tensor.data_location = TensorProto.EXTERNAL
    for key, value in {"location": location, **entries}.items():
        tensor.external_data.add(key=key, value=value)
    made = one("Conv", "x", "w")
    made.graph.initializer.append(tensor)
    (tmp_path / "m.onnx").write_bytes(made.SerializeToString())
    (tmp_path / "w.bin").write_bytes(b"\0" * 576)


def test_external_data_is_read(tmp_path):
    external("w.bin", tmp_path, offset="0", length="576")
    assert child(tmp_path / "m.onnx").returncode == 0


@pytest.mark.parametrize("location", ["../w.bin", "/etc/passwd", "a/../../w.bin", "link", "", ".", "w.bin\0x", "https://host/w.bin"])
def test_external_data_outside_of_the_folder_is_refused(location, tmp_path):
    (tmp_path.parent / "w.bin").write_bytes(b"\0" * 576)
    (tmp_path / "link").symlink_to("../w.bin")
    external(location, tmp_path)
    assert_a_sentence(child(tmp_path / "m.onnx"))


@pytest.mark.parametrize(
    "entries",
    [{"offset": "4"}, {"length": "575"}, {"length": "1e9"}, {"offset": "-4"}, {"offset": "18446744073709551615"}, {"length": "9223372036854775807"},
     {"offset": "9223372036854775807", "length": "576"}],
    ids=str,
)  # fmt: skip
def test_truncated_external_data_is_refused(entries, tmp_path):
    external("w.bin", tmp_path, **entries)
    assert_a_sentence(child(tmp_path / "m.onnx"))


W = {"w": np.ones((4, 4, 3, 3), np.float32)}
DIVISIONS = {
    "strides": one("Conv", "x", "w", weights=W, strides=[0, 0]),
    "dilations": one("Conv", "x", "w", weights=W, dilations=[0, 0]),
    "groups": one("Conv", "x", "w", weights=W, group=0),
    "strides of pooling": one("MaxPool", "x", kernel_shape=[2, 2], strides=[0, 0]),
    "kernels of pooling": one("AveragePool", "x", kernel_shape=[0, 0]),
    "strides of transposed convolutions": one("ConvTranspose", "x", "w", weights=W, strides=[0, 0]),
    "blocks to space": one("DepthToSpace", "x", blocksize=0),
    "blocks to depth": one("SpaceToDepth", "x", blocksize=0),
    "groups of norms": one("GroupNormalization", "x", "s", "s", weights={"s": np.ones(0, np.float32)}, num_groups=0),
    "parts of a split": model([helper.make_node("Split", ["x"], [], axis=1, num_outputs=0)]),
    "steps of slices": one("Slice", "x", "a", "b", "c", "d", weights={"a": [0], "b": [4], "c": [1], "d": [0]}),
    "steps of a range": one("Range", "a", "b", "c", weights={"a": np.int64(0), "b": np.int64(4), "c": np.int64(0)}),
    "reshape of nothing": model(
        [helper.make_node("Reshape", ["e", "s"], ["y"])], {"e": np.ones((0, 4), np.float32), "s": [0, 3, -1]}, inputs=()),
    "scales": one("Resize", "x", "", "s", weights={"s": np.float32([1, 1, 0, 0])}),
    "heads": one("MultiHeadAttention", "q", "q", "q", weights={"q": np.ones((1, 2, 4), np.float32)}, domain="com.microsoft", num_heads=0),
    "heads of rotations": one(
        "RotaryEmbedding", "q", "p", "c", "c", domain="com.microsoft",
        weights={"q": np.ones((1, 2, 4), np.float32), "p": [0], "c": np.ones((4, 0), np.float32)}),
    "heads of groups": one(
        "GroupQueryAttention", "q", "", "", "", "", "l", "t", domain="com.microsoft", num_heads=0, kv_num_heads=0,
        weights={"q": np.ones((1, 2, 4), np.float32), "l": np.int32([1]), "t": np.int32(2)}),
    "integers": one("Div", "a", "b", weights={"a": [4], "b": [0]}),
    "remainders": one("Mod", "a", "b", weights={"a": [4], "b": [0]}),
    "the least integer": one("Div", "a", "b", weights={"a": [-(1 << 63)], "b": [-1]}),
    "blocks of quantisation": one(
        "DequantizeLinear", "q", "s", weights={"q": np.ones((4, 4), np.int8), "s": np.ones((4, 4), np.float32)}, axis=1, block_size=0),
    "supports": one("SVMRegressor", "q", domain="ai.onnx.ml", weights={"q": np.ones((2, 0), np.float32)}, n_supports=0, coefficients=[1.0], rho=[0.0]),
    "half a support vector": one(
        "SVMRegressor", "q", domain="ai.onnx.ml", weights={"q": np.ones((2, 2), np.float32)}, n_supports=2, support_vectors=[1.0] * 5,
        coefficients=[1.0] * 2, rho=[0.0]),
}  # fmt: skip
ANSWERED = {"integers", "remainders", "the least integer"}  # may have an answer: integers have no NaN


@pytest.mark.parametrize("name", DIVISIONS)
def test_a_division_by_zero_in_shapes_is_refused(name, tmp_path):
    (tmp_path / "m.onnx").write_bytes(DIVISIONS[name].SerializeToString())
    done = child(tmp_path / "m.onnx")
    if name not in ANSWERED or done.returncode != 0:
        assert_a_sentence(done)

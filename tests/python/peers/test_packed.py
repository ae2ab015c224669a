"""Sequences and optionals of ONNX go in and out as lists and None, and packed; sparse initialisers and constants of texts equal
ONNX Runtime. Runs in .venv-peers.
"""

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

import cairn

random = np.random.default_rng(5)
FLOAT = TensorProto.FLOAT


def floats(*shape):
    return random.standard_normal(shape).astype(np.float32)


def sequence(name, dims=None, dtype=FLOAT):
    return helper.make_tensor_sequence_value_info(name, dtype, dims)


def optional(name, inner):
    return helper.make_value_info(name, helper.make_optional_type_proto(inner))


def saved(folder, nodes, inputs, outputs, initializers=(), sparse=(), opset=18):
    graph = helper.make_graph(nodes, "g", inputs, outputs, list(initializers), sparse_initializer=list(sparse))
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=9)
    onnx.save(model, folder / "m.onnx")
    return str(folder / "m.onnx")


def through_runtime(path, feeds):
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    return dict(zip([output.name for output in session.get_outputs()], session.run(None, feeds), strict=True))


def equal(a, b):
    if isinstance(a, list):
        return isinstance(b, list) and len(a) == len(b) and all(map(equal, a, b))
    return a is b if a is None or b is None else np.array_equal(a, b) and np.asarray(a).dtype == np.asarray(b).dtype


@pytest.mark.parametrize("given", [[(2, 3), (1,), (0, 2), ()], []], ids=["four", "none"])
@pytest.mark.parametrize("dtype", ["float32", "int64"])
def test_a_sequence_goes_in_and_comes_out(given, dtype, tmp_path):
    number = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    path = saved(tmp_path, [helper.make_node("SequenceInsert", ["s", "x"], ["y"]), helper.make_node("SequenceLength", ["y"], ["n"])],
                 [sequence("s", None, number), helper.make_tensor_value_info("x", number, ["n", 2])],
                 [sequence("y", None, number), helper.make_tensor_value_info("n", TensorProto.INT64, [])])  # fmt: skip
    feeds = {"s": [np.asarray(10 * floats(*dims), dtype) for dims in given], "x": (10 * floats(3, 2)).astype(dtype)}
    found = cairn.load(path).run(feeds)
    expected = through_runtime(path, feeds)
    assert equal(found["y"], expected["y"]) and equal(found["n"], expected["n"])
    om = cairn.load(cairn.convert(path, tmp_path / "m.om"))
    assert equal(om.run(feeds["s"], feeds["x"])["y"], expected["y"])


def test_elements_of_a_declared_rank_and_texts(tmp_path):
    path = saved(tmp_path, [helper.make_node("ConcatFromSequence", ["s"], ["y"], axis=-1), helper.make_node("SequenceAt", ["t", "i"], ["z"])],
                 [sequence("s", [2, None]), sequence("t", None, TensorProto.STRING)],
                 [helper.make_tensor_value_info("y", FLOAT, None), helper.make_tensor_value_info("z", TensorProto.STRING, None)],
                 [numpy_helper.from_array(np.int64(-1), "i")])  # fmt: skip
    s = [floats(2, 3), floats(2, 1)]
    found = cairn.load(path).run({"s": s, "t": [np.array(["a"], object), np.array([["b", "ü"]], object)]})
    assert np.array_equal(found["y"], np.concatenate(s, 1))
    assert found["z"].tolist() == [[b"b", "ü".encode()]]


@pytest.mark.parametrize("there", [True, False])
@pytest.mark.parametrize("dims", [[None], [], None])
@pytest.mark.parametrize("of_sequence", [True, False])
def test_an_optional_is_there_or_not(there, dims, of_sequence, tmp_path):
    inner = helper.make_tensor_type_proto(FLOAT, dims)
    if of_sequence:
        inner = helper.make_sequence_type_proto(inner)
    nodes = [helper.make_node("OptionalHasElement", ["x"], ["has"]), helper.make_node("Identity", ["x"], ["y"])]
    path = saved(tmp_path, nodes, [optional("x", inner)],
                 [helper.make_tensor_value_info("has", TensorProto.BOOL, []), optional("y", inner)])  # fmt: skip
    one = np.asarray(floats(*([3] if dims != [] else [])), np.float32)
    x = ([one, one] if of_sequence else one) if there else None
    found = cairn.load(path).run({"x": x})
    assert bool(found["has"]) == there and equal(found["y"], x)


def test_packed_parts_are_the_ports_of_a_model(tmp_path):
    path = saved(tmp_path, [helper.make_node("Identity", ["s"], ["y"])], [sequence("s")], [sequence("y")])
    model = cairn.load(path)
    assert [port.name for port in model.inputs] == ["s", "s:dims", "s:ranks"]
    parts = {"s": floats(7), "s:dims": np.array([2, 3, 1]), "s:ranks": np.array([2, 1])}
    found = model.run(parts)["y"]
    assert equal(found, [parts["s"][:6].reshape(2, 3), parts["s"][6:]])
    with pytest.raises(cairn.Error):
        model.run(parts | {"s:dims": np.array([2, 4, 1])})


@pytest.mark.parametrize("coordinates", [True, False])
def test_sparse_initialisers_and_constants_of_texts(coordinates, tmp_path):
    places = [[0, 1], [1, 1], [2, 0]] if coordinates else [1, 3, 4]
    values = helper.make_tensor("w", FLOAT, [3], [1.0, -2.0, 3.5])
    matrix = helper.make_sparse_tensor(values, numpy_helper.from_array(np.array(places, np.int64), "i"), [3, 2])
    path = saved(tmp_path, [helper.make_node("MatMul", ["x", "w"], ["y"]), helper.make_node("Constant", [], ["t"], value_strings=["a", "b"]),
                            helper.make_node("Constant", [], ["u"], value_string="c"), helper.make_node("Constant", [], ["v"], sparse_value=matrix)],
                 [helper.make_tensor_value_info("x", FLOAT, ["n", 3])],
                 [helper.make_tensor_value_info(name, kind, None) for name, kind in (("y", 1), ("t", 8), ("u", 8), ("v", 1))],
                 sparse=[matrix])  # fmt: skip
    found = cairn.load(path).run({"x": np.eye(3, dtype=np.float32)})
    expected = np.array([[0, 1], [0, -2], [3.5, 0]], np.float32)
    assert np.array_equal(found["y"], expected) and np.array_equal(found["v"], expected)
    assert found["t"].tolist() == [b"a", b"b"] and found["u"].tolist() == b"c"


@pytest.mark.parametrize("places", [[1, 6, 4], [-1, 0, 1], [[0, 1], [1, 2], [2, 0]]])
def test_places_outside_of_a_sparse_tensor_are_refused(places, tmp_path):
    values = helper.make_tensor("w", FLOAT, [3], [1.0, -2.0, 3.5])
    matrix = helper.make_sparse_tensor(values, numpy_helper.from_array(np.array(places, np.int64), "i"), [3, 2])
    path = saved(tmp_path, [helper.make_node("Identity", ["w"], ["y"])], [], [helper.make_tensor_value_info("y", FLOAT, None)], sparse=[matrix])
    with pytest.raises(cairn.Error, match="outside of it"):
        cairn.load(path)

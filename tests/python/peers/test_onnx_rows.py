"""Single ONNX nodes with constant weights and an open batch give what ONNX Runtime gives. Runs in .venv-peers."""

import numpy as np
import onnx
import onnx.parser
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

import cairn

RANDOM = np.random.default_rng(5)


def weights(*dims):
    return (RANDOM.normal(size=dims) * 0.4).astype(np.float32)


def check(op, shape, constants, outputs=1, opset=17, tolerance=1e-5, open_dims=(0,), **attributes):
    """One node whose first input is the model's, of `shape`; None among the constants leaves an input out."""
    names = ["x"] + [f"c{i}" if c is not None else "" for i, c in enumerate(constants)]
    node = helper.make_node(op, names, [f"y{i}" for i in range(outputs)], name="node", **attributes)
    declared = [f"d{i}" if i in open_dims else size for i, size in enumerate(shape)]
    graph = helper.make_graph(
        [node],
        "graph",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, declared)],
        [helper.make_tensor_value_info(f"y{i}", TensorProto.FLOAT, None) for i in range(outputs)],
        [numpy_helper.from_array(c, f"c{i}") for i, c in enumerate(constants) if c is not None],
    )
    data = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8).SerializeToString()
    x = RANDOM.normal(size=shape).astype(np.float32)
    session = onnxruntime.InferenceSession(data, providers=["CPUExecutionProvider"])
    expected = session.run(None, {"x": x})
    found = load(data).run({"x": x})
    for i, value in enumerate(expected):
        assert found[f"y{i}"].shape == value.shape
        assert np.ptp(value) > 0
        assert np.abs(found[f"y{i}"] - value).max() <= tolerance * max(1, np.abs(value).max()), f"result {i}"


def load(data):
    import tempfile

    with tempfile.NamedTemporaryFile(suffix=".onnx") as file:
        file.write(data)
        file.flush()
        return cairn.load(file.name)


@pytest.mark.parametrize("direction", ("forward", "reverse", "bidirectional"))
@pytest.mark.parametrize("op, gates", (("LSTM", 4), ("GRU", 3), ("RNN", 1)))
def test_recurrent_layers(op, gates, direction):
    d, h, n = 2 if direction == "bidirectional" else 1, 5, 3
    constants = [weights(d, gates * h, n), weights(d, gates * h, h), weights(d, 2 * gates * h)]
    check(op, (6, 2, n), constants, 3 if op == "LSTM" else 2, open_dims=(0, 1), hidden_size=h, direction=direction)
    check(op, (6, 2, n), constants[:2], 3 if op == "LSTM" else 2, hidden_size=h, direction=direction)


def test_a_lstm_with_peepholes_lengths_and_a_start():
    h, n = 4, 3
    constants = [weights(1, 4 * h, n), weights(1, 4 * h, h), weights(1, 8 * h), np.array([4, 2], np.int32),
                 weights(1, 2, h), weights(1, 2, h), weights(1, 3 * h)]  # fmt: skip
    check("LSTM", (5, 2, n), constants, 3, open_dims=(), hidden_size=h)


@pytest.mark.parametrize("clip", (None, 0.5))
@pytest.mark.parametrize("functions, alphas, betas", (
    (["Sigmoid", "Tanh", "Tanh"], [], []), (["HardSigmoid", "Softsign", "Elu"], [0.3, 0.7], [0.4]),
    (["Sigmoid", "LeakyRelu", "ScaledTanh"], [0.1, 0.9], [1.1]), (["Sigmoid", "ThresholdedRelu", "Affine"], [0.2, 0.8], [0.1])))  # fmt: skip
@pytest.mark.parametrize("coupled", (0, 1))
def test_a_lstm_of_other_functions(coupled, functions, alphas, betas, clip):
    h, n = 3, 4
    attributes = {"activations": functions, "activation_alpha": alphas, "activation_beta": betas, "clip": clip, "input_forget": coupled}
    attributes = {name: value for name, value in attributes.items() if value not in (None, [])}
    constants = [weights(1, 4 * h, n), weights(1, 4 * h, h), weights(1, 8 * h) * 3, None, weights(1, 2, h), weights(1, 2, h) * 4]
    check("LSTM", (5, 2, n), constants, 3, open_dims=(), hidden_size=h, **attributes)


@pytest.mark.parametrize("function", ("Softplus", "ScaledTanh", "LeakyRelu"))
def test_a_rnn_of_another_function(function):
    check("RNN", (5, 2, 4), [weights(1, 3, 4), weights(1, 3, 3)], 2, hidden_size=3, activations=[function], activation_alpha=[0.8], activation_beta=[1.3])


def test_a_gru_that_resets_after_the_product():
    h, n = 4, 3
    constants = [weights(1, 3 * h, n), weights(1, 3 * h, h), weights(1, 6 * h)]
    check("GRU", (5, 2, n), constants, 2, hidden_size=h, linear_before_reset=1)
    check("GRU", (5, 2, n), constants, 2, hidden_size=h, activations=["Sigmoid", "Relu"])


EMPTY = np.zeros(0, np.float32)
RESIZE = {
    "nearest": ({}, {}),
    "nearest_asymmetric": ({"coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}, {}),
    "nearest_ceil": ({"coordinate_transformation_mode": "asymmetric", "nearest_mode": "ceil"}, {"sizes": (7, 5)}),
    "nearest_up": ({"nearest_mode": "round_prefer_ceil"}, {"sizes": (7, 9)}),
    "linear": ({"mode": "linear"}, {}),
    "linear_sizes": ({"mode": "linear"}, {"sizes": (3, 11)}),
    "linear_pytorch": ({"mode": "linear", "coordinate_transformation_mode": "pytorch_half_pixel"}, {"sizes": (9, 4)}),
    "linear_corners": ({"mode": "linear", "coordinate_transformation_mode": "align_corners"}, {"sizes": (9, 4)}),
    "linear_asymmetric": ({"mode": "linear", "coordinate_transformation_mode": "asymmetric"}, {}),
    "cubic": ({"mode": "cubic"}, {}),
    "cubic_inside": ({"mode": "cubic", "cubic_coeff_a": -0.5, "exclude_outside": 1}, {"sizes": (9, 11)}),
}


@pytest.mark.parametrize("name", RESIZE)
def test_resize(name):
    attributes, how = RESIZE[name]
    scales, sizes = np.array([1, 1, 2, 3], np.float32), None
    if "sizes" in how:
        scales, sizes = EMPTY, np.array([2, 3, *how["sizes"]], np.int64)
    check("Resize", (2, 3, 5, 6), [EMPTY, scales] + ([sizes] if sizes is not None else []), open_dims=(), **attributes)
    if sizes is None and name != "linear_corners":
        check("Resize", (2, 3, 5, 6), [EMPTY, scales], open_dims=(0, 2, 3), **attributes)


@pytest.mark.parametrize("rounding", ("floor", "ceil", "round_prefer_ceil", "round_prefer_floor"))
@pytest.mark.parametrize("scale", (0.6, 0.7, 1.1, 1.6, 2.3))
def test_the_nearest_pixel_and_the_size_are_those_of_rounded_numbers(scale, rounding):
    attributes = {"mode": "nearest", "coordinate_transformation_mode": "asymmetric", "nearest_mode": rounding}
    check("Resize", (1, 2, 10, 30), [EMPTY, np.array([1, 1, scale, scale], np.float32)], open_dims=(), **attributes)


@pytest.mark.parametrize("name", [name for name in RESIZE if not name.startswith("cubic")])
def test_resize_of_volumes(name):
    attributes, _ = RESIZE[name]
    for scales in ((1, 1, 3, 2, 3), (1, 1, 1, 2, 1), (1, 1, 2, 1, 1)):
        check("Resize", (2, 3, 4, 5, 6), [EMPTY, np.array(scales, np.float32)], open_dims=(), **attributes)
    for sizes in ((2, 3, 7, 3, 9), (2, 3, 1, 5, 2)):
        check("Resize", (2, 3, 4, 5, 6), [EMPTY, EMPTY, np.array(sizes, np.int64)], open_dims=(), **attributes)


def test_resize_of_a_row_and_upsample():
    check("Resize", (2, 3, 6), [EMPTY, np.array([1, 1, 2], np.float32)], mode="linear")
    check("Upsample", (2, 3, 4, 5), [np.array([1, 1, 2, 2], np.float32)], opset=9, mode="nearest")


TRANSPOSED = {
    "plain": ((3, 4, 3, 3), {}),
    "stride": ((3, 4, 3, 2), {"strides": [2, 3], "pads": [1, 0, 1, 1]}),
    "extra": ((3, 4, 3, 3), {"strides": [2, 2], "pads": [1, 1, 1, 1], "output_padding": [1, 1]}),
    "dilated": ((3, 4, 3, 3), {"dilations": [2, 1]}),
    "groups": ((3, 4, 3, 3), {"group": 3, "strides": [2, 2]}),
    "same_upper": ((3, 4, 3, 3), {"auto_pad": "SAME_UPPER", "strides": [2, 2]}),
    "same_lower": ((3, 4, 4, 4), {"auto_pad": "SAME_LOWER", "strides": [2, 1]}),
    "output_shape": ((3, 4, 3, 3), {"output_shape": [10, 12], "strides": [2, 2]}),
}


@pytest.mark.parametrize("name", TRANSPOSED)
def test_transposed_convolution(name):
    dims, attributes = TRANSPOSED[name]
    channels = dims[1] * attributes.get("group", 1)
    open_dims = () if name == "output_shape" else (0, 2, 3)
    check("ConvTranspose", (2, 3, 5, 6), [weights(*dims), weights(channels)], open_dims=open_dims, **attributes)


def test_transposed_convolution_of_a_row():
    check("ConvTranspose", (2, 3, 7), [weights(3, 4, 4)], strides=[2], pads=[1, 1])


def test_short_transforms_of_signals_without_a_last_dim():
    """As torch writes them: [batch, length]."""
    check("STFT", (2, 64), [np.array(8, np.int64), weights(16), np.array(16, np.int64)], onesided=1)


VOLUMES = {
    "conv": ("Conv", [(4, 3, 3, 2, 3)], {}),
    "conv_padded": ("Conv", [(4, 3, 3, 3, 3), (4,)], {"pads": [1, 0, 1, 0, 1, 1], "strides": [2, 1, 2]}),
    "conv_dilated": ("Conv", [(4, 3, 2, 3, 2)], {"dilations": [2, 2, 1]}),
    "conv_groups": ("Conv", [(6, 1, 3, 3, 3)], {"group": 3, "auto_pad": "SAME_UPPER", "strides": [2, 2, 2]}),
    "max_pool": ("MaxPool", [], {"kernel_shape": [2, 3, 2], "strides": [2, 1, 2], "pads": [0, 1, 0, 1, 1, 1]}),
    "average_pool": ("AveragePool", [], {"kernel_shape": [2, 2, 2], "strides": [2, 2, 1], "pads": [1, 0, 0, 1, 1, 0]}),
    "pool_of_partial_windows": ("MaxPool", [], {"kernel_shape": [3, 3, 2], "strides": [2, 2, 2], "ceil_mode": 1}),
    "transposed": ("ConvTranspose", [(3, 4, 2, 3, 3), (4,)], {"strides": [2, 1, 2], "pads": [0, 1, 1, 1, 0, 1]}),
    "transposed_groups": ("ConvTranspose", [(3, 2, 3, 2, 2)], {"group": 3, "strides": [2, 2, 2], "output_padding": [1, 0, 1]}),
    "transposed_dilated": ("ConvTranspose", [(3, 4, 3, 3, 2)], {"dilations": [2, 1, 2]}),
    "average_with_padding": ("AveragePool", [], {"kernel_shape": [3, 3, 3], "pads": [1] * 6, "count_include_pad": 1}),
}


@pytest.mark.parametrize("name", VOLUMES)
def test_volumes(name):
    op, constants, attributes = VOLUMES[name]
    check(op, (2, 3, 6, 7, 8), [weights(*dims) for dims in constants], **attributes)


@pytest.mark.parametrize("axis", (0, 1, -1))
def test_elements_are_gathered_where_no_dim_is_known(axis):
    """Along the other axes the indices may be fewer than the data, which the dims tell at run time."""
    node = helper.make_node("GatherElements", ["x", "i"], ["y"], axis=axis)
    inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["a", "b", "c"]),
              helper.make_tensor_value_info("i", TensorProto.INT64, ["d", "e", "f"])]  # fmt: skip
    graph = helper.make_graph([node], "graph", inputs, [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)])
    data = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8).SerializeToString()
    session, model = onnxruntime.InferenceSession(data, providers=["CPUExecutionProvider"]), load(data)
    for dims, picked in (((3, 4, 5), (2, 2, 2)), ((6, 4, 3), (6, 4, 3)), ((2, 4, 3), (1, 4, 1))):
        x = RANDOM.normal(size=dims).astype(np.float32)
        i = RANDOM.integers(-dims[axis], dims[axis], picked)
        assert np.array_equal(model.run({"x": x, "i": i})["y"], session.run(None, {"x": x, "i": i})[0])


@pytest.mark.parametrize("form", ("none", "add", "mul", "min", "max", "gather"))
@pytest.mark.parametrize("axis", (0, 1, 2))
def test_elements_of_repeated_indices(axis, form):
    """Indices that Expand repeats behind the axis, ahead of it or not at all; also where no leading dim is known."""
    dims, count = (5, 6, 7), 4
    for repeated in ((), (2,), (1, 2), (0, 2)):
        picked = [count if i == axis else size for i, size in enumerate(dims)]
        own = [1 if i in repeated and i != axis else size for i, size in enumerate(picked)]
        for declared in ([picked, own, list(dims)], [["n", *picked[1:]], ["n", *own[1:]], ["m", *dims[1:]]]):
            if form != "gather" and declared[0][0] == "n" and (axis or not {1, 2} <= set(repeated)):
                continue
            shape = numpy_helper.from_array(np.array(picked), "shape")
            nodes = [helper.make_node("Expand", ["i", "shape"], ["e"])]
            if form == "gather":
                nodes.append(helper.make_node("GatherElements", ["x", "e"], ["y"], axis=axis))
            else:
                nodes.append(helper.make_node("ScatterElements", ["x", "e", "u"], ["y"], axis=axis, reduction=form))
            inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, declared[2]),
                      helper.make_tensor_value_info("i", TensorProto.INT64, declared[1]),
                      helper.make_tensor_value_info("u", TensorProto.FLOAT, declared[0])]  # fmt: skip
            if form == "gather":
                inputs.pop()
            graph = helper.make_graph(nodes, "graph", inputs, [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)], [shape])
            data = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8).SerializeToString()
            feeds = {"x": RANDOM.normal(size=dims).astype(np.float32), "u": RANDOM.normal(size=picked).astype(np.float32)}
            feeds["i"] = RANDOM.integers(-dims[axis], dims[axis], own)
            if form == "none":  # of two updates of one place ONNX keeps any
                feeds["i"] = np.broadcast_to(np.arange(count).reshape([-1 if i == axis else 1 for i in range(3)]), own).copy()
            feeds = {value.name: feeds[value.name] for value in inputs}
            expected = onnxruntime.InferenceSession(data, providers=["CPUExecutionProvider"]).run(None, feeds)[0]
            assert np.allclose(load(data).run(feeds)["y"], expected, rtol=1e-5, atol=1e-6), (repeated, declared)


@pytest.mark.parametrize(
    "image, block, places, attributes",
    (
        ((14, 21), (2, 7), 21, {"strides": [2, 7]}),
        ((12, 8, 6), (3, 2, 1), 96, {"strides": [3, 2, 1]}),
        ((30,), (5,), 6, {"strides": [5]}),
        ((15, 22), (2, 7), 21, {"strides": [2, 7]}),  # some pixels in no block
        ((12, 19), (2, 7), 21, {"strides": [2, 7], "pads": [1, 1, 1, 1]}),
        ((10, 9), (3, 3), 56, {}),
    ),
)
def test_blocks_of_images_are_put_together(image, block, places, attributes):
    constants = [np.array(image, np.int64), np.array(block, np.int64)]
    check("Col2Im", (2, 3 * int(np.prod(block)), places), constants, opset=18, **attributes)


def test_what_is_not_there_is_refused_with_a_reason():
    node = helper.make_node("Resize", ["x", "roi", "scales"], ["y"], coordinate_transformation_mode="sideways")
    graph = helper.make_graph(
        [node], "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 1, 4, 4])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(np.zeros(8, np.float32), "roi"),
         numpy_helper.from_array(np.array([1, 1, 2, 2], np.float32), "scales")],
    )  # fmt: skip
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    with pytest.raises(cairn.Error, match="sideways"):
        load(onnx.ModelProto.SerializeToString(model))


@pytest.mark.parametrize("block", (0, 2))
@pytest.mark.parametrize("signed", (True, False))
def test_weights_of_four_bits(signed, block):
    low = -8 if signed else 0
    weights = RANDOM.integers(low, low + 16, (6, 5)).astype(np.int8 if signed else np.uint8)
    scale = np.abs(RANDOM.normal(size=(3, 5) if block else (5,))).astype(np.float32)
    kind = TensorProto.INT4 if signed else TensorProto.UINT4
    graph = helper.make_graph(
        [helper.make_node("DequantizeLinear", ["w", "scale"], ["d"], axis=0 if block else 1, block_size=block),
         helper.make_node("MatMul", ["x", "d"], ["y"])],
        "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 6])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [helper.make_tensor("w", kind, weights.shape, weights.ravel().tolist()), numpy_helper.from_array(scale, "scale")],
    )  # fmt: skip
    data = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10).SerializeToString()
    x = RANDOM.normal(size=(3, 6)).astype(np.float32)
    expected = x @ (weights * (scale.repeat(2, axis=0) if block else scale))  # ONNX Runtime rounds x to 8 bits here
    assert np.allclose(load(data).run({"x": x})["y"], expected, rtol=1e-4, atol=1e-4)


def test_axes_known_only_in_a_run_stop_it_where_they_do_not_fit():
    graph = helper.make_graph(
        [helper.make_node("Squeeze", ["x", "axes"], ["y"])], "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 3, 1]),
         helper.make_tensor_value_info("axes", TensorProto.INT64, [1])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
    )  # fmt: skip
    model = load(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8).SerializeToString())
    x = RANDOM.normal(size=(1, 3, 1)).astype(np.float32)
    for axis in (0, 2, -1, -3):
        assert model.run({"x": x, "axes": np.array([axis])})["y"].shape == x.squeeze(axis).shape
    for axis in (1, 3, -4):
        with pytest.raises(cairn.Error):
            model.run({"x": x, "axes": np.array([axis])})


def test_nodes_may_stand_before_those_that_they_read():
    """Converters to float16 put casts at the end; ONNX Runtime takes such files."""
    number = lambda name, kind=TensorProto.FLOAT: helper.make_tensor_value_info(name, kind, [3])  # noqa: E731
    branch = helper.make_graph([helper.make_node("Neg", ["late"], ["inner"])], "branch", [], [number("inner")])
    nodes = [
        helper.make_node("Add", ["chosen", "late"], ["y"]),
        helper.make_node("If", ["positive"], ["chosen"], then_branch=branch, else_branch=branch),
        helper.make_node("Mul", ["x", "x"], ["late"]),
        helper.make_node("Cast", ["flag"], ["positive"], to=TensorProto.BOOL),
    ]
    inputs = [number("x"), helper.make_tensor_value_info("flag", TensorProto.FLOAT, [])]
    graph = helper.make_graph(nodes, "graph", inputs, [number("y")])
    data = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8).SerializeToString()
    x = weights(3)
    assert np.array_equal(load(data).run({"x": x, "flag": np.float32(1)})["y"], np.zeros(3, np.float32))

    nodes = [helper.make_node("Add", ["x", "b"], ["y"]), helper.make_node("Neg", ["y"], ["b"])]
    graph = helper.make_graph(nodes, "graph", [number("x")], [number("y")])
    circle = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8).SerializeToString()
    with pytest.raises(cairn.Error, match="input 'b' is not made before it"):
        load(circle)


@pytest.mark.parametrize("dtype", (np.int32, np.int64))
def test_the_smallest_integers_come_in_order(dtype):
    """The least integer of all among them, which has no negative."""
    rows = np.array([[3, np.iinfo(dtype).min, 3, -7, np.iinfo(dtype).max], [0, -1, 5, -1, 2]], dtype)
    kind = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    results = [helper.make_tensor_value_info("values", kind, None), helper.make_tensor_value_info("places", TensorProto.INT64, None)]
    node = helper.make_node("TopK", ["x", "k"], ["values", "places"], largest=0)
    k = numpy_helper.from_array(np.int64([4]), "k")
    graph = helper.make_graph([node], "graph", [helper.make_tensor_value_info("x", kind, [2, 5])], results, [k])
    data = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8).SerializeToString()
    expected = onnxruntime.InferenceSession(data, providers=["CPUExecutionProvider"]).run(None, {"x": rows})
    found = load(data).run({"x": rows})
    assert (found["values"] == expected[0]).all() and (found["places"] == expected[1]).all()


def both(op, inputs, outputs=1, opset=18, **attributes):
    """What ONNX Runtime and Cairn give for one node whose inputs are all the model's, the first of open dims; None is left out."""
    names = [f"x{i}" if x is not None else "" for i, x in enumerate(inputs)]
    feed = {name: x for name, x in zip(names, inputs) if name}
    graph = helper.make_graph(
        [helper.make_node(op, names, [f"y{i}" for i in range(outputs)], name="node", **attributes)],
        "graph",
        [
            helper.make_tensor_value_info(k, helper.np_dtype_to_tensor_dtype(x.dtype), [None] * x.ndim if k == "x0" else x.shape)
            for k, x in feed.items()
        ],
        [helper.make_empty_tensor_value_info(f"y{i}") for i in range(outputs)],
    )
    data = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8).SerializeToString()
    session = onnxruntime.InferenceSession(data, providers=["CPUExecutionProvider"])
    found = load(data).run(feed)
    return [(theirs, found[f"y{i}"]) for i, theirs in enumerate(session.run(None, feed))]


@pytest.mark.parametrize("mode, antialias", (("linear", 0), ("linear", 1), ("cubic", 1)))  # ONNX Runtime refuses cubic without
def test_images_of_bytes_resize_to_bytes(mode, antialias):
    for coordinates in ("half_pixel", "asymmetric", "pytorch_half_pixel"):
        x = RANDOM.integers(0, 256, (2, 3, 9, 7), np.uint8)
        scales = np.array([1, 1, 1.7, 0.6], np.float32)
        ((theirs, ours),) = both("Resize", [x, None, scales], mode=mode, antialias=antialias, coordinate_transformation_mode=coordinates)
        apart = np.abs(theirs.astype(int) - ours)  # f32 that falls short of a whole number differs by one
        assert ours.dtype == np.uint8 and apart.max() <= 1 and (apart > 0).mean() < 0.1


def test_bytes_that_do_not_change_stay_as_they_are():
    for kind in (np.uint8, np.int8):
        x = np.broadcast_to(RANDOM.integers(np.iinfo(kind).min, 128, (1, 64, 1, 1)).astype(kind), (1, 64, 5, 5))
        ((_, ours),) = both("Resize", [x, None, np.array([1, 1, 1.7, 2.3], np.float32)], mode="linear")
        assert (ours == x[:, :, :1, :1]).all()


@pytest.mark.parametrize("direction", ("reverse", "bidirectional"))
@pytest.mark.parametrize("op, gates", (("LSTM", 4), ("GRU", 3), ("RNN", 1)))
def test_sequences_of_their_own_lengths_run_backwards(op, gates, direction):
    d, h, n = 2 if direction == "bidirectional" else 1, 5, 3
    w, r, bias = weights(d, gates * h, n), weights(d, gates * h, h), weights(d, 2 * gates * h)
    for steps, lengths in ((6, [6, 2, 1]), (4, [3, 4])):
        inputs = [weights(steps, len(lengths), n), w, r, bias, np.array(lengths, np.int32), weights(d, len(lengths), h)]
        for theirs, ours in both(op, inputs, 3 if op == "LSTM" else 2, opset=14, hidden_size=h, direction=direction):
            assert np.abs(theirs - ours).max() < 1e-5


INTEGER_VOLUMES = {
    "plain": {},
    "pads": {"pads": [1, 0, 2, 2, 1, 0]},
    "strides": {"pads": [1, 1, 1, 1, 1, 1], "strides": [2, 1, 2]},
    "dilations": {"dilations": [2, 1, 2], "strides": [2, 2, 1], "pads": [2, 1, 0, 1, 1, 1]},
}


@pytest.mark.parametrize("name", INTEGER_VOLUMES)
def test_integers_convolve_in_volumes(name):
    def byte(*dims):
        return RANDOM.integers(0, 256, dims, np.uint8)

    for n, depth in ((1, 7), (2, 6)):
        inputs = [byte(n, 2, depth, 6, 7), byte(4, 2, 3, 3, 3), np.array(131, np.uint8), np.array(90, np.uint8)]
        ((theirs, ours),) = both("ConvInteger", inputs, opset=13, **INTEGER_VOLUMES[name])
        assert ours.dtype == np.int32 and (theirs == ours).all()


def of_text(source, feeds, tolerance=1e-5):
    """A model of ONNX's text form gives for each feed what ONNX Runtime gives."""
    data = onnx.parser.parse_model(source).SerializeToString()
    session = onnxruntime.InferenceSession(data, providers=["CPUExecutionProvider"])
    model = load(data)
    for feed in feeds:
        found = model.run(feed)
        for info, theirs in zip(session.get_outputs(), session.run(None, feed)):
            assert found[info.name].shape == theirs.shape and np.allclose(found[info.name], theirs, tolerance, tolerance)


def test_slices_take_bounds_whose_number_only_the_run_tells():
    """As torch's exporter writes embedding bags: bounds that are slices themselves."""
    source = """<ir_version: 9, opset_import: ["" : 18]>
    bag (float[N, 3] x, int64[M] offsets, int64[1] i) => (float[K, 3] y, int64[L] z) {
      one = Constant<value = int64[1] {1}>()
      next = Add(i, one)
      after = Add(next, one)
      some = Slice(offsets, i, after)
      first = Slice(some, some_begin, some_end)
      some_begin = Sub(one, one)
      some_end = Identity(one)
      last = Slice(offsets, next, after)
      begin = Compress(first, yes)
      end = Compress(last, yes)
      yes = Constant<value = bool[1] {1}>()
      y = Slice(x, begin, end)
      z = Slice(offsets, begin, end)
    }"""
    offsets = np.array([0, 2, 5, 6])
    of_text(source, [{"x": weights(7, 3), "offsets": offsets, "i": np.array([i])} for i in (0, 1, 2)])


@pytest.mark.parametrize("maker", ("Expand(zero, shape)", "ConstantOfShape(shape)"))
def test_an_expanded_number_has_the_dims_of_the_shape_that_it_follows(maker):
    source = """<ir_version: 9, opset_import: ["" : 18]>
    spectrum (float[N, 8, 1] x) => (float[N, 8, 2] y) {
      zero = Constant<value = float {0.0}>()
      shape = Shape(x)
      zeros = MAKER
      both = Concat<axis = -1>(x, zeros)
      y = DFT<axis = 1>(both)
    }"""
    of_text(source.replace("MAKER", maker), [{"x": weights(n, 8, 1)} for n in (1, 3)], 1e-4)


def test_a_rank_that_only_the_file_declares_is_taken_and_checked():
    source = """<ir_version: 9, opset_import: ["" : 18]>
    declared (float[N, 3] x, int64[P] shape, float[3, 2] w) => (float[N, 2] y) <float[A, B] t, float[D, C] u> {
      t = Reshape(x, shape)
      u = Transpose<perm = [1, 0]>(t)
      y = MatMul(u, w)
    }"""
    x, w = weights(3, 4), weights(3, 2)
    of_text(source.replace("[N, 3] x", "[N, M] x"), [{"x": x, "shape": np.array([3, 4]), "w": w}])
    model = load(onnx.parser.parse_model(source.replace("[N, 3] x", "[N, M] x")).SerializeToString())
    with pytest.raises(cairn.Error):
        model.run({"x": x, "shape": np.array([3, 2, 2]), "w": w})


@pytest.mark.parametrize("zero", (0, 1))
def test_heads_stay_known_behind_shapes_that_are_computed(zero):
    """As torch's exporter by FX graphs writes attention for grouped queries with open batches and steps."""
    source = """<ir_version: 10, opset_import: ["" : 23]>
    grouped (float[B, T, 32] x, float[B, T, 16] y) => (float[B, 4, T, 8] z) {
      b = Shape<start = 0, end = 1>(x)
      t = Shape<start = 1, end = 2>(x)
      four = Constant<value = int64[1] {4}>()
      two = Constant<value = int64[1] {2}>()
      eight = Constant<value = int64[1] {8}>()
      rest = Constant<value = int64[1] {-1}>()
      into_four = Concat<axis = 0>(b, t, four, eight)
      into_two = Concat<axis = 0>(b, t, two, eight)
      q = Reshape<allowzero = ZERO>(x, into_four)
      k = Reshape<allowzero = ZERO>(y, into_two)
      queries = Transpose<perm = [0, 2, 1, 3]>(q)
      keys = Transpose<perm = [0, 2, 1, 3]>(k)
      apart = Unsqueeze(keys, two)
      twice = Constant<value = int64[5] {1, 1, 2, 1, 1}>()
      repeated = Expand(apart, twice)
      after = Shape<start = 2>(keys)
      joined = Concat<axis = 0>(b, rest, after)
      all = Reshape<allowzero = ZERO>(repeated, joined)
      z = Attention<is_causal = 1>(queries, all, all)
    }""".replace("ZERO", str(zero))
    of_text(source, [{"x": weights(b, t, 32), "y": weights(b, t, 16)} for b, t in ((2, 5), (3, 9))])


@pytest.mark.parametrize("zero", (None, 0, 7, 128))
def test_integers_multiply_with_constant_matrices_of_each_product(zero):
    for kind in (np.int8, np.uint8):
        w = numpy_helper.from_array(RANDOM.integers(np.iinfo(kind).min, np.iinfo(kind).max, (3, 24, 20)).astype(kind), "w")
        middle = 128 if kind == np.uint8 else 0  # weights that are signed bytes once it is taken off
        zeros = [numpy_helper.from_array(a, n) for a, n in ((np.uint8(zero), "a"), (kind(middle), "b"))] if zero is not None else []
        node = helper.make_node("MatMulInteger", ["x", "w", *(["a", "b"] if zeros else [])], ["y"])
        x = helper.make_tensor_value_info("x", TensorProto.UINT8, [None, 3, None, 24])
        y = helper.make_tensor_value_info("y", TensorProto.INT32, None)
        graph = helper.make_graph([node], "graph", [x], [y], [w, *zeros])
        data = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8).SerializeToString()
        feed = {"x": RANDOM.integers(0, 256, (2, 3, 9, 24), np.uint8)}
        (theirs,) = onnxruntime.InferenceSession(data, providers=["CPUExecutionProvider"]).run(None, feed)
        assert (load(data).run(feed)["y"] == theirs).all()


def test_label_encoders_of_the_first_version_go_either_way():
    source = """<ir_version: 8, opset_import: ["" : 9, "ai.onnx.ml" : 1]>
    labels (string[N] a, int64[N] b) => (int64[N] y, string[N] z) {
      y = ai.onnx.ml.LabelEncoder<classes_strings = ["x", "q", "a"], default_int64 = -7>(a)
      z = ai.onnx.ml.LabelEncoder<classes_strings = ["x", "q", "a"], default_string = "none">(b)
    }"""
    data = onnx.parser.parse_model(source).SerializeToString()
    feed = {"a": np.array(["q", "a", "?", "x"], object), "b": np.array([2, 0, 9, -1])}
    y, z = onnxruntime.InferenceSession(data, providers=["CPUExecutionProvider"]).run(None, feed)
    found = load(data).run(feed)
    assert found["y"].tolist() == y.tolist() and found["z"].astype(str).tolist() == z.tolist()

"""`cairn convert M -o M.onnx`: the cases of every operator that has a row in src/export, and nets from torch, are valid for onnx's checker and
give ONNX Runtime the results that Cairn has. Runs in .venv-peers."""

import json
import os
import re
import subprocess
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from conftest import ROOT

import cairn

DUMP = Path(os.environ.get("CAIRN_BUILD", ROOT / "build")) / "dump_op_cases"
ROWS = re.findall(r'^\s*(?:constexpr Row \w+\[\] = \{)?\{"(\w+)"', "\n".join(
    file.read_text() for file in sorted((ROOT / "src/export").glob("*_rows.cpp"))), re.MULTILINE)  # fmt: skip
# Those whose cases cannot be compared, as what is random, or need constants, have tests of their own below.
ROWS = [row for row in ROWS if not row.startswith("random_") and row != "find_key"]
NUMPY = {"bool": "bool", "f16": "float16", "f32": "float32", "f64": "float64"}
NUMPY |= {f"{kind}{bits}": f"{name}{bits}" for kind, name in (("i", "int"), ("u", "uint")) for bits in (8, 16, 32, 64)}
# Cases of which ONNX leaves the result open (NaN among numbers to compare, overflow), and those that ONNX Runtime refuses
# (nothing divided by 0, no dims to pad, no window).
OPEN = ("arg_max f32[4]=[nan", "arg_min f32[4]=[nan", "pow i64[2, 1], i64[3]=[5, 0, 40]", "conv2d f32[1, 2, 2, 1]", "pad f32[],",
        "mod i32[0]", "truncate_mod i32[0]", "floor_div i32[0]", "truncate_div i32[0]")  # fmt: skip


@pytest.fixture(scope="session")
def cases(tmp_path_factory):
    folder = tmp_path_factory.mktemp("cases")
    subprocess.run([DUMP, folder], check=True)
    listed = {}
    for case in json.loads((folder / "cases.json").read_text()):
        types = [entry["dtype"] for entry in case["inputs"] + case["results"]]
        if all(dtype in NUMPY for dtype in types) and types and not case["case"].startswith(OPEN):
            listed.setdefault(case["op"], []).append(case)
    return folder, listed


def through_onnx(source, folder, feeds, **options):
    path = str(cairn.convert(source, folder / "out.onnx", **options))
    onnx.checker.check_model(path, full_check=True)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    return dict(zip([output.name for output in session.get_outputs()], session.run(None, feeds)))


def value_of(folder, attribute):
    if not isinstance(attribute, dict):
        return attribute
    return float(attribute["number"]) if "number" in attribute else NUMPY[attribute["dtype"]]


def difference(folder, case, made):
    b = cairn.Builder()
    arrays = [np.load(folder / entry["file"]) for entry in case["inputs"]]
    first, *others = arrays
    values = [b.input("x", first.dtype, first.shape), *map(b.constant, others)]
    attributes = {name: value_of(folder, value) for name, value in case["attributes"].items()}
    results = values[0].apply(case["op"], *values[1:], results=len(case["results"]), **attributes)
    for i, result in enumerate(results if isinstance(results, tuple) else (results,)):
        b.output(f"y{i}", result)
    try:
        found = through_onnx(b.save(made / "case.om"), made, {"x": first})
    except onnxruntime.capi.onnxruntime_pybind11_state.NotImplemented:
        return None
    except cairn.Error as error:
        assert "no counterpart in ONNX" in str(error)
        return None
    for i, entry in enumerate(case["results"]):
        expected = np.load(folder / entry["file"])
        if found[f"y{i}"].dtype != expected.dtype or found[f"y{i}"].shape != expected.shape:
            return f"is {found[f'y{i}'].dtype} {found[f'y{i}'].shape}, expected {expected.dtype} {expected.shape}"
        tolerance = {"float16": 4e-3, "float32": 2e-5, "float64": 2e-5}.get(str(expected.dtype), 0)
        scale = np.abs(np.where(np.isfinite(expected), expected, 0)).max(initial=1) if tolerance else 1
        if not np.allclose(found[f"y{i}"], expected, rtol=tolerance, atol=tolerance * scale, equal_nan=True):
            return f"{found[f'y{i}'].ravel()[:8]}, expected {expected.ravel()[:8]}"
    return ""


@pytest.mark.parametrize("op", ROWS)
def test_an_operator_means_the_same(op, cases, tmp_path):
    folder, listed = cases
    differences = {case["case"]: difference(folder, case, tmp_path) for case in listed.get(op, [])}
    if listed.get(op):
        assert "" in differences.values(), "none of its cases was written and run"
    assert not {case: told for case, told in differences.items() if told}


def nets():
    import torch
    from torch import nn

    class Residual(nn.Module):
        def __init__(self, width):
            super().__init__()
            self.body = nn.Sequential(nn.Conv2d(width, width, 3, padding=1), nn.BatchNorm2d(width), nn.SiLU(),
                                      nn.Conv2d(width, width, 3, padding=1, groups=width))  # fmt: skip

        def forward(self, x):
            return x + self.body(x)

    layer = nn.TransformerEncoderLayer(32, 4, 64, batch_first=True, activation="gelu")
    return {
        "cnn": (nn.Sequential(nn.Conv2d(3, 8, 3, 2), Residual(8), nn.MaxPool2d(2, 2, 0), nn.Flatten(), nn.Linear(8 * 9, 5)), (2, 3, 15, 15)),
        "unet": (nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.AvgPool2d(2), Residual(8), nn.ConvTranspose2d(8, 4, 4, 2, 1),
                               nn.Upsample(scale_factor=2, mode="bilinear"), nn.Conv2d(4, 2, 1), nn.Softmax(1)), (1, 3, 16, 16)),
        "transformer": (nn.Sequential(nn.Linear(12, 32), layer, nn.LayerNorm(32)), (2, 7, 12)),
        "volume": (nn.Sequential(nn.Conv3d(2, 4, 3, padding=1), nn.ELU(), nn.MaxPool3d(2), nn.Flatten(2), nn.Softmax(-1)), (1, 2, 4, 6, 6)),
    }  # fmt: skip


@pytest.mark.parametrize("name", ["cnn", "unet", "transformer", "volume"])
def test_a_net_comes_back(name, tmp_path):
    import torch

    torch.manual_seed(0)
    net, shape = nets()[name]
    x = torch.randn(shape)
    torch.onnx.export(net.eval(), (x,), tmp_path / "net.onnx", input_names=["x"], output_names=["y"], dynamo=False)
    found = through_onnx(tmp_path / "net.onnx", tmp_path, {"x": x.numpy()})
    assert np.abs(found["y"] - net(x).detach().numpy()).max() <= 2e-5 * max(1, float(net(x).detach().abs().max()))
    again = cairn.load(tmp_path / "out.onnx").run({"x": x.numpy()})
    assert np.allclose(again["y"], found["y"], rtol=1e-4, atol=1e-5)
    kinds = [node.op_type for node in onnx.load(tmp_path / "out.onnx").graph.node]
    assert kinds.count("Transpose") <= {"transformer": 8}.get(name, 1), kinds


def export_of(net, x, folder):
    import torch

    torch.onnx.export(net.eval(), (x,), folder / "net.onnx", input_names=["x"], output_names=["y"], dynamo=False,
                      dynamic_axes={"x": {0: "n"}, "y": {0: "n"}})  # fmt: skip
    return net(x).detach().numpy()


@pytest.mark.parametrize("kind", ["LSTM", "GRU", "RNN"])
def test_loops_and_lists_become_loops_and_sequences(kind, tmp_path):
    import torch
    from torch import nn

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = getattr(nn, kind)(8, 12, 2, batch_first=True, bidirectional=True)

        def forward(self, x):
            return self.inner(x)[0][:, -1]

    torch.manual_seed(0)
    x = torch.randn(3, 7, 8)
    expected = export_of(Net(), x, tmp_path)
    found = through_onnx(tmp_path / "net.onnx", tmp_path, {"x": x.numpy()})["y"]
    assert np.allclose(found, expected, atol=1e-5)
    kinds = {node.op_type for node in onnx.load(tmp_path / "out.onnx").graph.node}
    assert {"Loop", "SequenceEmpty", "ConcatFromSequence"} <= kinds
    assert np.allclose(cairn.load(tmp_path / "out.onnx").run({"x": x.numpy()})["y"], expected, atol=1e-5)


def scripted(x, turns):
    if bool(x.sum() > 0):
        x = x * 2
    else:
        x = x - 1
    i = 0
    while i < int(turns[0]) and bool(x.abs().max() < 100):
        x = x * 3 if bool(x.mean() > 0) else x * -2.0
        i += 1
    return x


@pytest.mark.parametrize("sign", [1, -1])
def test_branches_and_loops_within_each_other(sign, tmp_path):
    import torch

    x, turns = sign * torch.arange(1.0, 5), torch.tensor([5])
    torch.onnx.export(torch.jit.script(scripted), (x, turns), tmp_path / "net.onnx", input_names=["x", "turns"],
                      output_names=["y"], dynamo=False)  # fmt: skip
    for turns in ([0], [2], [9]):
        feeds = {"x": x.numpy(), "turns": np.int64(turns)}
        expected = scripted(x, torch.tensor(turns)).numpy()
        assert np.array_equal(through_onnx(tmp_path / "net.onnx", tmp_path, feeds)["y"], expected)
        assert np.array_equal(cairn.load(tmp_path / "out.onnx").run(feeds)["y"], expected)


@pytest.mark.parametrize("stride, kernel, pad, rest", [(2, 2, 0, 0), (2, 3, 1, 1), (3, 4, 1, 2), (1, 3, 1, 0)])
def test_transposed_convolutions_of_open_sizes(stride, kernel, pad, rest, tmp_path):
    import torch
    from torch import nn

    torch.manual_seed(0)
    net = nn.ConvTranspose2d(3, 4, kernel, stride, pad, rest)
    x = torch.randn(2, 3, 6, 5)
    torch.onnx.export(net, (x,), tmp_path / "net.onnx", input_names=["x"], output_names=["y"], dynamo=False,
                      dynamic_axes={"x": {0: "n", 2: "h", 3: "w"}})  # fmt: skip
    for x in (x, torch.randn(1, 3, 4, 9)):
        found = through_onnx(tmp_path / "net.onnx", tmp_path, {"x": x.numpy()})["y"]
        assert np.allclose(found, net(x).detach().numpy(), atol=1e-5)
        assert np.allclose(cairn.load(tmp_path / "out.onnx").run({"x": x.numpy()})["y"], found, atol=1e-5)


def test_a_quantised_net_keeps_its_integers(tmp_path):
    import torch

    torch.manual_seed(0)
    net, shape = nets()["cnn"]
    x = torch.randn(32, *shape[1:])
    torch.onnx.export(net.eval(), (x,), tmp_path / "net.onnx", input_names=["x"], output_names=["y"], dynamo=False)
    cairn.quantize(tmp_path / "net.onnx", {"x": x.numpy()}, tmp_path / "small.om", without=["costs"])
    found = through_onnx(tmp_path / "small.om", tmp_path, {"x": x.numpy()})["y"]
    expected = cairn.load(tmp_path / "small.om").run({"x": x.numpy()})["y"]
    assert 10 * np.log10(np.square(expected).sum() / np.square(found - expected).sum()) > 35
    model = onnx.load(tmp_path / "out.onnx")
    kinds = [node.op_type for node in model.graph.node]
    assert kinds.count("QuantizeLinear") >= 3 and kinds.count("DequantizeLinear") >= 7
    sizes = [int(np.prod(tensor.dims)) for tensor in model.graph.initializer if tensor.data_type == onnx.TensorProto.FLOAT]
    assert max(sizes) < 64, "a kernel is in floats"


def test_open_sizes_and_names_are_kept(tmp_path):
    b = cairn.Builder()
    b.output("answer", b.input("rows", "float32", [None, 3]).relu().reduce_mean(axes=[1]))
    found = through_onnx(b.save(tmp_path / "m.om"), tmp_path, {"rows": np.float32([[1, -2, 6]] * 4)})
    assert np.allclose(found["answer"], 7 / 3) and found["answer"].shape == (4,)


def test_what_has_no_counterpart_is_named(tmp_path):
    b = cairn.Builder()
    b.output("y", b.input("x", "float32", [4]).bessel_i0e())
    with pytest.raises(cairn.Error, match=r"1 operators have no counterpart in ONNX: bessel_i0e"):
        cairn.convert(b.save(tmp_path / "m.om"), tmp_path / "m.onnx")
    assert not (tmp_path / "m.onnx").exists()


def test_weights_beside_the_model(tmp_path):
    import torch
    from torch import nn

    torch.manual_seed(0)
    x = torch.randn(2, 40)
    expected = export_of(nn.Sequential(nn.Linear(40, 30), nn.ReLU(), nn.Linear(30, 40)), x, tmp_path)
    found = through_onnx(tmp_path / "net.onnx", tmp_path, {"x": x.numpy()}, external_weights=True)["y"]
    assert np.allclose(found, expected, atol=1e-5)
    assert (tmp_path / "out.onnx").stat().st_size < 2000 < 2 * 40 * 30 * 4 <= (tmp_path / "out.onnx.data").stat().st_size
    assert np.allclose(cairn.load(tmp_path / "out.onnx").run({"x": x.numpy()})["y"], expected, atol=1e-5)


def saved(b, folder, **results):
    for name, value in results.items():
        b.output(name, value)
    return b.save(folder / "case.om")


def graph_of(folder, nodes, inputs, outputs):
    """An ONNX file of these nodes, and inputs and outputs (name, type, dims)."""
    infos = [[onnx.helper.make_tensor_value_info(*port) for port in ports] for ports in (inputs, outputs)]
    model = onnx.helper.make_model(onnx.helper.make_graph(nodes, "g", *infos), opset_imports=[onnx.helper.make_opsetid("", 20)], ir_version=9)
    onnx.save(model, folder / "net.onnx")
    return folder / "net.onnx"


def test_random_numbers_come_from_the_runtime(tmp_path):
    node, (FLOAT, INT) = onnx.helper.make_node, (1, 7)
    path = graph_of(tmp_path, [node("RandomNormalLike", ["x"], ["n"], mean=3.0, scale=2.0), node("RandomUniform", [], ["u"], low=1.0, high=2.0, shape=[4000]),
                               node("Multinomial", ["p"], ["m"], sample_size=4000, dtype=7), node("Bernoulli", ["x"], ["c"])],
                    [("x", FLOAT, ["k"]), ("p", FLOAT, [1, 3])], [("n", FLOAT, None), ("u", FLOAT, None), ("m", INT, None), ("c", FLOAT, None)])  # fmt: skip
    found = through_onnx(path, tmp_path, {"x": np.full(4000, 0.25, np.float32), "p": np.log(np.array([[0.5, 0.5, 1e-9]], np.float32))})
    assert abs(found["n"].mean() - 3) < 0.3 and abs(found["n"].std() - 2) < 0.3
    assert 1 <= found["u"].min() < 1.05 and 1.95 < found["u"].max() <= 2
    assert set(np.unique(found["m"])) == {0, 1} and abs(found["c"].mean() - 0.25) < 0.1


@pytest.mark.parametrize(("op", "operands", "constants", "result", "low", "high"), [
    ("random_truncated_normal", "%n {dtype = f32}", "%n: const = i64[1] (4000)", "f32[4000]", -2, 2),
    ("random_integers", "%n, %l, %h", "%n: const = i64[1] (4000) %l: const = i32[] (-3) %h: const = i32[] (5)", "i32[4000]", -3, 4),
    ("random_shuffle", "%x", "", "i64[6]", 0, 5),
])  # fmt: skip
def test_draws_that_onnx_does_not_have(op, operands, constants, result, low, high, tmp_path):
    lines = [f"{name} = constant {{value = {value}}} : {value.split()[0]}"
             for name, value in re.findall(r"(%\w): const = (\S+ \S+)", constants)]  # fmt: skip
    lines = "".join(f"    {line}\n" for line in lines)
    (tmp_path / "draw.txt").write_text(f"""module @draw {{
  func @main(%x: i64[6]) -> (%y: {result}) {{
{lines}    %v = variable {{name = state, type = rng}} : resource<rng>
    %old = read_variable %v : rng
    %new, %y = {op} %old, {operands} : rng, {result}
    assign_variable %v, %new
    return %y
  }}
}}
""")
    found = through_onnx(tmp_path / "draw.txt", tmp_path, {"x": np.arange(6)})["y"]
    assert low <= found.min() <= low + 0.1 and high - 0.1 <= found.max() <= high
    assert op != "random_shuffle" or sorted(found) == list(range(6))


def test_texts_come_back(tmp_path):
    node, TEXT = onnx.helper.make_node, 8
    path = graph_of(tmp_path, [node("StringConcat", ["x", "x"], ["twice"]), node("RegexFullMatch", ["x"], ["fits"], pattern="[a-z]+"),
                               node("StringNormalizer", ["x"], ["upper"], case_change_action="UPPER"), node("Cast", ["d"], ["number"], to=1)],
                    [("x", TEXT, ["n"]), ("d", TEXT, ["k"])], [("twice", TEXT, None), ("fits", 9, None), ("upper", TEXT, None), ("number", 1, None)])  # fmt: skip
    found = through_onnx(path, tmp_path, {"x": np.array(["ab", "C", ""], object), "d": np.array(["1.5", "-2"], object)})
    assert found["twice"].tolist() == ["abab", "CC", ""] and found["fits"].tolist() == [True, False, False]
    assert found["upper"].tolist() == ["AB", "C", ""] and found["number"].tolist() == [1.5, -2]


def test_keys_become_labels(tmp_path):
    graph = onnx.helper.make_graph(
        [onnx.helper.make_node("LabelEncoder", ["x"], ["y"], domain="ai.onnx.ml", keys_strings=["b", "a"], values_int64s=[7, 9], default_int64=-5)],
        "g", [onnx.helper.make_tensor_value_info("x", 8, ["n"])], [onnx.helper.make_tensor_value_info("y", 7, None)])  # fmt: skip
    opsets = [onnx.helper.make_opsetid("", 20), onnx.helper.make_opsetid("ai.onnx.ml", 4)]
    onnx.save(onnx.helper.make_model(graph, opset_imports=opsets, ir_version=9), tmp_path / "net.onnx")
    found = through_onnx(tmp_path / "net.onnx", tmp_path, {"x": np.array(["a", "b", "c"], object)})
    assert found["y"].tolist() == [9, 7, -5]


@pytest.mark.parametrize("replies", ["floats", "strings"])
def test_floats_become_labels(replies, tmp_path):
    values = {"values_floats": [1.0, 2.0, 3.0], "default_float": -1.0} if replies == "floats" else {"values_strings": ["a", "b", "c"], "default_string": "?"}
    node = onnx.helper.make_node("LabelEncoder", ["x"], ["y"], domain="ai.onnx.ml", keys_floats=[2.5, np.nan, 0.0], **values)
    kind = 1 if replies == "floats" else 8
    graph = onnx.helper.make_graph([node], "g", [onnx.helper.make_tensor_value_info("x", 1, ["n"])], [onnx.helper.make_tensor_value_info("y", kind, None)])
    opsets = [onnx.helper.make_opsetid("", 20), onnx.helper.make_opsetid("ai.onnx.ml", 4)]
    onnx.save(onnx.helper.make_model(graph, opset_imports=opsets, ir_version=9), tmp_path / "net.onnx")
    found = through_onnx(tmp_path / "net.onnx", tmp_path, {"x": np.float32([np.nan, -0.0, 2.5, 7])})["y"]
    assert found.tolist() == ([2, 3, 1, -1] if replies == "floats" else ["b", "c", "a", "?"])


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("aggregate", ["sum", "min", "max"])
def test_trees_come_back(aggregate, dtype, tmp_path):
    """A leaf with several weights, a tree that is a leaf, and numbers that are missing."""
    nodes = np.array([[0, 0 + 8, 1, 2], [1, 3, 3, 4], [0, 6, 0, 2], [0, 6, 2, 5], [0, 6, 5, 6], [0, 6, 6, 8]])
    thresholds, weights = np.array([0.25, -0.5, 0, 0, 0, 0], dtype), np.array([1, -2, 3, 4.5, 0.5, 7, -1, 2], dtype)
    x = np.random.default_rng(0).standard_normal((40, 2)).astype(dtype)
    x[3, 0] = x[5, 1] = np.nan
    b = cairn.Builder()
    tables = nodes, thresholds, np.array([0, 5]), np.array([0, 2, 0, 1, 2, 1, 2, 0]), weights
    y = b.input("x", np.dtype(dtype).name, [None, 2]).apply("tree_ensemble", *map(b.constant, tables), count=3, aggregate=aggregate)
    path = saved(b, tmp_path, y=y)
    np.testing.assert_allclose(through_onnx(path, tmp_path, {"x": x})["y"], cairn.load(path).run({"x": x})["y"], rtol=1e-3)


LINEAR = {
    "matrix_inverse": lambda a, b: np.linalg.inv(a),
    "matrix_solve": np.linalg.solve,
    "cholesky": lambda a, b: np.linalg.cholesky(a @ np.swapaxes(a, -1, -2)),
    "triangular_solve": lambda a, b: np.linalg.solve(np.tril(a), b),
    "determinant": lambda a, b: np.linalg.det(a),
}


@pytest.mark.parametrize("op", LINEAR)
@pytest.mark.parametrize("batch", [(), (3,)])
def test_linear_algebra_becomes_elimination(op, batch, tmp_path):
    random = np.random.default_rng(3)
    a, right = random.standard_normal((*batch, 6, 6)).astype(np.float32), random.standard_normal((*batch, 6, 2)).astype(np.float32)
    a[..., 0, 0] = 0  # a pivot that has to be looked for
    if op == "triangular_solve":
        a += 3 * np.eye(6, dtype=np.float32)
    b = cairn.Builder()
    x = b.input("x", "float32", a.shape)
    given = x.apply("matmul", x, transpose_b=True) if op == "cholesky" else x
    more = [b.constant(right)] if op.endswith("solve") else []
    found = through_onnx(saved(b, tmp_path, y=given.apply(op, *more)), tmp_path, {"x": a})["y"]
    np.testing.assert_allclose(found, LINEAR[op](a.astype(np.float64), right), rtol=2e-3, atol=2e-4)


def test_a_variable_that_changes_is_an_input_and_an_output(tmp_path):
    (tmp_path / "counter.txt").write_text("""module @counter {
  func @main(%x: f32[]) -> (%y: f32[]) {
    %v = variable {name = total, type = f32[]} : resource<f32[]>
    %old = read_variable %v : f32[]
    %sum = add %old, %x : f32[]
    assign_variable %v, %sum
    %y = neg %sum : f32[]
    return %y
  }
}
""")
    feeds = {"x": np.array(1, np.float32), "total": np.array(10, np.float32)}
    found = through_onnx(tmp_path / "counter.txt", tmp_path, feeds)
    assert found["total:new"] == 11 and found["y"] == -11


def single(file, op, x, opset=20, **attributes):
    """One node whose first input is the model's; the others are constants by their names."""
    constants = {name: value for name, value in attributes.items() if isinstance(value, np.ndarray)}
    names = ["x", *(name if value.size else "" for name, value in constants.items())]
    settings = {name: value for name, value in attributes.items() if name not in constants}
    node = onnx.helper.make_node(op, names, ["y"], **settings)
    given = [onnx.helper.make_tensor_value_info("x", onnx.helper.np_dtype_to_tensor_dtype(x.dtype), x.shape)]
    held = [onnx.numpy_helper.from_array(value, name) for name, value in constants.items() if value.size]
    graph = onnx.helper.make_graph([node], "g", given, [onnx.helper.make_empty_tensor_value_info("y")], held)
    file.write_bytes(onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", opset)], ir_version=9).SerializeToString())
    return file


RANDOM = np.random.default_rng(4)
BYTES = {kind: lambda *dims, kind=kind: RANDOM.integers(np.iinfo(kind).min, np.iinfo(kind).max, dims, dtype=kind) for kind in (np.int8, np.uint8)}
PAIRS = RANDOM.standard_normal((2, 5, 2)).astype(np.float32)
NINE, EIGHT, AXIS = np.array(9), np.array(8), np.array(1)
# name: (op, x, operator set, inputs and attributes by name)
WRITTEN = {
    "a product of bytes": ("MatMulInteger", BYTES[np.uint8](2, 3, 4), 10, {"b": BYTES[np.int8](4, 5), "p": np.array(7, np.uint8), "q": BYTES[np.int8](5)}),
    "a convolution of bytes": ("ConvInteger", BYTES[np.uint8](2, 4, 6, 5), 10, {"w": BYTES[np.int8](4, 2, 3, 3), "p": np.array(7, np.uint8), "group": 2, "pads": [1, 0, 1, 2]}),
    "a convolution of signed bytes": ("ConvInteger", BYTES[np.int8](2, 3, 6, 5), 10, {"w": BYTES[np.int8](4, 3, 3, 3), "p": np.array(-5, np.int8), "q": np.array(3, np.int8), "strides": [2, 1]}),
    "a real transform": ("DFT", PAIRS[..., :1], 20, {"n": np.array(()), "axis": AXIS, "onesided": 1}),
    "a real transform of another length": ("DFT", PAIRS[..., :1], 20, {"n": EIGHT, "axis": AXIS, "onesided": 1}),
    "back to an even length": ("DFT", PAIRS, 20, {"n": EIGHT, "axis": AXIS, "onesided": 1, "inverse": 1}),
    "back to an odd length": ("DFT", PAIRS, 20, {"n": NINE, "axis": AXIS, "onesided": 1, "inverse": 1}),
    "columns as an image": ("Col2Im", RANDOM.standard_normal((1, 12, 12)).astype(np.float32), 18, {"size": np.array([5, 7]), "block": np.array([2, 3]), "dilations": [1, 2]}),
    "numbers as texts": ("Cast", np.array([1.5, np.nan, -np.inf, 1 / 3], np.float32), 20, {"to": 8}),
    "boxes": ("RoiAlign", RANDOM.standard_normal((2, 3, 8, 8)).astype(np.float32), 16, {"r": np.array([[0, 0, 5, 6], [1, 2, 7.5, 7]], np.float32), "b": np.array([0, 1]), "output_height": 3, "output_width": 2}),
}  # fmt: skip


@pytest.mark.parametrize("name", WRITTEN)
def test_an_operator_of_onnx_comes_back(name, tmp_path):
    op, x, opset, attributes = WRITTEN[name]
    file = single(tmp_path / "m.onnx", op, x, opset=opset, **attributes)
    expected = cairn.load(file).run({"x": x})["y"]
    found = through_onnx(file, tmp_path, {"x": x})["y"]
    if expected.dtype == object:
        assert [one.decode() for one in expected] == list(found)
    else:
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)

"""One report of all that keeps a model from being converted, and what is told of models and files that are taken."""

import json
import re

import numpy as np
import pytest
from atc_models import DENSE, SUCCESS, X, convert, graph, image_model  # noqa: F401
from test_atc_lines import field, port


def node(name, op, *inputs, **attributes):
    text = "".join(f' input: "{each}"' for each in inputs)
    text += "".join(f" attr {{ key: \"{key}\" value {{ {value} }} }}" for key, value in attributes.items())
    return f'node {{ name: "{name}" op: "{op}"{text} }}\n'


INPUT = node("x", "Placeholder", dtype="type: DT_FLOAT", shape="shape { dim { size: 2 } dim { size: 4 } }")
CHAIN = INPUT + node("r", "Relu", "x") + "".join(
    node(f"n{i}", f"My{i}", f"p{i - 1}" if i else "r") + node(f"p{i}", "Neg", f"n{i}") for i in range(10))


def onnx_chain(first="My0"):
    graph = field(2, "g")
    for i in range(6):
        op = first if i == 0 else f"My{i}" if i % 2 == 0 else "Neg"
        graph += field(1, field(1, f"t{i - 1}" if i else "x") + field(2, f"t{i}") + field(3, f"n{i}") + field(4, op))
    graph += field(11, port("x", [2, 4])) + field(12, field(1, "t5"))
    return field(1, 8) + field(7, graph) + field(8, field(1, "") + field(2, 13))


def named(text):
    return sorted(set(re.findall(r"\b(My\d+|Lone\d+)\b", text)))


@pytest.mark.parametrize("file, content", [("m.pbtxt", CHAIN.encode()), ("m.onnx", onnx_chain())])
def test_all_commands_name_all_operators_of_a_chain(command, tmp_path, file, content):
    (tmp_path / file).write_bytes(content)
    all_of_them = [f"My{i}" for i in (range(10) if file == "m.pbtxt" else (0, 2, 4))]
    for words in (["atc", f"--model={file}", "--output=m"], ["cairn", "show", file], ["cairn", "check", file],
                  ["cairn", "convert", file, "-o", "m.om"], ["cairn", "run", file]):  # fmt: skip
        done = command(*words)
        assert named(done.stdout + done.stderr) == all_of_them, done.stdout + done.stderr
    command("atc", f"--model={file}", "--mode=3", "--check_report=r.json")
    report = json.loads((tmp_path / "r.json").read_text())
    assert sorted(op["type"] for op in report["op"]) == all_of_them and report["fail"] == len(all_of_them)


def test_the_proposed_commands_work(command, tmp_path):
    (tmp_path / "m.pbtxt").write_text(CHAIN)
    said = command("atc", "--model=m.pbtxt", "--output=m", "--input_shape=x:2,4").stdout
    cut = re.search(r'--out_nodes="([^"]*)"; or feed the rest: (cairn convert .*)', said)
    done = command("atc", "--model=m.pbtxt", "--output=m", f"--out_nodes={cut[1]}")
    assert SUCCESS in done.stdout, done.stdout
    words = [word.strip('"') for word in cut[2].replace('"', "").split()]
    done = command(*words)
    assert done.returncode == 0 and "the outputs do not need that input" in done.stderr, done.stdout + done.stderr


@pytest.mark.parametrize("file", ["m.onnx", "m.keras"])
def test_the_proposed_cuts_of_other_formats_work(command, tmp_path, file):
    if file == "m.onnx":
        (tmp_path / file).write_bytes(onnx_chain("Relu"))
    else:
        tf = pytest.importorskip("tensorflow")
        mine = type("My1", (tf.keras.layers.Layer,), {"call": lambda self, x: x * 2})
        x = tf.keras.Input([4], name="x")
        h = mine(name="mine")(tf.keras.layers.Dense(3, name="first")(x))
        tf.keras.Model(x, tf.keras.layers.Dense(2, name="last")(h)).save(tmp_path / file)
    said = command("cairn", "convert", file, "-o", "m.om").stderr
    above, below = re.search(r'--out_nodes="([^"]*)"; or feed the rest: --cut="([^"]*)"', said).groups()
    assert (above, below) == (("t1", "t4") if file == "m.onnx" else ("first", "mine")), said
    assert SUCCESS in command("atc", f"--model={file}", "--output=m", f"--out_nodes={above}").stdout
    done = command("cairn", "convert", file, f"--cut={below}", "-o", "m.om")
    assert done.returncode == 0, done.stderr
    np.save(tmp_path / "ones.npy", np.ones([2, 4 if file == "m.onnx" else 3], np.float32))
    done = command("cairn", "run", "m.om", "--input", f"{below}=ones.npy", "-o", "out")
    assert done.returncode == 0, done.stderr


def test_where_no_cut_works_the_report_says_so(command, tmp_path):
    (tmp_path / "m.pbtxt").write_text(INPUT + node("y", "My1", "x"))
    said = command("atc", "--model=m.pbtxt", "--output=m").stdout
    assert "no cut that was tried leaves a model without it" in said and "--cut" not in said, said


def test_layers_of_a_keras_file_come_in_one_report(command, tmp_path):
    config = {"class_name": "Sequential", "config": {"name": "s", "layers": [
        {"class_name": "InputLayer", "config": {"batch_input_shape": [None, 8], "dtype": "float32", "name": "x"}},
        *({"class_name": kind, "config": {"name": name, "dtype": "float32", "activation": "relu"}} for kind, name in
          [("Lone1", "a"), ("Activation", "b"), ("Lone2", "c"), ("Activation", "d"), ("Lone1", "e")])]}}  # fmt: skip
    h5py = pytest.importorskip("h5py")
    with h5py.File(tmp_path / "m.h5", "w") as file:
        file.attrs["model_config"] = json.dumps(config)
        file.attrs["keras_version"] = "2.15.0"
        file.create_group("model_weights").attrs["layer_names"] = []
    done = command("cairn", "show", "m.h5")
    assert named(done.stdout) == ["Lone1", "Lone2"] and re.search(r"Lone1 +2 nodes +a, e", done.stdout), done.stdout


def test_all_results_of_the_last_operators_are_outputs(command, tmp_path):
    split = node("axis", "Const", dtype="type: DT_INT32", value="tensor { dtype: DT_INT32 tensor_shape { } int_val: 1 }")
    (tmp_path / "m.pbtxt").write_text(INPUT + split + node("s", "Split", "axis", "x", num_split="i: 2"))
    assert SUCCESS in command("atc", "--model=m.pbtxt", "--framework=3", "--output=m").stdout
    np.save(tmp_path / "x.npy", X[:2].repeat(2, 1)[:, :4])
    for model in ("m.om", "m.pbtxt"):
        assert command("cairn", "run", model, "--input", "x=x.npy", "-o", "out").returncode == 0
        found = {file.stem: np.load(file) for file in (tmp_path / "out").glob("*.npy")}
        assert len(found) == 2
        np.testing.assert_array_equal(np.concatenate(list(dict(sorted(found.items())).values()), 1), np.load(tmp_path / "x.npy"))
    shown = json.loads(command("cairn", "show", "m.pbtxt", "--json").stdout)
    assert [each["name"] for each in shown["outputs"]] == ["s", "s:1"]


def test_what_is_open_is_told(command, tmp_path):
    def shown(dims, *options):
        (tmp_path / "m.pbtxt").write_text(graph(("x", dims)))
        assert SUCCESS in command("atc", "--model=m.pbtxt", "--framework=3", "--output=model", *options).stdout
        return command("cairn", "show", "model.om").stdout

    text = shown([-1, -1, 6, 3], "--input_shape=x:1~8,-1,6,3")
    assert "open   x: dim 0 (x_0), 1 to 8" in text and "x: dim 1 (x_1), any size" in text, text
    info = command("atc", "--mode=6", "--om=model.om").stdout
    assert "Original Atc command line: atc ... --input_shape=x:1~8,-1,6,3" in info, info
    assert "open     info: x: dim 0 (x_0), 1 to 8.\nopen     info: x: dim 1 (x_1), any size." in info, info
    assert "open   x: dim 0 (n), 1, 4 or 8" in shown([-1, 4], "--input_shape=x:-1,4", "--dynamic_batch_size=1,4,8")
    assert json.loads(command("cairn", "show", "model.om", "--json").stdout)["open"] == [
        {"input": "x", "dim": 0, "name": "n", "sizes": "1, 4 or 8"}]  # fmt: skip
    assert "open" not in shown([2, 4])


def test_the_shape_of_an_input_that_is_cut_off_is_told_by_all_commands(command, tmp_path):
    (tmp_path / "m.pbtxt").write_text(graph(("a", [-1, 4]), ("b", [2])))
    for words in (["cairn", "show", "m.pbtxt"], ["cairn", "check", "m.pbtxt"], ["cairn", "convert", "m.pbtxt", "-o", "m.om"]):
        done = command(*words, "--out_nodes", "y:0", "--input-shape", "a:0:3,4;b:2")
        assert done.returncode == 0 and "note: the shape of input 'b' has no effect" in done.stderr, done.stderr
        done = command(*words, "--input-shape", "a:3,4;c:2")
        assert done.returncode == 1 and "has no input 'c'; it has a, b" in done.stderr, done.stderr


@pytest.mark.parametrize("options, code, said", [
    (["--output_type=FP99"], "E10001", "'FP99' is not FP32, FP16, UINT8 or INT8"),
    (["--output_type=y:0:FP99"], "E10001", "'FP99' is not"),
    (["--soc_version=banana"], "E10001", "it must be the name of a chip"),
    (["--input_fp16_nodes=no"], "E10016", "Opname [no] specified in [--input_fp16_nodes] is not found: it is no input of the model"),
    (["--output_type=y:0:FP16;y:0:FP32"], "E10001", "y:0 has two types"),
    (["--insert_op_conf=marked.cfg"], "E10052", "line 2, column 14: field aipp_mode has no value 'statik'; did you mean static?"),
    (["--singleop=bad.jsn"], "E10023", "did you mean bad.json?"),
    (["--fusion_switch_file=bed.json"], "E13000", "cannot be opened: No such file or directory; did you mean bad.json?"),
    (["--precision_mode=allow_mix_precision", "--modify_mixlist=bad.json"], "E10032", "line 2, column 9: syntax error"),
    (["--fusion_switch_file=bad.json"], "E10032", "line 2, column 9: syntax error"),
    (["--singleop=bad.json"], "E10025", "line 2, column 9: syntax error"),
    (["--op_precision_mode=bad.ini"], "E10001", "line 3: 'much' is no precision of an operator"),
    (["--customize_dtypes=bad.ini"], "E10001", "line 1: [ByOpType]: expected Name::InputDtype"),
    (["--output_type=FP16,FP32"], "E10001", "give one type for all outputs, or one for each"),
    (["--input_fp16_nodes=x,z"], "E10016", "separate the inputs by ';'"),
    (["--out_nodes=y:0,z:0"], "E10001", "';' is missing in front of 'z:0'"),
    (["--input_shape=x:2,3 z:1"], "E10002", "';' is missing in front of 'z:1'"),
])  # fmt: skip
def test_faults_are_told_with_their_place(convert, tmp_path, options, code, said):  # noqa: F811
    (tmp_path / "bad.json").write_text('{"black-list":\n  {"a": }}')
    (tmp_path / "marked.cfg").write_bytes(b"\xef\xbb\xbfaipp_op {\n  aipp_mode: statik\n}\n")  # as editors of Windows write it
    (tmp_path / "bad.ini").write_text("[ByOpType]\n# a comment\nNeg=much\n")
    assert said in convert(DENSE, *options, fails=code)


def test_sixteen_bits_for_an_input_of_integers_are_refused(convert):  # noqa: F811
    assert "the input is i32[2, 3], expected floats" in convert(image_model([2, 3], "i32"), "--input_fp16_nodes=x", fails="E10001")


def test_the_class_of_norms_may_be_named_for_precision(convert, tmp_path):  # noqa: F811
    (tmp_path / "p.ini").write_text("[ByOpType]\nnorm_class=high_precision\n")
    assert "mended" not in convert(DENSE, "--precision_mode=force_fp16", "--op_precision_mode=p.ini")


# Single operators ----------------------------------------------------------------------------------------------------


def tensor(*shape, type="float32", format="ND", **more):
    return {"format": format, "shape": list(shape), "type": type, **more}


def attributes(**values):
    def kind(value):
        if isinstance(value, list):
            return "list_" + (kind(value[0]) if value else "int")
        return {bool: "bool", int: "int", float: "float", str: "string"}[type(value)]

    return [{"name": name, "type": kind(value), "value": value} for name, value in values.items()]


def some(*shape):
    return np.random.default_rng(len(shape)).standard_normal(shape).astype(np.float32)


A, B, C, IMAGE, KERNEL = some(3, 4), some(4, 5), some(3, 5), some(1, 3, 6, 6), some(2, 3, 3, 3)
NORMAL = (A - A.mean(1, keepdims=True)) / np.sqrt(A.var(1, keepdims=True) + 1e-5)


def convolved(x, kernel):
    x = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
    windows = np.lib.stride_tricks.sliding_window_view(x, kernel.shape[2:], (2, 3))
    return np.einsum("nchwij,ocij->nohw", windows, kernel)


def windows(x, size):
    n, c, h, w = x.shape
    return x.reshape(n, c, h // size, size, w // size, size)


NCHW = {"format": "NCHW"}
CASES = {
    "gemm": ("GEMM", [tensor(3, 4), tensor(4, 5), tensor(3, 5), tensor(), tensor()], [tensor(3, 5)],
             attributes(transpose_a=False, transpose_b=False), [A, B, C, np.float32(2), np.float32(0.5)], 2 * A @ B + 0.5 * C),
    "matmul": ("MatMulV2", [tensor(3, 4), tensor(5, 4), tensor(5)], [tensor(3, 5)],
               attributes(transpose_x1=False, transpose_x2=True), [A, B.T.copy(), C[0]], A @ B + C[0]),
    "cast": ("Cast", [tensor(3, 4)], [tensor(3, 4, type="int32")], attributes(dst_type=3), [A * 9], (A * 9).astype(np.int32)),
    "layer_norm": ("LayerNorm", [tensor(3, 4), tensor(4), tensor(4)], [tensor(3, 4), tensor(3, 1), tensor(3, 1)],
                   attributes(begin_norm_axis=1, begin_params_axis=-1, epsilon=1e-5), [A, B[:, 0].copy(), B[:, 1].copy()],
                   NORMAL * B[:, 0] + B[:, 1]),
    "sum_constant": ("ReduceSum", [tensor(3, 4), tensor(1, type="int32", is_const=True, const_value=[1])], [tensor(3)],
                     attributes(keep_dims=False), [A], A.sum(1)),
    "sum_first": ("ReduceSum", [tensor(4, 4), tensor(1, type="int32")], [tensor(4)], attributes(keep_dims=False),
                  [B[:, :4].copy(), np.int32([0])], B[:, :4].sum(0)),
    "sum_last": ("ReduceSum", [tensor(4, 4), tensor(1, type="int64")], [tensor(4)], attributes(keep_dims=False),
                 [B[:, :4].copy(), np.int64([-1])], B[:, :4].sum(1)),
    "sum_d": ("ReduceSumD", [tensor(3, 4)], [tensor(3, 1)], attributes(axes=[1], keep_dims=True), [A], A.sum(1, keepdims=True)),
    "mean": ("ReduceMean", [tensor(3, 4), tensor(2, type="int32")], [tensor()], attributes(keep_dims=False),
             [A, np.int32([0, 1])], A.mean()),
    "pooling_max": ("Pooling", [tensor(1, 3, 6, 6, **NCHW)], [tensor(1, 3, 3, 3, **NCHW)],
                    attributes(mode=0, window=[2, 2], stride=[2, 2], pad=[0, 0, 0, 0]), [IMAGE], windows(IMAGE, 2).max((3, 5))),
    "pooling_mean": ("Pooling", [tensor(1, 3, 6, 6, **NCHW)], [tensor(1, 3, 2, 2, **NCHW)],
                     attributes(mode=1, window=[3, 3], stride=[3, 3], pad=[0, 0, 0, 0]), [IMAGE], windows(IMAGE, 3).mean((3, 5))),
    "pooling_whole": ("Pooling", [tensor(1, 3, 6, 6, **NCHW)], [tensor(1, 3, 1, 1, **NCHW)],
                      attributes(mode=1, global_pooling=True), [IMAGE], IMAGE.mean((2, 3), keepdims=True)),
    "pool_calculated": ("MaxPoolV3", [tensor(1, 3, 6, 6, **NCHW)], [tensor(1, 3, 3, 3, **NCHW)],
                        attributes(ksize=[1, 1, 2, 2], strides=[1, 1, 2, 2], padding_mode="CALCULATED", pads=[0, 0, 0, 0],
                                   data_format="NCHW"), [IMAGE], windows(IMAGE, 2).max((3, 5))),
    "conv": ("Conv2D", [tensor(1, 3, 6, 6, **NCHW), tensor(2, 3, 3, 3, **NCHW)], [tensor(1, 2, 6, 6, **NCHW)],
             attributes(strides=[1, 1, 1, 1], pads=[1, 1, 1, 1], dilations=[1, 1, 1, 1]), [IMAGE, KERNEL], convolved(IMAGE, KERNEL)),
    "conv_hwcn": ("Conv2D", [tensor(1, 3, 6, 6, **NCHW), tensor(3, 3, 3, 2, format="HWCN"), tensor(2)],
                  [tensor(1, 2, 6, 6, **NCHW)], attributes(strides=[1, 1, 1, 1], pads=[1, 1, 1, 1]),
                  [IMAGE, KERNEL.transpose(2, 3, 1, 0).copy(), A[0, :2].copy()], convolved(IMAGE, KERNEL) + A[0, :2].reshape(1, 2, 1, 1)),
    "softmax": ("SoftmaxV2", [tensor(3, 4)], [tensor(3, 4)], attributes(axes=[0]), [A], np.exp(A) / np.exp(A).sum(0)),
    "transpose": ("TransposeD", [tensor(3, 4)], [tensor(4, 3)], attributes(perm=[1, 0]), [A], A.T),
    "concat": ("ConcatD", [tensor(3, 4), tensor(3, 4)], [tensor(3, 8)], attributes(concat_dim=1), [A, A], np.concatenate([A, A], 1)),
    "tile": ("TileD", [tensor(3, 4)], [tensor(6, 4)], attributes(multiples=[2, 1]), [A], np.tile(A, (2, 1))),
    "pad": ("PadD", [tensor(3, 4)], [tensor(5, 5)], [{"name": "paddings", "type": "list_list_int", "value": [[1, 1], [0, 1]]}], [A],
            np.pad(A, ((1, 1), (0, 1)))),
    "muls": ("Muls", [tensor(3, 4)], [tensor(3, 4)], attributes(value=2.5), [A], A * np.float32(2.5)),
    "swish": ("Swish", [tensor(3, 4)], [tensor(3, 4)], attributes(scale=1.0), [A], A / (1 + np.exp(-A))),
}  # fmt: skip


def run_single(command, tmp_path, case):
    op, inputs, outputs, attrs, arrays, _ = case
    (tmp_path / "ops.json").write_text(json.dumps([{"op": op, "name": "one", "input_desc": inputs, "output_desc": outputs, "attr": attrs}]))
    done = command("atc", "--singleop=ops.json", "--output=ops", "--soc_version=Ascend310")
    assert SUCCESS in done.stdout, done.stdout
    words = []
    for i, array in enumerate(arrays):
        np.save(tmp_path / f"x{i}.npy", array)
        words += ["--input", f"x{i}=x{i}.npy"]
    done = command("cairn", "run", "ops/one.om", *words, "-o", "out")
    assert done.returncode == 0, done.stderr
    return [np.load(file) for file in sorted((tmp_path / "out").glob("*.npy"))]


@pytest.mark.parametrize("name", CASES)
def test_a_single_operator_of_the_platform_computes_what_it_says(command, tmp_path, name):
    found = run_single(command, tmp_path, CASES[name])
    expected = CASES[name][-1]
    assert len(found) == len(CASES[name][2]) and found[0].dtype == np.asarray(expected).dtype
    np.testing.assert_allclose(found[0], expected, rtol=2e-5, atol=2e-5)


def test_the_axes_of_a_single_reduction_are_told_when_they_do_not_fit(command, tmp_path):
    (tmp_path / "ops.json").write_text(json.dumps(
        [{"op": "ReduceSum", "input_desc": [tensor(3, 4), tensor(1, type="int32")], "output_desc": [tensor(7)], "attr": []}]))  # fmt: skip
    done = command("atc", "--singleop=ops.json", "--output=ops")
    assert done.returncode == 255 and "no 1 axes of its input give the described output" in done.stdout, done.stdout

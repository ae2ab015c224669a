"""What the options of atc do to a model: sizes, preprocessing, precision, switches, files beside it, and its messages."""

import json
import shlex

import numpy as np
import pytest

import cairn

SUCCESS = "ATC run success, welcome to the next use."

DENSE = """module @m {
  source 0 = "tf" "dense/MatMul" "MatMul" ""
  source 1 = "tf" "dense/Exp" "Exp" ""
  source 2 = "tf" "dense/Log" "Log" ""
  func @main(%x: f32[?n, 3]) -> (%y: f32[?n, 2]) {
    %w = constant {value = f32[3, 2] (1.1, 0.2, -0.3, 0.4, 0.7, -0.6)} : f32[3, 2]
    %m = matmul %x, %w : f32[?n, 2] #0
    %e = exp %m : f32[?n, 2] #1
    %y = log1p %e : f32[?n, 2] #2
    return %y
  }
}
"""


def graph(*inputs):
    """A frozen graph in text form: y, y1, ... are the negated inputs, given as (name, dims)."""
    text = ""
    for i, (name, dims) in enumerate(inputs):
        sizes = " ".join(f"dim {{ size: {size} }}" for size in dims)
        text += f"""node {{ name: "{name}" op: "Placeholder" attr {{ key: "dtype" value {{ type: DT_FLOAT }} }}
  attr {{ key: "shape" value {{ shape {{ {sizes} }} }} }} }}
node {{ name: "y{i or ""}" op: "Neg" input: "{name}" attr {{ key: "T" value {{ type: DT_FLOAT }} }} }}
"""
    return text


WEIGHTS = np.array([[1.1, 0.2], [-0.3, 0.4], [0.7, -0.6]], np.float32)


def image_model(dims, dtype="f32"):
    text = ", ".join(map(str, dims))
    return f"""module @m {{
  func @main(%x: {dtype}[{text}]) -> (%y: {dtype}[{text}]) {{
    %y = neg %x : {dtype}[{text}]
    return %y
  }}
}}
"""


@pytest.fixture
def convert(command, tmp_path):
    """convert(text, *options) writes model.om and returns what atc said."""

    def run(text, *options, fails=None):
        (tmp_path / "m.cairn").write_text(text)
        done = command("atc", "--model=m.cairn", "--output=model", *options)
        if fails:
            assert done.returncode == 255, done.stdout
            assert any(line.startswith(fails + ":") for line in done.stdout.splitlines()), done.stdout
        else:
            assert done.returncode == 0, done.stdout
        return done.stdout

    return run


@pytest.fixture
def output(command, tmp_path):
    """output(x=array, ...) -> outputs of model.om by name; None where the run is refused (then .why says why)."""

    def run(model="model.om", **inputs):
        words = []
        for name, array in inputs.items():
            np.save(tmp_path / f"{name}.npy", array)
            words += ["--input", f"{name}={name}.npy"]
        done = command("cairn", "run", model, *words, "-o", "out")
        if done.returncode != 0:
            run.why = done.stderr
            return None
        return {file.stem: np.load(file) for file in (tmp_path / "out").glob("*.npy")}

    return run


# --- sizes -----------------------------------------------------------------------------------------------------------


def ones(*dims):
    return np.ones(dims, np.float32)


def test_a_model_of_batch_profiles_takes_those_and_names_them_otherwise(convert, output):
    convert(graph(("x", [-1, 3])), "--input_shape=x:-1,3", "--dynamic_batch_size=1, 4,8,")
    assert output(x=ones(4, 3))["y"].shape == (4, 3)
    assert output(x=ones(3, 3)) is None
    assert "x:1,3 | x:4,3 | x:8,3" in output.why and output.why.count("\n") == 1


def test_image_profiles_fill_height_and_width(convert, output):
    shape = "--input_shape=x:2,-1,-1,3"
    convert(graph(("x", [-1, -1, -1, 3])), shape, "--dynamic_image_size=4,6;8,8", "--input_format=NHWC")
    assert output(x=ones(2, 4, 6, 3)) and output(x=ones(2, 8, 8, 3))
    assert output(x=ones(2, 8, 6, 3)) is None
    convert(graph(("x", [-1, -1, -1, 3])), shape, "--dynamic_image_size=4,6;8,8", "--input_format=NCHW", fails="E10019")


def test_dims_profiles_fill_every_open_size_in_order(convert, output):
    inputs = graph(("data", [1, 1, 40, -1]), ("label", [1, -1]), ("mask", [-1, -1]))
    shape = "--input_shape=data:1,1,40,-1;label:1,-1;mask:-1,-1"
    convert(inputs, shape, "--dynamic_dims=20,20,1,1;40,40,2,2;80,60,4,4", "--input_format=ND")
    assert output(data=ones(1, 1, 40, 80), label=ones(1, 60), mask=ones(4, 4))
    assert output(data=ones(1, 1, 40, 80), label=ones(1, 60), mask=ones(2, 2)) is None


@pytest.mark.parametrize("option", ["--input_shape=x:1~4,3,-1", "--input_shape_range=x:[1~4,3,-1]",
                                    "--input_shape_range=[1~4,3,-1]"])  # fmt: skip
def test_ranges_are_kept_as_limits(convert, output, option):
    convert(graph(("x", [-1, 3, -1])), option)
    assert output(x=ones(4, 3, 9)) and output(x=ones(1, 3, 1))
    assert output(x=ones(5, 3, 9)) is None and "x:1~4,3,-1" in output.why


@pytest.mark.parametrize(
    "options, code",
    [
        (["--dynamic_batch_size=1,2", "--dynamic_dims=1;2", "--input_shape=x:-1,3"], "E10009"),
        (["--dynamic_batch_size=1,2"], "E10004"),
        (["--dynamic_batch_size=1,2", "--input_shape=x:2,3"], "E10031"),
        (["--dynamic_batch_size=1,2", "--input_shape=x:-1,-1"], "E10018"),
        (["--dynamic_batch_size=1,2", "--input_shape=x:1~4,3"], "E10040"),
        (["--dynamic_batch_size=1", "--input_shape=x:-1,3"], "E10035"),
        (["--dynamic_batch_size=" + ",".join(map(str, range(1, 102))), "--input_shape=x:-1,3"], "E10036"),
        (["--dynamic_batch_size=1,0", "--input_shape=x:-1,3"], "E10038"),
        (["--dynamic_batch_size=1,1", "--input_shape=x:-1,3"], "E10039"),
        (["--dynamic_batch_size=1,a", "--input_shape=x:-1,3"], "E10003"),
        (["--dynamic_dims=1,2;2", "--input_shape=x:-1,-1", "--input_format=ND"], "E10037"),
        (["--dynamic_dims=1;2", "--input_shape=x:-1,-1", "--input_format=ND"], "E10045"),
        (["--dynamic_dims=1;2", "--input_shape=x:-1,3"], "E10001"),
        (["--dynamic_image_size=1,2,3;4,5,6", "--input_shape=x:-1,3"], "E10020"),
        (["--input_shape_range=x:1~2,3"], "E10048"),
        (["--input_shape_range=x:[a,3]"], "E10048"),
        (["--input_shape_range=[1~2,3],[1]"], "E19025"),
        (["--input_shape=x:4~1,3"], "E10002"),
        (["--precision_mode=force_fp16", "--precision_mode_v2=fp16"], "E10047"),
        (["--optypelist_for_implmode=Gelu"], "E10001"),
        (["--optimization_switch=A:maybe"], "E10001"),
        (["--input_shape=z:1,3"], "E10016"),
        (["--framework=5"], "E10001"),
        (["--framework=0"], "E10008"),
        (["--cluster_config=c.json"], "E10055"),
        (["--input_fp16_nodes=x", "--insert_op_conf=missing.cfg"], "E13000"),
    ],
)
def test_what_excludes_or_contradicts_fails_with_the_code_of_the_platform(convert, tmp_path, options, code):
    convert(graph(("x", [-1, -1])), *options, fails=code)
    assert not (tmp_path / "model.om").exists()


# --- preprocessing ---------------------------------------------------------------------------------------------------


def config(tmp_path, **fields):
    lines = [f"  {name}: {value}" for name, value in {"aipp_mode": "static", **fields}.items()]
    (tmp_path / "aipp.cfg").write_text("aipp_op {\n" + "\n".join(lines) + "\n}\n")
    return "--insert_op_conf=aipp.cfg"


def pixels(*shape):
    return np.random.default_rng(7).integers(0, 256, shape, np.uint8)


def test_crop_swap_mean_scale_and_padding_are_those_of_the_formula(convert, output, tmp_path):
    option = config(
        tmp_path, input_format="RGB888_U8", src_image_size_w=8, src_image_size_h=6, crop="true", load_start_pos_w=1,
        load_start_pos_h=2, crop_size_w=5, crop_size_h=4, rbuv_swap_switch="true", mean_chn_0=104, mean_chn_1=117,
        mean_chn_2=124, min_chn_0=1.5, var_reci_chn_0=0.0171247538316637, var_reci_chn_1=0.5, padding="true",
        left_padding_size=1, bottom_padding_size=2, padding_value=9.25)  # fmt: skip
    convert(image_model([2, 6, 6, 3]), option, "--input_format=NHWC")
    image = pixels(2, 6, 8, 3)
    x = image[:, 2:6, 1:6, ::-1].astype(np.float32)
    x = (x - np.float32([104, 117, 124]) - np.float32([1.5, 0, 0])) * np.float32([0.0171247538316637, 0.5, 1])
    expected = np.pad(x, [(0, 0), (0, 2), (1, 0), (0, 0)], constant_values=9.25)
    np.testing.assert_array_equal(output(x=image)["y"], -expected)


def colour(pixel, matrix, before):
    """Whole numbers all the way, as the platform computes: shift right by 8 rounds down."""
    return np.clip((pixel.astype(np.int64) - before) @ np.array(matrix).T >> 8, 0, 255).astype(np.float32)


def yuv420(height, width):
    planes = pixels(1, height * 3 // 2, width, 1)
    luma = planes[:, :height]
    chroma = planes[:, height:].reshape(1, height // 2, width // 2, 2).repeat(2, 1).repeat(2, 2)
    return planes, np.concatenate([luma, chroma], 3)


def test_yuv420_becomes_bgr_by_the_default_matrix(convert, output, tmp_path):
    convert(image_model([1, 4, 6, 3]), config(tmp_path, input_format="YUV420SP_U8", csc_switch="true"))
    planes, yuv = yuv420(4, 6)
    expected = colour(yuv, [[298, 516, 0], [298, -100, -208], [298, 0, 409]], [16, 128, 128])
    np.testing.assert_array_equal(output(x=planes)["y"], -expected)


def test_yuv420_becomes_rgb_by_a_given_matrix_channels_first(convert, output, tmp_path):
    rows = [[256, 0, 359], [256, -88, -183], [256, 454, 0]]
    numbers = {f"matrix_r{r}c{c}": rows[r][c] for r in range(3) for c in range(3)}
    numbers |= {"input_bias_0": 0, "input_bias_1": 128, "input_bias_2": 128}
    option = config(tmp_path, input_format="YUV420SP_U8", csc_switch="true", rbuv_swap_switch="true", **numbers)
    convert(image_model([1, 3, 4, 6]), option, "--input_format=NCHW")
    planes, yuv = yuv420(4, 6)
    expected = colour(yuv[..., [0, 2, 1]], rows, [0, 128, 128]).transpose(0, 3, 1, 2)
    np.testing.assert_array_equal(output(x=planes)["y"], -expected)


def test_alpha_is_moved_to_the_end_and_left_out(convert, output, tmp_path):
    convert(image_model([1, 3, 4, 3]), config(tmp_path, input_format="XRGB8888_U8", ax_swap_switch="true"))
    image = pixels(1, 3, 4, 4)
    np.testing.assert_array_equal(output(x=image)["y"], -image[..., 1:].astype(np.float32))


def test_preprocessing_goes_with_profiles_of_the_batch(convert, output, tmp_path):
    convert(image_model(["?n", 3, 4, 3], "f16"), config(tmp_path, input_format="RGB888_U8", mean_chn_0=3))
    found = output(x=pixels(5, 3, 4, 3))["y"]
    assert found.shape == (5, 3, 4, 3) and found.dtype == np.float16


@pytest.mark.parametrize("order", ("NHWC", "NCHW"))
def test_preprocessing_goes_with_open_heights_and_widths(convert, output, tmp_path, order):
    dims = [1, -1, -1, 3] if order == "NHWC" else [1, 3, -1, -1]
    options = (f"--input_format={order}", f"--input_shape=x:{','.join(map(str, dims))}", "--dynamic_image_size=4,6;2,8")
    option = config(tmp_path, input_format="XRGB8888_U8", ax_swap_switch="true", mean_chn_1=9)
    convert(graph(("x", dims)), option, *options)
    for height, width in ((4, 6), (2, 8)):
        image = pixels(1, height, width, 4)
        expected = np.float32([0, 9, 0]) - image[..., 1:].astype(np.float32)
        found = output(x=image)["y"]
        np.testing.assert_array_equal(found if order == "NHWC" else found.transpose(0, 2, 3, 1), expected)
    assert output(x=pixels(1, 4, 8, 4)) is None and "x:1,4,6,4 | x:1,2,8,4" in output.why
    for fields in ({"input_format": "YUV420SP_U8"}, {"input_format": "RGB888_U8", "crop": "true"},
                   {"aipp_mode": "dynamic", "max_src_image_size": 99}):  # fmt: skip
        convert(graph(("x", dims)), config(tmp_path, **fields), *options, fails="E10052")


DYNAMIC = {  # by image format: bytes of an image of 4 x 6, and fields
    "RGB888_U8": (72, {"rbuv_swap_switch": "true", "mean_chn_0": 104, "min_chn_1": 1.5, "var_reci_chn_2": 0.125}),
    "XRGB8888_U8": (96, {"ax_swap_switch": "true", "rbuv_swap_switch": "true"}),
    "ARGB8888_U8": (96, {"csc_switch": "true"}),
    "AYUV444_U8": (96, {"csc_switch": "true", "rbuv_swap_switch": "true", "input_bias_0": 3}),
    "YUV420SP_U8": (36, {"csc_switch": "true", "mean_chn_2": 9}),
    "YUV422SP_U8": (48, {"csc_switch": "true", "matrix_r0c0": -300}),
    "YUYV_U8": (48, {"csc_switch": "true", "rbuv_swap_switch": "true"}),
}
WINDOW = {
    "src_image_size_w": 6, "src_image_size_h": 4, "crop": "true", "load_start_pos_w": 2, "load_start_pos_h": 2,
    "crop_size_w": 3, "crop_size_h": 2, "padding": "true", "left_padding_size": 1, "bottom_padding_size": 3,
}  # fmt: skip


@pytest.mark.parametrize("format", DYNAMIC)
@pytest.mark.parametrize("order", ("NHWC", "NCHW"))
@pytest.mark.parametrize("batch", (3, "?n"))
def test_dynamic_preprocessing_gives_what_the_static_one_gives(convert, tmp_path, format, order, batch):
    size, fields = DYNAMIC[format]
    model = image_model([batch, 5, 4, 3] if order == "NHWC" else [batch, 3, 5, 4])
    static = config(tmp_path, input_format=format, **fields, **WINDOW)
    text = (tmp_path / "aipp.cfg").read_text()
    convert(model, static, f"--input_format={order}")
    image = pixels(3, size)
    static = cairn.load(str(tmp_path / "model.om"))
    shape = [3 if dim is None else dim for dim in static.inputs[0].shape]
    expected = static.run({"x": image.reshape(shape)})["y"]

    convert(model, config(tmp_path, aipp_mode="dynamic", max_src_image_size=400), f"--input_format={order}")
    dynamic = cairn.load(str(tmp_path / "model.om"))
    known = 64 + 3 * 96 if batch == 3 else None
    assert [(port.name, port.dtype, port.shape) for port in dynamic.inputs] == [
        ("x", "uint8", (400,)), ("ascend_dynamic_aipp_data", "uint8", (known,))]  # fmt: skip
    room = np.concatenate([image.reshape(-1), np.zeros(400 - image.size, np.uint8)])
    block = cairn.aipp_parameters(text, images=3)
    found = dynamic.run({"x": room, "ascend_dynamic_aipp_data": block})["y"]
    assert np.ptp(expected) > 0
    np.testing.assert_array_equal(found, expected)


def test_each_image_has_a_window_of_its_own_and_wrong_parameters_are_told(convert, command, tmp_path):
    option = config(tmp_path, aipp_mode="dynamic", max_src_image_size=200, related_input_name='"x"')
    convert(image_model([2, 2, 3, 3]), option, "--input_format=NHWC")
    model = cairn.load(str(tmp_path / "model.om"))
    image = pixels(2, 4, 6, 3)
    room = np.concatenate([image.reshape(-1), np.zeros(200 - image.size, np.uint8)])

    def block(*windows, images=2, **fields):
        lines = {"aipp_mode": "dynamic", "input_format": "RGB888_U8", "src_image_size_w": 6, "src_image_size_h": 4,
                 "crop": "true", "crop_size_w": 3, "crop_size_h": 2, **fields}  # fmt: skip
        ops = [lines | {"load_start_pos_w": left, "load_start_pos_h": top, "mean_chn_0": top} for top, left in windows]
        text = "".join("aipp_op {" + "".join(f" {name}: {value}" for name, value in op.items()) + " }\n" for op in ops)
        return cairn.aipp_parameters(text, images=images)

    def run(parameters):
        return model.run({"x": room, "ascend_dynamic_aipp_data": parameters})["y"]

    parts = np.stack([image[0, 2:4, 1:4], image[1, 0:2, 3:6]]).astype(np.float32)
    parts[0, ..., 0] -= 2
    np.testing.assert_array_equal(run(block((2, 1), (0, 3))), -parts)
    room.tofile(tmp_path / "x.bin")
    block((2, 1), (0, 3)).tofile(tmp_path / "aipp.bin")
    done = command("msame", "--model", "model.om", "--input", "x.bin,aipp.bin", "--output", "out")
    assert done.returncode == 0, done.stdout
    np.testing.assert_array_equal(np.fromfile(tmp_path / "out/x_output_0.bin", np.float32), -parts.reshape(-1))

    for reason, change in {
        "crop window of 2 x 3 at 3, 0 leaves": lambda: run(block((3, 0), (0, 3))),
        "makes images of 2 x 2, the model takes 2 x 3": lambda: run(block((0, 0), crop_size_w=2)),
        "144 bytes are told|bytes are given": lambda: run(block((0, 0), src_image_size_w=12)),
        "input_format is missing": lambda: cairn.aipp_parameters("aipp_op { aipp_mode: dynamic }"),
        "2 blocks are given for 3 images": lambda: block((0, 0), (0, 0), images=3),
        "for 1 to 127 images, not 128": lambda: block((0, 0), images=128),
        "padding_value has no place": lambda: block((0, 0), padding_value=3.5),
        "image format 200 is not supported": lambda: run(np.r_[np.uint8(200), block((0, 0))[1:]]),
        "parameters are for 7 images": lambda: run(np.r_[block((0, 0))[:4], np.uint8(7), block((0, 0))[5:]]),
        "not resized or rotated": lambda: run(np.r_[block((0, 0))[:65], np.uint8(1), block((0, 0))[66:]]),
    }.items():
        with pytest.raises(cairn.Error, match=reason):
            change()


@pytest.mark.parametrize(
    "fields",
    [
        {"input_format": "RGB888_U8", "aipp_mode": "dynamic", "max_src_image_size": 100},
        {"aipp_mode": "dynamic"},
        {"aipp_mode": "dynamic", "max_src_image_size": 100, "support_rotation": "true"},
        {"aipp_mode": "undefined", "input_format": "RGB888_U8"},
        {"input_format": "RAW10"},
        {"input_format": "NV12"},
        {},
        {"input_format": "RGB888_U8", "mean_chn_0": 300},
        {"input_format": "RGB888_U8", "src_image_size_w": 9, "src_image_size_h": 9},
        {"input_format": "RGB888_U8", "resize": "true"},
        {"input_format": "RGB888_U8", "crop": "true", "crop_size_w": 4, "crop_size_h": 3, "load_start_pos_w": 1},
        {"input_format": "YUV420SP_U8"},
        {"input_format": "YUV400_U8"},
        {"input_format": "RGB888_U8", "related_input_rank": 3},
        {"input_format": "RGB888_U8", "related_input_name": '"z"'},
        {"input_format": "RGB888_U8", "no_such_field": 3},
        {"input_format": "RGB888_U8", "csc_switch": "true", "matrix_r0c0": 32767, "matrix_r0c1": 32767, "matrix_r0c2": 999},
    ],
)
def test_a_wrong_configuration_is_refused_in_one_sentence(convert, tmp_path, fields):
    said = convert(image_model([1, 3, 4, 3]), config(tmp_path, **fields), fails="E10052")
    assert not (tmp_path / "model.om").exists()
    assert said.count("E10052") == 1


# --- precision -------------------------------------------------------------------------------------------------------


def half(x):
    return np.asarray(x, np.float32).astype(np.float16).astype(np.float32)


def brain(x):
    bits = np.asarray(x, np.float32).view(np.uint32)
    return ((bits + 0x7FFF + (bits >> 16 & 1)) & 0xFFFF0000).view(np.float32)


X = np.random.default_rng(3).standard_normal((64, 3)).astype(np.float32)


def exact(x):
    """f32 arithmetic; the few units that kernels may differ by vanish in the roundings looked at."""
    return np.log1p(np.exp(x @ WEIGHTS))


def expected_of(mode):
    lower = brain if "bf" in mode else half
    product = lower(X) @ lower(WEIGHTS)
    if mode in ("force_fp16", "fp16"):
        return half(np.log1p(half(np.exp(half(product)))))
    if mode in ("cube_fp16in_fp32out",):
        return np.log1p(np.exp(product))
    if mode in ("allow_fp32_to_fp16",):
        return np.log1p(np.exp(half(product)))
    if mode.startswith(("allow_mix", "mixed")):  # exp follows the product, log1p is on the black list
        return np.log1p(lower(np.exp(lower(product))))
    return exact(X)


@pytest.mark.parametrize(
    "option",
    ["precision_mode=" + mode for mode in ["force_fp16", "force_fp32", "cube_fp16in_fp32out", "allow_fp32_to_fp16",
     "allow_mix_precision", "allow_mix_precision_bf16", "must_keep_origin_dtype", "allow_fp32_to_bf16"]]
    + ["precision_mode_v2=" + mode for mode in ["fp16", "origin", "mixed_float16", "mixed_bfloat16"]],
)  # fmt: skip
def test_each_precision_mode_rounds_where_it_says(convert, output, option):
    convert(DENSE, "--" + option)
    mode = option.split("=")[1]
    found, expected = output(x=X)["y"], expected_of(mode)
    # A value next to a rounding boundary may fall on the other side: few elements, one unit of the lower type.
    near = np.isclose(found, expected, rtol=2e-6, atol=1e-6)
    unit = 0.0098 if "bf" in mode else 0.0012
    assert near.mean() > 0.96, (found[~near], expected[~near])
    np.testing.assert_allclose(found, expected, rtol=unit, atol=unit)
    if mode not in ("must_keep_origin_dtype", "origin", "force_fp32", "allow_fp32_to_bf16"):
        assert not np.allclose(found, exact(X), rtol=2e-6, atol=1e-6)


def test_lists_change_what_is_lowered(convert, output, tmp_path):
    lists = {"black-list": {"to-add": ["MatMulV2"], "to-remove": ["Log"]}, "white-list": {"to-add": ["Exp"]}}
    (tmp_path / "mix.json").write_text(json.dumps(lists))
    convert(DENSE, "--precision_mode=allow_mix_precision", "--modify_mixlist=mix.json")
    expected = half(np.log1p(half(np.exp(half(X @ WEIGHTS)))))
    assert np.isclose(output(x=X)["y"], expected, rtol=2e-6).mean() > 0.96
    convert(DENSE, "--precision_mode=force_fp16", "--modify_mixlist=mix.json", fails="E10001")


@pytest.mark.parametrize(
    "option, text",
    [
        ("keep_dtype", "dense/MatMul\n"),
        ("keep_dtype", "OpType::MatMulV2\n"),
        ("op_precision_mode", "[ByOpType]\nMatMul=high_precision\n"),
        ("op_precision_mode", "[ByNodeName]\ndense/MatMul = enable_float_32_execution\n"),
    ],
)
def test_kept_operators_stay_in_f32(convert, output, tmp_path, option, text):
    (tmp_path / "keep.cfg").write_text(text)
    convert(DENSE, "--precision_mode=force_fp16", f"--{option}=keep.cfg")
    kept = half(np.log1p(half(np.exp(half(X @ WEIGHTS)))))
    lowered = expected_of("force_fp16")
    found = output(x=X)["y"]
    assert np.isclose(found, kept, rtol=2e-6).mean() > np.isclose(found, lowered, rtol=2e-6).mean()


def test_entries_that_fit_nothing_are_told(convert, tmp_path):
    (tmp_path / "keep.cfg").write_text("no/such/node\nOpType::Conv9D\n")
    said = convert(DENSE, "--precision_mode=force_fp16", "--keep_dtype=keep.cfg", fails="E10003")
    assert "no/such/node, OpType::Conv9D" in said
    convert(DENSE, "--precision_mode=force_fp16", "--keep_dtype=missing.cfg", fails="E10410")
    assert "--keep_dtype has no effect" in convert(DENSE, "--keep_dtype=keep.cfg")
    said = convert(DENSE, "--precision_mode=force_fp16", "--op_select_implmode=high_precision",
                   "--optypelist_for_implmode=Gelu,Exp")  # fmt: skip
    assert "OpType::Gelu has no effect" in said and "Exp" not in said


def test_types_of_one_operator_are_as_asked(convert, output, tmp_path):
    (tmp_path / "types.cfg").write_text("OpType::Exp:InputDtype:float16,OutputDtype:float32\n")
    convert(DENSE, "--customize_dtypes=types.cfg")
    np.testing.assert_allclose(output(x=X)["y"], np.log1p(np.exp(half(X @ WEIGHTS))), rtol=2e-3)
    assert not np.allclose(output(x=X)["y"], exact(X), rtol=2e-6)
    (tmp_path / "types.cfg").write_text("OpType::Exp:InputDtype:int8\n")
    convert(DENSE, "--customize_dtypes=types.cfg", fails="E10001")


# --- switches and files ----------------------------------------------------------------------------------------------

DIVIDE = """module @m {
  func @main(%x: f32[4, 3]) -> (%y: f32[4, 3]) {
    %a = relu %x : f32[4, 3]
    %b = relu %a : f32[4, 3]
    %c = exp %b : f32[4, 3]
    %y = tanh %c : f32[4, 3]
    return %y
  }
}
"""


def fusion_result(tmp_path):
    return json.loads((tmp_path / "fusion_result.json").read_text())


def test_rules_are_counted_and_can_be_switched_off(convert, command, tmp_path):
    convert(DIVIDE)
    rules = fusion_result(tmp_path)["graph_fusion"]
    assert rules and all(int(count["effect_times"]) > 0 for count in rules.values())
    name = next(iter(rules))
    (tmp_path / "off.json").write_text(json.dumps({"Switch": {"GraphFusion": {name: "off", "NoRule": "off"}}}))
    said = convert(DIVIDE, "--fusion_switch_file=off.json")
    assert "NoRule has no effect" in said
    assert name not in fusion_result(tmp_path)["graph_fusion"]
    (tmp_path / "off.cfg").write_text(f"{name}:off\n")
    convert(DIVIDE, "--fusion_switch_file=off.cfg")
    assert name not in fusion_result(tmp_path)["graph_fusion"]
    convert(DIVIDE, "--oo_level=O1")
    assert fusion_result(tmp_path)["graph_fusion"] == {}
    (tmp_path / "off.json").write_text("{")
    convert(DIVIDE, "--fusion_switch_file=off.json", fails="E10032")


def test_no_statistics_are_written_when_not_asked_for(convert, tmp_path):
    convert(DIVIDE, "--export_compile_stat=0")
    assert not (tmp_path / "fusion_result.json").exists()


def large_model():
    values = ", ".join(str(i / 7) for i in range(64))
    dense = DENSE.replace("3, 2", "32, 2").replace("[?n, 3]", "[?n, 32]")
    return dense.replace("(1.1, 0.2, -0.3, 0.4, 0.7, -0.6)", f"({values})")


def test_external_weights_lie_beside_the_model_and_are_checked(convert, output, command, tmp_path):
    convert(large_model())
    inside, size = output(x=ones(2, 32))["y"], (tmp_path / "model.om").stat().st_size
    convert(large_model(), "--external_weight=1")
    (file,) = (tmp_path / "weight").iterdir()
    assert file.stat().st_size == 256 and (tmp_path / "model.om").stat().st_size < size
    np.testing.assert_array_equal(output(x=ones(2, 32))["y"], inside)
    assert command("cairn", "check", "model.om").returncode == 0
    content = file.read_bytes()
    file.write_bytes(content[:-1] + b"x")
    assert "checksum" in command("cairn", "check", "model.om").stderr
    file.write_bytes(content[:-1])
    assert output(x=ones(2, 32)) is None and output.why.count("\n") == 1
    file.unlink()
    assert output(x=ones(2, 32)) is None and "weight_" in output.why


def test_the_original_model_is_written_beside(convert, output, tmp_path):
    convert(DENSE, "--precision_mode=force_fp16", "--save_original_model=true")
    np.testing.assert_allclose(output(model="model_original.om", x=X)["y"], exact(X), rtol=2e-6, atol=1e-6)


CHAIN = """module @m {
  func @main(%x: f32[64, 64]) -> (%y: f32[64, 64]) {
    %a = matmul %x, %x : f32[64, 64]
    %b = matmul %a, %a : f32[64, 64]
    %c = matmul %b, %b : f32[64, 64]
    %d = matmul %c, %c : f32[64, 64]
    %y = matmul %d, %d : f32[64, 64]
    return %y
  }
}
"""


def test_memory_is_not_shared_when_not_wanted(convert, command):
    def memory():
        said = command("atc", "--mode=6", "--om=model.om").stdout
        return int(said.split("memory_size[")[1].split(" B")[0])

    convert(CHAIN)
    shared = memory()
    convert(CHAIN, "--disable_reuse_memory=1")
    assert 0 < shared < memory()


# --- modes -----------------------------------------------------------------------------------------------------------


def test_single_operators_become_models_with_the_platforms_names(command, output, tmp_path):
    tensor = {"format": "ND", "shape": [3, 3], "type": "int32"}
    matrix = {"format": "nd", "shape": [2, 2], "type": "FLOAT"}
    ops = [
        {"op": "Add", "input_desc": [tensor, tensor], "output_desc": [tensor]},
        {"op": "MatMulV2", "name": "product", "input_desc": [matrix, matrix], "output_desc": [matrix],
         "attr": [{"name": "transpose_a", "type": "bool", "value": True}]},
    ]  # fmt: skip
    (tmp_path / "ops.json").write_text(json.dumps(ops))
    done = command("atc", "--singleop=ops.json", "--output=out_ops", "--soc_version=Ascend310")
    assert done.returncode == 0 and SUCCESS in done.stdout
    names = sorted(file.name for file in (tmp_path / "out_ops").iterdir())
    assert names == ["0_Add_3_2_3_3_3_2_3_3_3_2_3_3.om", "product.om"]
    a, b = np.float32([[1, 2], [3, 4]]), np.float32([[5, 6], [7, 8]])
    (found,) = output(model="out_ops/product.om", x0=a, x1=b).values()
    np.testing.assert_array_equal(found, a.T @ b)


@pytest.mark.parametrize(
    "text, code",
    [
        ("{", "E10025"),
        ("[{}]", "E10026"),
        ('[{"op": "Add", "input_desc": [{"format": "ND", "shape": [1], "type": "int3"}]}]', "E10027"),
        ('[{"op": "Neg", "input_desc": [], "output_desc": [{"format": "ND", "shape": "x", "type": "int8"}]}]', "E10027"),
        ('[{"op": "Neg", "output_desc": [{"format": "ND", "shape": [], "type": "int8"}], "attr": [{}]}]', "E10029"),
        ('[{"op": "NoSuchOp", "output_desc": [{"format": "ND", "shape": [], "type": "int8"}]}]', "E19010"),
    ],
)
def test_a_wrong_list_of_single_operators_is_refused(command, tmp_path, text, code):
    (tmp_path / "ops.json").write_text(text)
    done = command("atc", "--singleop=ops.json", "--output=out")
    assert done.returncode == 255 and f"\n{code}:" in done.stdout


def test_a_text_dump_becomes_json_without_weights(command, tmp_path):
    (tmp_path / "ge_proto_1.txt").write_text(
        'name: "m" graph { name: "g" op { name: "a" type: "Data" output_desc { shape { dim: 1 dim: 3 } } }\n'
        'op { name: "b" type: "Const" input: "a:0" attr { key: "t" value { t { data: "\\001\\002" } } } } }'
    )
    done = command("atc", "--mode=5", "--om=ge_proto_1.txt", "--json=out.json")
    assert done.returncode == 0, done.stdout
    found = json.loads((tmp_path / "out.json").read_text())
    assert [op["name"] for op in found["graph"][0]["op"]] == ["a", "b"]
    assert found["graph"][0]["op"][0]["output_desc"][0]["shape"]["dim"] == [1, 3]
    assert "data" not in json.dumps(found).lower().replace('"data"', "", 1)
    for broken in ["op {", "}", "op { name }", "name: 'x", "x: 1", ""]:
        (tmp_path / "ge_proto_1.txt").write_text(broken)
        done = command("atc", "--mode=5", "--om=ge_proto_1.txt", "--json=out.json")
        assert done.returncode == 255 and done.stdout.count("\n") == 3, done.stdout


def test_the_check_report_lists_operators_in_network_order(command, tmp_path):
    (tmp_path / "m.pb").write_text(graph(("x", [2, 3])))
    done = command("atc", "--mode=3", "--model=m.pb", "--framework=3", "--check_report=r.json")
    report = json.loads((tmp_path / "r.json").read_text())
    assert done.returncode == 0 and report["result"] == "success" and report["fail"] == 0
    assert {"name": "y", "type": "Neg", "result": "success"} in report["op"] and report["total"] == report["pass"]
    (tmp_path / "m.pb").write_text(graph(("x", [2, 3])).replace('op: "Neg"', 'op: "NoSuchOp"'))
    done = command("atc", "--mode=3", "--model=m.pb", "--framework=3", "--check_report=r.json")
    report = json.loads((tmp_path / "r.json").read_text())
    assert done.returncode == 255 and report["result"] == "failed" and report["op"][0]["cause"][0]["code"] == 1


def test_the_remedy_for_an_unknown_operator_is_a_command_that_works(command, tmp_path):
    (tmp_path / "odd name.pb").write_text(
        graph(("x", [2, 3])).replace('op: "Neg"', 'op: "NoSuchOp"')
        + 'node { name: "z" op: "Exp" input: "y" attr { key: "T" value { type: DT_FLOAT } } }\n'
    )
    done = command("atc", "--model=odd name.pb", "--framework=3", "--output=whole", "--soc_version=Ascend310")
    assert done.returncode == 255, done.stdout
    (line,) = [text for text in done.stdout.splitlines() if "cairn convert" in text]
    remedy = line[line.index("cairn convert") :]
    words = shlex.split(remedy)
    assert words == ["cairn", "convert", "odd name.pb", "--cut=y", "-o", "whole"]
    done = command(*words)
    assert done.returncode == 0 and (tmp_path / "whole.om").exists(), done.stderr


# --- msame -----------------------------------------------------------------------------------------------------------


def test_msame_runs_profiles_and_keeps_what_steps_make(convert, command, tmp_path):
    convert(graph(("x", [-1, 3])), "--input_shape=x:-1,3", "--dynamic_batch_size=2,4")
    np.arange(12, dtype=np.float32).tofile(tmp_path / "x.bin")
    done = command("msame", "--model", "model.om", "--dymBatch", 4, "--input", "x.bin", "--output", "out", "--dump")
    assert done.returncode == 0, done.stdout
    np.testing.assert_array_equal(np.fromfile(tmp_path / "out/x_output_0.bin", np.float32), -np.arange(12))
    (manifest,) = (tmp_path / "out/dump").rglob("manifest.jsonl")
    (line,) = [json.loads(text) for text in manifest.read_text().splitlines()]
    assert line["sources"] == ["tf:y"] and np.load(manifest.with_name(line["file"])).shape == (4, 3)
    done = command("msame", "--model", "model.om", "--dymBatch", 3, "--output", "out")
    assert done.returncode == 1 and "x:2,3 | x:4,3" in done.stdout
    done = command("msame", "--model", "model.om", "--output", "out", "--profiler", "--loop", 3)
    assert done.returncode == 0 and "x:2,3" in done.stdout
    assert "cpu/" in (tmp_path / "out/profiler/steps.csv").read_text()
    for words in (["--dump"], ["--dump", "--profiler", "--output", "o"], ["--dymHW", "1"], ["--dymShape", "x:2,3"]):
        assert command("msame", "--model", "model.om", *words).returncode == 1

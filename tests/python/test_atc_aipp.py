"""What preprocessing that atc puts before a model does, fixed and given with each run."""

import numpy as np
import pytest
from atc_models import convert, graph, image_model, output  # noqa: F401

import cairn


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


@pytest.mark.parametrize("lines, said", [
    (["aipp_op {", "  aipp_mode: static", "  mean_chn_0: 1, mean_chn_1: 300 }"], "line 3, column 18: mean_chn_1 is 300, expected 0 to 255"),
    (["aipp_op {", "  crop: true", "  aipp_mode: static crop: false }"], "line 3, column 21: crop is given twice in one aipp_op"),
    (["aipp_op {", "  aipp_mode: steady }"], "line 2, column 14: field aipp_mode has no value 'steady'"),
    (["# one", "  aipp_op { crop: true }"], "line 2, column 3: aipp_mode is missing"),
    (["aipp_op { aipp_mode: static input_format: RGB888_U8 }", "", " aipp_op { aipp_mode: static related_input_rank: 4 }"],
     "line 3, column 2: aipp_op: related_input_rank is 4"),
])  # fmt: skip
def test_a_fault_in_the_file_has_a_line_and_a_column(convert, tmp_path, lines, said):
    (tmp_path / "aipp.cfg").write_text("\n".join(lines) + "\n")
    told = convert(image_model([1, 4, 3, 3]), "--insert_op_conf=aipp.cfg", fails="E10052")
    assert said in told, told

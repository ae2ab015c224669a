"""Caffe models: each layer equals what its documentation says, stated plainly in NumPy; all generations of the files; faults."""

import itertools
import math

import caffe_files as files
import numpy as np
import pytest

import cairn

RANDOM = np.random.default_rng(20)


def floats(*shape):
    return RANDOM.normal(size=shape).astype(np.float32)


def run(folder, text, arrays, weights=None, **options):
    """The outputs in order."""
    (folder / "net.prototxt").write_text(text)
    if weights is not None:
        (folder / "net.caffemodel").write_bytes(weights if isinstance(weights, bytes) else files.caffemodel(weights))
        options["weights"] = folder / "net.caffemodel"
    model = cairn.load(folder / "net.prototxt", **options)
    found = model.run(arrays)
    return [found[port.name] for port in model.outputs]


def check(folder, kind, arrays, expected, blobs=None, tops=None, error=2e-5, **params):
    """One layer on these bottoms, weights and parameters against the arrays that it must give."""
    expected = expected if isinstance(expected, list) else [expected]
    names = [f"x{i}" for i in range(len(arrays))]
    tops = tops or [f"y{i}" for i in range(len(expected))]
    text = files.inputs(**{name: x.shape for name, x in zip(names, arrays)})
    text += files.layer(kind, " ".join(names), " ".join(tops), name="layer", **params)
    found = run(folder, text, dict(zip(names, arrays)), None if blobs is None else {"layer": blobs})
    assert len(found) == len(expected)
    for one, wanted in zip(found, expected):
        assert one.shape == np.shape(wanted)
        np.testing.assert_allclose(one, wanted, atol=error * max(1, np.abs(wanted).max(initial=0)))


TINY = 'input: "x" input_shape { dim: 1 dim: 4 } layer { name: "fc" type: "InnerProduct" bottom: "x" top: "fc" %s }'
FAULTS = {
    "E11009": (TINY.replace("InnerProduct", "Mine") % "", [floats(2, 4)], "op [Mine], 1 node [fc (m.prototxt:1)]: not supported"),
    "E11014": (TINY.replace('bottom: "x"', 'bottom: "z"') % "", [floats(2, 4)], "line 1: layer 'fc' reads 'z'"),
    "E11022": (TINY % "bottom: }", [floats(2, 4)], "line 1, column 112: expected a string, found '}'"),
    "E11024": (TINY % "", None, "it is no caffemodel file"),
}


@pytest.mark.parametrize("code", FAULTS)
def test_atc_refuses_with_the_codes_of_the_platform(command, tmp_path, code):
    text, blobs, reason = FAULTS[code]
    (tmp_path / "m.prototxt").write_text(text)
    (tmp_path / "w.caffemodel").write_bytes(b"\x0a\x01a" if blobs is None else files.caffemodel({"fc": blobs}))
    done = command("atc", "--framework=0", "--model=m.prototxt", "--weight=w.caffemodel", "--output=m")
    assert done.returncode == 255
    (line,) = [line for line in done.stdout.splitlines() if line.startswith(code + ": ")]
    assert reason in line


def test_atc_checks_converts_with_aipp_and_profiles(command, tmp_path):
    text = files.inputs(data=(1, 3, 8, 8)) + files.layer("Power", "data", "y", power_param={"scale": 2})
    (tmp_path / "m.prototxt").write_text(text)
    (tmp_path / "w.caffemodel").write_bytes(files.caffemodel({"none": [floats(1)]}))
    (tmp_path / "aipp.cfg").write_text(
        "aipp_op { aipp_mode: static input_format: RGB888_U8 src_image_size_w: 8 src_image_size_h: 8 mean_chn_0: 104 "
        "mean_chn_1: 117 mean_chn_2: 123 var_reci_chn_0: 0.5 var_reci_chn_1: 0.5 var_reci_chn_2: 0.5 }"
    )
    words = ["atc", "--framework=0", "--model=m.prototxt", "--weight=w.caffemodel", "--output=m"]
    assert command(*words, "--insert_op_conf=aipp.cfg").returncode == 0
    pixels = RANDOM.integers(0, 256, (1, 8, 8, 3), np.uint8)
    (found,) = cairn.load(tmp_path / "m.om").run({"data": pixels}).values()
    np.testing.assert_allclose(found, (pixels - np.float32([104, 117, 123])).transpose(0, 3, 1, 2), atol=1e-3)
    assert command(*words, "--input_shape=data:-1,3,8,8", "--dynamic_batch_size=1,4").returncode == 0
    x = floats(4, 3, 8, 8)
    (found,) = cairn.load(tmp_path / "m.om").run({"data": x}).values()
    np.testing.assert_allclose(found, 2 * x)
    assert command(*words, "--mode=3", "--check_report=report.json").returncode == 0
    assert '"success"' in (tmp_path / "report.json").read_text()
    words = ["atc", "--mode=1", "--framework=0", "--om=m.prototxt", "--weight=w.caffemodel", "--json=m.json"]
    assert command(*words).returncode == 0


# The layers, as their documentation states them.


def windows(x, kernel, stride, pad, dilation=(1, 1)):
    """[n, c, rows, columns, kernel rows, kernel columns] of an image with zeros around, without a partial window."""
    x = np.pad(x, ((0, 0), (0, 0), (pad[0],) * 2, (pad[1],) * 2))
    reach = [d * (k - 1) + 1 for k, d in zip(kernel, dilation)]
    rows, columns = ((size - r) // s + 1 for size, r, s in zip(x.shape[2:], reach, stride))
    out = np.empty((*x.shape[:2], rows, columns, *kernel), np.float64)
    for i, j in itertools.product(range(kernel[0]), range(kernel[1])):
        top, left = i * dilation[0], j * dilation[1]
        bottom, right = top + (rows - 1) * stride[0] + 1, left + (columns - 1) * stride[1] + 1
        out[..., i, j] = x[:, :, top : bottom : stride[0], left : right : stride[1]]
    return out


def convolved(x, w, bias, stride, pad, dilation, group):
    parts = windows(x, w.shape[2:], stride, pad, dilation)
    channels, outputs = x.shape[1] // group, w.shape[0] // group
    y = [
        np.einsum("nchwij,ocij->nohw", parts[:, g * channels :][:, :channels], w[g * outputs :][:outputs])
        for g in range(group)
    ]
    return np.concatenate(y, 1) + (0 if bias is None else bias[:, None, None])


def deconvolved(x, w, bias, stride, pad, dilation, group):
    """Each element adds its multiple of the kernel to the top."""
    n, channels, height, width = x.shape
    outputs = w.shape[1] * group
    kernel = w.shape[2:]
    size = [s * (i - 1) + d * (k - 1) + 1 for i, s, d, k in zip((height, width), stride, dilation, kernel)]
    y = np.zeros((n, outputs, *size))
    for c in range(channels):
        first = c // (channels // group) * w.shape[1]
        for i, j in itertools.product(range(kernel[0]), range(kernel[1])):
            top, left = i * dilation[0], j * dilation[1]
            for o in range(w.shape[1]):
                y[:, first + o, top : top + stride[0] * height : stride[0], left : left + stride[1] * width : stride[1]][
                    :, :height, :width
                ] += x[:, c] * w[c, o, i, j]
    y = y[:, :, pad[0] : size[0] - pad[0], pad[1] : size[1] - pad[1]]
    return y + (0 if bias is None else bias[:, None, None])


def pooled(x, how, kernel, stride, pad, ceil=True):
    sizes = []
    for size, k, s, p in zip(x.shape[2:], kernel, stride, pad):
        count = (math.ceil if ceil else math.floor)((size + 2 * p - k) / s) + 1
        if p > 0 and (count - 1) * s >= size + p:
            count -= 1
        sizes.append(count)
    y = np.empty((*x.shape[:2], *sizes))
    for i, j in itertools.product(*map(range, sizes)):
        top, left = i * stride[0] - pad[0], j * stride[1] - pad[1]
        bottom, right = min(top + kernel[0], x.shape[2] + pad[0]), min(left + kernel[1], x.shape[3] + pad[1])
        area = (bottom - top) * (right - left)
        part = x[:, :, max(top, 0) : bottom, max(left, 0) : right]
        y[:, :, i, j] = part.max((2, 3)) if how == "MAX" else part.sum((2, 3)) / area
    return y


def lrn_across(x, size, alpha, beta, k):
    y = np.empty(x.shape)
    for c in range(x.shape[1]):
        part = x[:, max(c - size // 2, 0) : c + size // 2 + 1].astype(np.float64)
        y[:, c] = x[:, c] / (k + alpha / size * (part**2).sum(1)) ** beta
    return y


def lrn_within(x, size, alpha, beta):
    parts = windows(x, (size, size), (1, 1), (size // 2, size // 2))
    return x / (1 + alpha * (parts**2).mean((4, 5))) ** beta


CONVOLUTIONS = [
    dict(kernel=(3, 3), stride=(1, 1), pad=(1, 1), dilation=(1, 1), group=1, bias=True),
    dict(kernel=(5, 2), stride=(2, 3), pad=(2, 0), dilation=(1, 1), group=1, bias=False),
    dict(kernel=(3, 3), stride=(1, 1), pad=(2, 2), dilation=(2, 2), group=2, bias=True),
    dict(kernel=(1, 1), stride=(2, 2), pad=(0, 0), dilation=(1, 1), group=4, bias=True),
]


def convolution_param(case, outputs):
    param = {"num_output": outputs, "bias_term": case["bias"], "group": case["group"]}
    if len(set(case["kernel"])) == 1:
        param |= {"kernel_size": case["kernel"][0], "stride": case["stride"][0], "pad": case["pad"][0]}
    else:
        for name in ("kernel", "stride", "pad"):
            param |= {f"{name}_h": case[name][0], f"{name}_w": case[name][1]}
    return param | {"dilation": list(case["dilation"])}


@pytest.mark.parametrize("shape", [(2, 4, 9, 11), (1, 8, 14, 7)])
@pytest.mark.parametrize("case", CONVOLUTIONS)
def test_convolution(tmp_path, shape, case):
    x, w = floats(*shape), floats(12, shape[1] // case["group"], *case["kernel"])
    bias = floats(12) if case["bias"] else None
    expected = convolved(x, w, bias, case["stride"], case["pad"], case["dilation"], case["group"])
    blobs = [w] if bias is None else [w, bias]
    check(tmp_path, "Convolution", [x], expected, blobs, convolution_param=convolution_param(case, 12))


@pytest.mark.parametrize("shape", [(2, 4, 5, 6), (1, 8, 3, 7)])
@pytest.mark.parametrize("case", CONVOLUTIONS)
def test_deconvolution(tmp_path, shape, case):
    x, w = floats(*shape), floats(shape[1], 12 // case["group"], *case["kernel"])
    bias = floats(12) if case["bias"] else None
    expected = deconvolved(x, w, bias, case["stride"], case["pad"], case["dilation"], case["group"])
    blobs = [w] if bias is None else [w, bias]
    check(tmp_path, "Deconvolution", [x], expected, blobs, convolution_param=convolution_param(case, 12))


def test_convolution_over_volumes_and_one_for_each_channel(tmp_path):
    x, w = floats(1, 2, 4, 5, 6), floats(3, 2, 2, 2, 2)
    y = np.zeros((1, 3, 3, 4, 5))
    for i, j, k in itertools.product(range(2), repeat=3):
        y += np.einsum("ncdhw,oc->nodhw", x[:, :, i : i + 3, j : j + 4, k : k + 5], w[:, :, i, j, k])
    param = {"num_output": 3, "kernel_size": 2, "bias_term": False}
    check(tmp_path, "Convolution", [x], y, [w], convolution_param=param)
    x, w = floats(2, 6, 8, 8), floats(6, 1, 3, 3)
    expected = convolved(x, w, None, (1, 1), (1, 1), (1, 1), 6)
    param = {"num_output": 6, "kernel_size": 3, "pad": 1, "bias_term": False}
    for kind in ("ConvolutionDepthwise", "DepthwiseConvolution"):
        check(tmp_path, kind, [x], expected, [w], convolution_param=param)


@pytest.mark.parametrize("how", ["MAX", "AVE"])
@pytest.mark.parametrize("size", [(7, 7), (8, 6), (112, 9), (13, 13)])
@pytest.mark.parametrize("kernel, stride, pad", [(3, 2, 0), (3, 2, 1), (2, 2, 0), (3, 1, 1), (5, 3, 2), (2, 2, 1)])
def test_pooling(tmp_path, how, size, kernel, stride, pad):
    x = floats(2, 3, *size)
    param = {"pool": how, "kernel_size": kernel, "stride": stride, "pad": pad}
    check(tmp_path, "Pooling", [x], pooled(x, how, (kernel,) * 2, (stride,) * 2, (pad,) * 2), pooling_param=param)


def test_other_pooling(tmp_path):
    x = floats(2, 3, 8, 9)
    param = {"kernel_h": 2, "kernel_w": 3, "stride_h": 1, "stride_w": 2, "pad_h": 1, "pad_w": 0}
    check(tmp_path, "Pooling", [x], pooled(x, "MAX", (2, 3), (1, 2), (1, 0)), pooling_param=param)
    for floor in ({"ceil_mode": False}, {"round_mode": "FLOOR"}):
        param = {"kernel_size": 3, "stride": 2, **floor}
        check(tmp_path, "Pooling", [x], pooled(x, "MAX", (3, 3), (2, 2), (0, 0), False), pooling_param=param)
    for how, expected in (("MAX", x.max((2, 3), keepdims=True)), ("AVE", x.mean((2, 3), keepdims=True))):
        check(tmp_path, "Pooling", [x], expected, pooling_param={"pool": how, "global_pooling": True})
    expected = [pooled(x, "AVE", k, k, p).reshape(2, -1) for k, p in (((8, 9), (0, 0)), ((4, 5), (0, 1)), ((2, 3), (0, 2)))]
    check(tmp_path, "SPP", [x], np.concatenate(expected, 1), spp_param={"pyramid_height": 3, "pool": "AVE"})
    with pytest.raises(Exception, match="the last window has no elements"):
        check(tmp_path, "Pooling", [floats(1, 1, 4, 4)], x, pooling_param={"kernel_size": 1, "stride": 2})


@pytest.mark.parametrize("shape", [(2, 8, 5, 6), (1, 3, 9, 4)])
def test_local_response(tmp_path, shape):
    x = 3 * floats(*shape)
    for size, alpha, beta, k in ((5, 1e-1, 0.75, 1), (3, 2.0, 0.5, 2)):
        param = {"local_size": size, "alpha": alpha, "beta": beta, "k": k}
        check(tmp_path, "LRN", [x], lrn_across(x, size, alpha, beta, k), lrn_param=param)
        param = {"local_size": size, "alpha": alpha, "beta": beta, "norm_region": "WITHIN_CHANNEL"}
        check(tmp_path, "LRN", [x], lrn_within(x, size, alpha, beta), lrn_param=param)


@pytest.mark.parametrize("shape, axis", [((3, 4, 5, 6), 1), ((2, 3, 7), 2), ((2, 3, 7), -1), ((6, 5), 0)])
@pytest.mark.parametrize("turned, bias", [(False, True), (True, False)])
def test_inner_product(tmp_path, shape, axis, turned, bias):
    x = floats(*shape)
    rows = x.reshape(*shape[:axis], -1)
    w, b = floats(8, rows.shape[-1]), floats(8)
    param = {"num_output": 8, "axis": axis, "transpose": turned, "bias_term": bias}
    expected = rows @ w.T + (b if bias else 0)
    check(tmp_path, "InnerProduct", [x], expected, [w.T if turned else w, b][: 1 + bias], inner_product_param=param)


@pytest.mark.parametrize("stored", ["one", "other"])
@pytest.mark.parametrize("old", [False, True])
def test_layers_share_the_parameters_that_they_name_alike(tmp_path, stored, old):
    x, y, w, b = floats(2, 5), floats(2, 5), floats(3, 5), floats(3)
    text = 'input: "x" input: "y" input_shape { dim: 2 dim: 5 } input_shape { dim: 2 dim: 5 }'
    names = 'param: "w" param: "b"' if old else 'param { name: "w" lr_mult: 1 } param { name: "b" }'
    kind, word = ("INNER_PRODUCT", "layers") if old else ('"InnerProduct"', "layer")
    for name, bottom in (("one", "x"), ("other", "y")):
        text += f' {word} {{ name: "{name}" type: {kind} bottom: "{bottom}" top: "{name}" {names} inner_product_param {{ num_output: 3 }} }}'
    found = run(tmp_path, text, {"x": x, "y": y}, {stored: [w, b]})
    for one, rows in zip(found, (x, y)):
        np.testing.assert_allclose(one, rows @ w.T + b, atol=1e-5)


@pytest.mark.parametrize("shape", [(4, 6, 5, 3), (3, 7), (2, 3, 4, 5, 6)])
def test_batch_norm(tmp_path, shape):
    x, mean, variance, factor = floats(*shape), floats(shape[1]), np.abs(floats(shape[1])) + 0.5, np.float32([250.5])
    spread = (slice(None),) + (None,) * (len(shape) - 2)
    expected = (x - (mean / factor)[spread]) / np.sqrt((variance / factor)[spread] + 1e-3)
    check(tmp_path, "BatchNorm", [x], expected, [mean, variance, factor], batch_norm_param={"eps": 1e-3})
    expected = x / np.sqrt(1e-5)  # as Caffe reads statistics that were never kept
    check(tmp_path, "BatchNorm", [x], expected, [mean, variance, 0 * factor])
    axes = tuple(i for i in range(len(shape)) if i != 1)
    centred = x - x.mean(axes, keepdims=True)
    expected = centred / np.sqrt(centred.var(axes, keepdims=True) + 1e-5)
    blobs = [mean, variance, factor]
    check(tmp_path, "BatchNorm", [x], expected, blobs, batch_norm_param={"use_global_stats": False}, error=1e-4)


@pytest.mark.parametrize("axis, count", [(1, 1), (0, 2), (2, 2), (-1, 1), (1, 0), (1, -1), (0, -1)])
def test_scale_and_bias(tmp_path, axis, count):
    x = floats(2, 3, 4, 5)
    first = axis % 4
    shape = x.shape[first : first + count] if count >= 0 else x.shape[first:]
    factor, term = floats(*shape), floats(*shape)
    spread = (...,) + (None,) * (4 - first - len(shape)) if shape else (...,)
    param = {"axis": axis, "num_axes": count}
    check(tmp_path, "Scale", [x], x * factor[spread], [factor], scale_param=param)
    expected = x * factor[spread] + term[spread]
    check(tmp_path, "Scale", [x], expected, [factor, term], scale_param=param | {"bias_term": True})
    check(tmp_path, "Bias", [x], x + term[spread], [term], bias_param=param)
    if shape:
        check(tmp_path, "Scale", [x, factor], x * factor[spread], scale_param={"axis": axis})
        check(tmp_path, "Scale", [x, factor], expected, [term], scale_param={"axis": axis, "bias_term": True})
        check(tmp_path, "Bias", [x, term], x + term[spread], bias_param={"axis": axis})


def softmax(x, axis):
    e = np.exp(x - x.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)


ELEMENTS = {
    "AbsVal": (np.abs, {}),
    "BNLL": (lambda x: np.log1p(np.exp(x)), {}),
    "ELU": (lambda x: np.where(x > 0, x, 0.7 * (np.exp(x) - 1)), {"elu_param": {"alpha": 0.7}}),
    "Exp": (lambda x: 2 ** (0.5 + 3 * x), {"exp_param": {"base": 2, "scale": 3, "shift": 0.5}}),
    "Exp of e": (np.exp, {}),
    "Log": (lambda x: np.log10(40 + 3 * x), {"log_param": {"base": 10, "scale": 3, "shift": 40}}),
    "Log of e": (lambda x: np.log(20 + x), {"log_param": {"shift": 20}}),
    "Mish": (lambda x: x * np.tanh(np.log1p(np.exp(x))), {}),
    "Power": (lambda x: (20 + 2 * x) ** 1.5, {"power_param": {"power": 1.5, "scale": 2, "shift": 20}}),
    "Power 2": (lambda x: (1 + x) ** 2, {"power_param": {"power": 2, "shift": 1}}),
    "Power 0": (np.ones_like, {"power_param": {"power": 0}}),
    "ReLU": (lambda x: np.maximum(x, 0), {}),
    "ReLU leaky": (lambda x: np.where(x > 0, x, 0.1 * x), {"relu_param": {"negative_slope": 0.1}}),
    "ReLU6": (lambda x: np.clip(x, 0, 6), {}),
    "Clip": (lambda x: np.clip(x, -0.5, 1.25), {"clip_param": {"min": -0.5, "max": 1.25}}),
    "Sigmoid": (lambda x: 1 / (1 + np.exp(-x)), {}),
    "Swish": (lambda x: x / (1 + np.exp(-2 * x)), {"swish_param": {"beta": 2}}),
    "TanH": (np.tanh, {}),
    "Threshold": (lambda x: (x > 0.3).astype(np.float32), {"threshold_param": {"threshold": 0.3}}),
    "Dropout": (lambda x: x, {"dropout_param": {"dropout_ratio": 0.4}}),
    "Softmax": (lambda x: softmax(x, 1), {}),
    "Softmax last": (lambda x: softmax(x, -1), {"softmax_param": {"axis": -1}}),
    "MVN": (lambda x: (x - x.mean((2, 3), keepdims=True)) / (x.std((2, 3), keepdims=True) + 1e-9), {}),
    "MVN all": (
        lambda x: (x - x.mean((1, 2, 3), keepdims=True)) / (x.std((1, 2, 3), keepdims=True) + 0.1),
        {"mvn_param": {"across_channels": True, "eps": 0.1}},
    ),
    "MVN mean": (lambda x: x - x.mean((2, 3), keepdims=True), {"mvn_param": {"normalize_variance": False}}),
    "Reduction": (np.sum, {}),
    "Reduction mean": (lambda x: 2 * x.mean((2, 3)), {"reduction_param": {"operation": "MEAN", "axis": 2, "coeff": 2}}),
    "Reduction abs": (lambda x: np.abs(x).sum((1, 2, 3)), {"reduction_param": {"operation": "ASUM", "axis": 1}}),
    "Reduction sq": (lambda x: (x**2).sum(3), {"reduction_param": {"operation": "SUMSQ", "axis": -1}}),
    "Flatten": (lambda x: x.reshape(x.shape[0], -1), {}),
    "Flatten part": (lambda x: x.reshape(x.shape[0], -1, x.shape[3]), {"flatten_param": {"axis": 1, "end_axis": -2}}),
    "Permute": (lambda x: x.transpose(0, 2, 3, 1), {"permute_param": {"order": [0, 2, 3, 1]}}),
    "Permute some": (lambda x: x.transpose(2, 0, 1, 3), {"permute_param": {"order": 2}}),
    "Tile": (lambda x: np.tile(x, (1, 3, 1, 1)), {"tile_param": {"tiles": 3}}),
    "Reverse": (lambda x: x[:, ::-1, ::-1], {"reverse_param": {"axis": [1, 2]}}),
    "Reorg": (
        lambda x: np.concatenate([x[:, :, i::2, j::2] for i in (0, 1) for j in (0, 1)], 1),
        {"reorg_param": {"stride": 2}},
    ),
    "Upsample": (lambda x: 3 * x.repeat(2, 2).repeat(2, 3), {"upsample_param": {"scale": 3, "stride": 2}}),
    "Upsample of YOLO": (lambda x: x.repeat(3, 2).repeat(3, 3), {"upsample_param": {"scale": 3}}),
}


@pytest.mark.parametrize("shape", [(2, 4, 6, 8), (3, 8, 2, 4)])
@pytest.mark.parametrize("case", ELEMENTS)
def test_layers_of_one_bottom(tmp_path, case, shape):
    function, params = ELEMENTS[case]
    x = 2 * floats(*shape)
    check(tmp_path, case.split()[0], [x], function(x.astype(np.float64)), **params)


def test_reorg_turns_itself_back(tmp_path):
    x = floats(2, 3, 4, 6)
    text = files.inputs(x=x.shape) + files.layer("Reorg", "x", "a", reorg_param={"stride": 2})
    text += files.layer("Reorg", "a", "y", reorg_param={"stride": 2, "reverse": True})
    np.testing.assert_array_equal(run(tmp_path, text, {"x": x})[0], x)


def test_prelu_and_normalize(tmp_path):
    x = floats(2, 5, 3, 4)
    slope = floats(5)
    check(tmp_path, "PReLU", [x], np.where(x > 0, x, x * slope[:, None, None]), [slope])
    check(tmp_path, "PReLU", [x[:, :, 0, 0]], np.where(x > 0, x, x * slope[:, None, None])[:, :, 0, 0], [slope])
    shared = slope[:1].reshape(())
    check(tmp_path, "PReLU", [x], np.where(x > 0, x, x * shared), [shared], prelu_param={"channel_shared": True})
    squares = x.astype(np.float64) ** 2
    expected = x / np.sqrt(squares.sum(1, keepdims=True) + 1e-10) * slope[:, None, None]
    param = {"across_spatial": False, "channel_shared": False}
    check(tmp_path, "Normalize", [x], expected, [slope], norm_param=param)
    expected = x / np.sqrt(squares.sum((1, 2, 3), keepdims=True) + 1e-3) * shared
    check(tmp_path, "Normalize", [x], expected, [slope[:1]], norm_param={"eps": 1e-3})


@pytest.mark.parametrize("shape", [(2, 3, 4, 5), (4, 7), (3,)])
def test_eltwise(tmp_path, shape):
    a, b, c = floats(*shape), floats(*shape), floats(*shape)
    check(tmp_path, "Eltwise", [a, b, c], a + b + c)
    check(tmp_path, "Eltwise", [a, b, c], a * b * c, eltwise_param={"operation": "PROD"})
    check(tmp_path, "Eltwise", [a, b, c], np.maximum(a, np.maximum(b, c)), eltwise_param={"operation": "MAX"})
    check(tmp_path, "Eltwise", [a, b], 2 * a - 0.5 * b, eltwise_param={"operation": "SUM", "coeff": [2, -0.5]})


def test_concat_slice_crop(tmp_path):
    a, b = floats(2, 3, 4, 5), floats(2, 6, 4, 5)
    check(tmp_path, "Concat", [a, b], np.concatenate([a, b], 1))
    check(tmp_path, "Concat", [a, a, a], np.concatenate([a, a, a], 3), concat_param={"axis": -1})
    check(tmp_path, "Concat", [a, a], np.concatenate([a, a], 0), concat_param={"concat_dim": 0})
    check(tmp_path, "Slice", [b], [b[:, :2], b[:, 2:4], b[:, 4:]])
    param = {"axis": 2, "slice_point": [1, 3]}
    check(tmp_path, "Slice", [b], [b[:, :, :1], b[:, :, 1:3], b[:, :, 3:]], slice_param=param)
    check(tmp_path, "Split", [b], [b, b, b])
    big = floats(2, 6, 9, 10)
    check(tmp_path, "Crop", [big, a], big[:, :, :4, :5])
    check(tmp_path, "Crop", [big, a], big[:, :, 2:6, 2:7], crop_param={"offset": 2})
    check(tmp_path, "Crop", [big, a], big[:, 3:, 1:5, 4:9], crop_param={"axis": 1, "offset": [3, 1, 4]})


@pytest.mark.parametrize(
    "param, expected",
    [
        ({"shape": {"dim": [0, -1]}}, (2, 24)),
        ({"shape": {"dim": [0, 0, 6]}}, (2, 4, 6)),
        ({"shape": {"dim": [4, 12]}}, (4, 12)),
        ({"shape": {"dim": [2, -1]}, "axis": 1}, (2, 2, 12)),
        ({"shape": {"dim": [3, 2]}, "axis": -2}, (2, 4, 3, 2)),
        ({"shape": {"dim": [1]}, "num_axes": 0}, (1, 2, 4, 6)),
        ({"shape": {"dim": [2, 2]}, "axis": 1, "num_axes": 1}, (2, 2, 2, 6)),
        ({"shape": {"dim": [-1, 8]}, "axis": 0, "num_axes": 2}, (1, 8, 6)),
    ],
)
def test_reshape(tmp_path, param, expected):
    x = floats(2, 4, 6)
    check(tmp_path, "Reshape", [x], x.reshape(expected), reshape_param=param)


def test_shuffle_argmax_embed(tmp_path):
    x = floats(2, 12, 3, 4)
    expected = x.reshape(2, 3, 4, 3, 4).transpose(0, 2, 1, 3, 4).reshape(x.shape)
    check(tmp_path, "ShuffleChannel", [x], expected, shuffle_channel_param={"group": 3})
    rows = x.reshape(2, -1)
    order = np.argsort(-rows, 1, kind="stable")[:, :3]
    check(tmp_path, "ArgMax", [x], order[:, None, :1, None])
    best = np.take_along_axis(rows, order, 1)
    expected = np.stack([order.astype(np.float32), best], 1)[..., None]
    check(tmp_path, "ArgMax", [x], expected, argmax_param={"top_k": 3, "out_max_val": True})
    check(tmp_path, "ArgMax", [x], x.argmax(1)[:, None], argmax_param={"axis": 1})
    best = -np.sort(-x, 1)[:, :2]
    check(tmp_path, "ArgMax", [x], best, argmax_param={"axis": 1, "top_k": 2, "out_max_val": True})
    tied = np.float32([[1, 3, 3, 2]])
    check(tmp_path, "ArgMax", [tied], np.float32([[[2]]]))
    table, bias, index = floats(7, 5), floats(5), np.float32([[0, 6, 3], [2, 2, 1]])
    expected = table[index.astype(int)]
    check(tmp_path, "Embed", [index], expected + bias, [table, bias], embed_param={"input_dim": 7, "num_output": 5})


def interpolated(x, height, width):
    def axis(size, wanted):
        at = np.arange(wanted) * ((size - 1) / (wanted - 1) if wanted > 1 else 0)
        low = np.minimum(at.astype(int), size - 1)
        return low, np.minimum(low + 1, size - 1), at - low

    r0, r1, r = axis(x.shape[2], height)
    c0, c1, c = axis(x.shape[3], width)
    rows = x[:, :, r0] * (1 - r)[:, None] + x[:, :, r1] * r[:, None]
    return rows[..., c0] * (1 - c) + rows[..., c1] * c


def test_interp(tmp_path):
    x = floats(2, 3, 9, 5)
    check(tmp_path, "Interp", [x], interpolated(x, 17, 30), interp_param={"height": 17, "width": 30})
    check(tmp_path, "Interp", [x], interpolated(x, 17, 9), interp_param={"zoom_factor": 2})
    check(tmp_path, "Interp", [x], interpolated(x, 5, 3), interp_param={"shrink_factor": 2})
    cut = x[:, :, 1:-2, 1:-2]
    check(tmp_path, "Interp", [x], interpolated(cut, 11, 3), interp_param={"zoom_factor": 2, "pad_beg": -1, "pad_end": -2})


def test_prior_box(tmp_path):
    feature, image = floats(1, 4, 3, 2), floats(1, 3, 60, 80)
    param = dict(min_size=[10, 20], max_size=[15, 30], aspect_ratio=2, variance=[0.1, 0.1, 0.2, 0.2], clip=True)
    boxes = []
    for row, column in itertools.product(range(3), range(2)):
        x, y = (column + 0.5) * 40, (row + 0.5) * 20
        for least, most in ((10, 15), (20, 30)):
            side = math.sqrt(least * most)
            for w, h in ((least, least), (side, side), (least * 2**0.5, least / 2**0.5), (least / 2**0.5, least * 2**0.5)):
                boxes += [(x - w / 2) / 80, (y - h / 2) / 60, (x + w / 2) / 80, (y + h / 2) / 60]
    expected = np.stack([np.clip(boxes, 0, 1), np.tile([0.1, 0.1, 0.2, 0.2], len(boxes) // 4)])[None]
    check(tmp_path, "PriorBox", [feature, image], expected, prior_box_param=param)

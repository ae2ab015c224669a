"""atc --singleop: operators of the platform compute what their names and attributes say, and what is described is checked."""

import json

import cairn
import numpy as np
import pytest
from test_atc_reports import NCHW, SUCCESS, attributes, tensor


def some(*shape, seed=0):
    return np.random.default_rng([seed, len(shape), *shape]).standard_normal(shape).astype(np.float32)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def described(array, **more):
    return tensor(*array.shape, **({"type": {"bool": "bool", "int32": "int32", "int64": "int64", "int8": "int8", "float16": "float16"}.get(
        array.dtype.name, "float32")} | more))  # fmt: skip


X, Y, Z, POSITIVE, SHARE = some(3, 4), some(3, 4, seed=1), some(3, 4, seed=2), np.abs(some(3, 4, seed=3)) + 0.1, sigmoid(some(3, 4, seed=4))
IMAGE, C = some(2, 3, 4, 4), some(3)
MEAN, VARIANCE = IMAGE.mean((0, 2, 3)), IMAGE.var((0, 2, 3))
COLUMN = C.reshape(1, 3, 1, 1)
RATE, BETA1, BETA2, EPSILON = np.float32(0.1), np.float32(0.9), np.float32(0.99), np.float32(1e-3)
M, V = X + (Y - X) * (1 - BETA1), POSITIVE + (Y**2 - POSITIVE) * (1 - BETA2)
SPOT_MEAN, SPOT_VARIANCE = IMAGE.mean((2, 3), keepdims=True), IMAGE.var((2, 3), keepdims=True)
GROUPS = some(2, 4, 3, 3).reshape(2, 2, 2, 3, 3)
WEIGHTS = some(5, 48)


def normal(x, axes, epsilon):
    return (x - x.mean(axes, keepdims=True)) / np.sqrt(x.var(axes, keepdims=True) + epsilon)


def spread(x, kernel, stride):
    n, c, h, w = x.shape
    out = np.zeros((n, kernel.shape[1], (h - 1) * stride + kernel.shape[2], (w - 1) * stride + kernel.shape[3]), np.float32)
    for i in range(h):
        for j in range(w):
            out[:, :, i * stride:i * stride + kernel.shape[2], j * stride:j * stride + kernel.shape[3]] += np.einsum(
                "nc,cokl->nokl", x[:, :, i, j], kernel)  # fmt: skip
    return out


# name: operator, arrays, attributes, expected results, format of the images.
CASES = {
    "power": ("Power", [POSITIVE], dict(power=2.0, scale=3.0, shift=1.0), [(3 * POSITIVE + 1) ** 2]),
    "power_plain": ("Power", [X], {}, [X]),
    "full": ("FullyConnection", [IMAGE, WEIGHTS, some(5)], dict(num_output=5, transpose=False, axis=1, offset_x=0),
             [IMAGE.reshape(2, 48) @ WEIGHTS.T + some(5)]),
    "full_image": ("FullyConnection", [IMAGE, WEIGHTS.reshape(5, 3, 4, 4)], dict(num_output=5),
                   [(IMAGE.reshape(2, 48) @ WEIGHTS.T).reshape(2, 5, 1, 1)]),
    "full_transposed": ("FullyConnection", [X, some(4, 5)], dict(num_output=5, transpose=True), [X @ some(4, 5)]),
    "batch_norm": ("BatchNorm", [IMAGE, C, C + 1, MEAN, VARIANCE], dict(epsilon=1e-3, data_format="NCHW", is_training=False),
                   [(IMAGE - MEAN.reshape(1, 3, 1, 1)) / np.sqrt(VARIANCE.reshape(1, 3, 1, 1) + 1e-3) * COLUMN + COLUMN + 1]),
    "batch_norm_training": ("BatchNorm", [IMAGE, C, C + 1], dict(epsilon=1e-3, data_format="NCHW", is_training=True),
                            [normal(IMAGE, (0, 2, 3), 1e-3) * COLUMN + COLUMN + 1, MEAN, VARIANCE * 32 / 31]),
    "bn_infer": ("BNInfer", [IMAGE, C, C + 1, MEAN, VARIANCE], dict(epsilon=1e-3),
                 [normal(IMAGE, (0, 2, 3), 1e-3) * COLUMN + COLUMN + 1]),
    "instance_norm": ("InstanceNorm", [IMAGE, C, C + 1], dict(data_format="NCHW", epsilon=1e-3),
                      [normal(IMAGE, (2, 3), 1e-3) * COLUMN + COLUMN + 1, SPOT_MEAN, SPOT_VARIANCE]),
    "group_norm": ("GroupNorm", [GROUPS.reshape(2, 4, 3, 3), some(4), some(4, seed=1)],
                   dict(num_groups=2, epsilon=1e-3, data_format="NCHW"),
                   [normal(GROUPS, (2, 3, 4), 1e-3).reshape(2, 4, 3, 3) * some(4).reshape(1, 4, 1, 1) + some(4, seed=1).reshape(1, 4, 1, 1)]),
    "rms_norm": ("RmsNorm", [X, some(4)], dict(epsilon=1e-3),
                 [X / np.sqrt((X**2).mean(1, keepdims=True) + 1e-3) * some(4), 1 / np.sqrt((X**2).mean(1, keepdims=True) + 1e-3)]),
    "l2": ("L2Normalize", [X], dict(axis=[1], eps=1e-4), [X / np.linalg.norm(X, axis=1, keepdims=True)]),
    "scale": ("Scale", [IMAGE, C, C + 1], dict(axis=1, num_axes=1), [IMAGE * COLUMN + COLUMN + 1]),
    "scale_alone": ("Scale", [IMAGE, C], dict(axis=1), [IMAGE * COLUMN]),
    "bias": ("Bias", [IMAGE, C], dict(axis=1), [IMAGE + COLUMN]),
    "prelu": ("PRelu", [IMAGE, C], {}, [np.where(IMAGE > 0, IMAGE, IMAGE * COLUMN)]),
    "leaky": ("LeakyRelu", [X], dict(negative_slope=0.1), [np.where(X > 0, X, X * 0.1)]),
    "elu": ("Elu", [X], dict(alpha=0.5), [np.where(X > 0, X, 0.5 * np.expm1(X))]),
    "celu": ("CeluV2", [X], dict(alpha=2.0), [np.maximum(X, 0) + np.minimum(2 * np.expm1(X / 2), 0)]),
    "gelu": ("Gelu", [X], {}, [X * 0.5 * (1 + np.tanh(np.sqrt(2 / np.pi) * (X + 0.044715 * X**3)))]),
    "fast_gelu": ("FastGelu", [X], {}, [X * sigmoid(1.702 * X)]),
    "mish": ("Mish", [X], {}, [X * np.tanh(np.log1p(np.exp(X)))]),
    "hard_sigmoid": ("HardSigmoid", [3 * X], dict(alpha=0.2, beta=0.5), [np.clip(0.6 * X + 0.5, 0, 1)]),
    "hard_shrink": ("HardShrink", [X], dict(lambd=0.4), [np.where(np.abs(X) <= 0.4, 0, X)]),
    "soft_shrink": ("SoftShrink", [X], dict(lambd=0.4), [np.sign(X) * np.maximum(np.abs(X) - 0.4, 0)]),
    "log_sigmoid": ("LogSigmoid", [X], {}, [np.log(sigmoid(X))]),
    "threshold": ("ThresholdV2D", [X], dict(threshold=0.2, value=7.0), [np.where(X > 0.2, X, 7)]),
    "thresholded": ("ThresholdedRelu", [X], dict(alpha=0.2), [np.where(X > 0.2, X, 0)]),
    "addcmul": ("Addcmul", [X, Y, Z, np.float32(2)], {}, [X + Y * Z * 2]),
    "addcdiv": ("Addcdiv", [X, Y, POSITIVE, np.float32(2)], {}, [X + Y / POSITIVE * 2]),
    "axpy": ("AxpyV2", [X, Y, np.float32(3)], {}, [X + 3 * Y]),
    "lerp": ("Lerp", [X, Y, Z], {}, [X + Z * (Y - X)]),
    "fused": ("FusedMulAdd", [X, Y, Z], {}, [X * Y + Z]),
    "masked_fill": ("MaskedFill", [X, Y > 0, np.float32(5)], {}, [np.where(Y > 0, 5, X)]),
    "masked_scale": ("MaskedScale", [X, (Y > 0).astype(np.int8)], dict(value=2.0), [X * (Y > 0) * 2]),
    "fills": ("Fills", [X], dict(value=2.5), [np.full((3, 4), 2.5)]),
    "clip": ("ClipByValue", [X, np.float32(-0.5), np.float32(0.5)], {}, [np.clip(X, -0.5, 0.5)]),
    "eltwise": ("Eltwise", [X, Y, Z], dict(N=3, mode=1, coeff=[1.0, -2.0, 0.5]), [X - 2 * Y + 0.5 * Z]),
    "eltwise_max": ("Eltwise", [X, Y], dict(N=2, mode=2), [np.maximum(X, Y)]),
    "reduction": ("Reduction", [IMAGE], dict(operation=2, axis=2, coeff=2.0), [2 * np.abs(IMAGE).sum((2, 3))]),
    "square_sum": ("SquareSumV1", [X], dict(axis=[1], keep_dims=True), [(X**2).sum(1, keepdims=True)]),
    "log_sum_exp": ("ReduceLogSumExp", [X], dict(axes=[0]), [np.log(np.exp(X).sum(0))]),
    "dot": ("Dot", [C, C + 1], {}, [(C * (C + 1)).sum()]),
    "mse": ("MseLoss", [X, Y], dict(reduction="sum"), [((X - Y) ** 2).sum()]),
    "kl": ("KLDiv", [X, POSITIVE], dict(reduction="batchmean"), [(POSITIVE * (np.log(POSITIVE) - X)).sum() / 3]),
    "bce": ("BinaryCrossEntropy", [SHARE, np.float32(Y > 0)], dict(reduction="none"),
            [-np.where(Y > 0, np.log(SHARE), np.log(1 - SHARE))]),
    "smooth_l1": ("SmoothL1Loss", [X, Y], dict(sigma=1.0),
                  [np.where(np.abs(X - Y) < 1, 0.5 * (X - Y) ** 2, np.abs(X - Y) - 0.5)]),
    "cross_entropy": ("SigmoidCrossEntropyWithLogits", [X, SHARE], {}, [np.maximum(X, 0) - X * SHARE + np.log1p(np.exp(-np.abs(X)))]),
    "softmax_grad": ("SoftmaxGrad", [SHARE, Y], {}, [SHARE * (Y - (SHARE * Y).sum(1, keepdims=True))]),
    "descent": ("ApplyGradientDescent", [X, RATE, Y], {}, [X - RATE * Y]),
    "momentum": ("ApplyMomentumD", [X, Y, RATE, Z, BETA1], dict(use_nesterov=False), [X - RATE * (Y * BETA1 + Z), Y * BETA1 + Z]),
    "nesterov": ("ApplyMomentum", [X, Y, RATE, Z, BETA1], dict(use_nesterov=True),
                 [X - RATE * Z - RATE * BETA1 * (Y * BETA1 + Z)]),
    "adam": ("ApplyAdamD", [Z, X, POSITIVE, BETA1, BETA2, RATE, BETA1, BETA2, EPSILON, Y], {},
             [Z - RATE * np.sqrt(1 - BETA2) / (1 - BETA1) * M / (EPSILON + np.sqrt(V)), M, V]),
    "adagrad": ("ApplyAdagradD", [X, POSITIVE, RATE, Y], dict(update_slots=True),
                [X - RATE * Y / np.sqrt(POSITIVE + Y**2), POSITIVE + Y**2]),
    "permute": ("Permute", [IMAGE], dict(order=[0, 2, 3, 1]), [IMAGE.transpose(0, 2, 3, 1)]),
    "flatten": ("Flatten", [IMAGE], dict(axis=1), [IMAGE.reshape(2, 48)]),
    "flatten_part": ("FlattenV2", [IMAGE], dict(axis=1, end_axis=2), [IMAGE.reshape(2, 12, 4)]),
    "unsqueeze": ("Unsqueeze", [X], dict(axes=[0, -1]), [X.reshape(1, 3, 4, 1)]),
    "arg_max": ("ArgMaxWithValue", [X], dict(dimension=1, keep_dims=True),
                [X.argmax(1).astype(np.int32)[:, None], X.max(1, keepdims=True)]),
    "sort": ("Sort", [X], dict(axis=0, descending=True), [-np.sort(-X, 0), np.argsort(-X, 0).astype(np.int32)]),
    "sort_rising": ("Sort", [X], {}, [np.sort(X), np.argsort(X).astype(np.int32)]),
    "shuffle": ("ShuffleChannel", [some(1, 6, 2, 2)], dict(group=3),
                [some(1, 6, 2, 2).reshape(1, 3, 2, 2, 2).transpose(0, 2, 1, 3, 4).reshape(1, 6, 2, 2)]),
    "upsample": ("Upsample", [IMAGE], dict(scale=1.0, stride_h=2, stride_w=3), [IMAGE.repeat(2, 2).repeat(3, 3)]),
    "glu": ("GLU", [X], dict(dim=1), [X[:, :2] * sigmoid(X[:, 2:])]),
    "swiglu": ("SwiGlu", [X], dict(dim=-1), [X[:, :2] * sigmoid(X[:, :2]) * X[:, 2:]]),
    "deconvolution": ("Deconvolution", [IMAGE, some(3, 2, 3, 3)], dict(strides=[2, 2], pads=[0, 0, 0, 0], dilations=[1, 1, 1, 1]),
                      [spread(IMAGE, some(3, 2, 3, 3), 2)]),
    "deconvolution_d": ("Conv2DTransposeD", [IMAGE, some(3, 2, 3, 3)],
                        dict(input_size=[2, 2, 9, 9], strides=[1, 1, 2, 2], pads=[0, 0, 0, 0], data_format="NCHW"),
                        [spread(IMAGE, some(3, 2, 3, 3), 2)]),
    "conv_back": ("Conv2DBackpropInputD", [some(3, 2, 3, 3), IMAGE],
                  dict(input_size=[2, 2, 9, 9], strides=[1, 1, 2, 2], pads=[0, 0, 0, 0], data_format="NCHW"),
                  [spread(IMAGE, some(3, 2, 3, 3), 2)]),
}  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("single")


@pytest.fixture(scope="module")
def converted(folder):
    """All cases by one atc."""
    import subprocess

    from conftest import BIN

    operators = []
    for name, (op, arrays, attrs, expected) in CASES.items():
        describe = lambda array: described(np.asarray(array), **(NCHW if np.ndim(array) == 4 else {}))  # noqa: E731
        operators.append({"op": op, "name": name, "input_desc": [describe(each) for each in arrays],
                          "output_desc": [describe(each) for each in expected], "attr": attributes(**attrs)})  # fmt: skip
    (folder / "ops.json").write_text(json.dumps(operators))
    return subprocess.run([str(BIN / "atc"), "--singleop=ops.json", "--output=ops", "--soc_version=Ascend310"], cwd=folder,
                          capture_output=True, text=True, timeout=300)  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_an_operator_of_the_platform_computes_what_it_says(converted, folder, name):
    assert SUCCESS in converted.stdout, converted.stdout
    _, arrays, _, expected = CASES[name]
    found = list(cairn.load(folder / "ops" / f"{name}.om").run(*arrays).values())
    assert len(found) == len(expected)
    for value, wanted in zip(found, expected):
        assert value.shape == np.shape(wanted)
        np.testing.assert_allclose(value, wanted, rtol=2e-5, atol=2e-5)


def one(command, tmp_path, op, inputs, outputs, **attrs):
    (tmp_path / "one.json").write_text(json.dumps(
        [{"op": op, "name": "one", "input_desc": inputs, "output_desc": outputs, "attr": attributes(**attrs)}]))  # fmt: skip
    return command("atc", "--singleop=one.json", "--output=ops")


@pytest.mark.parametrize(
    "op, inputs, outputs, attrs, sentence",
    [
        ("Add", [tensor(2, 3), tensor(2, 3)], [tensor(2, 4)], {}, "Output 0 of operator Add is float [2, 3] by its inputs and "
         "attributes, output_desc says float32 [2, 4]."),
        ("Add", [tensor(2, 3), tensor(2, 3)], [tensor(2, 3, type="float16")], {}, "is float [2, 3] by its inputs and attributes, "
         "output_desc says float16 [2, 3]."),
        ("LogSigmoid", [tensor(2)], [tensor(2), tensor(2)], {}, "Operator LogSigmoid has 1 outputs, output_desc has 2."),
        ("Power", [tensor(2)], [tensor(3)], dict(power=2.0), "output_desc says float32 [3]."),
        ("Muls", [tensor(2)], [tensor(2)], {}, "Operator Muls: attribute value is missing."),
        ("FullyConnection", [tensor(2, 3), tensor(5, 4)], [tensor(2, 5)], dict(num_output=5), "has weights of 20 numbers, 5 "
         "outputs of 3 need 15"),
        ("ArgMaxWithValue", [tensor(2, 3)], [tensor(2, type="int32"), tensor(2)], dict(dimension=4), "dimension is no axis"),
        ("KLDiv", [tensor(2), tensor(2)], [tensor()], dict(reduction="middle"), "reduction is none, mean, sum or batchmean"),
        ("Scale", [tensor(2, 3), tensor(3, 3, 3)], [tensor(2, 3)], {}, "input 1 has 3 dimensions, which do not fit"),
        ("Relu", [tensor(-1, 3, shape_range=[[1, 8]])], [tensor(-1, 3)], {}, 'A "shape_range" of operator Relu is no list of'),
        ("Relu", [tensor(-1, 3, shape_range=[[8, 1], [3, 3]])], [tensor(-1, 3)], {}, 'A "shape_range" of operator Relu'),
    ],
)  # fmt: skip
def test_what_an_operator_cannot_be_is_told(command, tmp_path, op, inputs, outputs, attrs, sentence):
    done = one(command, tmp_path, op, inputs, outputs, **attrs)
    assert done.returncode == 255 and sentence in " ".join(done.stdout.split()), done.stdout
    assert not list((tmp_path / "ops").glob("*.om")) if (tmp_path / "ops").exists() else True


def test_open_sizes_stay_within_their_range(command, tmp_path):
    done = one(command, tmp_path, "Add", [tensor(-1, 3, shape_range=[[1, 8], [3, 3]]), tensor(3)], [tensor(-1, 3)])
    assert SUCCESS in done.stdout, done.stdout
    model = cairn.load(tmp_path / "ops/one.om")
    for rows in (1, 8):
        (found,) = model.run(some(rows, 3), C).values()
        np.testing.assert_array_equal(found, some(rows, 3) + C)
    with pytest.raises(cairn.Error, match="9"):
        model.run(some(9, 3), C)

"""What wrong arguments raise, by class, where the name is made or where it is called."""
import numpy as np
import pytest
import mindspore as ms
import mindspore.nn as nn
import mindspore.ops as ops
from mindspore import Tensor, context, Parameter
from mindspore import dtype as mstype
from mindspore.ops import composite as C
from mindspore.ops import functional as F
from mindspore.ops import operations as P

context.set_context(mode=context.PYNATIVE_MODE)


def t(*shape, dtype=np.float32):
    return Tensor(np.ones(shape).astype(dtype))


CALLS = [
    ("flatten of a number", lambda: P.Flatten()(5.0), TypeError),
    ("flatten of a scalar", lambda: P.Flatten()(F.scalar_to_tensor(5.0)), ValueError),
    ("softmax of a number", lambda: P.Softmax()(5.0), TypeError),
    ("softmax without axes", lambda: P.Softmax(axis=())(t(3, 4)), ValueError),
    ("softmax axis too large", lambda: P.Softmax(axis=2)(t(3, 4)), ValueError),
    ("log softmax of a number", lambda: P.LogSoftmax()(5.0), TypeError),
    ("log softmax axis too large", lambda: P.LogSoftmax(axis=2)(t(3, 4)), ValueError),
    ("relu of a number", lambda: P.ReLU()(5.0), TypeError),
    ("relu of bool", lambda: P.ReLU()(t(3, 4, dtype=np.bool_)), TypeError),
    ("relu6 of int", lambda: P.ReLU6()(t(3, 4, dtype=np.int32)), TypeError),
    ("elu of int", lambda: P.Elu()(t(3, 4, dtype=np.int32)), TypeError),
    ("sigmoid of a number", lambda: P.Sigmoid()(5.0), TypeError),
    ("sigmoid of int", lambda: P.Sigmoid()(t(3, 4, dtype=np.int32)), TypeError),
    ("tanh of a number", lambda: P.Tanh()(5.0), TypeError),
    ("batch norm of numbers", lambda: P.BatchNorm(is_training=False)(5.0, 5.0, 5.0, 5.0, 5.0), TypeError),
    ("batch norm scale of rank 2", lambda: P.BatchNorm(is_training=True)(t(5, 3), t(5, 3), t(5, 3), t(3), t(3)), ValueError),
    ("batch norm scale and bias differ", lambda: P.BatchNorm(is_training=True)(t(5, 3), t(3), t(7), t(3), t(3)), ValueError),
    ("batch norm mean and variance differ", lambda: P.BatchNorm()(t(5, 3), t(3), t(3), t(3), t(5)), ValueError),
    ("conv of numbers", lambda: P.Conv2D(2, (5, 5))(5.0, 5.0), TypeError),
    ("conv of bool", lambda: P.Conv2D(2, (5, 5))(t(1, 1, 9, 9, dtype=np.bool_), t(2, 1, 5, 5, dtype=np.bool_)), TypeError),
    ("conv of two dtypes", lambda: P.Conv2D(2, (5, 5))(t(1, 1, 9, 9), t(2, 1, 5, 5, dtype=np.float16)), TypeError),
    ("conv of rank 2", lambda: P.Conv2D(2, (5, 5))(t(1, 1), t(1, 1, 9, 9)), ValueError),
    ("conv weight of rank 3", lambda: P.Conv2D(2, (5, 5))(t(1, 1, 9, 9), t(1, 1, 9)), ValueError),
    ("conv channels differ", lambda: P.Conv2D(2, (5, 5))(t(1, 1, 9, 9), t(2, 2, 5, 5)), ValueError),
    ("conv out channels differ", lambda: P.Conv2D(2, (5, 5))(t(1, 1, 9, 9), t(1, 1, 5, 5)), ValueError),
    ("conv kernel differs", lambda: P.Conv2D(2, (5, 5))(t(1, 1, 9, 9), t(2, 1, 5, 6)), ValueError),
    ("conv out_channel 0", lambda: P.Conv2D(0, 3), ValueError),
    ("conv out_channel float", lambda: P.Conv2D(2.5, 3), TypeError),
    ("conv kernel str", lambda: P.Conv2D(2, "3"), (TypeError, ValueError)),
    ("conv kernel 0", lambda: P.Conv2D(2, 0), ValueError),
    ("conv pad_mode", lambda: P.Conv2D(2, 3, pad_mode="half"), ValueError),
    ("conv pad without pad mode", lambda: P.Conv2D(2, 3, pad_mode="valid", pad=1), ValueError),
    ("conv stride 0", lambda: P.Conv2D(2, 3, stride=0), ValueError),
    ("conv dilation 0", lambda: P.Conv2D(2, 3, dilation=0), ValueError),
    ("max pool of a number", lambda: P.MaxPool()(5.0), TypeError),
    ("max pool of rank 3", lambda: P.MaxPool()(t(1, 1, 32)), ValueError),
    ("max pool window too large", lambda: P.MaxPool(kernel_size=50, strides=1)(t(1, 1, 32, 32)), ValueError),
    ("max pool kernel 0", lambda: P.MaxPool(kernel_size=0), ValueError),
    ("max pool pad_mode", lambda: P.MaxPool(pad_mode="x"), ValueError),
    ("avg pool of a number", lambda: P.AvgPool()(5.0), TypeError),
    ("avg pool of rank 3", lambda: P.AvgPool()(t(1, 1, 32)), ValueError),
    ("avg pool window too large", lambda: P.AvgPool(kernel_size=50, strides=1)(t(1, 1, 32, 32)), ValueError),
    ("bias add of a number", lambda: P.BiasAdd()(5.0, t(3)), TypeError),
    ("bias add sizes differ", lambda: P.BiasAdd()(t(2, 3), t(4)), ValueError),
    ("bias add bias of rank 2", lambda: P.BiasAdd()(t(2, 3), t(1, 3)), ValueError),
    ("top k of bool", lambda: P.TopK()(t(3, dtype=np.bool_), 1), TypeError),
    ("top k of float k", lambda: P.TopK()(t(3), 1.5), TypeError),
    ("squeeze float axis", lambda: P.Squeeze(axis=1.2), TypeError),
    ("squeeze tuple of floats", lambda: P.Squeeze(axis=((1.2, 1.3))), TypeError),
    ("squeeze an axis of size 3", lambda: P.Squeeze(0)(t(3, 1)), ValueError),
    ("reduce sum keep_dims int", lambda: P.ReduceSum(keep_dims=1), TypeError),
    ("reduce sum axis out of range", lambda: P.ReduceSum()(t(2, 2), 3), ValueError),
    ("reduce mean axis str", lambda: P.ReduceMean()(t(2, 2), "0"), TypeError),
    ("expand dims axis out of range", lambda: P.ExpandDims()(t(2, 2), 4), ValueError),
    ("expand dims float axis", lambda: P.ExpandDims()(t(2, 2), 1.5), TypeError),
    ("expand dims of a number", lambda: P.ExpandDims()(5.0, 0), TypeError),
    ("reshape to another size", lambda: P.Reshape()(t(2, 2), (3, 3)), ValueError),
    ("reshape to float sizes", lambda: P.Reshape()(t(2, 2), (2.0, 2.0)), TypeError),
    ("reshape two unknown", lambda: P.Reshape()(t(2, 2), (-1, -1)), ValueError),
    ("transpose rank", lambda: P.Transpose()(t(2, 2), (0,)), ValueError),
    ("transpose repeated", lambda: P.Transpose()(t(2, 2), (0, 0)), ValueError),
    ("transpose perm int", lambda: P.Transpose()(t(2, 2), 0), TypeError),
    ("concat ranks differ", lambda: P.Concat()((t(2, 2), t(2))), ValueError),
    ("concat sizes differ", lambda: P.Concat()((t(2, 2), t(2, 3))), ValueError),
    ("concat dtypes differ", lambda: P.Concat()((t(2), t(2, dtype=np.int32))), TypeError),
    ("concat axis float", lambda: P.Concat(axis=1.5), TypeError),
    ("concat axis out of range", lambda: P.Concat(axis=3)((t(2), t(2))), ValueError),
    ("stack shapes differ", lambda: P.Stack()((t(2), t(3))), ValueError),
    ("stack dtypes differ", lambda: P.Stack()((t(2), t(2, dtype=np.int32))), TypeError),
    ("stack axis float", lambda: P.Stack(axis=0.5), TypeError),
    ("unstack axis out of range", lambda: P.Unstack(axis=3)(t(2, 2)), ValueError),
    ("split uneven", lambda: P.Split(0, 2)(t(3, 2)), ValueError),
    ("split into 0", lambda: P.Split(0, 0), ValueError),
    ("split into float", lambda: P.Split(0, 2.0), TypeError),
    ("tile str", lambda: P.Tile()(t(2), "2"), TypeError),
    ("tile too few", lambda: P.Tile()(t(2, 2), (2,)), ValueError),
    ("one hot depth negative", lambda: P.OneHot()(t(2, dtype=np.int32), -1, Tensor(1.0, mstype.float32), Tensor(0.0, mstype.float32)), ValueError),
    ("one hot of floats", lambda: P.OneHot()(t(2), 3, Tensor(1.0, mstype.float32), Tensor(0.0, mstype.float32)), TypeError),
    ("one hot axis", lambda: P.OneHot(axis=1.5), TypeError),
    ("gather float indices", lambda: P.Gather()(t(3), t(2), 0), TypeError),
    ("gather axis out of range", lambda: P.Gather()(t(3), t(2, dtype=np.int32), 2), ValueError),
    ("gather nd of float indices", lambda: P.GatherNd()(t(3, 3), t(2, 2)), TypeError),
    ("mat mul of numbers", lambda: P.MatMul()(1.0, 2.0), TypeError),
    ("mat mul shapes", lambda: P.MatMul()(t(2, 3), t(2, 3)), ValueError),
    ("mat mul ranks", lambda: P.MatMul()(t(2, 3), t(3)), ValueError),
    ("mat mul dtypes", lambda: P.MatMul()(t(2, 2), t(2, 2, dtype=np.float16)), TypeError),
    ("mat mul transpose flag", lambda: P.MatMul(transpose_a=1), TypeError),
    ("batch mat mul ranks", lambda: P.BatchMatMul()(t(2), t(2)), ValueError),
    ("add shapes", lambda: P.Add()(t(2, 3), t(3, 2)), ValueError),
    ("add str", lambda: P.Add()(t(2), "a"), TypeError),
    ("add of bool and list", lambda: P.Add()(t(2), {}), TypeError),
    ("mul shapes", lambda: P.Mul()(t(2, 3), t(4, 3)), ValueError),
    ("logical and of floats", lambda: P.LogicalAnd()(t(2), t(2)), TypeError),
    ("logical not of int", lambda: P.LogicalNot()(t(2, dtype=np.int32)), TypeError),
    ("select shapes", lambda: P.Select()(t(2, dtype=np.bool_), t(2), t(3)), ValueError),
    ("select dtypes", lambda: P.Select()(t(2, dtype=np.bool_), t(2), t(2, dtype=np.int32)), TypeError),
    ("select condition", lambda: P.Select()(t(2), t(2), t(2)), TypeError),
    ("cast to a str", lambda: P.Cast()(t(2), "float32"), TypeError),
    ("cast of a str", lambda: P.Cast()("a", mstype.float32), TypeError),
    ("argmax output type", lambda: P.Argmax(-1, mstype.float32), TypeError),
    ("argmin output type", lambda: P.Argmin(-1, mstype.float32), TypeError),
    ("argmin output bool", lambda: P.Argmin(-1, mstype.bool_), TypeError),
    ("argmax axis float", lambda: P.Argmax(0.5), TypeError),
    ("argmax axis out of range", lambda: P.Argmax(2)(t(2, 2)), ValueError),
    ("layer norm shapes", lambda: P.LayerNorm()(t(2, 3), t(4), t(4)), ValueError),
    ("l2 normalize axis", lambda: P.L2Normalize(axis=3)(t(2, 2)), ValueError),
    ("dropout keep_prob 1.5", lambda: P.Dropout(keep_prob=1.5), ValueError),
    ("dropout keep_prob str", lambda: P.Dropout(keep_prob="a"), TypeError),
    ("pad negative", lambda: P.Pad(((-1, 0),))(t(2)), ValueError),
    ("pad not tuple", lambda: P.Pad(1), TypeError),
    ("mirror pad mode", lambda: P.MirrorPad(mode="wrap"), ValueError),
    ("cum sum float axis", lambda: P.CumSum()(t(2), 0.5), TypeError),
    ("cross entropy shapes", lambda: P.SoftmaxCrossEntropyWithLogits()(t(2, 3), t(2, 4)), ValueError),
    ("sparse cross entropy labels of rank 2", lambda: P.SparseSoftmaxCrossEntropyWithLogits()(t(2, 3), t(2, 3, dtype=np.int32)), ValueError),
    ("smooth l1 beta", lambda: P.SmoothL1Loss(beta=-1.0), ValueError),
    ("assign to a tensor", lambda: P.Assign()(3, t(2)), (TypeError, ValueError)),
    ("strided slice mask", lambda: P.StridedSlice(begin_mask="a"), TypeError),
    ("strided slice stride 0", lambda: P.StridedSlice()(t(4), (0,), (2,), (0,)), ValueError),
    ("strided slice lengths", lambda: P.StridedSlice()(t(4), (0,), (2, 2), (1,)), ValueError),
    ("range delta 0", lambda: ops.arange(0, 5, 0), (ValueError, RuntimeError)),
    ("fill dtype", lambda: P.Fill()("a", (2,), 1), TypeError),
    ("eye negative", lambda: P.Eye()(-1, 2, mstype.float32), ValueError),
    ("zeros of a float", lambda: P.Zeros()(2.5, mstype.float32), TypeError),
    ("ones dtype", lambda: P.Ones()((2,), "x"), TypeError),
    ("resize bilinear size", lambda: P.ResizeBilinear((2, -1))(t(1, 1, 2, 2)), ValueError),
    ("in top k of rank 1", lambda: P.InTopK(1)(t(2), t(2, dtype=np.int32)), ValueError),
    ("scatter nd shapes", lambda: P.ScatterNd()(t(1, 1, dtype=np.int32), t(2, 2), (3,)), ValueError),
    ("unsorted segment sum", lambda: P.UnsortedSegmentSum()(t(2), t(2, dtype=np.int32), -1), ValueError),
    ("broadcast to", lambda: P.BroadcastTo((3, 3))(t(2, 3)), ValueError),
    ("depth to space block", lambda: P.DepthToSpace(1), ValueError),
    ("space to depth block", lambda: P.SpaceToDepth(2.0), TypeError),
    ("batch to space crops", lambda: P.BatchToSpace(2, [[0, -1], [0, 0]]), ValueError),
    ("grad operation flag", lambda: C.GradOperation(get_all=1), TypeError),
    ("grad operation of a number", lambda: C.GradOperation()(3), TypeError),
    ("clip by value", lambda: C.clip_by_value(t(2), "a", 1), TypeError),
    ("clip by global norm", lambda: C.clip_by_global_norm((t(2),), "a"), TypeError),
    ("hyper map of a number", lambda: C.HyperMap()(P.Add(), 1), (TypeError, Exception)),
]


@pytest.mark.parametrize("call,error", [c[1:] for c in CALLS], ids=[c[0] for c in CALLS])
def test_primitives_refuse(call, error):
    with pytest.raises(error):
        call()


LAYERS = [
    ("dense in", lambda: nn.Dense(0, 3), ValueError),
    ("dense float", lambda: nn.Dense(3, 2.5), TypeError),
    ("dense bias flag", lambda: nn.Dense(3, 2, has_bias=1), TypeError),
    ("dense weight shape", lambda: nn.Dense(3, 2, weight_init=t(3, 2)), ValueError),
    ("dense bias shape", lambda: nn.Dense(3, 2, bias_init=t(3)), ValueError),
    ("dense activation", lambda: nn.Dense(3, 2, activation=3), TypeError),
    ("conv2d kernel", lambda: nn.Conv2d(3, 4, -1), ValueError),
    ("conv2d kernel bool", lambda: nn.Conv2d(3, 4, True), (TypeError, ValueError)),
    ("conv2d pad mode", lambda: nn.Conv2d(3, 4, 3, pad_mode="x"), ValueError),
    ("conv2d padding", lambda: nn.Conv2d(3, 4, 3, pad_mode="same", padding=1), ValueError),
    ("conv2d group", lambda: nn.Conv2d(3, 4, 3, group=2), ValueError),
    ("conv2d stride tuple", lambda: nn.Conv2d(3, 4, 3, stride=(1, 1, 1)), ValueError),
    ("conv1d tuple", lambda: nn.Conv1d(3, 4, (3, 3)), TypeError),
    ("batch norm features", lambda: nn.BatchNorm2d(0), ValueError),
    ("batch norm momentum", lambda: nn.BatchNorm2d(3, momentum=1.5), ValueError),
    ("batch norm rank", lambda: nn.BatchNorm2d(3)(t(2, 3)), ValueError),
    ("layer norm shape", lambda: nn.LayerNorm(3), TypeError),
    ("group norm", lambda: nn.GroupNorm(2, 3), ValueError),
    ("dropout", lambda: nn.Dropout(0.0), ValueError),
    ("dropout str", lambda: nn.Dropout("0.5"), TypeError),
    ("embedding", lambda: nn.Embedding(0, 3), ValueError),
    ("embedding padding_idx", lambda: nn.Embedding(3, 3, padding_idx=5), ValueError),
    ("max pool", lambda: nn.MaxPool2d(kernel_size=-1), ValueError),
    ("max pool stride str", lambda: nn.MaxPool2d(2, "1"), (TypeError, ValueError)),
    ("avg pool 1d", lambda: nn.AvgPool1d(kernel_size=(2, 2)), TypeError),
    ("activation name", lambda: nn.get_activation("nothing"), KeyError),
    ("leaky relu", lambda: nn.LeakyReLU("x"), TypeError),
    ("prelu", lambda: nn.PReLU(channel=0), ValueError),
    ("softmax axis", lambda: nn.Softmax(axis="a"), TypeError),
    ("pad mode", lambda: nn.Pad(((0, 1),), mode="x"), ValueError),
    ("loss reduction", lambda: nn.MSELoss(reduction="avg"), ValueError),
    ("loss reduction type", lambda: nn.L1Loss(reduction=1), (TypeError, ValueError)),
    ("smooth l1", lambda: nn.SmoothL1Loss(beta=0.0), ValueError),
    ("cross entropy sparse flag", lambda: nn.SoftmaxCrossEntropyWithLogits(sparse=1), TypeError),
    ("mse shapes", lambda: nn.MSELoss()(t(2, 3), t(3, 2)), ValueError),
    ("lstm sizes", lambda: nn.LSTM(0, 3), ValueError),
    ("lstm flag", lambda: nn.LSTM(3, 3, batch_first=1), TypeError),
    ("momentum without", lambda: nn.Momentum(nn.Dense(2, 2).trainable_params(), 0.1), TypeError),
    ("momentum negative", lambda: nn.Momentum(nn.Dense(2, 2).trainable_params(), 0.1, -0.9), ValueError),
    ("momentum lr negative", lambda: nn.Momentum(nn.Dense(2, 2).trainable_params(), -0.1, 0.9), ValueError),
    ("momentum lr str", lambda: nn.Momentum(nn.Dense(2, 2).trainable_params(), "0.1", 0.9), ValueError),
    ("momentum decay", lambda: nn.Momentum(nn.Dense(2, 2).trainable_params(), 0.1, 0.9, weight_decay=-1.0), ValueError),
    ("momentum loss scale", lambda: nn.Momentum(nn.Dense(2, 2).trainable_params(), 0.1, 0.9, loss_scale=0.0), ValueError),
    ("adam beta", lambda: nn.Adam(nn.Dense(2, 2).trainable_params(), beta1=1.0), ValueError),
    ("adam beta type", lambda: nn.Adam(nn.Dense(2, 2).trainable_params(), beta1=1), TypeError),
    ("adam eps", lambda: nn.Adam(nn.Dense(2, 2).trainable_params(), eps=0.0), ValueError),
    ("adam of none", lambda: nn.Adam(None), (TypeError, ValueError)),
    ("sgd of none", lambda: nn.SGD(None), (TypeError, ValueError)),
    ("sgd nesterov", lambda: nn.SGD(nn.Dense(2, 2).trainable_params(), 0.1, nesterov=True), ValueError),
    ("sgd of a parameter", lambda: nn.SGD(Parameter(t(2), name="x")), TypeError),
    ("optimizer of ints", lambda: nn.Optimizer(0.1, (1, 2, 3)), TypeError),
    ("empty parameters", lambda: nn.SGD([]), ValueError),
    ("group without params", lambda: nn.SGD([{"lr": 0.1}]), (KeyError, ValueError, TypeError)),
    ("group with an unknown key", lambda: nn.SGD([{"params": nn.Dense(2, 2).trainable_params(), "rate": 0.1}]), (KeyError, ValueError)),
    ("lr schedule", lambda: nn.ExponentialDecayLR(-0.1, 0.9, 4), ValueError),
    ("cosine decay", lambda: nn.CosineDecayLR(0.1, 0.01, 4), ValueError),
    ("piecewise lengths", lambda: nn.piecewise_constant_lr([2, 5], [0.1]), ValueError),
    ("piecewise order", lambda: nn.piecewise_constant_lr([5, 2], [0.1, 0.2]), ValueError),
    ("piecewise types", lambda: nn.piecewise_constant_lr(5, [0.1]), TypeError),
    ("warm up steps", lambda: nn.WarmUpLR(0.1, 0), ValueError),
    ("polynomial power", lambda: nn.PolynomialDecayLR(0.1, 0.01, 4, -1.0), ValueError),
    ("context key", lambda: context.set_context(nothing=1), ValueError),
    ("context mode", lambda: context.set_context(mode=7), ValueError),
    ("context target", lambda: context.set_context(device_target="TPU"), ValueError),
    ("context device id", lambda: context.set_context(device_id=5000), ValueError),
    ("context get", lambda: context.get_context("nothing"), ValueError),
    ("parallel mode", lambda: context.set_auto_parallel_context(parallel_mode="x"), ValueError),
    ("parallel key", lambda: context.set_auto_parallel_context(nothing=1), ValueError),
    ("seed negative", lambda: ms.set_seed(-1), ValueError),
    ("seed float", lambda: ms.set_seed(1.5), TypeError),
    ("initializer name", lambda: ms.common.initializer.initializer("nothing", [2]), ValueError),
    ("initializer shape", lambda: ms.common.initializer.initializer("ones", [-2]), (TypeError, ValueError)),
    ("metric name", lambda: nn.get_metric_fn("nothing"), KeyError),
    ("accuracy type", lambda: nn.Accuracy("x"), (TypeError, ValueError)),
    ("topk", lambda: nn.TopKCategoricalAccuracy(0), ValueError),
    ("eval before update", lambda: nn.Accuracy().eval(), RuntimeError),
    ("model level", lambda: ms.Model(nn.Dense(2, 2), amp_level="O9"), (ValueError, TypeError)),
    ("model keyword", lambda: ms.Model(nn.Dense(2, 2), nothing=3), (ValueError, TypeError)),
    ("checkpoint steps", lambda: ms.CheckpointConfig(save_checkpoint_steps=-1), ValueError),
    ("checkpoint all 0", lambda: ms.CheckpointConfig(0, 0, 0, 0, True), (ValueError, TypeError)),
    ("load of a missing file", lambda: ms.load_checkpoint("./nothing.ckpt"), ValueError),
    ("load of another suffix", lambda: ms.load_checkpoint("./nothing.pt"), ValueError),
    ("load into nothing", lambda: ms.load_param_into_net("x", {}), TypeError),
    ("load of a list", lambda: ms.load_param_into_net(nn.Dense(2, 2), []), TypeError),
    ("save of a list", lambda: ms.save_checkpoint(3, "x.ckpt"), TypeError),
    ("loss monitor", lambda: ms.LossMonitor(-1), ValueError),
    ("tensor of None", lambda: Tensor(None, mstype.float32, "x"), (TypeError, ValueError)),
    ("tensor of a str list", lambda: Tensor(["a", "b"], mstype.float32), (TypeError, ValueError)),
    ("tensor dtype", lambda: Tensor([1], "float32"), TypeError),
    ("tensor of object", lambda: Tensor(object()), (TypeError, ValueError)),
    ("tensor ragged", lambda: Tensor([[1, 2], [3]]), (TypeError, ValueError)),
    ("tensor index", lambda: t(3)[5], IndexError),
    ("tensor float index", lambda: t(3)[1.5], (IndexError, TypeError)),
    ("tensor reshape", lambda: t(4).reshape((3,)), ValueError),
    ("tensor astype", lambda: t(4).astype("nothing"), TypeError),
    ("tensor bool of many", lambda: bool(t(4)), ValueError),
]


@pytest.mark.parametrize("call,error", [c[1:] for c in LAYERS], ids=[c[0] for c in LAYERS])
def test_layers_and_others_refuse(call, error):
    with pytest.raises(error):
        call()


@pytest.mark.parametrize("call,error", [
    (lambda x: P.Reshape()(x, (5, 5)), ValueError), (lambda x: P.MatMul()(x, x), ValueError),
    (lambda x: P.Concat()((x, P.ExpandDims()(x, 0))), ValueError), (lambda x: x + "a", TypeError),
    (lambda x: P.LogicalNot()(x), TypeError), (lambda x: x.reshape(7), ValueError),
], ids=["reshape", "matmul", "concat", "add", "not", "method"])
def test_graph_mode_raises_the_same(call, error):
    class Net(nn.Cell):
        def construct(self, x):
            return call(x)

    context.set_context(mode=context.GRAPH_MODE)
    try:
        with pytest.raises(error):
            Net()(t(2, 3))
    finally:
        context.set_context(mode=context.PYNATIVE_MODE)


@pytest.mark.parametrize("measure", [lambda: nn.PSNR(), lambda: nn.SSIM(filter_size=3), lambda: nn.MSSSIM(filter_size=3, power_factors=(0.5, 0.5))])
def test_measures_of_images_take_alike_ones(measure):
    x, smaller, deeper = (Tensor(np.ones(shape, np.float32)) for shape in ((2, 1, 8, 8), (2, 1, 6, 6), (2, 1, 8, 8, 1)))
    net = measure()
    net(x, x)
    for pair in ((x, smaller), (x, deeper), (deeper, x), (deeper, deeper)):
        with pytest.raises(ValueError):
            net(*pair)
    with pytest.raises(TypeError):
        net(x, x.astype(ms.float16))


@pytest.mark.parametrize("arguments, error", [
    ({"max_val": -1}, ValueError), ({"max_val": True}, TypeError), ({"power_factors": {0.5}}, TypeError), ({"filter_size": 1.5}, TypeError),
    ({"filter_size": 0}, ValueError), ({"filter_sigma": 0.0}, ValueError), ({"k1": 1}, TypeError),
])
def test_settings_of_similarity_at_scales(arguments, error):
    with pytest.raises(error):
        nn.MSSSIM(**arguments)


def test_similarity_at_scales_of_an_image_with_itself():
    x = Tensor(np.random.RandomState(0).rand(2, 3, 32, 32).astype(np.float32))
    np.testing.assert_allclose(nn.MSSSIM(power_factors=(0.1, 0.2), filter_size=5)(x, x).asnumpy(), [1, 1], rtol=1e-5)


def test_losses_of_functions_take_tensors():
    logits, labels = Tensor(np.ones((3, 5), np.float32)), Tensor(np.array([1, 0, 4], np.int32))
    for arguments in ((logits.asnumpy(), labels), (logits, labels.asnumpy()), (logits, labels, np.ones(5, np.float32))):
        with pytest.raises(TypeError):
            ops.cross_entropy(*arguments)
    for settings, error in (({"weights": "1"}, TypeError), ({"ignore_indiex": "2"}, TypeError), ({"activation": 2}, TypeError), ({"activation": "www"}, ValueError)):
        with pytest.raises(error):
            nn.MultiClassDiceLoss(**settings)


class Holder(nn.Cell):
    def __init__(self):
        super().__init__()
        self.items, self.names = [[1, 2], 3], {"x": 1}


class Appends(Holder):
    def construct(self, x):
        self.items[0].append(88)
        return x


class Replaces(Holder):
    def construct(self, x):
        self.items[0] = x
        return self.items[0]


class Names(Holder):
    def construct(self, x):
        self.names["x"] = 3
        return x


class Undefined(Holder):
    def construct(self, x):
        self.other[0] = 9
        return x


@pytest.mark.parametrize("net, words", [
    (Appends, r"'self.items' should be initialized as a 'Parameter' in the '__init__' function, but got '\[\[1, 2\], 3\]' with type 'list'"), (Replaces, "'self.items' should be initialized as a 'Parameter'"),
    (Names, "'self.names' should be initialized as a 'Parameter'"), (Undefined, "'self.other' should be initialized as a 'Parameter' in the '__init__' function"),
])
def test_members_that_are_lists_are_not_written_in_graph_mode(net, words):
    context.set_context(mode=context.GRAPH_MODE)
    try:
        with pytest.raises(TypeError, match=words):
            net()(t(2))
    finally:
        context.set_context(mode=context.PYNATIVE_MODE)


def test_gather_out_of_range():
    with pytest.raises(RuntimeError, match="For 'Gather', the 'input_indices' should be in the range"):
        t(3).gather(Tensor([0, 100], mstype.int32), 0)

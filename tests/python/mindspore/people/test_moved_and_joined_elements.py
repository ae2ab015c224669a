"""Primitives that move, join, cut and pad, for all types; diagonals; what they refuse."""

import numpy as np
import pytest
import mindspore as ms
import mindspore.nn as nn
import mindspore.ops as ops
from mindspore import Tensor, context
from mindspore.ops import operations as P
from mindspore.ops import composite as C
from mindspore.ops.operations import array_ops, nn_ops

context.set_context(mode=context.GRAPH_MODE, device_target="CPU")
TYPES = [np.float16, np.float32, np.float64, np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64, np.bool_]


def seq(*shape, dtype=np.float32):
    return np.arange(np.prod(shape)).reshape(shape).astype(dtype)


class Net(nn.Cell):

    def __init__(self, op, *more):
        super().__init__()
        self.op, self.more = (op, more)

    def construct(self, *x):
        return self.op(*x, *self.more)


class One(nn.Cell):

    def __init__(self, op, more):
        super().__init__()
        self.op, self.more = (op, more)

    def construct(self, x):
        return self.op(x, self.more)


@pytest.mark.parametrize("dtype", TYPES)
def test_moving_ops(dtype):
    x = seq(2, 3, 4, dtype=dtype)
    np.testing.assert_array_equal(One(P.Transpose(), (2, 0, 1))(Tensor(x)).asnumpy(), x.transpose(2, 0, 1))
    np.testing.assert_array_equal(One(P.Reshape(), (4, 6))(Tensor(x)).asnumpy(), x.reshape(4, 6))
    np.testing.assert_array_equal(One(P.ExpandDims(), 1)(Tensor(x)).asnumpy(), x[:, None])
    np.testing.assert_array_equal(One(P.Tile(), (2, 1, 3))(Tensor(x)).asnumpy(), np.tile(x, (2, 1, 3)))
    np.testing.assert_array_equal(P.BroadcastTo((5, 2, 3, 4))(Tensor(x)).asnumpy(), np.broadcast_to(x, (5, 2, 3, 4)))
    np.testing.assert_array_equal(P.ReverseV2(axis=[1])(Tensor(x)).asnumpy(), x[:, ::-1])
    np.testing.assert_array_equal(P.Flatten()(Tensor(x)).asnumpy(), x.reshape(2, 12))
    np.testing.assert_array_equal(P.Slice()(Tensor(x), (0, 1, 1), (2, 2, 3)).asnumpy(), x[0:2, 1:3, 1:4])
    np.testing.assert_array_equal(P.StridedSlice()(Tensor(x), (0, 0, 0), (2, 3, 4), (1, 2, 3)).asnumpy(), x[::1, ::2, ::3])
    np.testing.assert_array_equal(P.Stack(axis=1)([Tensor(x), Tensor(x)]).asnumpy(), np.stack([x, x], 1))
    for a, b in zip(P.Unstack(axis=1)(Tensor(x)), x.transpose(1, 0, 2)):
        np.testing.assert_array_equal(a.asnumpy(), b)
    for a, b in zip(P.Split(2, 2)(Tensor(x)), np.split(x, 2, 2)):
        np.testing.assert_array_equal(a.asnumpy(), b)
    np.testing.assert_array_equal(P.Concat(axis=-1)((Tensor(x), Tensor(x))).asnumpy(), np.concatenate([x, x], -1))


def test_split_v_and_others():
    x = seq(6, 4)
    out = P.SplitV(size_splits=[1, -1, 2], split_dim=0, num_split=3)(Tensor(x))
    assert [each.shape for each in out] == [(1, 4), (3, 4), (2, 4)]
    np.testing.assert_array_equal(out[1].asnumpy(), x[1:4])


def test_space_depth_batch():
    x = seq(1, 2, 4, 4)
    out = P.SpaceToDepth(2)(Tensor(x))
    assert out.shape == (1, 8, 2, 2)
    np.testing.assert_array_equal(P.DepthToSpace(2)(out).asnumpy(), x)
    out = P.SpaceToBatch(2, [[0, 0], [0, 0]])(Tensor(x))
    assert out.shape == (4, 2, 2, 2)
    np.testing.assert_array_equal(P.BatchToSpace(2, [[0, 0], [0, 0]])(out).asnumpy(), x)
    out = P.SpaceToBatchND([2, 2], [[0, 0], [0, 0]])(Tensor(x))
    np.testing.assert_array_equal(P.BatchToSpaceND([2, 2], [[0, 0], [0, 0]])(out).asnumpy(), x)
    np.testing.assert_array_equal(ops.pixel_shuffle(Tensor(seq(1, 4, 2, 2)), 2).shape, (1, 1, 4, 4))


def test_pads():
    x = seq(2, 3)
    np.testing.assert_array_equal(P.Pad(((1, 2), (2, 1)))(Tensor(x)).asnumpy(), np.pad(x, ((1, 2), (2, 1))))
    for mode, name in (("REFLECT", "reflect"), ("SYMMETRIC", "symmetric")):
        paddings = Tensor(np.array([[1, 1], [2, 2]]))
        np.testing.assert_array_equal(P.MirrorPad(mode=mode)(Tensor(x), paddings).asnumpy(), np.pad(x, ((1, 1), (2, 2)), mode=name))
        np.testing.assert_array_equal(nn.Pad(((1, 1), (2, 2)), mode=mode)(Tensor(x)).asnumpy(), np.pad(x, ((1, 1), (2, 2)), mode=name))
    np.testing.assert_array_equal(P.Padding(4)(Tensor(seq(3, 1))).asnumpy(), [[0, 0, 0, 0], [1, 0, 0, 0], [2, 0, 0, 0]])
    out = nn_ops.PadV3(mode="constant")(Tensor(x), Tensor(np.array([1, 1])), Tensor(np.float32(7)))
    if out is not None:
        np.testing.assert_array_equal(out.asnumpy(), np.pad(x, ((0, 0), (1, 1)), constant_values=7))
    g = C.GradOperation()(P.Pad(((1, 0), (0, 2))))(Tensor(x))
    np.testing.assert_array_equal(g.asnumpy(), np.ones_like(x))


def test_diagonals():
    x = seq(3)
    np.testing.assert_array_equal(P.Diag()(Tensor(x)).asnumpy(), np.diag(x))
    np.testing.assert_array_equal(array_ops.DiagPart()(Tensor(seq(3, 3))).asnumpy(), [0, 4, 8])
    np.testing.assert_array_equal(array_ops.Tril()(Tensor(seq(3, 3))).asnumpy(), np.tril(seq(3, 3)))
    np.testing.assert_array_equal(array_ops.Triu(diagonal=1)(Tensor(seq(3, 3))).asnumpy(), np.triu(seq(3, 3), 1))
    np.testing.assert_array_equal(array_ops.TrilIndices(3, 4, 1)().asnumpy(), np.tril_indices(3, 1, 4))
    np.testing.assert_array_equal(array_ops.TriuIndices(3, 4, -1)().asnumpy(), np.triu_indices(3, -1, 4))
    np.testing.assert_array_equal(nn.MatrixDiag()(Tensor(seq(2, 2))).asnumpy(), [[[0, 0], [0, 1]], [[2, 0], [0, 3]]])
    np.testing.assert_array_equal(nn.MatrixDiagPart()(Tensor(seq(2, 2, 2))).asnumpy(), [[0, 3], [4, 7]])
    np.testing.assert_array_equal(nn.MatrixSetDiag()(Tensor(seq(2, 2)), Tensor(np.array([9, 8], np.float32))).asnumpy(), [[9, 1], [2, 8]])
    x = Tensor(seq(2, 3))
    out = ops.matrix_diag(x, Tensor(1, ms.int32))
    assert out.shape == (2, 4, 4)
    np.testing.assert_array_equal(ops.matrix_diag_part(Tensor(seq(3, 4)), Tensor(1, ms.int32)).asnumpy(), [1, 6, 11])
    np.testing.assert_array_equal(
        ops.matrix_set_diag(Tensor(np.zeros((3, 3), np.float32)), Tensor(np.array([1, 2], np.float32)), Tensor(1, ms.int32)).asnumpy(),
        [[0, 1, 0], [0, 0, 2], [0, 0, 0]],
    )
    np.testing.assert_array_equal(array_ops.MatrixBandPart()(Tensor(seq(4, 4)), 1, 0).asnumpy(), np.tril(np.triu(seq(4, 4), -1)))
    np.testing.assert_array_equal(P.Eye()(2, 3, ms.int32).asnumpy(), np.eye(2, 3))
    np.testing.assert_array_equal(Tensor(np.ones((3, 3), np.float32)).fill_diagonal(5.0).asnumpy(), np.ones((3, 3)) + 4 * np.eye(3))


def test_other_shape_functions():
    x = seq(2, 3)
    assert P.Shape()(Tensor(x)) == (2, 3) and P.Rank()(Tensor(x)) == 2 and (P.Size()(Tensor(x)) == 6) and (P.DType()(Tensor(x)) == ms.float32)
    np.testing.assert_array_equal(P.DynamicShape()(Tensor(x)).asnumpy(), [2, 3])
    assert P.IsSubClass()(ms.int32, ms.int_)
    assert P.SameTypeShape()(Tensor(x), Tensor(x)) is not None
    np.testing.assert_array_equal(
        P.Meshgrid(indexing="xy")((Tensor(np.array([1, 2], np.int32)), Tensor(np.array([3, 4, 5], np.int32))))[0].asnumpy(), [[1, 2], [1, 2], [1, 2]]
    )
    np.testing.assert_array_equal(ops.roll(Tensor(seq(5)), 2, 0).asnumpy(), [3, 4, 0, 1, 2])
    np.testing.assert_array_equal(P.Range()(Tensor(0, ms.int32), Tensor(10, ms.int32), Tensor(4, ms.int32)).asnumpy(), [0, 4, 8])
    np.testing.assert_array_equal(P.Fill()(ms.float32, (2, 2), 1).asnumpy(), np.ones((2, 2)))
    np.testing.assert_array_equal(ops.full((2, 2), 7, dtype=ms.int32).asnumpy(), np.full((2, 2), 7))
    np.testing.assert_array_equal(P.Zeros()((2, 2), ms.float32).asnumpy(), np.zeros((2, 2)))
    np.testing.assert_array_equal(P.Ones()((2, 2), ms.int8).asnumpy(), np.ones((2, 2)))
    np.testing.assert_array_equal(P.OnesLike()(Tensor(x)).asnumpy(), np.ones_like(x))
    np.testing.assert_array_equal(P.ZerosLike()(Tensor(x)).asnumpy(), np.zeros_like(x))
    assert P.Identity()(Tensor(x)).shape == (2, 3)
    out = ops.unfold(Tensor(seq(1, 1, 3, 3)), 2)
    assert out is None or out.asnumpy().size == 16
    np.testing.assert_array_equal(P.InvertPermutation()((1, 2, 0)), (2, 0, 1))
    np.testing.assert_array_equal(array_ops.UnravelIndex()(Tensor([5, 3]), Tensor([2, 3])).asnumpy(), [[1, 1], [2, 0]])


@pytest.mark.parametrize(
    "call, error",
    [
        (lambda: P.Transpose()(Tensor(seq(2, 3)), (0, 1, 2)), ValueError),
        (lambda: P.Transpose()(Tensor(seq(2, 3)), 1), TypeError),
        (lambda: P.Reshape()(Tensor(seq(2, 3)), (4, 2)), ValueError),
        (lambda: P.Reshape()(Tensor(seq(2, 3)), (-1, -1)), ValueError),
        (lambda: P.ExpandDims()(Tensor(seq(2)), 5), ValueError),
        (lambda: P.ExpandDims()(Tensor(seq(2)), 0.5), TypeError),
        (lambda: P.Tile()(Tensor(seq(2, 3)), (2,)), ValueError),
        (lambda: P.Tile()(Tensor(seq(2, 3)), 2), TypeError),
        (lambda: P.Concat(axis=3)((Tensor(seq(2)), Tensor(seq(2)))), ValueError),
        (lambda: P.Concat()((Tensor(seq(2, 3)), Tensor(seq(2, 2)))), ValueError),
        (lambda: P.Split(0, 4)(Tensor(seq(2, 3))), ValueError),
        (lambda: P.Split(output_num=0), ValueError),
        (lambda: P.Stack(axis=4)([Tensor(seq(2)), Tensor(seq(2))]), ValueError),
        (lambda: P.Squeeze(0)(Tensor(seq(2, 1))), ValueError),
        (lambda: P.Slice()(Tensor(seq(2, 3)), (0, 0), (3, 3)), ValueError),
        (lambda: P.ReverseV2(axis=[3])(Tensor(seq(2))), ValueError),
        (lambda: P.BroadcastTo((2, 2))(Tensor(seq(3))), ValueError),
        (lambda: P.Pad(((1, 1),))(Tensor(seq(2, 3))), ValueError),
        (lambda: P.Pad(((-1, 1),)), ValueError),
        (lambda: P.SpaceToDepth(3)(Tensor(seq(1, 1, 4, 4))), ValueError),
        (lambda: P.SpaceToDepth("2"), TypeError),
        (lambda: P.DepthToSpace(3)(Tensor(seq(1, 4, 2, 2))), ValueError),
        (lambda: P.Eye()(0, 3, ms.float32), ValueError),
        (lambda: P.Meshgrid(indexing="ab"), ValueError),
        (lambda: P.Meshgrid()(Tensor(seq(2))), TypeError),
        (lambda: P.Fill()(ms.float32, (2, -2), 1), (TypeError, ValueError)),
        (lambda: P.Flatten()("x"), TypeError),
        (lambda: P.StridedSlice()(Tensor(seq(2, 3)), (0, 0), (2, 3), (1, 0)), ValueError),
        (lambda: P.StridedSlice(begin_mask=-1), ValueError),
        (lambda: P.StridedSlice(begin_mask="1"), TypeError),
    ],
)
def test_refusals(call, error):
    context.set_context(mode=context.PYNATIVE_MODE)
    with pytest.raises(error):
        call()


@pytest.mark.parametrize("lead", [(), (2,), (3, 2)])
@pytest.mark.parametrize("mode", [context.GRAPH_MODE, context.PYNATIVE_MODE])
def test_pixels_of_channels_for_any_leading_axes(lead, mode):
    context.set_context(mode=mode)
    x = np.random.RandomState(2).randn(*lead, 18, 2, 5).astype(np.float32)
    made = nn.PixelShuffle(3)(Tensor(x)).asnumpy()
    assert made.shape == (*lead, 2, 6, 15)
    for c, y, z in ((0, 0, 0), (1, 4, 7), (0, 5, 14), (1, 2, 9)):
        channel = c * 9 + y % 3 * 3 + z % 3
        np.testing.assert_array_equal(made[..., c, y, z], x[..., channel, y // 3, z // 3])
    np.testing.assert_array_equal(nn.PixelUnshuffle(3)(Tensor(made)).asnumpy(), x)


@pytest.mark.parametrize("shape, factor, error", [((2, 7, 4, 4), 2, ValueError), ((4, 4), 2, ValueError), ((4, 2, 2), 0, ValueError), ((4, 2, 2), 2.0, TypeError)])
def test_pixels_of_channels_that_do_not_fit(shape, factor, error):
    with pytest.raises(error):
        ops.pixel_shuffle(Tensor(np.ones(shape, np.float32)), factor)


def test_channels_of_pixels_that_do_not_fit():
    with pytest.raises(ValueError):
        ops.pixel_unshuffle(Tensor(np.ones((1, 3, 4, 5), np.float32)), 2)

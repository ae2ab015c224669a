"""Searching, windows, complex numbers, special functions against NumPy and published examples."""

import numpy as np
import pytest
import mindspore as ms
from mindspore import Tensor, ops
from mindspore.ops import operations as P
from mindspore.ops.operations.array_ops import (
    LowerBound,
    UpperBound,
    UnravelIndex,
    ListDiff,
    FillDiagonal,
    LogSpace,
    CheckNumerics,
    HammingWindow,
)
from mindspore.ops.operations.math_ops import (
    NextAfter,
    Histogram,
    EqualCount,
    BesselJ0,
    BesselJ1,
    BesselK0,
    BesselK1,
    BesselY0,
    BesselY1,
)


def test_bounds():
    x = Tensor(np.arange(12).reshape(3, 4).astype(np.int8))
    v = Tensor(np.array([[3], [4], [8]]).astype(np.int8))
    assert LowerBound(out_type=ms.int32)(x, v).asnumpy().tolist() == [[3], [0], [0]]
    assert UpperBound(out_type=ms.int32)(x, Tensor(np.array([[3], [6], [9]]).astype(np.int8))).asnumpy().tolist() == [
        [4],
        [3],
        [2],
    ]


def test_indices():
    out = UnravelIndex()(Tensor(np.array([2, 5]), ms.int32), Tensor(np.array([3, 3]), ms.int32))
    assert out.asnumpy().tolist() == [[0, 1], [2, 2]] or out.asnumpy().tolist() == [[0, 2], [1, 2]]
    out, idx = ListDiff()(Tensor(np.arange(1, 7), ms.int32), Tensor([1, 3, 5], ms.int32))
    assert out.asnumpy().tolist() == [2, 4, 6] and idx.asnumpy().tolist() == [1, 3, 5]
    x = Tensor(np.array([1, 1, 2, 2, 3, 1, 1, 2]), ms.int32)
    out, idx, cnt = ops.unique_consecutive(x, True, True, None)
    assert out.asnumpy().tolist() == [1, 2, 3, 1, 2] and cnt.asnumpy().tolist() == [2, 2, 1, 2, 1]
    assert FillDiagonal(9.9)(Tensor(np.ones((2, 3), np.float32))).asnumpy()[1, 1] == np.float32(9.9)
    with pytest.raises(ValueError):
        FillDiagonal(1.0)(Tensor(np.ones(3, np.float32)))


def test_windows_and_space():
    assert np.allclose(
        LogSpace(steps=10, base=10, dtype=ms.float32)(Tensor(1, ms.float32), Tensor(10, ms.float32)).asnumpy(),
        np.logspace(1, 10, 10),
        rtol=1e-4,
    )
    assert np.allclose(HammingWindow(periodic=False)(Tensor(6, ms.int64)).asnumpy(), np.hamming(6), atol=1e-4)
    assert np.allclose(ops.blackman_window(Tensor(10, ms.int32), periodic=False).asnumpy(), np.blackman(10), atol=1e-5)
    assert np.allclose(ops.bartlett_window(Tensor(5, ms.int32), periodic=False).asnumpy(), np.bartlett(5), atol=1e-5)


def test_check_numerics():
    x = Tensor(np.array([[1, 3], [2, 4]], np.float32))
    assert (CheckNumerics()(x).asnumpy() == x.asnumpy()).all()
    with pytest.raises(RuntimeError):
        CheckNumerics()(Tensor([1.0, np.nan], ms.float32))


def test_maths():
    x = np.array([0.5, 1.0, 2.0, 4.0], np.float32)
    assert np.allclose(BesselJ0()(Tensor(x)).asnumpy(), [0.93846981, 0.76519769, 0.22389078, -0.39714981], atol=1e-5)
    assert np.allclose(BesselJ1()(Tensor(x)).asnumpy(), [0.24226846, 0.44005059, 0.57672481, -0.06604333], atol=1e-5)
    assert np.allclose(BesselK0()(Tensor(x)).asnumpy(), [0.92441907, 0.42102444, 0.11389387, 0.01115968], atol=1e-5)
    assert np.allclose(BesselK1()(Tensor(x)).asnumpy(), [1.65644112, 0.60190723, 0.13986588, 0.01248350], atol=1e-5)
    assert np.allclose(BesselY0()(Tensor(x)).asnumpy(), [-0.44451874, 0.08825696, 0.51037567, -0.01694074], atol=1e-5)
    assert np.allclose(BesselY1()(Tensor(x)).asnumpy(), [-1.47147239, -0.78121282, -0.10703243, 0.39792571], atol=1e-4)
    assert np.allclose(
        NextAfter()(Tensor(np.array([0.0]), ms.float32), Tensor(np.array([0.1]), ms.float32)).asnumpy(),
        np.nextafter(np.float32(0), np.float32(0.1)),
    )
    assert Histogram(bins=4, min=0.0, max=3.0)(Tensor([1, 2, 1], ms.float32)).asnumpy().tolist() == [0, 2, 1, 0]
    assert EqualCount()(Tensor([1, 2, 3], ms.int32), Tensor([1, 2, 4], ms.int32)).asnumpy().tolist() == [2]


def test_edit_distance_and_ctc():
    h = Tensor(np.array([[0, 0, 0], [1, 0, 1], [1, 1, 1]]).astype(np.int64))
    out = P.EditDistance(normalize=True)(
        h,
        Tensor(np.array([1, 2, 3]).astype(np.float32)),
        Tensor(np.array([1, 1, 2]).astype(np.int64)),
        Tensor(np.array([[0, 1, 0], [0, 0, 1], [1, 1, 0], [1, 0, 1]]).astype(np.int64)),
        Tensor(np.array([1, 2, 3, 1]).astype(np.float32)),
        Tensor(np.array([2, 2, 2]).astype(np.int64)),
    )
    assert out.shape == (2, 2)
    inputs = Tensor(np.array([[[0.6, 0.4, 0.2], [0.8, 0.6, 0.3]], [[0.0, 0.6, 0.0], [0.5, 0.4, 0.5]]]), ms.float32)
    idx, val, shape, logp = P.CTCGreedyDecoder()(inputs, Tensor(np.array([2, 2]), ms.int32))
    assert idx.asnumpy().tolist() == [[0, 0], [0, 1], [1, 0]] and val.asnumpy().tolist() == [0, 1, 0]
    assert np.allclose(logp.asnumpy(), [[-1.2], [-1.3]])


def test_losses_and_glu():
    x = Tensor(np.array([[0.1, 0.2, 0.4, 0.8], [0.2, 0.3, 0.5, 0.7]]), ms.float32)
    t = Tensor(np.array([[1, 2, 0, 3], [2, 3, -1, 1]]), ms.int32)
    loss, hit = P.MultilabelMarginLoss(reduction="mean")(x, t)
    assert np.allclose(loss.asnumpy(), 0.325, atol=1e-5) and hit.asnumpy().tolist() == [[1, 1, 1, 1], [0, 0, 1, 1]]
    g = P.GLU()(Tensor([[0.1, 0.2, 0.3, 0.4], [0.5, 0.6, 0.7, 0.8]], ms.float32))
    assert np.allclose(g.asnumpy(), [[0.05744425, 0.11973753], [0.33409387, 0.41398472]], atol=1e-4)


def test_complex():
    c = P.Complex()(Tensor([1.0, 2.0], ms.float32), Tensor([3.0, -1.0], ms.float32))
    assert c.dtype == ms.complex64
    assert P.Real()(c).asnumpy().tolist() == [1, 2] and P.Imag()(c).asnumpy().tolist() == [3, -1]
    assert np.allclose(P.ComplexAbs()(c).asnumpy(), np.abs([1 + 3j, 2 - 1j]))
    assert np.allclose(P.Conj()(c).asnumpy(), [1 - 3j, 2 + 1j])
    assert np.allclose(P.Angle()(c).asnumpy(), np.angle([1 + 3j, 2 - 1j]))


def test_misc_functional():
    assert ops.argwhere(Tensor([[1, 0], [0, 2]], ms.int32)).asnumpy().tolist() == [[0, 0], [1, 1]]
    assert ops.block_diag(Tensor([[4.0], [3.0]], ms.float32), Tensor([[7.0, 6]], ms.float32)).shape == (3, 3)
    assert ops.is_floating_point(Tensor([1.0])) and not ops.is_floating_point(Tensor([1]))
    assert ops.copysign(Tensor([1.0, -2.0], ms.float32), Tensor([-1.0, 1.0], ms.float32)).asnumpy().tolist() == [-1, 2]
    assert ops.diag_embed(Tensor([2.0, 3, 4], ms.float32)).asnumpy().tolist() == np.diag([2.0, 3, 4]).tolist()
    assert np.allclose(
        ops.cov(Tensor([[0.0, 3.0], [5.0, 5.0], [7.0, 0.0]], ms.float32).T).asnumpy(),
        np.cov(np.array([[0.0, 3.0], [5.0, 5.0], [7.0, 0.0]]).T),
        atol=1e-4,
    )
    j = ops.jacrev(lambda x: x * x)(Tensor([1.0, 2.0], ms.float32))
    assert j.asnumpy().tolist() == [[2, 0], [0, 4]]
    out, d = ops.derivative(lambda x: ops.sin(x), Tensor([0.5], ms.float32), 2)
    assert np.allclose(d.asnumpy(), -np.sin(0.5), atol=1e-4)
    assert ops.hann_window(5, periodic=False).shape == (5,)
    assert ops.fold(Tensor(np.ones((1, 8, 4), np.float32)), Tensor((3, 3), ms.int32), (2, 2)).shape == (1, 2, 3, 3)

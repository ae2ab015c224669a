"""Operators that change Parameters, give random numbers, or act on gradients."""

import numpy as np
import optimizer_cases
import pytest
import test_optimizers as statements

import mindspore as ms
from mindspore import Parameter, Tensor, nn
from mindspore._checkparam import Rel, Validator
from mindspore.ops import functional as F
from mindspore.ops import operations as P
from mindspore.ops.composite import GradOperation

X = np.arange(10, dtype=np.float32).reshape(5, 2) + 1
ROWS, U = np.array([3, 0, 3], np.int32), np.array([[1, 2], [3, 4], [5, 6]], np.float32)


def expected_of(mode):
    made = X.copy()
    for row, update in zip(ROWS, U):
        combine = {"Update": lambda a, b: b, "Add": np.add, "Sub": np.subtract, "Mul": np.multiply, "Div": np.divide,
                   "Max": np.maximum, "Min": np.minimum}[mode]  # fmt: skip
        made[row] = combine(made[row], update)
    return made


@pytest.mark.parametrize("mode", ["Update", "Add", "Sub", "Mul", "Div", "Max", "Min"])
def test_scatter(mode):
    own, by_vectors = (Parameter(Tensor(X), name="x") for _ in range(2))
    made = getattr(P, "Scatter" + mode)()(own, Tensor(ROWS), Tensor(U))
    getattr(P, "ScatterNd" + mode)()(by_vectors, Tensor(ROWS[:, None]), Tensor(U))
    for each in (made, own, by_vectors):
        np.testing.assert_allclose(each.asnumpy(), expected_of(mode), rtol=1e-6)
    plain = Tensor(X)  # outside of graphs a Tensor is written as well
    getattr(P, "Scatter" + mode)()(plain, Tensor(ROWS), Tensor(U))
    np.testing.assert_allclose(plain.asnumpy(), expected_of(mode), rtol=1e-6)
    with pytest.raises(TypeError):
        getattr(P, "Scatter" + mode)()(X, Tensor(ROWS), Tensor(U))


def test_assign():
    own = Parameter(Tensor(X), name="x")
    assert np.array_equal(F.assign(own, Tensor(X * 2)).asnumpy(), X * 2)
    F.assign_add(own, Tensor(X))
    P.AssignSub()(own, Tensor(np.ones_like(X)))
    assert np.array_equal(own.asnumpy(), X * 3 - 1)
    P.IndexAdd(axis=0)(own, Tensor(np.array([1, 1], np.int32)), Tensor(U[:2]))
    assert np.array_equal(own.asnumpy()[1], X[1] * 3 - 1 + U[0] + U[1])


def applied(run, statement, slots=1, begin=(0.0,)):
    """Three steps of a primitive that updates, and of its NumPy statement."""
    value = optimizer_cases.begin()[0]
    own = [Parameter(Tensor(value), name="p")]
    own += [Parameter(Tensor(np.full(value.shape, each, np.float32)), name=f"slot{i}") for i, each in enumerate(begin)]
    expected, state = value.astype(np.float64), {}
    for t, (gradient, _) in enumerate(optimizer_cases.gradients(3), 1):
        run(own, Tensor(gradient), t)
        expected = statement(expected, state, gradient.astype(np.float64), t)
    np.testing.assert_allclose(own[0].asnumpy(), expected, rtol=1e-4, atol=1e-5)


def test_updates():
    number = lambda x: Tensor(np.float32(x))  # noqa: E731
    applied(lambda own, g, t: P.ApplyMomentum()(*own, number(0.1), g, number(0.9)), statements.momentum)
    applied(
        lambda own, g, t: P.ApplyMomentum(use_nesterov=True)(*own, 0.1, g, 0.9),
        lambda *a: statements.momentum(*a, nesterov=True),
    )
    applied(lambda own, g, t: P.FusedWeightScaleApplyMomentum()(number(0.1), number(0.5), *own, number(0.1), g, number(0.9)),
            lambda p, s, g, t: statements.momentum(p, s, 0.5 * (g + 0.1 * p), t))  # fmt: skip
    applied(lambda own, g, t: P.SGD(0.1, 0.01)(own[0], g, number(0.1), own[1], number(0.9), own[2]),
            lambda *a: statements.sgd(*a, rate=0.9, dampening=0.1, decay=0.01), begin=(0.0, 1.0))  # fmt: skip
    applied(lambda own, g, t: P.Adam()(*own, number(0.9**t), number(0.999**t), number(1e-3), number(0.9), number(0.999), number(1e-8), g),
            statements.adam, begin=(0.0, 0.0))  # fmt: skip
    applied(
        lambda own, g, t: P.AdamWeightDecay()(*own, 0.01, 0.9, 0.999, 1e-6, 0.1, g),
        statements.adam_weight_decay,
        begin=(0.0, 0.0),
    )
    applied(
        lambda own, g, t: P.ApplyRMSProp()(own[0], own[1], own[2], 0.01, g, 0.9, 0.5, 1e-6),
        statements.rmsprop,
        begin=(1.0, 0.0),
    )
    applied(lambda own, g, t: P.ApplyCenteredRMSProp()(own[0], own[3], own[1], own[2], g, 0.01, 0.9, 0.0, 1e-6),
            lambda *a: statements.rmsprop(*a, rate=0.0, centered=True), begin=(1.0, 0.0, 0.0))  # fmt: skip
    applied(lambda own, g, t: P.ApplyFtrl()(*own, g, 0.05, 0.01, 0.02, -0.5), statements.ftrl, begin=(0.1, 0.0))
    applied(lambda own, g, t: P.ApplyGradientDescent()(own[0], 0.1, g), lambda p, s, g, t: p - 0.1 * g)


def test_random_numbers():
    ms.set_seed(1)
    big = (200, 100)
    assert abs(P.StandardNormal()(big).asnumpy().std() - 1) < 0.02
    assert 0 <= P.UniformReal()(big).asnumpy().min() and abs(F.uniform(big, 2.0, 4.0).asnumpy().mean() - 3) < 0.02
    whole = P.UniformInt()(big, Tensor(2, ms.int32), Tensor(5, ms.int32)).asnumpy()
    assert set(np.unique(whole)) == {2, 3, 4} and whole.dtype == np.int32
    assert abs(P.StandardLaplace()(big).asnumpy().std() - np.sqrt(2)) < 0.05
    assert np.abs(P.TruncatedNormal()(big).asnumpy()).max() < 2
    assert sorted(P.Randperm(8)(Tensor([8], ms.int32)).asnumpy().tolist()) == list(range(8))
    drawn = P.Multinomial()(Tensor(np.array([[0.0, 1.0, 3.0]], np.float32)), 4000).asnumpy()
    assert set(np.unique(drawn)) == {1, 2} and abs((drawn == 2).mean() - 0.75) < 0.03
    y, mask = P.Dropout(0.8)(Tensor(np.ones(big, np.float32)))
    assert abs(mask.asnumpy().mean() - 0.8) < 0.02 and np.allclose(y.asnumpy(), mask.asnumpy() / 0.8)
    places, real = P.RandomChoiceWithMask(count=4)(Tensor(np.eye(3, dtype=bool)))
    assert real.asnumpy().tolist() == [True] * 3 + [False] and all(a == b for a, b in places.asnumpy()[:3])


def test_gradients_that_a_function_changes():
    x = Tensor(np.array([1.0, 2.0], np.float32))
    clipped = P.InsertGradientOf(lambda g: F.clip_by_value(g, -1.0, 1.0))
    assert GradOperation()(lambda x: clipped(x) * 5)(x).asnumpy().tolist() == [1.0, 1.0]
    seen = []
    hook = P.HookBackward(lambda gradients: seen.append(gradients))
    assert GradOperation()(lambda x: hook(x) * 5)(x).asnumpy().tolist() == [5.0, 5.0] and len(seen) == 1
    assert GradOperation()(lambda x: F.stop_gradient(x) * x)(x).asnumpy().tolist() == [1.0, 2.0]


def test_order_status_and_one_rank():
    x = Tensor(X)
    F.control_depend(x, x), P.ControlDepend()(x, x)
    status = P.NPUAllocFloatStatus()()
    assert status.shape == P.NPUGetFloatStatus()(status).shape == P.NPUClearFloatStatus()(status).shape == (8,)
    assert P.FloatStatus()(Tensor(np.array([1.0, np.inf], np.float32))).asnumpy().tolist() == [1.0]
    assert np.array_equal(P.AllReduce(P.ReduceOp.SUM)(x).asnumpy(), X)
    own = Parameter(Tensor(X), name="x")
    assert np.array_equal(nn.DistributedGradReducer([own], True, 1)((x,))[0].asnumpy(), X)
    assert np.array_equal(P.ScatterAdd()(own, Tensor(ROWS), Tensor(U)).asnumpy(), expected_of("Add"))


def test_checks_of_arguments():
    assert Validator.check_int(3, 0, Rel.GT, "size", "Layer") == 3
    assert Validator.check_float_range(0.5, 0.0, 1.0, Rel.INC_BOTH, "rate", "Layer") == 0.5
    for wrong, error in ((lambda: Validator.check_int(0, 0, Rel.GT, "size", "Layer"), ValueError),
                         (lambda: Validator.check_int(1.0, 0, Rel.GT, "size", "Layer"), TypeError),
                         (lambda: Validator.check_bool(1, "flag", "Layer"), TypeError),
                         (lambda: Validator.check_string("c", ["a", "b"], "word", "Layer"), ValueError),
                         (lambda: Validator.check_value_type("rate", True, [int], "Layer"), TypeError)):  # fmt: skip
        with pytest.raises(error, match="Layer"):
            wrong()

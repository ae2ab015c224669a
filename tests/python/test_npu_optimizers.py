"""Loss scaling and the other optimizers of the platform's TensorFlow 1 interface."""

import numpy as np
import pytest
from npu_graphs import fresh_graph, tf, value_of  # noqa: F401

from npu_bridge import npu_init
from npu_bridge.hccl import hccl_ops


# Loss scaling


def test_the_loss_scale_grows_after_finite_steps_and_shrinks_after_bad_ones():
    manager = npu_init.ExponentialUpdateLossScaleManager(8.0, 3, decr_every_n_nan_or_inf=2, incr_ratio=2, decr_ratio=0.25)
    finite = tf.placeholder(tf.bool, [])
    update = manager.update_loss_scale(finite)
    seen = []
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        for good in [1, 1, 1, 0, 1, 0, 1, 1, 0, 0, 0, 0]:
            sess.run(update, {finite: bool(good)})
            seen.append(float(sess.run(manager.get_loss_scale())))
    # Three in a row double it; bad steps need not follow each other; it never falls below 1.
    assert seen == [8, 8, 16, 16, 16, 4, 4, 4, 4, 1, 1, 1]
    assert sorted(v.op.name for v in tf.global_variables()) == ["bad_steps", "good_steps", "loss_scale"]


def test_a_scale_that_would_leave_float32_stays():
    manager = npu_init.ExponentialUpdateLossScaleManager(2.0**127, 1)
    update = manager.update_loss_scale(tf.constant(True))
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        sess.run(update)
        assert sess.run(manager.get_loss_scale()) == np.float32(2.0**127)


def test_a_fixed_scale_below_one_is_refused():
    with pytest.raises(ValueError, match="loss scale must be at least 1."):
        npu_init.FixedLossScaleManager(0.5)


@pytest.mark.parametrize("check, expected", [(True, 1.0), (False, -np.inf)])
def test_a_step_with_an_infinite_gradient_is_left_out_unless_unchecked(check, expected):
    x = tf.placeholder(tf.float32, [])
    w = tf.Variable(1.0)
    manager = npu_init.FixedLossScaleManager(4.0, enable_overflow_check=check)
    optimizer = npu_init.NPULossScaleOptimizer(tf.train.GradientDescentOptimizer(0.5), manager)
    step = tf.train.get_or_create_global_step()
    train = optimizer.minimize(w * x, global_step=step)
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        sess.run(train, {x: np.inf})
        assert sess.run(w) == expected and sess.run(step) == (0 if check else 1)
        sess.run(w.assign(1.0))
        sess.run(train, {x: 2.0})
        assert sess.run(w) == 0.0 and sess.run(step) == (1 if check else 2)  # the gradient is 2, whatever the scale


def test_the_first_op_whose_gradient_is_not_finite_is_named(capfd):
    """Clipping makes every gradient NaN; the backward pass made those of the last layer first, and they are finite."""
    x = tf.placeholder(tf.float32, [1, 2])
    first, second = tf.Variable(tf.ones([2, 2]), name="first"), tf.Variable(tf.ones([2, 2]), name="second")
    hidden = tf.sqrt(tf.matmul(x, first))  # steep at zero
    loss = tf.reduce_sum(tf.matmul(hidden, second))
    optimizer = npu_init.NPULossScaleOptimizer(tf.train.GradientDescentOptimizer(0.5), npu_init.FixedLossScaleManager(8.0))
    gradients, variables = zip(*optimizer.compute_gradients(loss))
    train = optimizer.apply_gradients(zip(tf.clip_by_global_norm(gradients, 1.0)[0], variables))
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        sess.run(train, {x: [[1.0, 1.0]]})
        assert "not finite" not in capfd.readouterr().err
        sess.run(train, {x: [[1.0, -1.0]]})
    told = capfd.readouterr().err
    assert 'loss scale 8 because of what is not finite: "gradients/MatMul_grad/MatMul_1, the gradient of first"' in told


def test_loss_scaling_of_sparse_gradients_and_slots():
    table = tf.Variable(tf.ones([4, 2]))
    inner = tf.train.MomentumOptimizer(0.1, 0.9)
    optimizer = npu_init.NPULossScaleOptimizer(inner, npu_init.FixedLossScaleManager(8.0))
    train = optimizer.minimize(tf.reduce_sum(tf.gather(table, [1, 1, 3])))
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        sess.run(train)
        np.testing.assert_allclose(sess.run(table)[:, 0], [1, 0.8, 1, 0.9], rtol=1e-6)
    assert optimizer.get_slot_names() == ["momentum"] and optimizer.get_slot(table, "momentum") is not None


def test_two_optimizers_do_not_disturb_each_other():
    good, bad = tf.Variable(1.0), tf.Variable(1.0)
    managers = [npu_init.ExponentialUpdateLossScaleManager(16.0, 100, decr_every_n_nan_or_inf=1) for _ in range(2)]
    make = lambda i: npu_init.NPULossScaleOptimizer(tf.train.GradientDescentOptimizer(1.0), managers[i])
    train = [make(0).minimize(good * 0.5, var_list=[good]), make(1).minimize(tf.log(bad - 1.0) * bad, var_list=[bad])]
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        sess.run(train)
        assert sess.run([good, bad]) == [0.5, 1.0]
        assert [float(sess.run(m.get_loss_scale())) for m in managers] == [16.0, np.float32(16 * 0.8)]


def test_a_manager_made_under_control_dependencies_is_initialised():
    with tf.control_dependencies([tf.no_op()]):
        manager = npu_init.ExponentialUpdateLossScaleManager(4.0, 10)
    assert value_of(manager.get_loss_scale()) == 4.0


# Other optimizers


def test_one_rank_passes_everything_through():
    w = tf.Variable([2.0, 3.0])
    plain = tf.train.AdamOptimizer(0.1)
    wrapped = npu_init.NPUDistributedOptimizer(plain)
    train = wrapped.minimize(tf.reduce_sum(w * w))
    assert wrapped.get_name() == "DistributedAdamOptimizer" and wrapped.get_slot_names() == ["m", "v"]
    keras = tf.keras.optimizers.SGD(0.1)
    assert npu_init.npu_keras_optimizer(keras) is keras and npu_init.npu_distributed_optimizer_wrapper(plain) is plain
    assert type(npu_init.npu_distributed_optimizer_wrapper("adam")).__name__ == "Adam"
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        sess.run(train)
        np.testing.assert_allclose(sess.run(w), [1.9, 2.9], rtol=1e-5)  # Adam's first step is its rate


def test_npu_optimizer_wants_a_manager_to_scale():
    with pytest.raises(ValueError, match="is_loss_scale is True, but the loss_scale_manager is None"):
        npu_init.NPUOptimizer(tf.train.GradientDescentOptimizer(0.1), is_loss_scale=True)
    optimizer = npu_init.NPUOptimizer(tf.train.GradientDescentOptimizer(0.1))
    assert optimizer.get_name() == "NPUOptimizerGradientDescentOptimizer"

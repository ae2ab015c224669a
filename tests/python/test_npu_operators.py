"""Operators and recurrent layers of the platform's TensorFlow 1 interface, by hand and by numpy."""

import numpy as np
import pytest
from npu_graphs import fresh_graph, tf, value_of  # noqa: F401

from npu_bridge import npu_init
from npu_bridge.estimator import npu_aicore_ops, npu_ops
from npu_bridge.estimator.npu.npu_dynamic_rnn import DynamicAUGRU, DynamicGRUV2, DynamicRNN
from npu_bridge.npu_cpu import npu_cpu_ops
from npu_bridge.tbe import npu_cube_ops, npu_vector_ops


def test_dropout_draws_the_numbers_of_tf_nn_dropout():
    draws = []
    for dropout in (lambda x: tf.nn.dropout(x, keep_prob=0.7), lambda x: npu_ops.dropout(x, 0.7)):
        tf.reset_default_graph()
        tf.set_random_seed(3)
        first = dropout(tf.ones([40]))
        draws.append(value_of([first, dropout(tf.ones([4])), tf.random.uniform([3])]))
    for one, other in zip(*draws):
        np.testing.assert_array_equal(one, other)


def test_dropout_refuses_what_it_cannot_do():
    with pytest.raises(ValueError, match="range \\(0, 1\\], got 0"):
        npu_ops.dropout(tf.ones([3]), 0)
    with pytest.raises(ValueError, match="floating point"):
        npu_ops.dropout(tf.ones([3], tf.int32), 0.5)
    x = tf.ones([3])
    np.testing.assert_array_equal(value_of(npu_ops.dropout(x, 1.0)), np.ones(3))


@pytest.mark.parametrize("name", ["gelu", "fast_gelu"])
def test_gelu_and_its_gradient(name):
    x = np.array([-3.0, -0.5, 0.0, 0.7, 4.0], np.float32)
    tensor = tf.constant(x)
    y = getattr(npu_init.npu_unary_ops, name)(tensor)
    derived = tf.gradients(y, tensor)[0]
    written = getattr(npu_init.npu_unary_ops, name + "_grad")(tf.ones_like(tensor), tensor)
    got, slope, formula = value_of([y, derived, written])
    wide = x.astype(np.float64)
    tanh = 0.5 * wide * (1 + np.tanh(np.sqrt(2 / np.pi) * (wide + 0.044715 * wide**3)))
    np.testing.assert_allclose(got, tanh if name == "gelu" else wide / (1 + np.exp(-1.702 * wide)), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(slope, formula, rtol=1e-4, atol=1e-6)


def test_lars_by_hand():
    w, g = np.array([3.0, 4.0], np.float32), np.array([0.0, 0.5], np.float32)
    ratio = 0.001 * 5 / (0.5 + 0.1 * 5 + 1e-5)
    single = npu_ops.LARS(tf.constant(w), tf.constant(g), 0.1)
    listed = npu_ops.LARS([tf.constant(w)], [tf.constant(g)], 0.1)
    clipped = npu_ops.LARSV2(tf.constant(w), tf.constant(g), 0.1, learning_rate=1e-4, use_clip=True)
    single, listed, clipped = value_of([single, listed, clipped])
    np.testing.assert_allclose(single, ratio * (g + 0.1 * w), rtol=1e-5)
    np.testing.assert_allclose(listed[0], single)
    np.testing.assert_allclose(clipped, g + 0.1 * w, rtol=1e-5)  # ratio / rate is above 1


def test_adam_written_into_its_variables():
    v, m, w = tf.Variable([0.25]), tf.Variable([0.5]), tf.Variable([2.0])
    run = npu_ops.adam_apply_one_with_decay_assign([1.0], v, m, w, 0.1, 0.9, 0.1, 0.99, 0.01, 0.5, 1e-6)
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        sess.run(run)
        new_v, new_m, new_w = sess.run([v, m, w])
    assert new_m[0] == pytest.approx(0.55) and new_v[0] == pytest.approx(0.2575)
    assert new_w[0] == pytest.approx(2 - 0.1 * (0.55 / (0.2575**0.5 + 1e-6) + 0.5 * 2), rel=1e-5)


def test_small_operators_by_hand():
    data = tf.constant([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    scattered = npu_ops.scatter_elements(data, [[2, 0]], [[9.0, 8.0]], axis=1)
    normed, mean, _ = npu_aicore_ops.layer_norm(data, [1.0, 1.0, 2.0], [0.0, 0.5, 0.0], 1, 1)
    places = npu_aicore_ops.nonzero(tf.constant([[0, 3], [4, 0]]))
    slope = npu_aicore_ops.prelu(tf.constant([-2.0, 3.0]), 0.25)
    centred = npu_aicore_ops.centralization(data, [1])
    sums, counts, _ = npu_ops.k_means_centroids([[0.0], [1.0], [9.0]], [[0.0], [10.0]], [0.0, 100.0], [0.0, 1.0, 81.0], True)
    got = value_of([scattered, normed, mean, places, slope, centred, sums, counts])
    np.testing.assert_array_equal(got[0], [[8, 2, 9], [4, 5, 6]])
    np.testing.assert_allclose(got[1][0], [-1.2247448, 0.5, 2.4494896], rtol=1e-4)
    np.testing.assert_allclose(got[2], [[2], [5]])
    np.testing.assert_array_equal(got[3], [[0, 1], [1, 0]])
    np.testing.assert_array_equal(got[4], [-0.5, 3])
    np.testing.assert_array_equal(got[5], [[-1, 0, 1], [-1, 0, 1]])
    np.testing.assert_array_equal(got[6], [[1], [9]])
    np.testing.assert_array_equal(got[7], [[2], [1]])


def test_deformable_convolution_without_shifts_is_a_convolution():
    random = np.random.RandomState(0)
    x, kernel = random.randn(2, 6, 7, 4).astype(np.float32), random.randn(3, 3, 4, 5).astype(np.float32)
    offsets = np.zeros([2, 6, 7, 2 * 9 * 3], np.float32)
    offsets[..., 36:] = 1.0  # the masks
    deformed = npu_cube_ops.deformable_conv2d(x, tf.constant(kernel), offsets, [1, 1, 1, 1], [1, 1, 1, 1], deformable_groups=2)
    plain = tf.nn.conv2d(x, kernel, [1, 1, 1, 1], "SAME")
    offsets[..., :18] = 1.0  # all rows one further down
    moved = npu_cube_ops.deformable_conv2d(x, tf.constant(kernel), offsets, [1, 1, 1, 1], [1, 1, 1, 1], deformable_groups=2)
    got, expected, down = value_of([deformed, plain, moved])
    np.testing.assert_allclose(got, expected, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(down[:, :-2], expected[:, 1:-1], rtol=1e-4, atol=1e-4)
    with pytest.raises(RuntimeError, match="only supports modulated is True"):
        npu_cube_ops.deformable_conv2d(x, kernel, offsets, modulated=False)


def test_random_choice_and_image_warp():
    chosen, mask = npu_cpu_ops.randomchoicewithmask(tf.constant([[True, False], [False, True]]), 3)
    image = tf.reshape(tf.range(9.0), [1, 3, 3, 1])
    warped = npu_cpu_ops.dense_image_warp(image, tf.fill([1, 3, 3, 2], 0.5))
    chosen, mask, warped = value_of([chosen, mask, warped])
    assert sorted(map(tuple, chosen[:2])) == [(0, 0), (1, 1)] and mask.tolist() == [True, True, False]
    assert warped[0, 1, 1, 0] == pytest.approx(2.0)  # the mean of 0, 1, 3, 4


def test_lamb_by_hand():
    update, v, m = npu_vector_ops.lamb_apply_optimizer_assign([1.0], [0.0], [0.0], [2.0], 0.9, 0.1, 0.99, 0.01, 0.0, 1.0, 1.0, 0.5)
    weight = npu_vector_ops.lamb_apply_weight_assign(tf.constant(2.0), tf.constant(4.0), 0.1, [4.0], [2.0])
    update, weight = value_of([update, weight])
    assert update[0] == pytest.approx(2.0, rel=1e-4) and weight[0] == pytest.approx(1.8)


# Recurrent layers


def test_dynamic_rnn_is_a_basic_lstm_cell_over_time():
    x = np.random.RandomState(1).randn(5, 3, 4).astype(np.float32)
    results = DynamicRNN(6, tf.float32, forget_bias=1.0)(tf.constant(x))
    weights = {v.op.name.split("/", 1)[1]: v for v in tf.trainable_variables()}
    cell = tf.nn.rnn_cell.BasicLSTMCell(6)
    outputs, state = tf.nn.dynamic_rnn(cell, tf.constant(x), dtype=tf.float32, time_major=True)
    copy = tf.group(cell.weights[0].assign(weights["dynamicrnn/w"]), cell.weights[1].assign(weights["dynamicrnn/b"]))
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        sess.run(copy)
        ours, theirs, last = sess.run([results, outputs, state])
    np.testing.assert_allclose(ours[0], theirs, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(ours[2][-1], last.c, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(ours[7], np.tanh(ours[2]), rtol=1e-5, atol=1e-6)
    assert len(ours) == 8


def test_dynamic_rnn_of_two_directions_and_lengths():
    x = np.random.RandomState(1).randn(5, 2, 4).astype(np.float32)
    y, h, *_ = DynamicRNN(3, tf.float32, direction="BIDIRECTIONAL")(tf.constant(x), seq_length=tf.constant([5, 2]))
    assert {v.shape.as_list()[0] for v in tf.trainable_variables()} == {2}
    slopes = tf.gradients(tf.reduce_sum(y), tf.trainable_variables())
    y, h, slopes = value_of([y, h, slopes])
    assert y.shape == (2, 5, 2, 3)
    np.testing.assert_array_equal(y[:, 2:, 1], 0)  # past the length
    np.testing.assert_array_equal(h[0, 4, 1], h[0, 1, 1])  # the state stays
    assert all(np.isfinite(slope).all() and np.abs(slope).max() > 0 for slope in slopes)
    with pytest.raises(ValueError, match="Invalid direction"):
        DynamicRNN(3, tf.float32, direction="BOTH")


def test_gru_by_numpy():
    x = np.random.RandomState(2).randn(3, 2, 4).astype(np.float32)
    outputs = DynamicGRUV2(5, tf.float32)(tf.constant(x))
    attention = DynamicAUGRU(5, tf.float32)(tf.constant(x), tf.zeros([3, 2]))
    assert (len(outputs), len(attention)) == (6, 7)
    variables = [v for v in tf.trainable_variables() if "dynamicgruv2" in v.name]
    got, values = value_of([outputs, variables])
    wi, wh, bi, bh = values
    sigmoid = lambda value: 1 / (1 + np.exp(-value))
    h = np.zeros([2, 5])
    for time in range(3):
        (xz, xr, xn), (hz, hr, hn) = np.split(x[time] @ wi + bi, 3, 1), np.split(h @ wh + bh, 3, 1)
        z, r = sigmoid(xz + hz), sigmoid(xr + hr)
        h = (1 - z) * np.tanh(xn + r * hn) + z * h
        np.testing.assert_allclose(got[0][time], h, rtol=1e-4, atol=1e-5)

"""The TensorFlow 1 layer: names, tf.contrib against values derived by hand, the look through a script before it runs."""

import json
import time

import numpy as np
import pytest
from tensorflow_adapter import run_python
from tf1_graphs import fresh_graph, tf, value_of  # noqa: F401

import tensorflow.contrib.slim as slim
from tensorflow.contrib import layers, rnn

contrib = tf.contrib


# Names


def test_tensorflow_is_version_one():
    assert tf.__version__ == "1.15.0" and tf.VERSION == "1.15.0"
    assert tf.placeholder and tf.Session and tf.layers.dense and tf.app.flags and tf.get_variable
    assert isinstance(tf.Variable(1.0), tf.Variable) and not tf.executing_eagerly()
    with pytest.raises(AttributeError, match="module 'tensorflow' has no attribute 'nothing'"):
        tf.nothing


@pytest.mark.parametrize(
    "line",
    """from tensorflow.python.framework.ops import Tensor, IndexedSlices
from tensorflow.python.ops.control_flow_ops import cond, while_loop, case, Assert
from tensorflow.python.ops.variables import VariableV1, RefVariable
from tensorflow.python.ops.rnn_cell_impl import _linear, RNNCell
from tensorflow.python.training import moving_averages, training_util
from tensorflow.python.framework.graph_util import convert_variables_to_constants
from tensorflow.python.pywrap_tensorflow import NewCheckpointReader
from tensorflow.python.estimator.run_config import RunConfig
from tensorflow.python.layers.normalization import BatchNormalization
from tensorflow.python.util.nest import is_sequence
from tensorflow.keras.backend import get_session, set_session
from tensorflow.keras.layers import Dense, CuDNNLSTM
import keras; keras.backend.set_session, keras.backend.get_session
from keras import backend as K; K.set_session, K.placeholder
from keras.backend.tensorflow_backend import set_session
from keras.backend import get_session, set_session
from keras.models import Sequential, Model, load_model
from keras.layers.core import Dense, Dropout, Activation, Flatten, Reshape
from keras.layers.convolutional import Conv2D, MaxPooling2D, ZeroPadding2D, UpSampling2D
from keras.layers.normalization import BatchNormalization
from keras.layers.recurrent import LSTM, GRU
from keras.layers.wrappers import TimeDistributed, Bidirectional
from keras.layers.merge import concatenate, Add
from keras.layers.embeddings import Embedding
from keras.layers.advanced_activations import LeakyReLU, PReLU
from keras.layers.local import LocallyConnected2D
from keras.layers.pooling import GlobalAveragePooling2D
from keras.engine.topology import Layer, InputSpec, get_source_inputs, Container
from keras.engine import Layer, Input, Model
from keras.utils.np_utils import to_categorical
from keras.utils.generic_utils import get_custom_objects
from keras.preprocessing.text import Tokenizer
from keras.applications.vgg16 import VGG16, preprocess_input
from keras.objectives import categorical_crossentropy
import tensorflow.keras.backend as K
from tensorflow.nn import rnn_cell
from tensorflow.python.keras.layers import Dense, recurrent
from tensorflow.python.keras import backend as K, initializers
from tensorflow.contrib.slim.nets import resnet_v2, resnet_utils
from tensorflow.contrib.slim.python.slim.nets import vgg
from tensorflow.contrib.layers.python.layers import initializers, utils, batch_norm
from tensorflow.contrib.framework.python.ops import arg_scope, add_arg_scope
from tensorflow.contrib.rnn.python.ops.core_rnn_cell import _linear
from tensorflow.contrib.training.python.training.hparam import HParams
from tensorflow.contrib.opt.python.training.lazy_adam_optimizer import LazyAdamOptimizer
from tensorflow.contrib.tpu import TPUEstimator, TPUEstimatorSpec, RunConfig, TPUConfig, CrossShardOptimizer
from tensorflow.contrib.tpu.python.tpu import tpu_config
from tensorflow.contrib.cluster_resolver import TPUClusterResolver
from tensorflow.contrib.learn.python.learn.datasets.mnist import read_data_sets
from tensorflow.contrib.learn import learn_runner
from tensorflow.contrib.tensorboard.plugins import projector
from tensorflow.contrib.data import AUTOTUNE, map_and_batch, parallel_interleave, shuffle_and_repeat
from tensorflow.contrib.mixed_precision import FixedLossScaleManager, LossScaleOptimizer
from tensorflow.contrib.quantize import create_training_graph
from tensorflow.contrib.tfprof import model_analyzer
from tensorflow.contrib.compiler import jit, xla
from tensorflow.contrib import autograph, checkpoint, distributions, eager, predictor, summary, util
from tensorflow.contrib.seq2seq.python.ops import attention_wrapper
from tensorflow.examples.tutorials.mnist import input_data""".splitlines(),
)
def test_imports_of_scripts_work(line):
    exec(line, {})


def test_there_is_one_keras():
    from tensorflow.python.keras import backend, layers as private

    assert private.Dense is tf.keras.layers.Dense and issubclass(rnn.LSTMCell, tf.nn.rnn_cell.RNNCell)
    with tf.Session() as sess:
        backend.set_session(sess)
        assert tf.keras.backend.get_session() is sess


def test_keras_by_itself_has_its_sessions_and_is_the_same_keras():
    import keras

    assert keras.layers.Dense is tf.keras.layers.Dense and keras.Model is tf.keras.Model
    with tf.Session() as sess:
        keras.backend.set_session(sess)
        assert tf.keras.backend.get_session() is sess


def test_names_of_the_time_in_numpy_and_python():
    import collections
    import inspect
    import time

    assert np.int is int and np.float is float and np.bool is bool and collections.Mapping and time.clock() > 0
    assert inspect.getargspec(lambda a, b=2: a).args == ["a", "b"]


# tf.contrib.layers, slim, framework


def test_layers_make_contribs_variables_and_values():
    x = tf.constant(np.arange(12, dtype=np.float32).reshape(2, 6) / 10)
    y = layers.fully_connected(x, 3, weights_initializer=tf.ones_initializer(), activation_fn=None, scope="fc")
    n = layers.layer_norm(x, scope="ln")
    c = layers.conv2d(tf.ones([1, 4, 4, 2]), 5, 3, padding="VALID", weights_initializer=tf.ones_initializer(), scope="conv")
    s = layers.softmax(tf.constant([[1.0, 1.0, 2.0]]))
    assert [v.op.name for v in tf.global_variables()] == ["fc/weights", "fc/biases", "ln/beta", "ln/gamma", "conv/weights", "conv/biases"]
    y, n, c, s = value_of([y, n, c, s])
    np.testing.assert_allclose(y, [[1.5] * 3, [5.1] * 3], rtol=1e-6)
    row = np.arange(6) / 10
    np.testing.assert_allclose(n[0], (row - row.mean()) / row.std(), rtol=1e-4, atol=1e-5)
    np.testing.assert_array_equal(c, np.full([1, 2, 2, 5], 18))
    np.testing.assert_allclose(s, [[0.2119416, 0.2119416, 0.5761169]], rtol=1e-5)


def test_batch_norm_keeps_moving_averages():
    x = tf.constant([[0.0], [2.0], [4.0]])
    y = layers.batch_norm(x, decay=0.9, scale=True, epsilon=0.0, is_training=True, scope="bn")
    updates = tf.get_collection(tf.GraphKeys.UPDATE_OPS)
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        got, *_ = sess.run([y, *updates])
        mean, variance = (sess.run(v) for v in tf.global_variables() if "moving" in v.name)
    np.testing.assert_allclose(got[:, 0], np.array([-2, 0, 2]) / np.sqrt(8 / 3), rtol=1e-4, atol=1e-6)
    assert mean[0] == pytest.approx(0.2) and variance[0] == pytest.approx(0.9 + 0.1 * 8 / 3, rel=0.2)


def test_initializers_have_contribs_spread():
    shape = [3, 3, 40, 60]
    fan_in, fan_out = 9 * 40, 9 * 60
    xavier = layers.xavier_initializer()(shape)
    scaled = layers.variance_scaling_initializer(factor=2.0, mode="FAN_IN", uniform=False)(shape)
    xavier, scaled = value_of([xavier, scaled])
    bound = np.sqrt(6 / (fan_in + fan_out))
    assert np.abs(xavier).max() <= bound and xavier.std() == pytest.approx(bound / np.sqrt(3), rel=0.02)
    # A normal of variance 1.3 * factor / n, cut at two deviations, has the deviation 0.8796 times that.
    assert scaled.std() == pytest.approx(0.8796 * np.sqrt(1.3 * 2 / fan_in), rel=0.02)


def test_regularizers_and_optimize_loss():
    w = tf.Variable([3.0, 4.0])
    penalty = layers.l2_regularizer(0.1)(w), layers.l1_regularizer(0.1)(w)
    step = tf.train.get_or_create_global_step()
    train = layers.optimize_loss(tf.reduce_sum(w * w), step, 0.5, "SGD", clip_gradients=1.0)
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        np.testing.assert_allclose(sess.run(penalty), [0.1 * 25 / 2, 0.7], rtol=1e-6)
        assert sess.run(train) == 25
        np.testing.assert_allclose(sess.run(w), [3 - 0.3, 4 - 0.4], rtol=1e-6)  # the gradient (6, 8) clipped to length 1
        assert sess.run(step) == 1


def test_arg_scope_and_slim_training():
    with slim.arg_scope([slim.conv2d], num_outputs=4, kernel_size=3, weights_regularizer=slim.l2_regularizer(0.5)):
        net = slim.repeat(tf.ones([2, 8, 8, 3]), 2, slim.conv2d, scope="block")
    net = slim.flatten(slim.max_pool2d(net, 2))
    logits = slim.fully_connected(net, 2, activation_fn=None)
    slim.losses.sparse_softmax_cross_entropy(logits, tf.constant([0, 1], tf.int64))
    assert net.shape.as_list() == [2, 64] and len(slim.losses.get_regularization_losses()) == 2
    train = slim.learning.create_train_op(slim.losses.get_total_loss(), tf.train.GradientDescentOptimizer(0.1))
    assert value_of(train) > 0
    assert {v.op.name for v in slim.get_model_variables()} >= {"block/block_1/weights", "fully_connected/biases"}


def test_framework_restores_from_a_checkpoint(tmp_path):
    a = contrib.framework.model_variable("net/a", initializer=tf.constant([5.0]))
    tf.get_variable("b", initializer=tf.constant([7.0]))
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        path = tf.train.Saver().save(sess, str(tmp_path / "model"))
        wanted = contrib.framework.get_variables_to_restore(exclude=["b"])
        assert [v.op.name for v in wanted] == ["net/a"]
        sess.run(a.assign([0.0]))
        contrib.framework.assign_from_checkpoint_fn(path, wanted)(sess)
        assert sess.run(a)[0] == 5
    assert contrib.framework.list_variables(path) == [("b", [1]), ("net/a", [1])]
    assert contrib.framework.load_variable(path, "b")[0] == 7


def test_embed_sequence():
    ids = tf.constant([[1, 0, 1]])
    table = np.array([[1.0, 2.0], [3.0, 4.0]], np.float32)
    plain = layers.embed_sequence(ids, 2, 2, initializer=tf.constant_initializer(table), scope="e")
    once = layers.embed_sequence(ids, 2, 2, unique=True, scope="e", reuse=True)
    plain, once = value_of([plain, once])
    np.testing.assert_array_equal(plain[0], table[[1, 0, 1]])
    np.testing.assert_array_equal(once, plain)


# tf.contrib.rnn


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def test_lstm_block_cell_by_hand():
    x, h, c = np.array([[0.5, -1.0]]), np.array([[0.1, 0.2]]), np.array([[0.3, -0.4]])
    cell = rnn.LSTMBlockCell(2)
    output, state = cell(tf.constant(x, tf.float32), rnn.LSTMStateTuple(tf.constant(c, tf.float32), tf.constant(h, tf.float32)))
    kernel = [v for v in tf.global_variables() if "kernel" in v.name][0]
    output, state, w = value_of([output, state, kernel])
    i, j, f, o = np.split(np.concatenate([x, h], 1) @ w, 4, 1)
    new = sigmoid(f + 1) * c + sigmoid(i) * np.tanh(j)
    np.testing.assert_allclose(output, sigmoid(o) * np.tanh(new), rtol=1e-5)
    np.testing.assert_allclose(state.c, new, rtol=1e-5)


def test_layer_norm_lstm_by_hand():
    x, h, c = np.array([[0.5, -1.0]]), np.array([[0.1, 0.2]]), np.array([[0.3, -0.4]])
    cell = rnn.LayerNormBasicLSTMCell(2)
    output, _ = cell(tf.constant(x, tf.float32), rnn.LSTMStateTuple(tf.constant(c, tf.float32), tf.constant(h, tf.float32)))
    kernel = [v for v in tf.global_variables() if "kernel" in v.name][0]
    output, w = value_of([output, kernel])
    norm = lambda v: (v - v.mean()) / np.sqrt(v.var() + 1e-12)
    i, j, f, o = map(norm, np.split(np.concatenate([x, h], 1) @ w, 4, 1))
    new = norm(c * sigmoid(f + 1) + sigmoid(i) * np.tanh(j))
    np.testing.assert_allclose(output, np.tanh(new) * sigmoid(o), rtol=1e-4)


def test_stacked_directions_and_wrappers():
    x = tf.ones([2, 5, 3])
    cells = lambda: [rnn.GRUCell(4), rnn.GRUCell(4)]
    outputs, forward, backward = rnn.stack_bidirectional_dynamic_rnn(cells(), cells(), x, dtype=tf.float32)
    projected, _ = tf.nn.dynamic_rnn(rnn.OutputProjectionWrapper(rnn.LSTMCell(4), 7), x, dtype=tf.float32)
    grid, _ = tf.nn.dynamic_rnn(rnn.Conv2DLSTMCell(input_shape=[4, 4, 1], output_channels=3, kernel_shape=[3, 3]),
                                tf.ones([2, 3, 4, 4, 1]), dtype=tf.float32)  # fmt: skip
    fused, state = rnn.LSTMBlockFusedCell(4)(tf.ones([5, 2, 3]), dtype=tf.float32)
    shapes = [v.shape for v in value_of([outputs, projected, grid, fused])]
    assert shapes == [(2, 5, 8), (2, 5, 7), (2, 3, 4, 4, 3), (5, 2, 4)] and len(forward) == len(backward) == 2


def test_a_coupled_gate_takes_in_what_it_forgets():
    x, old = np.float32([[0.2, -0.4]]), np.float32([[0.3]])
    cell = rnn.CoupledInputForgetGateLSTMCell(1, use_peepholes=True, initializer=tf.ones_initializer(), num_proj=2)
    out, (c, m) = cell(tf.constant(x), rnn.LSTMStateTuple(tf.constant(old), tf.constant([[0.1, 0.2]])))
    total, sigmoid = 0.2 - 0.4 + 0.1 + 0.2, lambda z: 1 / (1 + np.exp(-z))
    forget = sigmoid(total + 1.0 + 0.3)
    expected = forget * 0.3 + (1 - forget) * np.tanh(total)
    expected_out = sigmoid(total + expected) * np.tanh(expected)
    found = value_of([out, c, m])
    np.testing.assert_allclose(found[1], [[expected]], rtol=1e-6)
    np.testing.assert_allclose(found[0], [[expected_out] * 2], rtol=1e-6)
    assert (found[0] == found[2]).all() and cell.output_size == 2 and cell.state_size == rnn.LSTMStateTuple(1, 2)
    assert sorted(v.op.name.split("/")[-1] for v in tf.global_variables()) == ["B", "W_0", "W_F_diag", "W_O_diag", "W_P_0"]


def test_parts_that_later_versions_have_elsewhere():
    assert contrib.signal.inverse_stft is tf.signal.inverse_stft and contrib.signal.frame
    area = contrib.staging.StagingArea([tf.float32], [[2]])
    put, got = area.put([tf.constant([1.0, 2.0])]), area.get()
    drawn = contrib.stateless.stateless_random_uniform([3], [1, 2]), tf.random.stateless_uniform([3], [1, 2])
    with tf.Session() as sess:
        sess.run(put)
        assert np.ravel(sess.run(got)).tolist() == [1.0, 2.0]
        first, second = sess.run(drawn)
    assert (first == second).all()


# Optimizers


def trained(optimizer, steps=1, start=(2.0, -4.0), gradient=(0.5, 1.0)):
    w = tf.get_variable("w", initializer=tf.constant(start, tf.float32))
    train = optimizer.minimize(tf.reduce_sum(w * tf.constant(gradient)))
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        for _ in range(steps):
            sess.run(train)
        return sess.run(w)


def test_decoupled_weight_decay():
    expected = np.array([2.0, -4.0]) * (1 - 0.01) - 0.1 * np.sign([0.5, 1.0])  # Adam's first step is its rate
    np.testing.assert_allclose(trained(contrib.opt.AdamWOptimizer(0.01, 0.1)), expected, rtol=1e-5)
    tf.reset_default_graph()
    made = contrib.opt.extend_with_decoupled_weight_decay(tf.train.GradientDescentOptimizer)(0.01, learning_rate=0.1)
    np.testing.assert_allclose(trained(made), np.array([2.0, -4.0]) * 0.99 - 0.1 * np.array([0.5, 1.0]), rtol=1e-6)
    tf.reset_default_graph()
    np.testing.assert_allclose(trained(contrib.opt.MomentumWOptimizer(0.01, 0.1, 0.9)),
                               np.array([2.0, -4.0]) * 0.99 - 0.1 * np.array([0.5, 1.0]), rtol=1e-6)  # fmt: skip


@pytest.mark.parametrize("resource", [False, True])
def test_weight_decay_waits_for_the_gradients(resource):
    """A gradient that comes late is that of the weight before its decay: 0.5 * w^2 at 2 has the slope 2."""
    w = tf.get_variable("w", initializer=2.0, use_resource=resource)
    late = tf.py_func(lambda: (time.sleep(0.05), np.float32(1.0))[1], [], tf.float32)
    train = contrib.opt.MomentumWOptimizer(0.5, 0.1, 0.9).apply_gradients([(w * tf.reshape(late, []), w)])
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        sess.run(train)
        np.testing.assert_allclose(sess.run(w), 2.0 - 0.5 * 2.0 - 0.1 * 2.0, rtol=1e-6)


@pytest.mark.parametrize("resource", [False, True])
def test_scipy_moves_variables_to_the_least_loss(resource):
    """(a - 3)^2 + |b - fed|^2, with b at most 1 and, in the second case, a + b0 held at 2: by hand a = 2.5, b0 = -0.5 for fed = 0."""
    a, b = (tf.get_variable(name, initializer=value, use_resource=resource) for name, value in (("a", 0.0), ("b", [5.0, 5.0])))
    fed, seen = tf.placeholder(tf.float32, [2]), []
    loss = tf.square(a - 3.0) + tf.reduce_sum(tf.square(b - fed))
    free = contrib.opt.ScipyOptimizerInterface(loss, var_to_bounds={b: (-np.inf, [0.5, 1.0])}, options={"maxiter": 50})
    held = contrib.opt.ScipyOptimizerInterface(loss, equalities=[a + b[0] - 2.0], method="SLSQP")
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        free.minimize(sess, {fed: [-1.0, 2.0]}, fetches=[loss], loss_callback=seen.append)
        np.testing.assert_allclose([sess.run(a), *sess.run(b)], [3.0, -1.0, 1.0], atol=1e-4)
        held.minimize(sess, {fed: [0.0, 0.0]})
        np.testing.assert_allclose([sess.run(a), *sess.run(b)], [2.5, -0.5, 0.0], atol=1e-4)
    assert seen[-1] < 1.001


def test_lazy_adam_touches_only_the_rows_of_the_gradient():
    table = tf.get_variable("t", initializer=tf.ones([3, 2]))
    which = tf.placeholder(tf.int32, [1])
    train = contrib.opt.LazyAdamOptimizer(0.1).minimize(tf.reduce_sum(tf.gather(table, which)))
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        sess.run(train, {which: [0]})
        sess.run(train, {which: [2]})
        np.testing.assert_array_equal(sess.run(table)[1], [1, 1])
        np.testing.assert_allclose(sess.run(table)[0], [0.9, 0.9], rtol=1e-5)  # one step, and none by its moments after


@pytest.mark.parametrize(
    "name, arguments, first",
    [
        # For the gradient g = (0.5, 1): Nadam's first step is rate * (b1 (1 - b1) + 1 - b1) / (1 - b1) = 1.9 rate
        ("NadamOptimizer", (0.1,), [2 - 0.19, -4 - 0.19]),
        ("AdaMaxOptimizer", (0.1,), [2 - 0.1, -4 - 0.1]),
        ("AddSignOptimizer", (0.1,), [2 - 0.1 * 2 * 0.5, -4 - 0.1 * 2 * 1.0]),
        ("PowerSignOptimizer", (0.1, 2.0), [2 - 0.1 * 2 * 0.5, -4 - 0.1 * 2 * 1.0]),
    ],
)
def test_relatives_of_adam(name, arguments, first):
    np.testing.assert_allclose(trained(getattr(contrib.opt, name)(*arguments)), first, rtol=1e-5)


def test_lars_optimizer_by_hand():
    w, g = np.array([2.0, -4.0]), np.array([0.5, 1.0])
    norm = np.linalg.norm
    rate = 0.1 * 0.001 * norm(w) / (norm(g) + 1e-4 * norm(w))
    np.testing.assert_allclose(trained(contrib.opt.LARSOptimizer(0.1)), w - rate * (g + 1e-4 * w), rtol=1e-5)


def test_moving_average_optimizer_saves_the_averages(tmp_path):
    w = tf.get_variable("w", initializer=tf.constant(1.0))
    optimizer = contrib.opt.MovingAverageOptimizer(tf.train.GradientDescentOptimizer(1.0), average_decay=0.5)
    train = optimizer.minimize(w)
    saver = optimizer.swapping_saver()
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        sess.run(train)
        path = saver.save(sess, str(tmp_path / "m"))
    assert tf.train.load_variable(path, "w") == 0.5  # half of 1 and half of 0


# Data, training, metrics, learn


def test_data_functions():
    data = tf.data.Dataset.range(10)
    batches = data.apply(contrib.data.map_and_batch(lambda x: x * x, 4, drop_remainder=True))
    cut = data.apply(contrib.data.batch_and_drop_remainder(3))
    windows = data.apply(contrib.data.sliding_window_batch(3, window_shift=4))
    again = data.apply(contrib.data.shuffle_and_repeat(10, 2, seed=1))
    mixed = data.apply(contrib.data.parallel_interleave(lambda x: tf.data.Dataset.from_tensors(x).repeat(2), cycle_length=2))
    unbatched = cut.apply(contrib.data.unbatch())
    assert _all(batches, 2) == [[0, 1, 4, 9], [16, 25, 36, 49]]
    assert len(_all(cut, None)) == 3 and _all(windows, None) == [[0, 1, 2], [4, 5, 6]]
    assert sorted(_all(again, None)) == sorted([*range(10)] * 2)
    assert _all(mixed, 4) == [0, 1, 0, 1] and _all(unbatched, None) == [*range(9)]


def _all(dataset, count):
    following = tf.data.make_one_shot_iterator(dataset).get_next()
    found = []
    with tf.Session() as sess:
        while count is None or len(found) < count:
            try:
                found.append(np.asarray(sess.run(following)).tolist())
            except tf.errors.OutOfRangeError:
                break
    return found


def test_hparams():
    params = contrib.training.HParams(rate=0.1, layers=[1, 2], name="a", flag=False, count=3)
    params.parse("rate=0.5,layers=[4,5,6],name=deep,flag=true")
    assert params.values() == {"rate": 0.5, "layers": [4, 5, 6], "name": "deep", "flag": True, "count": 3}
    params.parse("layers[1]=9").set_hparam("count", 4)
    params.override_from_dict({"rate": 1})
    params.add_hparam("more", 2.5)
    assert params.layers == [4, 9, 6] and params.count == 4 and params.get("none", 7) == 7 and "more" in params
    assert json.loads(params.to_json())["rate"] == 1.0
    for text, error in [("wrong=1", "Unknown hyperparameter type for wrong"), ("rate=x", "Could not parse hparam 'rate'"),
                        ("rate", "Malformed hyperparameter value"), ("flag=maybe", "Could not parse hparam 'flag'")]:  # fmt: skip
        with pytest.raises(ValueError, match=error):
            params.parse(text)


def test_metrics():
    accuracy = contrib.metrics.accuracy(tf.constant([1, 0, 1, 1]), tf.constant([1, 1, 1, 0]))
    mean, update = contrib.metrics.streaming_mean(tf.constant([1.0, 2.0, 6.0]))
    assert value_of(accuracy) == 0.5
    assert value_of([update])[0] == 3.0


def test_vocabulary_processor(tmp_path):
    processor = contrib.learn.preprocessing.VocabularyProcessor(4)
    rows = [*processor.fit_transform(["this is a cat", "this must be boy's"])]
    assert np.array(rows).tolist() == [[1, 2, 3, 4], [1, 5, 6, 7]] and len(processor.vocabulary_) == 8
    processor.save(str(tmp_path / "v"))
    again = contrib.learn.preprocessing.VocabularyProcessor.restore(str(tmp_path / "v"))
    assert np.array([*again.transform(["a dog is this is"])]).tolist() == [[3, 0, 2, 1]]
    assert [*again.reverse([[1, 2, 0]])] == ["this is <UNK>"]


def idx(values, shape):
    head = b"\0\0\x08" + bytes([len(shape)]) + b"".join(n.to_bytes(4, "big") for n in shape)
    return head + np.asarray(values, np.uint8).tobytes()


def test_mnist_comes_from_local_files(tmp_path):
    from tensorflow.examples.tutorials.mnist import input_data

    with pytest.raises(FileNotFoundError, match="train-images-idx3-ubyte is not there, and nothing is downloaded"):
        input_data.read_data_sets(str(tmp_path))
    for name, count in (("train", 6), ("t10k", 2)):
        (tmp_path / f"{name}-images-idx3-ubyte").write_bytes(idx(np.arange(count * 4) * 5, (count, 2, 2)))
        (tmp_path / f"{name}-labels-idx1-ubyte").write_bytes(idx(range(count), (count,)))
    mnist = input_data.read_data_sets(str(tmp_path), one_hot=True, validation_size=2)
    assert (mnist.train.num_examples, mnist.validation.num_examples, mnist.test.num_examples) == (4, 2, 2)
    images, labels = mnist.test.next_batch(2, shuffle=False)
    np.testing.assert_allclose(images[1], np.array([20, 25, 30, 35]) / 255, rtol=1e-6)
    assert labels[1].argmax() == 1
    rows = np.concatenate([mnist.train.next_batch(3)[1].argmax(1) for _ in range(4)])
    assert mnist.train.epochs_completed == 2 and sorted(rows[:4]) == [2, 3, 4, 5]
    (tmp_path / "t10k-labels-idx1-ubyte").write_bytes(b"\0\0\x08\1\0\0\0\5a")
    with pytest.raises(ValueError, match="has 1 values, its head says 5"):
        input_data.read_data_sets(str(tmp_path))


# The runner


def run_script(tmp_path, text, *arguments, **more):
    (tmp_path / "train.py").write_text(text)
    return run_python(["-m", "cairn_tf1", tmp_path / "train.py", *arguments], CAIRN_TF1_REPORT=str(tmp_path / "report.json"), **more)


def test_everything_missing_is_told_at_once_before_the_script_runs(tmp_path):
    (tmp_path / "helper.py").write_text("import tensorflow as tf\n\n\ndef f(x):\n    return tf.nn.no_such_layer(x)\n")
    done = run_script(
        tmp_path,
        "import tensorflow as tf\nimport helper\nfrom tensorflow.contrib.gan import gan_model\nprint('started')\n"
        "try:\n    from tensorflow.contrib import nothing\nexcept ImportError:\n    pass\n"
        "if hasattr(tf, 'no_such'):\n    pass\ntf.contrib.layers.no_such_norm\n",
    )
    assert done.returncode == 3 and "started" not in done.stdout
    lines = [line.strip().split("/")[-1] for line in done.stderr.splitlines()]
    start = lines.index("error: tf1: 3 names of TensorFlow 1 not supplied:")
    assert lines[start + 1 : start + 4] == [
        "helper.py:5: tensorflow.nn.no_such_layer",
        "train.py:3: tensorflow.contrib.gan",
        "train.py:11: tensorflow.contrib.layers.no_such_norm",
    ]


def test_names_that_the_script_asks_for_first_do_not_stop_it(tmp_path):
    done = run_script(
        tmp_path,
        "import tensorflow as tf\nnew = tf.__version__.split('.')[0] == '2'\n"
        "try:\n    f = tf.nn.conv2d_transpose\nexcept AttributeError:\n    f = tf.nn.deconv2d\n"
        "g = tf.no_such if hasattr(tf, 'no_such') else tf.add\n"
        "if new:\n    print('started')\nelse:\n    tf.no_more()\n"
        "try:\n    tf.not_there\nexcept AttributeError:\n    tf.nor_there\n",
    )
    lines = [line.strip().split("/")[-1] for line in done.stderr.splitlines()]
    assert done.returncode == 3 and "started" not in done.stdout
    assert lines[lines.index("error: tf1: 1 name of TensorFlow 1 not supplied:") + 1] == "train.py:15: tensorflow.nor_there"


def test_names_of_contrib_distribute_that_official_models_use_are_there(tmp_path):
    done = run_script(
        tmp_path,
        "import tensorflow as tf\nd = tf.contrib.distribute\n"
        "ops = d.AllReduceCrossTowerOps('nccl', num_packs=2)\n"
        "print(d.has_distribution_strategy(), d.MirroredStrategy(num_gpus=2, cross_tower_ops=ops).num_replicas_in_sync)\n",
    )
    assert done.stdout.splitlines()[-1] == "False 1", done.stderr[-2000:]


def test_a_script_runs_with_its_arguments_and_the_aliases_are_reported(tmp_path):
    done = run_script(
        tmp_path,
        "import sys\nimport tensorflow as tf\nimport tensorflow.contrib.slim as slim\n"
        "tf.app.flags.DEFINE_integer('n', 1, 'n')\n\n\ndef main(_):\n"
        "    with tf.Session() as sess:\n        print(sess.run(tf.constant(2) * tf.app.flags.FLAGS.n), sys.argv[1:])\n\n\n"
        "if __name__ == '__main__':\n    tf.app.run()\n",
        "--n=21",
    )
    assert done.stdout.splitlines()[-1] == "42 ['--n=21']", done.stderr[-2000:]
    report = json.loads((tmp_path / "report.json").read_text())
    answers = {item["name"]: item["answer"] for item in report["aliases"]}
    assert report["missing"] == [] and answers["tensorflow.contrib.slim"] == "cairn_tf1.contrib.slim"
    assert answers["tensorflow.Session"] == "tensorflow.compat.v1.Session"
    assert "tensorflow.python.ops.control_flow_ops.cond" in report["restored"]


def test_a_missing_script_and_one_that_is_not_python_3_are_told(tmp_path):
    done = run_python(["-m", "cairn_tf1", tmp_path / "none.py"])
    assert done.returncode == 2 and "no such file" in done.stderr
    done = run_script(tmp_path, "print 'two'\n")
    assert done.returncode == 3 and "train.py:1: not Python 3" in done.stderr

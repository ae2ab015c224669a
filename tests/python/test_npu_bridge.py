"""The platform's TensorFlow 1 interface, on stock TensorFlow: names, options, optimizers, operators, ranks."""

import inspect
import logging
import os

import numpy as np
import pytest
from tensorflow_adapter import ROOT, run_python, use_packages

os.environ["CAIRN_ENGINE"] = "tensorflow"
use_packages()

import tensorflow.compat.v1 as tf  # noqa: E402

tf.disable_v2_behavior()

from npu_bridge import engine, npu_init, options, sessions  # noqa: E402
from npu_bridge.estimator import npu_aicore_ops, npu_ops  # noqa: E402
from npu_bridge.estimator.npu import npu_scope, util  # noqa: E402
from npu_bridge.estimator.npu.npu_dynamic_rnn import DynamicAUGRU, DynamicGRUV2, DynamicRNN  # noqa: E402
from npu_bridge.hccl import hccl_ops  # noqa: E402
from npu_bridge.npu_cpu import npu_cpu_ops  # noqa: E402
from npu_bridge.tbe import npu_cube_ops, npu_vector_ops  # noqa: E402

from hccl.manage import api as ranks  # noqa: E402
from hccl.split import api as split  # noqa: E402

STAR = """NPURunConfig ProfilingConfig MemoryConfig DumpConfig DynamicInputConfig decorator_tf_session NPUEstimator NPUEstimatorSpec
NPUCheckpointSaverHook NPUOutputTensorHook NPUBroadcastGlobalVariablesHook SetIterationsVarHook TellMeStepOrLossHook
NPUBroadcastGlobalVariablesCallback NPUDistributedOptimizer KerasDistributeOptimizer npu_distributed_optimizer_wrapper NPUOptimizer
npu_allreduce NPULossScaleOptimizer FixedLossScaleManager ExponentialUpdateLossScaleManager npu_ops npu_rnn npu_scope keras_to_npu
npu_strategy util npu_plugin hccl_ops npu_embedding npu_unary_ops tf os config_pb2 rewriter_config_pb2 RewriterConfig session
session_run_hook backend create_group destroy_group get_rank_size get_rank_id get_local_rank_size get_local_rank_id
get_world_rank_from_group_rank get_group_rank_from_world_rank set_split_strategy_by_idx set_split_strategy_by_size
experimental_options npu_config_proto npu_graph_options npu_optimizer_options npu_run_config_init npu_hooks_append
npu_callbacks_append set_keras_session_npu_config npu_clear_session close_session init_resource shutdown_resource get_npu_rank_id
get_npu_local_rank_id get_npu_rank_size get_npu_local_rank_size npu_tf_optimizer npu_keras_optimizer NpuEmptyHook""".split()

PATHS = """npu_bridge.estimator.npu_ops:dropout npu_bridge.estimator.npu.npu_config:NPURunConfig,DumpConfig,NpuExecutePlacement
npu_bridge.estimator.npu.npu_optimizer:NPUDistributedOptimizer,allreduce,reduce npu_bridge.hccl.hccl_ops:allreduce,broadcast
npu_bridge.estimator.npu.npu_estimator:NPUEstimator,NPUEstimatorSpec npu_bridge.hccl:hccl_ops npu_bridge.estimator:npu_ops
npu_bridge.estimator.npu.npu_loss_scale_optimizer:NPULossScaleOptimizer npu_bridge.estimator.npu:npu_scope,util,npu_convert_dropout
npu_bridge.estimator.npu.npu_loss_scale_manager:FixedLossScaleManager,ExponentialUpdateLossScaleManager
npu_bridge.estimator.npu_unary_ops:npu_unary_ops npu_bridge.estimator.npu.npu_dynamic_rnn:DynamicRNN
npu_bridge.estimator.npu.npu_strategy:NPUStrategy npu_bridge.estimator.npu.npu_saver:NPUSaver
npu_bridge.tbe.npu_cube_ops:deformable_conv2d npu_bridge.estimator.npu.npu_plugin:npu_resource_init
hccl.manage.api:get_rank_id hccl.split.api:set_split_strategy_by_idx npu_device.compat.v1.npu_init:npu_config_proto""".split()


@pytest.fixture(autouse=True)
def fresh_graph():
    tf.reset_default_graph()
    options._told.clear()


def value_of(tensors, feed=None):
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        return sess.run(tensors, feed)


def config_with(**keys):
    config = tf.ConfigProto()
    entry = config.graph_options.rewrite_options.custom_optimizers.add(name="NpuOptimizer")
    for key, value in keys.items():
        kind = "b" if isinstance(value, bool) else "i" if isinstance(value, int) else "s"
        setattr(entry.parameter_map[key], kind, value.encode() if kind == "s" else value)
    return config


def test_the_star_import_brings_every_name():
    assert [name for name in STAR if not hasattr(npu_init, name)] == []


@pytest.mark.parametrize("path", PATHS)
def test_every_import_path_of_scripts_works(path):
    module, _, names = path.partition(":")
    for name in names.split(","):
        scope = {}
        exec(f"from {module} import {name}", scope)
        assert scope[name] is not None


def test_a_session_gets_the_entry_and_the_callers_config_stays_as_it_was():
    config = tf.ConfigProto(log_device_placement=True)
    with tf.Session(config=config) as sess:
        used = sess._config
    assert engine.entry_of(config) is None
    assert engine.entry_of(used) is not None and used.log_device_placement and used.allow_soft_placement
    assert used.graph_options.rewrite_options.remapping == npu_init.RewriterConfig.OFF


def test_npu_config_proto_edits_the_given_object_and_replaces_anything_else():
    config = tf.ConfigProto()
    assert npu_init.npu_config_proto(config) is config and engine.entry_of(config)
    assert engine.entry_of(npu_init.npu_config_proto("nothing"))
    assert npu_init.npu_graph_options().optimizer_options.global_jit_level == -1


def test_without_the_library_a_session_says_what_is_missing(monkeypatch):
    monkeypatch.setenv("CAIRN_ENGINE", "cairn")
    monkeypatch.setitem(engine._state, "library", None)
    monkeypatch.setitem(engine._state, "reason", "_cairn_tf.so is not installed beside npu_bridge")
    with pytest.raises(ImportError, match="_cairn_tf.so is not installed.*set CAIRN_ENGINE=tensorflow"):
        tf.Session()
    with tf.Session(config=config_with(use_off_line=False)) as sess:
        assert sess.run(tf.constant(3) + 4) == 7
    monkeypatch.setenv("CAIRN_ENGINE", "gpu")
    with pytest.raises(ValueError, match="CAIRN_ENGINE is gpu, should be cairn or tensorflow"):
        tf.Session()


def test_unknown_old_and_mistyped_keys_are_told_once_with_the_key_that_is_meant(caplog):
    config = config_with(precision_mod="x", precision_mode="force_fp32", mix_compile_mode=True, enable_auto_mix_precision=True, jit_compile=True, hcom_parallel=False)
    with caplog.at_level(logging.WARNING, "npu_bridge"):
        tf.Session(config=config).close()
        tf.Session(config=config).close()
    assert sorted(caplog.messages) == [
        "NpuOptimizer: enable_auto_mix_precision is a key of an earlier version and has no effect; use precision_mode",
        "NpuOptimizer: hcom_parallel has no effect: there is one rank here",
        "NpuOptimizer: jit_compile is set as bool, should be string; taken as true",
        "NpuOptimizer: precision_mod is not a known key and has no effect; is precision_mode meant?",
    ]


@pytest.mark.parametrize(
    "keys, text",
    [
        ({"precision_mode": "fp17"}, "precision_mode is fp17, should be one of: force_fp32, allow_fp32_to_fp16"),
        ({"precision_mode": "force_fp32", "precision_mode_v2": "origin"}, "can not be assigned at the same time"),
        ({"modify_mixlist": "a.json"}, "modify_mixlist needs a mixed precision_mode"),
        ({"graph_run_mode": 2}, "graph_run_mode is 2, should be one of: 0, 1"),
        ({"iterations_per_loop": 0}, "iterator_per_loop should be int and must >= 1"),
        ({"optypelist_for_implmode": "Relu"}, "op_select_implmode must be set"),
        ({"input_shape": "x:1"}, "input_shape, dynamic_dims and dynamic_node_type should use together"),
        ({"enable_dump": True}, "dump_path must be set"),
        ({"iterations_per_loop": 2, "dynamic_graph_execute_mode": "lazy_recompile"}, "only support 1 in lazy_recompile"),
        ({"mix_compile_mode": False, "in_out_pair": "[]"}, "mix_compile_mode must be True when use in_out_pair"),
        ({"session_device_id": -1}, "session_device_id is -1"),
        ({"use_off_line": "perhaps"}, "use_off_line is set as string, should be bool"),
    ],
)
def test_options_that_cannot_be_are_errors(keys, text):
    with pytest.raises(ValueError, match=text):
        tf.Session(config=config_with(**keys))


@pytest.mark.parametrize(
    "text, problem",
    [
        (None, "cannot be read"),
        ("{", "cannot be read"),
        ('{"black": {"to-add": ["ReduceSumD"]}}', "'black' should be one of: black-list, white-list, gray-list"),
        ('{"black-list": {"to-add": "ReduceSumD"}}', "black-list should have to-add and to-remove with lists"),
        ('{"black-list": ["ReduceSumD"]}', "black-list should have to-add and to-remove with lists"),
        ('{"black-list": {"to-add": ["ReduceSumD"]}, "white-list": {"to-remove": []}}', ""),
    ],
)
def test_the_file_of_modify_mixlist_is_read_when_the_session_is_made(text, problem, tmp_path):
    file = tmp_path / "ops_info.json"
    if text is not None:
        file.write_text(text)
    config = config_with(precision_mode="allow_mix_precision", modify_mixlist=str(file))
    if problem:
        with pytest.raises(ValueError, match=problem):
            tf.Session(config=config)
    else:
        tf.Session(config=config).close()


def test_the_page_of_options_is_the_table():
    page = ROOT / "docs" / "reference" / "tensorflow-options.md"
    assert page.read_text() == options.markdown(), "run: .venv/bin/python -m npu_bridge.options > " + str(page)


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


def test_several_ranks_are_refused_where_results_would_differ(monkeypatch):
    monkeypatch.setenv("RANK_SIZE", "2")
    sentence = "RANK_SIZE is 2, but training over several ranks is not supported yet"
    with pytest.raises(RuntimeError, match=sentence):
        npu_init.NPUDistributedOptimizer(tf.train.GradientDescentOptimizer(0.1))
    with pytest.raises(RuntimeError, match=sentence):
        hccl_ops.allreduce(tf.constant(1.0), "sum")
    with pytest.raises(RuntimeError, match=sentence):
        npu_init.npu_hooks_append()


# Operators


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


# Sessions, scopes, ranks


def test_iteration_op_makes_several_steps_in_one_run():
    counter = tf.Variable(0)
    train = tf.assign_add(counter, 1).op
    assert util.set_iteration_per_loop(None, train, 1) is train
    with pytest.raises(ValueError, match="need type is 'Operation'"):
        util.set_iteration_per_loop(None, tf.constant(1.0), 2)
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        loop = util.set_iteration_per_loop(sess, train, 5)
        sess.run(tf.local_variables_initializer())
        assert loop.name == "IterationOp"
        sess.run({"many": [loop], "else": tf.constant(1)})
        sess.run("IterationOp")
        sess.run(train)
        assert sess.run(counter) == 11
    assert sorted(v.op.name for v in tf.local_variables()) == [
        f"npu_runconfig/{name}" for name in ("iterations_per_loop", "loop_cond", "one", "zero")
    ]


def test_scopes_stamp_nodes():
    with npu_scope.without_npu_compile_scope(), npu_scope.npu_stage_scope(3):
        a = tf.constant(1.0) + 2.0
    with npu_scope.npu_variable_scope(npu_init.npu_scope.NpuExecutePlacement.HOST):
        b = tf.Variable(1.0)
    assert a.op.get_attr("_without_npu_compile") is True and a.op.get_attr("_stage_level") == 3
    assert b.op.get_attr("_variable_placement") == b"host"
    with npu_scope.npu_recompute_scope():
        assert tf.constant(1.0).op.name.startswith("NpuRecompute/")


def test_graph_options_are_stamped_on_the_fetch():
    y = tf.constant(1.0, name="y")
    util.set_graph_exec_config([y], dynamic_input=True, dynamic_graph_execute_mode="lazy_recompile")
    util.set_graph_exec_config("y:0", is_train_graph=True)
    assert y.op.get_attr("_is_train_graph") is True
    with pytest.raises(ValueError, match="fetch is invalid"):
        util.set_graph_exec_config(3)
    util.keep_tensors_dtypes(tf.get_default_graph(), ["y:0"])
    assert y.op.get_attr("_keep_dtype") == 1


def test_ranks_need_no_start_and_collectives_of_one_rank_are_exact():
    assert (ranks.get_rank_size(), ranks.get_rank_id(), ranks.get_local_rank_id(), npu_init.get_npu_rank_size()) == (1, 0, 0, 1)
    x = tf.constant([1.0, 2.0])
    gathered = hccl_ops.allgather(x, 1)
    sums = hccl_ops.allreduce(x, "sum")
    broadcast = hccl_ops.broadcast([x, tf.constant(3)], 0)
    sent = hccl_ops.all_to_all_v(x, [1], [1], [1], [0])
    slope = tf.gradients(sums, x)[0]
    got = value_of([gathered, sums, broadcast, sent, slope, npu_init.npu_allreduce(x)])
    for item in (got[0], got[1], got[2][0], got[5]):
        np.testing.assert_array_equal(item, [1, 2])
    np.testing.assert_array_equal(got[3], [2])
    np.testing.assert_array_equal(got[4], [1, 1])
    with pytest.raises(ValueError, match="reduction is mean, should be one of: sum, max, min, prod"):
        hccl_ops.allreduce(x, "mean")
    with pytest.raises(RuntimeError, match="there is one rank here"):
        hccl_ops.send(x, 0, 1)


def test_groups_and_splits(monkeypatch):
    monkeypatch.setenv("RANK_SIZE", "4")
    monkeypatch.setenv("RANK_ID", "3")
    ranks.create_group("half", 2, [1, 3])
    assert ranks.get_rank_size("half") == 2 and ranks.get_rank_id("half") == 1
    assert ranks.get_world_rank_from_group_rank("half", 0) == 1
    ranks.destroy_group("half")
    with pytest.raises(ValueError, match="group half does not exist"):
        ranks.get_rank_size("half")
    split.set_split_strategy_by_idx([20, 100])
    assert split.strategy() == ("index", [20, 100])
    with pytest.raises(ValueError, match="should add up to 100"):
        split.set_split_strategy_by_size([60, 60])


@pytest.mark.parametrize(
    "variables, text",
    [
        ({"CM_CHIEF_IP": "1.2.3.4", "RANK_TABLE_FILE": "x"}, "CM_CHIEF_IP and RANK_TABLE_FILE cannot be configured"),
        ({"RANK_SIZE": "many"}, "RANK_SIZE is invalid, should be int, such as 0, 1, 2."),
        ({"RANK_ID": "5"}, "RANK_ID is 5, should be below RANK_SIZE, which is 1"),
        ({"RANK_ID": "-1"}, "RANK_ID should be >= 0."),
    ],
)
def test_an_environment_that_cannot_be_is_told(monkeypatch, variables, text):
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(ValueError, match=text):
        ranks.get_rank_id()


def test_init_resource_and_the_keras_session():
    sess, shutdown = npu_init.init_resource()
    assert npu_init.get_npu_rank_id() == 0 and npu_init.get_npu_local_rank_size() == 1
    npu_init.shutdown_resource(sess, shutdown)
    npu_init.close_session(sess)
    sess = npu_init.set_keras_session_npu_config(tf.ConfigProto())
    assert tf.keras.backend.get_session() is sess and engine.entry_of(sess._config)
    npu_init.npu_clear_session()
    assert tf.keras.backend.get_session() is not sess


def test_hooks_and_callbacks_are_taken_as_they_are():
    hook = npu_init.NpuEmptyHook()
    given = [hook]
    assert npu_init.npu_hooks_append(hooks_list=given) == [hook] and given[-1] is hook
    assert npu_init.npu_hooks_append((hook,)) == [hook] and npu_init.npu_callbacks_append() == []


def test_options_not_supported_say_so():
    for call in (lambda: npu_ops.outfeed_enqueue_op("log", []), lambda: npu_init.npu_embedding.embedding_init,
                 lambda: npu_ops.npu_onnx_graph_op([], [], "x.onnx")):  # fmt: skip
        with pytest.raises(NotImplementedError, match="support|session.run"):
            call()


def test_run_config_signature_and_errors():
    names = list(inspect.signature(npu_init.NPURunConfig.__init__).parameters)[1:22]
    assert names[:4] == ["iterations_per_loop", "profiling_config", "model_dir", "tf_random_seed"] and names[20] == "dump_config"
    for arguments, kind, text in [
        ({"iterations_per_loop": 1.5}, TypeError, "iterations_per_loop must be int"),
        ({"iterations_per_loop": 0}, ValueError, "iterations_per_loop must be positive"),
        ({"mix_compile_mode": 1}, TypeError, "mix_compile_mode must be True or False"),
        ({"horovod_mode": 1}, ValueError, "horovod_mode"),
        ({"mix_compile_mode": True, "iterations_per_loop": 2}, ValueError, "iterations_per_loop"),
        ({"jit_compile": 3}, TypeError, "jit_compile"),
        ({"graph_run_mode": 2}, ValueError, "graph_run_mode"),
        ({"dump_config": {}}, ValueError, "dump_config"),
        ({"precision_mode": "half"}, ValueError, "precision_mode is half"),
    ]:
        with pytest.raises(kind, match=text):
            npu_init.NPURunConfig(**arguments)
    config = npu_init.NPURunConfig(precision_mode="allow_mix_precision", auto_tune_mode="RL,GA", jit_compile=True)
    assert config.save_checkpoints_steps == 100
    assert config.npu_options() == {
        "use_off_line": True, "precision_mode": "allow_mix_precision", "jit_compile": "true", "auto_tune_mode": "RL,GA",
    }  # fmt: skip


def test_eager_mode_is_refused_and_npu_device_opens():
    code = (
        "import npu_device as npu, tensorflow as tf\n"
        "from npu_bridge.estimator import npu_ops\n"
        "npu.global_options().precision_mode = 'allow_mix_precision'\n"
        "npu.open().as_default()\n"
        "try: npu_ops.dropout(tf.ones([2]), 0.5)\n"
        "except RuntimeError as error: print(error)\n"
        "try: npu.global_options().precision_mod = 'x'\n"
        "except ValueError as error: print(error)\n"
        "print(int(tf.function(lambda a: a + 1)(2)))\n"
    )
    done = run_python(["-c", code])
    assert done.stdout.splitlines() == [
        "tf.dropout() is not compatible with eager execution.",
        "global_options: precision_mod is not a known option; is precision_mode meant?",
        "3",
    ], done.stderr[-2000:]


def test_sessions_of_several_graphs_keep_their_own_steps():
    nothing = tf.no_op("nothing")
    nested = {object(): [nothing, (tf.constant(1.0),)], "a": {"b": "nothing", "c": "Const:0"}}
    assert list(sessions._flat(tf.get_default_graph(), nested)) == [nothing, nothing]
    graphs = [tf.Graph(), tf.Graph()]
    counts = []
    for graph, steps in zip(graphs, (2, 3)):
        with graph.as_default(), tf.Session() as sess:
            counter = tf.Variable(0)
            sess.run(counter.initializer)
            sess.run(util.set_iteration_per_loop(sess, tf.assign_add(counter, 1).op, steps))
            counts.append(int(sess.run(counter)))
    assert counts == [2, 3]


LATE = """
import sys
import tensorflow.compat.v1
tensorflow.compat.v1.disable_v2_behavior()
from npu_bridge.npu_init import *
assert not [name for name in sys.modules if name.startswith("tensorflow_estimator")]

class Own(NPURunConfig):
    def __init__(self):
        NPURunConfig.__init__(self, iterations_per_loop=3)

config = Own()
from npu_bridge.estimator.npu.npu_config import NPURunConfig as real
assert isinstance(config, (NPURunConfig, real)) and not isinstance("x", NPURunConfig) and issubclass(Own, NPURunConfig)
assert isinstance(NPURunConfig, type) and NPURunConfig.__name__ == "NPURunConfig" and Own.__bases__ == (real,)
assert isinstance(NPUEstimatorSpec("train", loss=tf.constant(1.0), train_op=tf.no_op()), tf.estimator.EstimatorSpec)
assert backend.get_session() and config.iterations_per_loop == 3
"""


def test_estimators_are_imported_when_they_are_used():
    done = run_python(["-c", LATE])
    assert done.returncode == 0, done.stderr[-3000:]


WITHOUT_INIT = """
import tensorflow.compat.v1 as tf
tf.disable_v2_behavior()
from npu_bridge import engine
from npu_bridge.estimator.npu import util
counter = tf.get_variable("counter", initializer=0)
train = tf.assign_add(counter, 1).op
plain, entry = tf.ConfigProto(), tf.ConfigProto()
added = entry.graph_options.rewrite_options.custom_optimizers.add(name="NpuOptimizer")
with tf.Session(config=plain) as sess:
    assert engine.entry_of(sess._config) is None
added.parameter_map["precision_mod"].s = b"force_fp32"
with tf.Session(config=entry) as sess:
    sess.run(counter.initializer)
    loop = util.set_iteration_per_loop(sess, train, 4)
    sess.run(loop)
    print(sess.run(counter))
"""


def test_without_npu_init_sessions_with_the_entry_do_what_it_says_and_others_stay_plain():
    done = run_python(["-c", WITHOUT_INIT], "tensorflow")
    assert done.returncode == 0 and done.stdout.split() == ["4"], done.stderr[-3000:]
    assert "precision_mod is not a known key" in done.stderr

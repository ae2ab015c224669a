"""The platform's TensorFlow 1 interface, on stock TensorFlow: names, options, sessions, ranks."""

import inspect
import logging

import numpy as np
import pytest
from npu_graphs import fresh_graph, tf, value_of  # noqa: F401
from tensorflow_adapter import ROOT, run_python

from npu_bridge import engine, npu_init, options, sessions
from npu_bridge.estimator import npu_ops
from npu_bridge.estimator.npu import npu_scope, util
from npu_bridge.hccl import hccl_ops

from hccl.manage import api as ranks
from hccl.split import api as split

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


@pytest.mark.parametrize(("name", "switched"), [("cairn", npu_init.RewriterConfig.OFF), ("tensorflow", npu_init.RewriterConfig.DEFAULT)])
def test_stock_tensorflow_keeps_its_own_rewriting(monkeypatch, name, switched):
    monkeypatch.setenv("CAIRN_ENGINE", name)
    rewriting = npu_init.npu_config_proto(tf.ConfigProto()).graph_options.rewrite_options
    assert (rewriting.remapping, rewriting.memory_optimization) == (switched, switched)


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
        "NpuOptimizer: hcom_parallel has no effect: collectives run beside the other steps by themselves",
        "NpuOptimizer: jit_compile is set as bool, should be string; taken as true",
        "NpuOptimizer: precision_mod is not a known key and has no effect; is precision_mode meant?",
    ]


@pytest.mark.parametrize(
    "keys, text",
    [
        ({"precision_mode": "fp17"}, "precision_mode is fp17, should be one of: force_fp16, force_fp32"),
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


WARMUP = """
import tensorflow as tf
from npu_bridge.estimator.npu.npu_callbacks import LearningRateScheduleCallback, LearningRateWarmupCallback
import numpy as np
x = np.random.RandomState(0).rand(32, 4).astype("float32")
for callback in (LearningRateWarmupCallback(warmup_epochs=2), LearningRateScheduleCallback(0.5), LearningRateScheduleCallback(multiplier=0.5)):
    model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
    model.compile(tf.keras.optimizers.SGD(0.25), "mse")
    print(model.fit(x, x[:, 0], batch_size=16, epochs=2, verbose=0, callbacks=[callback]).history["lr"])
"""


@pytest.mark.parametrize("words", [[], ["-m", "cairn_tf1"]], ids=["eager", "sessions"])
def test_schedules_of_older_scripts_begin_with_the_optimizers_own_rate(words, tmp_path):
    (tmp_path / "fit.py").write_text(WARMUP)
    done = run_python([*words, tmp_path / "fit.py"])
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.splitlines()[-3:] == ["[0.25, 0.25]", "[0.125, 0.125]", "[0.125, 0.125]"]

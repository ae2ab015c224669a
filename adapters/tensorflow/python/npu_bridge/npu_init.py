"""What `from npu_bridge.npu_init import *` brings into a script: every name without a leading underscore, as the platform's
module does. Importing it gives each later session the NpuOptimizer entry."""

import importlib as _importlib
import os
import sys as _sys

from tensorflow.core.protobuf import config_pb2, rewriter_config_pb2
from tensorflow.core.protobuf.rewriter_config_pb2 import RewriterConfig
from tensorflow.python.client import session
from tensorflow.python.training import session_run_hook

from hccl.manage.api import (
    create_group,
    destroy_group,
    get_group_rank_from_world_rank,
    get_local_rank_id,
    get_local_rank_size,
    get_rank_id,
    get_rank_size,
    get_world_rank_from_group_rank,
)
from hccl.split.api import set_split_strategy_by_idx, set_split_strategy_by_size
from npu_bridge import engine as _engine
from npu_bridge import sessions as _sessions
from npu_bridge.embedding import npu_embedding
from npu_bridge.estimator import npu_ops
from npu_bridge.estimator.npu import npu_plugin, npu_rnn, npu_scope, npu_strategy, util
from npu_bridge.estimator.npu.npu_config import (
    DumpConfig,
    DynamicInputConfig,
    ExperimentalConfig,
    MemoryConfig,
    ProfilingConfig,
)
from npu_bridge.estimator.npu.npu_decorator import decorator_tf_session
from npu_bridge.estimator.npu.npu_hook import (
    NPUBroadcastGlobalVariablesHook,
    NPUCheckpointSaverHook,
    NPUOutputTensorHook,
    SetIterationsVarHook,
    TellMeStepOrLossHook,
)
from npu_bridge.estimator.npu.npu_loss_scale_manager import ExponentialUpdateLossScaleManager, FixedLossScaleManager
from npu_bridge.estimator.npu.npu_loss_scale_optimizer import NPULossScaleOptimizer
from npu_bridge.estimator.npu.npu_optimizer import (
    KerasDistributeOptimizer,
    NPUDistributedOptimizer,
    NPUOptimizer,
    npu_allreduce,
    npu_distributed_optimizer_wrapper,
)
from npu_bridge.estimator.npu_unary_ops import npu_unary_ops
from npu_bridge.hccl import hccl_ops
from npu_bridge.late import Late as _Late

import tensorflow.compat.v1 as _v1

# Under the TF1 layer `tensorflow` itself has the TF1 names; without it they are in compat.v1.
tf = _sys.modules["tensorflow"] if hasattr(_sys.modules["tensorflow"], "__cairn_tf1__") else _v1


def _late(module, name=None):
    """A module below npu_bridge.estimator.npu, or a name in one, that is imported when it is first used."""
    make = lambda: _importlib.import_module("npu_bridge.estimator.npu." + module)
    return _Late((lambda: getattr(make(), name)) if name else make)


backend = _Late(lambda: _v1.keras.backend)
keras_to_npu = _late("keras_to_npu")
NPUBroadcastGlobalVariablesCallback = _late("npu_callbacks", "NPUBroadcastGlobalVariablesCallback")
NPUEstimator = _late("npu_estimator", "NPUEstimator")
NPUEstimatorSpec = _late("npu_estimator", "NPUEstimatorSpec")
NPURunConfig = _late("npu_run_config", "NPURunConfig")

experimental_options = {
    "disable_model_pruning": False,
    "function_optimization": RewriterConfig.ON,
    "constant_folding": RewriterConfig.ON,
    "shape_optimization": RewriterConfig.ON,
    "arithmetic_optimization": RewriterConfig.ON,
    "loop_optimization": RewriterConfig.ON,
    "dependency_optimization": RewriterConfig.ON,
    "layout_optimizer": RewriterConfig.ON,
}

_sessions.patch()


class NpuEmptyHook(session_run_hook.SessionRunHook):
    """Does nothing; stands where a removed hook was."""


def npu_config_proto(config_proto=None):
    """The given ConfigProto, edited in place, or a new one for anything else."""
    if not isinstance(config_proto, config_pb2.ConfigProto):
        config_proto = config_pb2.ConfigProto()
    return _sessions.prepare(config_proto)


def npu_graph_options(graph_options=None):
    if not isinstance(graph_options, config_pb2.GraphOptions):
        graph_options = config_pb2.GraphOptions()
    graph_options.optimizer_options.global_jit_level = config_pb2.OptimizerOptions.OFF
    return graph_options


def npu_optimizer_options(optimizer_options=None):
    if not isinstance(optimizer_options, config_pb2.OptimizerOptions):
        optimizer_options = config_pb2.OptimizerOptions()
    optimizer_options.global_jit_level = config_pb2.OptimizerOptions.OFF
    return optimizer_options


def npu_run_config_init(run_config=None):
    """A plain RunConfig whose sessions get the entry."""
    if not isinstance(run_config, _v1.estimator.RunConfig):
        run_config = _v1.estimator.RunConfig()
    run_config._session_config = npu_config_proto(run_config.session_config)
    return run_config


def npu_hooks_append(hooks_list=()):
    """The hooks as a list, with the one that gives all ranks rank 0's variables. With one rank nothing is added."""
    hooks = _as_list(hooks_list)
    if get_rank_size() > 1:
        hooks.append(NPUBroadcastGlobalVariablesHook(0, get_rank_id()))
    return hooks


def npu_callbacks_append(callbacks_list=()):
    """The callbacks as a list; the same holds."""
    callbacks = _as_list(callbacks_list)
    if get_rank_size() > 1:
        callbacks.append(NPUBroadcastGlobalVariablesCallback(0))
    return callbacks


def _as_list(items):
    if isinstance(items, list):
        return items
    return list(items) if isinstance(items, (tuple, set)) else [items] if items is not None else []


def set_keras_session_npu_config(config=None):
    """A session with the entry, made Keras' own."""
    sess = session.Session(config=npu_config_proto(config))
    backend.set_session(sess)
    return sess


def npu_clear_session(config=None):
    backend.clear_session()
    set_keras_session_npu_config(config)


def close_session(sess):
    sess.close()


def init_resource(config=None):
    """(session, shutdown op); nothing needs to be called first here, so the ranks are known without it."""
    util.global_dict_init()
    start, stop = npu_ops.initialize_system(), npu_ops.shutdown_system()
    sess = session.Session(config=npu_config_proto(config))
    sess.run(start)
    util.set_value("npu_rank_id", get_rank_id())
    util.set_value("npu_local_rank_id", get_local_rank_id())
    util.set_value("npu_rank_size", get_rank_size())
    util.set_value("npu_local_rank_size", get_local_rank_size())
    return sess, stop


def shutdown_resource(sess, npu_shutdown):
    sess.run(npu_shutdown)


def get_npu_rank_id():
    return util.get_value("npu_rank_id", get_rank_id())


def get_npu_local_rank_id():
    return util.get_value("npu_local_rank_id", get_local_rank_id())


def get_npu_rank_size():
    return util.get_value("npu_rank_size", get_rank_size())


def get_npu_local_rank_size():
    return util.get_value("npu_local_rank_size", get_local_rank_size())


def npu_tf_optimizer(opt):
    return NPUDistributedOptimizer(opt)


def npu_keras_optimizer(opt):
    return KerasDistributeOptimizer(opt)


if _v1.executing_eagerly():  # a TensorFlow 2 script: its functions take their options from the eager context
    _engine.add_to_functions()

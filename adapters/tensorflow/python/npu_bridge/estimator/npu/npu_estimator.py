"""NPUEstimator: TensorFlow's Estimator whose sessions carry the NpuOptimizer entry made from its NPURunConfig, with several
steps in one run where the configuration says so."""

import json
import os
import random
import string

import tensorflow.compat.v1 as tf
from tensorflow.core.protobuf import config_pb2

from npu_bridge import engine, environment, options, sessions
from npu_bridge.estimator.npu import npu_hook
from npu_bridge.estimator.npu.npu_run_config import NPURunConfig


class NPUEstimatorSpec(tf.estimator.EstimatorSpec):
    """An EstimatorSpec with `host_call` = (function, tensors): the function builds ops, for summaries as a rule, that run with each
    training step."""

    def __new__(cls, mode, predictions=None, loss=None, train_op=None, eval_metric_ops=None, export_outputs=None,
                training_chief_hooks=None, training_hooks=None, scaffold=None, evaluation_hooks=None,
                prediction_hooks=None, host_call=None):  # fmt: skip
        if host_call is not None:
            _check_host_call(host_call)
        spec = super().__new__(
            cls, mode, predictions, loss, train_op, eval_metric_ops, export_outputs, training_chief_hooks, training_hooks,
            scaffold, evaluation_hooks, prediction_hooks,
        )  # fmt: skip
        spec.host_call = host_call
        return spec


def _check_host_call(host_call):
    if not isinstance(host_call, (tuple, list)):
        raise ValueError("host_call should be tuple or list.")
    if len(host_call) != 2:
        raise ValueError("host_call should have two elements.")
    if not callable(host_call[0]):
        raise TypeError("host_call[0] should be callable.")
    if not isinstance(host_call[1], (tuple, list, dict)):
        raise ValueError("host_call[1] should be tuple or list, or dict.")
    if isinstance(host_call[1], (tuple, list)):
        code = host_call[0].__code__
        most = code.co_argcount - (1 if hasattr(host_call[0], "__self__") else 0)
        least = most - len(host_call[0].__defaults__ or ())
        takes_any = bool(code.co_flags & 0x04)
        if not takes_any and not least <= len(host_call[1]) <= most:
            raise RuntimeError(
                f"host_call: the function takes {most} arguments, but {len(host_call[1])} tensors are given"
            )


def _call_on_host(host_call):
    function, tensors = host_call
    result = function(**tensors) if isinstance(tensors, dict) else function(*tensors)
    return [] if result is None else tf.nest.flatten(result)


class _HostCallHook(tf.train.SessionRunHook):
    def __init__(self, fetches):
        self._fetches = fetches

    def before_run(self, run_context):
        return tf.train.SessionRunArgs(self._fetches)


class NPUEstimator(tf.estimator.Estimator):
    """TensorFlow's Estimator. JOB_ID and the job file, which the platform asks for, are not needed."""

    def __init__(self, model_fn=None, model_dir=None, config=None, params=None, job_start_file="", warm_start_from=None):
        if not isinstance(config, NPURunConfig):
            raise ValueError("`config` must be provided with type `NPUConfigs`")
        if job_start_file and not os.access(job_start_file, os.R_OK):
            options.warn_once(f"NPUEstimator: job_start_file {job_start_file} cannot be read; it is not needed here")
        if model_dir is not None and config.model_dir is not None and model_dir != config.model_dir:
            raise ValueError(
                "`model_dir` are set both in constructor and `NPURunConfig`, but with different values. In constructor:"
                f" '{model_dir}', in `NPURunConfig`: '{config.model_dir}'"
            )
        model_dir = _of_rank(model_dir or config.model_dir or _fresh_folder())
        super().__init__(
            model_fn=model_fn,
            model_dir=model_dir,
            config=config.replace(model_dir=model_dir, session_config=_session_config(config)),
            params=params,
            warm_start_from=warm_start_from or os.getenv("LOCAL_CHECKPOINT_DIR") or os.getenv("RESTORE_FROM") or None,
        )

    def _assert_members_are_not_overridden(self):
        """The stock class allows no overriding; `_call_model_fn` is where a train op can be changed."""

    def train(self, input_fn, hooks=None, *args, **kwargs):
        """All ranks begin with rank 0's variables, its checkpoint's too."""
        several = environment.rank_size() > 1 and not self._config.horovod_mode
        first = [npu_hook.NPUBroadcastGlobalVariablesHook(0)] if several else []
        return super().train(input_fn, first + list(hooks or ()), *args, **kwargs)

    def _call_model_fn(self, features, labels, mode, config):
        spec = super()._call_model_fn(features, labels, mode, config)
        if mode != tf.estimator.ModeKeys.TRAIN:
            return spec
        changes, hooks = {}, []
        if getattr(spec, "host_call", None):
            hooks.append(_HostCallHook(_call_on_host(spec.host_call)))
        if self._config.iterations_per_loop > 1:
            hooks.append(npu_hook.SetIterationsVarHook(self._config.iterations_per_loop))
            changes["train_op"] = tf.group(spec.train_op, name="IterationOp")
        return spec._replace(training_hooks=[*hooks, *spec.training_hooks], **changes) if hooks else spec


def _of_rank(folder):
    """Rank 0's checkpoints are the job's; each other rank has a folder below for what its estimator writes."""
    rank = environment.rank_id()
    return os.path.join(folder, f"rank_{rank}") if rank else folder


def _fresh_folder():
    letters = random.SystemRandom().choices(string.ascii_letters + string.digits, k=10)
    return "./model_dir_" + "".join(letters)


def _session_config(config):
    """The script's session config, with the run config's options in its NpuOptimizer entry; the script's own keys there stay."""
    proto = config_pb2.ConfigProto()
    if config.session_config is not None:
        proto.CopyFrom(config.session_config)
    sessions.prepare(proto)
    entry = engine.entry_of(proto)
    values = {**config.npu_options(), **_task()}
    for key, value in values.items():
        if key not in entry.parameter_map:
            options.set_value(entry, key, value)
    return proto


def _task():
    task = json.loads(os.getenv("TF_CONFIG") or "{}").get("task")
    return {"job": task.get("type", "localhost"), "task_index": int(task.get("index", 0))} if task else {}

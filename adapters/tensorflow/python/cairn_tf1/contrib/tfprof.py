"""tf.contrib.tfprof: tf.profiler."""

import types

import tensorflow.compat.v1 as tf
from tensorflow.python.profiler import model_analyzer as _analyzer
from tensorflow.python.profiler import tfprof_logger  # noqa: F401

model_analyzer = types.SimpleNamespace(
    print_model_analysis=lambda graph, run_meta=None, op_log=None, tfprof_cmd="scope", tfprof_options=None: _analyzer.profile(
        graph, run_meta, op_log, tfprof_cmd, tfprof_options or tf.profiler.ProfileOptionBuilder.trainable_variables_parameter()
    ),
    TRAINABLE_VARS_PARAMS_STAT_OPTIONS=tf.profiler.ProfileOptionBuilder.trainable_variables_parameter(),
    FLOAT_OPS_OPTIONS=tf.profiler.ProfileOptionBuilder.float_operation(),
)

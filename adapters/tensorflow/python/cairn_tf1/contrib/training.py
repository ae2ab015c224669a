"""tf.contrib.training: HParams, and the loops that tf_slim keeps."""

import tensorflow.compat.v1 as tf
from tf_slim.training.evaluation import *  # noqa: F403
from tf_slim.training.training import *  # noqa: F403
from tf_slim.training import evaluation as _evaluation
from tf_slim.training import training as _training

from cairn_tf1.contrib.hparam import HParams, parse_values  # noqa: F401

for _part in (_training, _evaluation):
    globals().update({name: value for name, value in vars(_part).items() if not name.startswith("_")})

get_or_create_eval_step = _evaluation.get_or_create_eval_step
checkpoints_iterator = tf.train.checkpoints_iterator


def bucket_by_sequence_length(*args, **kwargs):
    raise NotImplementedError(
        "tf.contrib.training.bucket_by_sequence_length is not supported; use tf.data.experimental.bucket_by_sequence_length"
    )

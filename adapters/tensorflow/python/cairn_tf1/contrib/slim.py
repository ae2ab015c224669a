"""tf.contrib.slim: tf_slim under its old name."""

import tf_slim
from tf_slim import *  # noqa: F403
from tf_slim import nets  # noqa: F401

globals().update({name: value for name, value in vars(tf_slim).items() if not name.startswith("__")})

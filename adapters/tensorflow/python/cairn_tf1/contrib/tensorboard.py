"""tf.contrib.tensorboard: the projector's configuration."""

import types

from tensorboard.plugins import projector

plugins = types.SimpleNamespace(projector=projector)

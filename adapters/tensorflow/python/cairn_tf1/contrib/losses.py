"""tf.contrib.losses: tf_slim's losses, metric learning among them."""

import tf_slim.losses as _losses
from tf_slim.losses import loss_ops as _ops
from tf_slim.losses import metric_learning  # noqa: F401

for _part in (_ops, _losses, metric_learning):
    globals().update({name: value for name, value in vars(_part).items() if not name.startswith("_")})

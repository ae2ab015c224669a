"""tf.contrib.autograph: tf.autograph."""

import tensorflow.compat.v1 as tf

to_graph, to_code = tf.autograph.to_graph, tf.autograph.to_code
set_verbosity, trace = tf.autograph.set_verbosity, tf.autograph.trace
do_not_convert = tf.autograph.experimental.do_not_convert

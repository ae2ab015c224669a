"""tf.contrib.cluster_resolver: tf.distribute's resolvers."""

import tensorflow.compat.v1 as tf

ClusterResolver = tf.distribute.cluster_resolver.ClusterResolver
SimpleClusterResolver = tf.distribute.cluster_resolver.SimpleClusterResolver
TFConfigClusterResolver = tf.distribute.cluster_resolver.TFConfigClusterResolver
TPUClusterResolver = tf.distribute.cluster_resolver.TPUClusterResolver
UnionClusterResolver = tf.distribute.cluster_resolver.UnionResolver

"""tf.contrib.saved_model: Keras models as SavedModels."""

import tensorflow.compat.v1 as tf

save_keras_model = tf.keras.experimental.export_saved_model
load_keras_model = tf.keras.experimental.load_from_saved_model

"""tf.contrib.saved_model: Keras models as SavedModels."""

import tensorflow.compat.v1 as tf


def save_keras_model(model, saved_model_path, custom_objects=None, as_text=None, input_signature=None, serving_only=False):
    tf.keras.models.save_model(model, saved_model_path, save_format="tf")
    return saved_model_path


def load_keras_model(saved_model_path, custom_objects=None):
    return tf.keras.models.load_model(saved_model_path, custom_objects=custom_objects)

"""A compiled Keras model as an NPUEstimator."""

import tensorflow.compat.v1 as tf

from npu_bridge.estimator.npu.npu_run_config import NPURunConfig
from npu_bridge.estimator.npu.npu_estimator import NPUEstimator


def model_to_npu_estimator(keras_model=None, keras_model_path=None, custom_objects=None, model_dir=None,
                           checkpoint_format="saver", config=None, job_start_file=""):  # fmt: skip
    """An Estimator that trains the model from its current weights, with its optimizer, loss and metrics."""
    if (keras_model is None) == (keras_model_path is None):
        raise ValueError("model_to_npu_estimator: give either keras_model or keras_model_path")
    if keras_model is None:
        keras_model = tf.keras.models.load_model(keras_model_path, custom_objects=custom_objects)
    if not keras_model.optimizer:
        raise ValueError("model_to_npu_estimator: the model has not been compiled; call compile() before")
    config = NPURunConfig(model_dir=model_dir) if config is None else config
    plain = tf.keras.estimator.model_to_estimator(
        keras_model=keras_model, custom_objects=custom_objects, model_dir=model_dir or config.model_dir,
        checkpoint_format=checkpoint_format, config=_plain_config(config),
    )  # fmt: skip
    return NPUEstimator(
        plain._model_fn, plain.model_dir, config.replace(model_dir=plain.model_dir), plain.params or None, job_start_file,
        plain._warm_start_settings,
    )  # fmt: skip


def _plain_config(config):
    if not isinstance(config, NPURunConfig):
        raise ValueError("`config` must be provided with type `NPUConfigs`")
    return tf.estimator.RunConfig(tf_random_seed=config.tf_random_seed, session_config=config.session_config)

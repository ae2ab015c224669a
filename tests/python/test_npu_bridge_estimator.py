"""NPUEstimator and Keras on stock TensorFlow: training, evaluation, prediction, export, warm start, several steps in one run."""

import os

import numpy as np
import pytest
from tensorflow_adapter import use_packages

os.environ["CAIRN_ENGINE"] = "tensorflow"
use_packages()

import tensorflow.compat.v1 as tf  # noqa: E402

tf.disable_v2_behavior()
tf.logging.set_verbosity(tf.logging.ERROR)

from npu_bridge import engine, npu_init, options  # noqa: E402
from npu_bridge.npu_init import NPUEstimator, NPUEstimatorSpec, NPURunConfig  # noqa: E402

X = np.linspace(-1, 1, 64).astype(np.float32)[:, None]


def input_fn(epochs=None):
    return tf.data.Dataset.from_tensor_slices((X, 3 * X + 1)).repeat(epochs).batch(16)


def model_fn(features, labels, mode, params):
    y = tf.layers.dense(features, 1, name="line", kernel_initializer=tf.zeros_initializer())
    if mode == tf.estimator.ModeKeys.PREDICT:
        outputs = {"serving_default": tf.estimator.export.PredictOutput({"y": y})}
        return NPUEstimatorSpec(mode, predictions={"y": y}, export_outputs=outputs)
    loss = tf.losses.mean_squared_error(labels, y)
    step = tf.train.get_global_step()
    train = tf.train.GradientDescentOptimizer(params["rate"]).minimize(loss, step)
    metrics = {"error": tf.metrics.mean_absolute_error(labels, y)}
    host_call = None
    if "host" in params:
        print_loss = lambda value: tf.py_func(params["host"].append, [value], [])
        host_call = (print_loss, [loss])
    return NPUEstimatorSpec(mode, loss=loss, train_op=train, eval_metric_ops=metrics, host_call=host_call)


class Hosted(list):
    """A list that an Estimator's copy of its params does not copy."""

    def __deepcopy__(self, memo):
        return self


def estimator(folder, params=None, warm=None, **options_):
    config = NPURunConfig(model_dir=str(folder), save_checkpoints_steps=50, log_step_count_steps=None, tf_random_seed=1, **options_)
    return NPUEstimator(model_fn, config=config, params={"rate": 0.3, **(params or {})}, warm_start_from=warm)


def test_train_evaluate_predict_export(tmp_path):
    line = estimator(tmp_path / "model")
    line.train(input_fn, max_steps=60)
    assert line.evaluate(lambda: input_fn(1))["error"] < 0.01
    predicted = [row["y"][0] for row in line.predict(lambda: tf.data.Dataset.from_tensor_slices(X).batch(25))]
    np.testing.assert_allclose(predicted, 3 * X[:, 0] + 1, atol=0.02)  # 64 rows in batches of 25: the last one is partial

    def receiver():
        x = tf.placeholder(tf.float32, [None, 1])
        return tf.estimator.export.TensorServingInputReceiver(x, {"x": x})

    folder = line.export_saved_model(str(tmp_path / "export"), receiver)
    assert os.path.exists(os.path.join(folder.decode(), "saved_model.pb"))
    line.train(input_fn, steps=5)
    assert line.get_variable_value("global_step") == 65


def test_warm_start_and_the_environments_checkpoint(tmp_path, monkeypatch):
    first = estimator(tmp_path / "first")
    first.train(input_fn, max_steps=60)
    monkeypatch.setenv("RESTORE_FROM", str(tmp_path / "first"))
    second = estimator(tmp_path / "second", {"rate": 0.0})
    second.train(input_fn, max_steps=1)
    assert second.get_variable_value("line/kernel") == pytest.approx(first.get_variable_value("line/kernel"))


def test_several_steps_in_one_run_train_like_one_after_the_other(tmp_path):
    values, runs = [], []

    class Count(tf.train.SessionRunHook):
        def after_run(self, run_context, run_values):
            runs[-1] += 1

    for steps in (1, 5):
        runs.append(0)
        line = estimator(tmp_path / str(steps), iterations_per_loop=steps)
        line.train(input_fn, hooks=[Count()], max_steps=20)
        values.append([line.get_variable_value(name) for name in ("line/kernel", "line/bias", "global_step")])
    assert runs == [20, 4]
    assert values[0] == values[1]


def test_host_call_runs_with_each_step(tmp_path):
    seen = Hosted()
    estimator(tmp_path, {"host": seen}).train(input_fn, max_steps=4)
    assert len(seen) == 4 and seen[0] == pytest.approx(np.mean((3 * X[:16] + 1) ** 2))


def test_the_run_configs_options_reach_the_sessions(tmp_path):
    script = tf.ConfigProto()
    script.graph_options.rewrite_options.custom_optimizers.add(name="NpuOptimizer").parameter_map["precision_mode"].s = b"force_fp32"
    line = estimator(tmp_path, session_config=script, precision_mode="force_fp16", graph_run_mode=0)
    entry = engine.entry_of(line._session_config)
    get = lambda key: options.value_of(entry, key)
    assert (get("use_off_line"), get("graph_run_mode"), get("precision_mode")) == (True, 0, "force_fp32")  # the script's own stays


@pytest.mark.parametrize(
    "host_call, kind, text",
    [
        (3, ValueError, "host_call should be tuple or list"),
        ((print,), ValueError, "two elements"),
        ((3, []), TypeError, "callable"),
        ((lambda a: a, [1, 2]), RuntimeError, "takes 1 arguments, but 2 tensors are given"),
    ],
)
def test_a_host_call_that_cannot_be(host_call, kind, text):
    with pytest.raises(kind, match=text):
        NPUEstimatorSpec(tf.estimator.ModeKeys.TRAIN, loss=tf.constant(1.0), train_op=tf.no_op(), host_call=host_call)


def test_an_estimator_wants_its_own_config_and_one_folder(tmp_path):
    with pytest.raises(ValueError, match="`config` must be provided with type `NPUConfigs`"):
        NPUEstimator(model_fn, config=tf.estimator.RunConfig())
    with pytest.raises(ValueError, match="`model_dir` are set both"):
        NPUEstimator(model_fn, model_dir="/a", config=NPURunConfig(model_dir="/b"))


def test_servers_need_the_strategy(monkeypatch):
    monkeypatch.setenv("TF_CONFIG", '{"cluster": {"ps": ["a:1"], "chief": ["b:1"]}, "task": {"type": "chief", "index": 0}}')
    with pytest.raises(ValueError, match='"cluster" and "distribute" must all be set in ps mode'):
        NPURunConfig()


def test_npu_run_config_init_gives_a_plain_config_with_the_entry(tmp_path):
    config = tf.estimator.RunConfig(str(tmp_path), save_summary_steps=7)
    same = npu_init.npu_run_config_init(run_config=config)
    assert same is config and same.save_summary_steps == 7 and engine.entry_of(same.session_config)
    assert engine.entry_of(npu_init.npu_run_config_init().session_config)


def test_output_tensor_hook_hands_over_in_groups():
    groups = []
    hook = npu_init.NPUOutputTensorHook({"x": tf.train.get_or_create_global_step()}, output_fn=groups.append, output_every_n_steps=2)
    step = tf.assign_add(tf.train.get_global_step(), 1)
    with tf.train.MonitoredSession(hooks=[hook]) as sess:
        for _ in range(3):
            sess.run(step)
    assert [len(group["x"]) for group in groups] == [2, 1]


def test_step_and_loss_are_told_through_the_environment(monkeypatch):
    with tf.Graph().as_default():
        hook = npu_init.TellMeStepOrLossHook(step=tf.constant(3), total_step=9)
        with tf.train.MonitoredSession(hooks=[hook]) as sess:
            sess.run(tf.get_default_graph().get_operations()[0])
    assert (os.environ.pop("STEP_NOW"), os.environ.pop("TOTAL_STEP")) == ("3", "9")
    with pytest.raises(ValueError, match="step and loss must not both be None"):
        npu_init.TellMeStepOrLossHook()


def keras_line(**kwargs):
    model = tf.keras.Sequential([tf.keras.layers.Dense(1, input_shape=(1,), kernel_initializer="zeros")])
    model.compile(optimizer=tf.train.GradientDescentOptimizer(0.3), loss="mse", metrics=["mae"], **kwargs)
    return model


def test_keras_fit_on_the_session(tmp_path):
    tf.keras.backend.clear_session()
    sess = npu_init.set_keras_session_npu_config()
    model = keras_line()
    model.fit(X, 3 * X + 1, batch_size=16, epochs=20, verbose=0, callbacks=npu_init.npu_callbacks_append())
    assert model.evaluate(X, 3 * X + 1, verbose=0)[1] < 0.02
    npu_init.close_session(sess)


def test_a_keras_model_becomes_an_npu_estimator(tmp_path):
    tf.keras.backend.clear_session()
    model = tf.keras.Sequential([tf.keras.layers.Dense(1, input_shape=(1,), kernel_initializer="zeros", name="line")])
    model.compile(optimizer=tf.keras.optimizers.SGD(0.3), loss="mse", metrics=["mae"])
    config = NPURunConfig(model_dir=str(tmp_path / "keras"), log_step_count_steps=None)
    line = npu_init.keras_to_npu.model_to_npu_estimator(model, config=config)
    assert isinstance(line, NPUEstimator)
    line.train(input_fn, max_steps=40)
    assert line.evaluate(lambda: input_fn(1))["mean_absolute_error"] < 0.05
    with pytest.raises(ValueError, match="either keras_model or keras_model_path"):
        npu_init.keras_to_npu.model_to_npu_estimator()

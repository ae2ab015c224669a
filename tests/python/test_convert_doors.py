"""One conversion behind every door: equal options give equal files from Python, `cairn convert` and atc."""

import json
import shutil

import cairn
import pytest

CASES = {
    "fixed": (["--input_shape=features:2,20"], {"input_shapes": {"features": [2, 20]}}),
    "range": (["--input_shape=features:1~8,20"], {"input_shapes": {"features": [(1, 8), 20]}}),
    "batches": (
        ["--input_shape=features:-1,20", "--dynamic_batch_size=1,2,4"],
        {"input_shapes": {"features": [-1, 20]}, "dynamic_batch_size": [1, 2, 4]},
    ),
    "types": (
        ["--input_shape=features:2,20", "--output_type=FP16", "--input_fp16_nodes=features"],
        {"input_shapes": {"features": [2, 20]}, "output_type": "FP16", "input_fp16_nodes": ["features"]},
    ),
    "precision": (
        ["--input_shape=features:2,20", "--precision_mode=allow_mix_precision"],
        {"input_shapes": {"features": [2, 20]}, "precision_mode": "allow_mix_precision"},
    ),
    "outputs": (
        ["--input_shape=features:2,20", "--out_nodes=loss/BiasAdd:0"],
        {"input_shapes": {"features": [2, 20]}, "outputs": ["loss/BiasAdd:0"]},
    ),
    "memory": (
        ["--input_shape=features:2,20", "--disable_reuse_memory=1", "--optimization_switch=fold_constants:off"],
        {"input_shapes": {"features": [2, 20]}, "keep_memory": True, "disabled_passes": ["fold_constants"]},
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_equal_options_give_equal_files(models, command, tmp_path, monkeypatch, case):
    shutil.copy(models("mlp_v1").frozen, tmp_path / "frozen_graph.pb")
    words, options = CASES[case]
    done = command("atc", "--model=frozen_graph.pb", "--framework=3", "--output=atc", "--soc_version=Ascend310", *words)
    assert done.returncode == 0, done.stdout
    done = command("cairn", "convert", "frozen_graph.pb", "-o", "verb", *words)
    assert done.returncode == 0, done.stdout + done.stderr
    monkeypatch.chdir(tmp_path)
    assert cairn.convert("frozen_graph.pb", "python", **options) == "python.om"
    files = [(tmp_path / f"{name}.om").read_bytes() for name in ("atc", "verb", "python")]
    assert files[0] == files[1], "atc and cairn convert"
    assert files[1] == files[2], "cairn convert and Python"


def test_every_door_reports_what_the_reference_engine_does(command, tmp_path, monkeypatch):
    import tensorflow as tf

    with tf.Graph().as_default() as graph:
        x = tf.compat.v1.placeholder(tf.float32, [8, 64, 64, 1], name="x")
        slow = tf.nn.dilation2d(x, tf.zeros([2, 2, 1]), [1] * 4, "SAME", "NHWC", [1] * 4, name="slow")
        tf.add(slow, tf.math.softsign(x), name="y")
    (tmp_path / "special.pb").write_bytes(graph.as_graph_def().SerializeToString())
    done = command("cairn", "convert", "special.pb", "-o", "verb", "--json")
    monkeypatch.chdir(tmp_path)
    with pytest.warns(UserWarning, match="the reference engine, which is slow, takes about .* % of a run's time"):
        report = cairn.convert("special.pb", "python").report
    (step,) = report["reference"]["steps"]
    assert (step["op"], step["node"], step["reason"]) == ("dilation2d", "slow", "cpu has no kernel of it")
    assert 0 < report["reference"]["of_flops"] < report["reference"]["of_seconds"] <= 1
    assert report.pop("notes") and report | {"output": "verb.om"} == json.loads(done.stdout)


def test_options_that_do_not_fit_are_one_sentence(models, tmp_path, monkeypatch):
    shutil.copy(models("mlp_v1").frozen, tmp_path / "frozen_graph.pb")
    monkeypatch.chdir(tmp_path)
    for options, sentence in [
        ({"precision_mode": "fast"}, "precision_mode: is fast, which is no mode"),
        ({"input_fp16_nodes": ["pixels"]}, "pixels: is no input of the model"),
        ({"input_shapes": {"pixels": [1]}}, "has no input 'pixels'"),
        ({"outputs": ["nowhere"]}, "has no node 'nowhere'"),
        ({"quick": True}, "no option is called quick"),
    ]:
        with pytest.raises(cairn.Error, match=sentence):
            cairn.convert("frozen_graph.pb", "model", **options)
    assert not (tmp_path / "model.om").exists()


def test_the_doors_share_the_names_of_precision_modes(command):
    from npu_bridge import options

    text = command("atc", "--help").stdout
    for name in options.PRECISION + options.PRECISION_V2:
        assert name in text, name

"""One conversion behind every door: equal options give equal files from Python, `cairn convert` and atc."""

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

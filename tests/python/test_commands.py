"""The commands as users and scripts call them: exact lines, exit statuses, and the commands of the conversion guide."""

import json
import re
import shutil

import numpy as np
import pytest

START = "ATC start working now, please wait for a moment."
SUCCESS = "ATC run success, welcome to the next use."
FAILURE = "ATC run failed, Please check the detail log, Try 'atc --help' for more information"


@pytest.fixture
def frozen(models, tmp_path):
    """mlp_v1, frozen, in the commands' folder: one input `features`, output node loss/BiasAdd."""
    model = models("mlp_v1")
    shutil.copy(model.frozen, tmp_path / "frozen_graph.pb")
    shutil.copytree(model.saved_model, tmp_path / "save_model_dir")
    return model


def lines(done):
    return done.stdout.splitlines()


def atc(command, *more, shape="features:2,20"):
    return command(
        "atc",
        "--model=frozen_graph.pb",
        f"--input_shape={shape}",
        "--framework=3",
        "--output=model",
        "--soc_version=Ascend310",
        *more,
    )


def test_atc_says_its_lines_and_adds_the_suffix(frozen, command, tmp_path):
    done = atc(command)
    assert done.returncode == 0, done.stdout
    assert lines(done)[0] == START and lines(done)[-1] == SUCCESS
    assert (tmp_path / "model.om").stat().st_size > 0


def test_atc_takes_options_with_one_dash_and_in_two_words(frozen, command, tmp_path):
    words = ["-model", "frozen_graph.pb", "--framework", "3", "-output=other", "--soc-version", "Ascend310"]
    done = command("atc", *words, "--input-shape", "features:2,20")
    assert done.returncode == 0, done.stdout
    assert (tmp_path / "other.om").exists()


def test_omg_takes_the_command_of_the_guide_with_straight_quotes(frozen, command, tmp_path):
    words = ["--model", "frozen_graph.pb", "--framework", "3", "--output", "model"]
    done = command("omg", *words, "--input_shape", "features:2,20", "--out_nodes", "loss/BiasAdd:0")
    assert done.returncode == 0, done.stdout
    assert "OMG generate offline model success" in lines(done)
    assert (tmp_path / "model.om").exists()


def test_atc_expands_the_home_folder(frozen, command, tmp_path):
    import os

    done = command(
        "atc",
        "--model=~/frozen_graph.pb",
        "--framework=3",
        "--output=~/model",
        "--soc_version=Ascend310",
        "--input_shape=features:2,20",
        env={**os.environ, "HOME": str(tmp_path)},
    )
    assert done.returncode == 0, done.stdout
    assert (tmp_path / "model.om").exists()


def test_a_curly_quote_that_was_cut_at_a_semicolon_is_explained(frozen, command, tmp_path):
    done = atc(command, shape="\u201cinput_ids:1,500")
    assert done.returncode != 0 and FAILURE in lines(done)
    assert "curly" in done.stdout and ";" in done.stdout and "quote" in done.stdout
    assert not (tmp_path / "model.om").exists()


def test_curly_quotes_around_a_whole_value_are_taken_as_straight_ones(frozen, command):
    done = atc(command, shape="\u201cfeatures:2,20\u201d")
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize(
    "words, code",
    [
        (["--framework=3", "--output=model", "--soc_version=Ascend310"], "E10004"),
        (["--model=missing.pb", "--framework=3", "--output=model", "--soc_version=Ascend310"], "E13000"),
        (["--model=frozen_graph.pb", "--framework=9", "--output=model", "--soc_version=Ascend310"], "E10007"),
        (["--model=frozen_graph.pb", "--framework=3", "--output=out/", "--soc_version=Ascend310"], "E10022"),
    ],
)
def test_atc_fails_with_the_code_of_the_platform(frozen, command, tmp_path, words, code):
    done = command("atc", *words)
    assert done.returncode == 255
    assert FAILURE in lines(done)
    assert any(line.startswith(code + ":") for line in lines(done)), done.stdout
    assert not list(tmp_path.glob("*.om"))


def test_an_unknown_option_fails_before_the_start_with_exit_1(frozen, command):
    done = atc(command, "--no_such_option=0")
    assert done.returncode == 1
    assert "no_such_option" in done.stdout + done.stderr


@pytest.mark.parametrize("name", ["cairn", "atc", "omg", "msame"])
def test_help_exits_0(name, command):
    done = command(name, "--help")
    assert done.returncode == 0 and len(lines(done)) > 5


@pytest.mark.parametrize("verb", ["show", "freeze", "convert", "run", "bench", "verify", "why"])
def test_the_help_of_each_verb_has_examples(verb, command):
    done = command("cairn", verb, "--help")
    assert done.returncode == 0 and f"cairn {verb} " in done.stdout.split("Examples:")[1]


def test_show_prints_the_signatures_as_saved_model_cli_does(frozen, command):
    expected = command("saved_model_cli", "show", "--dir", "save_model_dir", "--all")
    signatures = expected.stdout[expected.stdout.index("MetaGraphDef") : expected.stdout.index("The MetaGraph with")]
    found = command("cairn", "show", "save_model_dir")
    assert found.returncode == 0, found.stderr
    assert signatures.strip() in found.stdout


def test_an_om_file_runs_and_equals_tensorflow(frozen, command, tmp_path):
    assert atc(command, shape="features:8,20").returncode == 0
    inputs, expected = next(iter(frozen.cases()))
    np.save(tmp_path / "features.npy", inputs["features"])
    done = command("cairn", "run", "model.om", "--input", "features=features.npy", "-o", "results")
    assert done.returncode == 0, done.stderr
    (file,) = (tmp_path / "results").glob("*.npy")
    assert np.abs(np.load(file) - expected["logits"]).max() <= 1e-4 * frozen.spread("logits")


def test_msame_takes_no_batch_for_a_model_of_fixed_sizes(frozen, command):
    assert atc(command, shape="features:8,20").returncode == 0
    done = command("msame", "--model", "model.om", "--dymBatch", "2")
    assert done.returncode == 1 and "--dymBatch: all sizes of the model are fixed" in done.stdout


def test_msame_runs_raw_files(frozen, command, tmp_path):
    assert atc(command, shape="features:8,20").returncode == 0
    inputs, expected = next(iter(frozen.cases()))
    inputs["features"].tofile(tmp_path / "features.bin")
    done = command("msame", "--model", "model.om", "--input", "features.bin", "--output", "out", "--outfmt", "BIN")
    assert done.returncode == 0, done.stdout
    (file,) = (tmp_path / "out").glob("*.bin")
    found = np.fromfile(file, np.float32).reshape(8, 5)
    assert np.abs(found - expected["logits"]).max() <= 1e-4 * frozen.spread("logits")


def test_verify_compares_with_tensorflow(frozen, command):
    assert atc(command, shape="features:8,20").returncode == 0
    done = command("cairn", "verify", "model.om", "--against", "frozen_graph.pb")
    assert done.returncode == 0, done.stdout + done.stderr


def test_verify_without_the_framework_says_so_with_exit_3(frozen, command):
    assert atc(command, shape="features:8,20").returncode == 0
    done = command("cairn", "verify", "model.om", "--against", "frozen_graph.pb", "--python", "/usr/bin/python3")
    assert done.returncode == 3
    assert re.search(r"not verified: framework missing \(\w+ in /usr/bin/python3\)", done.stdout + done.stderr)


def test_bench_reports_times_and_steps_as_json(frozen, command):
    done = command("cairn", "bench", "frozen_graph.pb", "--batch", 4, "--seconds", 0.1, "--per-op", "--json")
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert 0 < result["least_s"] <= result["median_s"] and result["steps"]


def test_what_runs_on_the_reference_engine_is_told_with_its_share(command, tmp_path):
    import tensorflow as tf

    with tf.Graph().as_default() as graph:
        x = tf.compat.v1.placeholder(tf.float32, [None, 64, 64, 1], name="x")
        slow = tf.nn.dilation2d(x, tf.zeros([2, 2, 1]), [1] * 4, "SAME", "NHWC", [1] * 4, name="slow")
        tf.add(slow, tf.math.softsign(x), name="y")
    (tmp_path / "special.pb").write_bytes(graph.as_graph_def().SerializeToString())
    share = re.compile(r"the reference engine, which is slow, takes about (\d+) % of a run's time and [\d.]+ % of its FLOPs:")
    step = "dilation2d of f32[{}, 64, 64, 1], f32[2, 2, 1] at slow (cpu has no kernel of it)"
    for shape, rows in ("x:8,64,64,1", 8), ("x:-1,64,64,1", 1):
        done = command("cairn", "convert", "special.pb", "-o", "special.om", f"--input-shape={shape}")
        assert done.returncode == 0, done.stderr
        assert int(share.search(done.stdout)[1]) > 50 and step.format(rows) in done.stdout
    done = command("atc", "--model=special.pb", "--input_shape=x:8,64,64,1", "--framework=3", "--output=model", "--soc_version=Ascend310")
    assert share.search(done.stdout) and step.format(8) in done.stdout
    for words in ("show",), ("bench", "--seconds=0.05"):
        done = command("cairn", words[0], "special.om", "--batch=2", *words[1:])
        assert share.search(done.stdout) and step.format(2) in done.stdout, done.stderr
        found = json.loads(command("cairn", words[0], "special.om", "--batch=2", "--json", *words[1:]).stdout)["reference"]
        assert [step["op"] for step in found["steps"]] == ["dilation2d"] and 0 < found["of_flops"] < found["of_seconds"] <= 1
    done = command("cairn", "convert", "special.pb", "-o", "plain.om", "--out-nodes=Softsign:0")
    assert done.returncode == 0 and "reference engine" not in done.stdout


def test_open_sizes_are_judged_by_sizes_that_a_net_would_see(command, tmp_path):
    """Windows of 3 and strides of 2 leave nothing of a width of 1, which no fast kernel takes."""
    import numpy as np
    import tensorflow as tf

    with tf.Graph().as_default() as graph:
        x = tf.compat.v1.placeholder(tf.float32, [None, 32, None, 8], name="image")
        for _ in range(2):
            x = tf.nn.max_pool2d(tf.nn.relu(tf.nn.conv2d(x, np.ones([3, 3, 8, 8], np.float32), 1, "VALID")), 2, 2, "VALID")
        tf.identity(x, name="y")
    (tmp_path / "text.pb").write_bytes(graph.as_graph_def().SerializeToString())
    for limits in "image:-1,32,-1,8", "image:1~4,32,16~48,8":
        done = command("cairn", "convert", "text.pb", "-o", "text.om", f"--input-shape={limits}")
        assert done.returncode == 0 and "reference" not in done.stdout, done.stdout + done.stderr
        for verb in "show", "why", "check":
            done = command("cairn", verb, "text.om")
            assert done.returncode == 0 and "reference/conv2d" not in done.stdout, done.stdout + done.stderr
            assert "reference engine" not in done.stdout


def test_why_names_the_kernel_of_a_node(frozen, command):
    done = command("cairn", "why", "frozen_graph.pb", "loss/MatMul")
    assert done.returncode == 0, done.stderr
    assert "loss/MatMul" in done.stdout and "cpu/" in done.stdout


def test_every_command_takes_a_checkpoint_by_its_prefix(command, tmp_path):
    import tensorflow as tf

    tf1 = tf.compat.v1
    with tf.Graph().as_default(), tf1.Session() as session:
        x = tf1.placeholder(tf.float32, (None, 3), "x")
        w = tf1.get_variable("w", initializer=np.arange(6, dtype=np.float32).reshape(3, 2))
        tf.nn.relu(tf.matmul(x, w) - 4, name="y")
        session.run(tf1.global_variables_initializer())
        tf1.train.Saver().save(session, str(tmp_path / "model.ckpt"), global_step=7)
    prefix, ends = "model.ckpt-7", ("--out-nodes", "y")
    for words in (
        ("show", prefix, *ends),
        ("freeze", prefix, *ends, "-o", "frozen_graph.pb"),
        ("convert", prefix, *ends, "-o", "model.om"),
        ("verify", "model.om", "--against", prefix),
    ):
        done = command("cairn", *words)
        assert done.returncode == 0, done.stdout + done.stderr
    np.save(tmp_path / "x.npy", np.ones((2, 3), np.float32))
    done = command("cairn", "run", prefix, *ends, "--input", "x=x.npy", "--output", "results")
    assert done.returncode == 0, done.stderr
    assert np.load(tmp_path / "results" / "y.npy").tolist() == [[2, 5], [2, 5]]
    (tmp_path / (prefix + ".meta")).unlink()
    done = command("cairn", "show", prefix)
    assert done.returncode == 1 and "is a checkpoint without its graph, model.ckpt-7.meta" in done.stderr


def test_a_file_that_is_no_model_is_refused_in_one_sentence(command, tmp_path):
    (tmp_path / "broken.om").write_bytes(b"\x00\x01garbage" * 50)
    for verb in ("show", "run", "bench"):
        done = command("cairn", verb, "broken.om")
        assert done.returncode == 1
        assert len(done.stderr.strip().splitlines()) == 1 and "broken.om" in done.stderr


@pytest.mark.parametrize(("words", "sentence"), [
    (("shwo", "frozen_graph.pb"), "shwo is no command; did you mean show?"),
    (("run", "frozen_graph.pb", "--inptu", "x.npy"), "--inptu is no option; did you mean --input?"),
    (("run", "frozen_graph.pb", "--input", "image=x.npy"), "image: is no input of the model, which has features"),
    (("why", "frozen_graph.pb", "loss/BaisAdd"), "did you mean loss/BiasAdd?"),
    (("convert", "frozen_graph.pb", "model.om"), "model.om is one argument too many"),
    (("freeze", "no_such_folder", "-o", "f.pb"), "error: freeze: no_such_folder: does not exist"),
])  # fmt: skip
def test_what_was_misspelt_is_guessed(words, sentence, frozen, command):
    done = command("cairn", *words)
    assert done.returncode == 1 and sentence in done.stderr, done.stderr


@pytest.mark.parametrize(("words", "sentence"), [
    (("msame", "--model", "m.om", "--outfmt", "txt"), "--outfmt: txt is written TXT"),
    (("msame", "--model", "m.om", "--outfmt", "TEXT"), "--outfmt: TEXT is none of BIN, TXT; did you mean TXT?"),
    (("msame", "m.om", "--model", "m.om"), "m.om is one argument too many"),
    (("atc", "--model=m.pb", "--framework=3", "--output=o", "--ddk_version=1.60"), "omg has it, atc has not: leave it out"),
    (("cairn", "migrate", ".", "--tf", "3"), "tf: expected 1, 2 or auto, found '3'"),
    (("cairn", "migrate", ".", "other"), "other is one argument too many"),
])  # fmt: skip
def test_words_that_do_not_fit_are_refused_with_what_does(words, sentence, command):
    done = command(*words)
    assert done.returncode in (1, 2) and sentence in done.stdout + done.stderr, done.stdout + done.stderr


def test_cairn_alone_shows_its_help(command):
    done = command("cairn")
    assert done.returncode == 1 and "cairn convert saved_model/ -o model.om" in done.stdout


@pytest.mark.parametrize("verb", ["show", "run", "why"])
def test_open_sizes_are_those_of_constant_shapes_or_asked_for(verb, command, tmp_path):
    import cairn

    for name, shape in (("fits", [6, 8]), ("never", [7, 11, 13])):
        b = cairn.Builder()
        b.output("y", b.input("x", "float32", [None, None, 4]).reshape(shape).relu())
        b.save(tmp_path / f"{name}.om")
    done = command("cairn", verb, "fits.om")
    assert done.returncode == 0, done.stderr
    if verb == "show":
        assert "for x [1, 12, 4]" in done.stdout
    done = command("cairn", verb, "never.om")
    assert done.returncode == 1 and len(done.stderr.splitlines()) == 1
    assert "cannot have shape [7, 11, 13]" in done.stderr and '--input-shape="x:?,?,4"' in done.stderr

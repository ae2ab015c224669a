"""Stock TensorFlow scripts on the engine: each case of door/cases.py in a process of its own, against stock TensorFlow."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from tensorflow_adapter import run_python

CASES = Path(__file__).parent / "door" / "cases.py"
TOLERANCE = 1e-6


@pytest.fixture
def case(tmp_path):
    """case(name, ...) -> (what it printed, the report of clusters)."""

    def run(name, *arguments, script=CASES, **environment):
        report = tmp_path / f"{name}{len(arguments)}.json"
        env = {"TF_CPP_MIN_LOG_LEVEL": "2", "CAIRN_REPORT": str(report), **os.environ, **environment}
        command = [sys.executable, script, name, *map(str, arguments)]
        done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stderr[-3000:]
        graphs = json.loads(report.read_text()) if report.exists() else {"graphs": [], "run_by_tensorflow": []}
        return json.loads(done.stdout.splitlines()[-1]), graphs

    return run


def flat(values):
    if not isinstance(values, list):
        return [values]
    return [number for value in values for number in flat(value)]


def assert_close(found, expected, tolerance=TOLERANCE):
    found, expected = np.array(flat(found)), np.array(flat(expected))
    assert found.shape == expected.shape
    assert np.abs(found - expected).max() <= tolerance * max(1.0, np.abs(expected).max())


def on_engine(report, least=0.95, clusters=3):
    """The training step of the report: the graph with most nodes on the engine."""
    assert not report["run_by_tensorflow"]
    step = max(report["graphs"], key=lambda graph: graph["numeric_on_engine"])
    assert 1 <= len(step["clusters"]) <= clusters, step
    assert step["numeric_on_engine"] >= least * step["numeric"], step["host"]
    return step


def test_training_steps_equal_those_of_stock_tensorflow(case):
    found, report = case("training")
    for stock, engine in found.values():
        assert_close(engine, stock)
    on_engine(report)


def test_a_graph_may_hold_both_kinds_of_variables(case):
    (stock, engine), report = case("mixed_variables")
    assert stock[0] == ["VarHandleOp", "VariableV2"]
    assert_close(engine[1:], stock[1:])
    on_engine(report)


def test_variables_are_found_where_tensorflow_keeps_them(case):
    found, report = case("variables_of_a_server")
    for stock, engine in found.values():
        assert len(stock[0]) == 10 and stock[1] == engine[1] == "FailedPreconditionError"
        assert_close(engine[0], stock[0])
        assert stock[0] == sorted(stock[0], reverse=True)
    assert max(graph["numeric_on_engine"] for graph in report["graphs"]) > 20


def test_sessions_differ_by_their_own_entry(case):
    (stock, off, engine), report = case("three_sessions")
    assert off == stock  # bit for bit
    assert_close(engine, stock)
    assert sum(len(graph["clusters"]) for graph in report["graphs"]) == 1  # the training step of the third


def test_any_tensor_can_be_fed_and_fetched(case):
    equal, report = case("feeds_and_fetches")
    assert equal == [True, True]
    assert sum(len(graph["clusters"]) for graph in report["graphs"]) >= 3


def test_what_was_trained_is_saved_and_restored_in_another_process(case, tmp_path):
    case("save", tmp_path)
    assert max(case("restore", tmp_path)[0]) <= TOLERANCE


def test_a_variable_in_parts_is_trained_saved_and_restored(case, tmp_path):
    (stock, engine), report = case("partitioned", tmp_path)
    assert stock[2] and engine[2]
    assert_close(engine, stock, 1e-5)
    on_engine(report, 0.9)


def test_branches_and_loops_of_either_kind(case):
    found, report = case("control_flow")
    for stock, engine in found:
        assert_close(engine, stock, 1e-5)
    ops = {op for graph in report["graphs"] for cluster in graph["clusters"] for op in cluster["ops"]}
    assert ops & {"If", "StatelessIf"} and ops & {"While", "StatelessWhile"}


def test_an_average_sees_what_an_update_wrote_behind_a_host_operator(case):
    (stock, engine), report = case("average_behind_the_host")
    assert_close(engine, stock, 1e-6)
    assert max(len(graph["clusters"]) for graph in report["graphs"]) == 2


def test_a_constant_that_waits_is_known_behind_the_host_as_well(case):
    (stock, engine), report = case("constants_that_wait")
    assert_close(engine, stock, 1e-6)
    assert not report["run_by_tensorflow"]
    assert max(len(graph["clusters"]) for graph in report["graphs"]) == 2


def test_an_uninitialised_variable_is_named(case):
    found, _ = case("uninitialised")
    assert len(found) == 2
    assert all("layer/w" in text for text in found)


def test_a_step_tells_which_variable_has_no_value_and_leaves_the_others_free(case):
    found, _ = case("uninitialised_in_part")
    for stock, engine in found:
        assert engine == stock and len(stock) == 9


def test_an_error_of_the_engine_names_node_and_script_line(case):
    (kind, text), _ = case("run_time_error")
    assert kind == "InvalidArgumentError"
    assert "Cairn: layer/lookup" in text and "cases.py" in text


def test_what_the_engine_refuses_at_run_time_runs_on_tensorflow(case):
    (stock, engine), report = case("refused_at_run_time")
    assert_close(engine, stock)
    assert "squeezes" in report["run_by_tensorflow"][0]["reason"]


def test_a_loop_stands_between_clusters(case):
    (stock, engine), _ = case("map_and_its_gradient")
    assert_close(engine, stock)


def test_random_streams_go_on_whatever_is_fetched(case):
    (stock, engine), report = case("random_streams")
    assert_close(engine, stock, 1e-5)
    assert any("RandomStandardNormal" in cluster["ops"] for graph in report["graphs"] for cluster in graph["clusters"])


def test_setting_the_seed_begins_the_streams_of_a_function_again(case):
    stock, _ = case("seeds_of_functions", "stock")
    engine, report = case("seeds_of_functions", "cairn")
    assert_close(engine, stock, 1e-5)
    assert engine[0] == engine[2] != engine[1]
    assert any("RandomStandardNormal" in cluster["ops"] for graph in report["graphs"] for cluster in graph["clusters"])


def test_a_sparse_update_may_name_a_row_twice(case):
    (stock, engine), report = case("repeated_rows")
    assert_close(engine, stock, 1e-5)
    on_host = {each["op"] for graph in report["graphs"] for each in graph["host"]}
    on_the_engine = {op for graph in report["graphs"] for cluster in graph["clusters"] for op in cluster["ops"]}
    assert "ResourceSparseApplyAdagrad" in on_host & on_the_engine  # the op's own, and the optimizer's


def test_each_way_of_the_platforms_scripts_trains_as_on_tensorflow(tmp_path):
    report = tmp_path / "report.json"
    done = run_python(["-m", "cairn_tf1", CASES.with_name("patterns.py"), tmp_path], "cairn", CAIRN_REPORT=str(report))
    assert done.returncode == 0, done.stderr[-3000:]
    assert not json.loads(report.read_text())["run_by_tensorflow"]
    found = json.loads(done.stdout.splitlines()[-1])
    assert len(found) == 10
    for name, (stock, engine, (with_stock, with_engine)) in found.items():
        assert len(stock) >= 6
        assert_close(engine, stock, 1e-5)
        assert with_stock == 0 and with_engine >= 10, name


PROFILED = """
import numpy as np
import tensorflow.compat.v1 as tf
tf.disable_v2_behavior()
from npu_bridge.npu_init import *
config = tf.ConfigProto()
entry = config.graph_options.rewrite_options.custom_optimizers.add(name="NpuOptimizer")
entry.parameter_map["profiling_mode"].b = True
entry.parameter_map["profiling_options"].s = b'OPTIONS'
x = tf.placeholder(tf.float32, [16, 16])
y = tf.matmul(x, x, name="square")
with tf.Session(config=config) as sess:
    for _ in range(3):
        sess.run(y, {x: np.eye(16)})
with tf.Session(config=npu_config_proto()) as sess:
    sess.run(y, {x: np.eye(16)})
print("done")
"""


def test_profiling_options_of_a_session_record_its_steps(tmp_path):
    options = json.dumps({"output": str(tmp_path), "training_trace": "on", "task_trace": "on", "aicpu": "on", "fp_point": "",
                          "bp_point": "", "aic_metrics": "PipeUtilization"})  # fmt: skip
    done = run_python(["-c", PROFILED.replace("OPTIONS", options)], "cairn")
    assert done.returncode == 0 and done.stdout.split() == ["done"], done.stderr[-3000:]
    (folder,) = tmp_path.glob("PROF_*")
    assert f"npu_bridge: profile in {folder}" in done.stderr
    assert any(file.stat().st_size for file in folder.rglob("*") if file.is_file())
    wrong = run_python(["-c", PROFILED.replace("OPTIONS", '{"outputs": "."}')], "cairn")
    assert wrong.returncode == 1 and "profiling_options: outputs is no profiling option" in wrong.stderr


def test_a_missing_engine_is_said(case):
    text = case("missing_engine", CAIRN_LIBRARY="/nowhere/libcairn.so")[0]
    assert "Cairn: the engine cannot be loaded: /nowhere/libcairn.so" in text


def test_eight_threads_share_one_session(case):
    assert case("eight_threads")[0] == 8 * 100 * 8


def test_a_thousand_sessions_leave_nothing_behind(case):
    early, late = case("a_thousand_sessions")[0]
    assert late - early < 30


@pytest.mark.parametrize("rule", ["engine", "measured"])
def test_changing_shapes_keep_a_bounded_number_of_plans(case, rule):
    (resident, allocated), (resident_late, allocated_late) = case("changing_shapes", CAIRN_NEW_SIZES=rule)[0]
    assert allocated_late - allocated < 16  # the plans', which have a bound in bytes
    assert resident_late - resident < 60  # and what malloc cannot give back between them


def test_recurrent_layers_train_in_one_cluster(case):  # three layers, three lengths of a loop
    stock, _ = case("recurrent_layers", "stock")
    engine, report = case("recurrent_layers", "cairn")
    assert_close(engine, stock, 1e-5)
    steps = [graph for graph in report["graphs"] if graph["numeric"] > 10]
    assert len(steps) == 6 and not report["run_by_tensorflow"]
    for step in steps:
        assert len(step["clusters"]) == 1 and step["numeric_on_engine"] >= step["numeric"] - 1, step["host"]


def test_functions_and_keras_fit(case):
    stock, _ = case("functions", "stock")
    engine, report = case("functions", "cairn")
    assert_close(engine, stock)
    assert any(graph["clusters"] for graph in report["graphs"])

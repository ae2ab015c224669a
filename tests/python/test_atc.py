"""What the options of atc do to a model: sizes, switches, files beside it, and its messages."""

import json
import shlex

import numpy as np
import pytest
from atc_models import DENSE, SUCCESS, X, convert, exact, graph, ones, output  # noqa: F401


# --- sizes -----------------------------------------------------------------------------------------------------------


def test_a_model_of_batch_profiles_takes_those_and_names_them_otherwise(convert, output):
    convert(graph(("x", [-1, 3])), "--input_shape=x:-1,3", "--dynamic_batch_size=1, 4,8,")
    assert output(x=ones(4, 3))["y"].shape == (4, 3)
    assert output(x=ones(3, 3)) is None
    assert "x:1,3 | x:4,3 | x:8,3" in output.why and output.why.count("\n") == 1


def test_image_profiles_fill_height_and_width(convert, output):
    shape = "--input_shape=x:2,-1,-1,3"
    convert(graph(("x", [-1, -1, -1, 3])), shape, "--dynamic_image_size=4,6;8,8", "--input_format=NHWC")
    assert output(x=ones(2, 4, 6, 3)) and output(x=ones(2, 8, 8, 3))
    assert output(x=ones(2, 8, 6, 3)) is None
    convert(graph(("x", [-1, -1, -1, 3])), shape, "--dynamic_image_size=4,6;8,8", "--input_format=NCHW", fails="E10019")


def test_dims_profiles_fill_every_open_size_in_order(convert, output):
    inputs = graph(("data", [1, 1, 40, -1]), ("label", [1, -1]), ("mask", [-1, -1]))
    shape = "--input_shape=data:1,1,40,-1;label:1,-1;mask:-1,-1"
    convert(inputs, shape, "--dynamic_dims=20,20,1,1;40,40,2,2;80,60,4,4", "--input_format=ND")
    assert output(data=ones(1, 1, 40, 80), label=ones(1, 60), mask=ones(4, 4))
    assert output(data=ones(1, 1, 40, 80), label=ones(1, 60), mask=ones(2, 2)) is None


@pytest.mark.parametrize("option", ["--input_shape=x:1~4,3,-1", "--input_shape_range=x:[1~4,3,-1]",
                                    "--input_shape_range=[1~4,3,-1]"])  # fmt: skip
def test_ranges_are_kept_as_limits(convert, output, option):
    convert(graph(("x", [-1, 3, -1])), option)
    assert output(x=ones(4, 3, 9)) and output(x=ones(1, 3, 1))
    assert output(x=ones(5, 3, 9)) is None and "x:1~4,3,-1" in output.why


@pytest.mark.parametrize(
    "options, code",
    [
        (["--dynamic_batch_size=1,2", "--dynamic_dims=1;2", "--input_shape=x:-1,3"], "E10009"),
        (["--dynamic_batch_size=1,2"], "E10004"),
        (["--dynamic_batch_size=1,2", "--input_shape=x:2,3"], "E10031"),
        (["--dynamic_batch_size=1,2", "--input_shape=x:-1,-1"], "E10018"),
        (["--dynamic_batch_size=1,2", "--input_shape=x:1~4,3"], "E10040"),
        (["--dynamic_batch_size=1", "--input_shape=x:-1,3"], "E10035"),
        (["--dynamic_batch_size=" + ",".join(map(str, range(1, 102))), "--input_shape=x:-1,3"], "E10036"),
        (["--dynamic_batch_size=1,0", "--input_shape=x:-1,3"], "E10038"),
        (["--dynamic_batch_size=1,1", "--input_shape=x:-1,3"], "E10039"),
        (["--dynamic_batch_size=1,a", "--input_shape=x:-1,3"], "E10003"),
        (["--dynamic_dims=1,2;2", "--input_shape=x:-1,-1", "--input_format=ND"], "E10037"),
        (["--dynamic_dims=1;2", "--input_shape=x:-1,-1", "--input_format=ND"], "E10045"),
        (["--dynamic_dims=1;2", "--input_shape=x:-1,3"], "E10001"),
        (["--dynamic_image_size=1,2,3;4,5,6", "--input_shape=x:-1,3"], "E10020"),
        (["--input_shape_range=x:1~2,3"], "E10048"),
        (["--input_shape_range=x:[a,3]"], "E10048"),
        (["--input_shape_range=[1~2,3],[1]"], "E19025"),
        (["--input_shape=x:4~1,3"], "E10002"),
        (["--precision_mode=force_fp16", "--precision_mode_v2=fp16"], "E10047"),
        (["--optypelist_for_implmode=Gelu"], "E10001"),
        (["--optimization_switch=A:maybe"], "E10001"),
        (["--input_shape=z:1,3"], "E10016"),
        (["--input_shape=x:1,3;x:2,3"], "E10001"),
        (["--input_shape=x:1,3", "--out_nodes=nosuch:0"], "E10016"),
        (["--framework=5"], "E10001"),
        (["--framework=0"], "E10008"),
        (["--cluster_config=c.json"], "E10055"),
        (["--input_fp16_nodes=x", "--insert_op_conf=missing.cfg"], "E13000"),
    ],
)
def test_what_excludes_or_contradicts_fails_with_the_code_of_the_platform(convert, tmp_path, options, code):
    convert(graph(("x", [-1, -1])), *options, fails=code)
    assert not (tmp_path / "model.om").exists()


# --- switches and files ----------------------------------------------------------------------------------------------


DIVIDE = """module @m {
  func @main(%x: f32[4, 3]) -> (%y: f32[4, 3]) {
    %a = relu %x : f32[4, 3]
    %b = relu %a : f32[4, 3]
    %c = exp %b : f32[4, 3]
    %y = tanh %c : f32[4, 3]
    return %y
  }
}
"""


def fusion_result(tmp_path):
    return json.loads((tmp_path / "fusion_result.json").read_text())


def test_rules_are_counted_and_can_be_switched_off(convert, command, tmp_path):
    convert(DIVIDE)
    rules = fusion_result(tmp_path)["graph_fusion"]
    assert rules and all(int(count["effect_times"]) > 0 for count in rules.values())
    name = next(iter(rules))
    (tmp_path / "off.json").write_text(json.dumps({"Switch": {"GraphFusion": {name: "off", "NoRule": "off"}}}))
    said = convert(DIVIDE, "--fusion_switch_file=off.json")
    assert "NoRule has no effect" in said
    assert name not in fusion_result(tmp_path)["graph_fusion"]
    (tmp_path / "off.cfg").write_text(f"{name}:off\n")
    convert(DIVIDE, "--fusion_switch_file=off.cfg")
    assert name not in fusion_result(tmp_path)["graph_fusion"]
    convert(DIVIDE, "--oo_level=O1")
    assert fusion_result(tmp_path)["graph_fusion"] == {}
    (tmp_path / "off.json").write_text("{")
    convert(DIVIDE, "--fusion_switch_file=off.json", fails="E10032")


def test_no_statistics_are_written_when_not_asked_for(convert, tmp_path):
    convert(DIVIDE, "--export_compile_stat=0")
    assert not (tmp_path / "fusion_result.json").exists()


def large_model():
    values = ", ".join(str(i / 7) for i in range(64))
    dense = DENSE.replace("3, 2", "32, 2").replace("[?n, 3]", "[?n, 32]")
    return dense.replace("(1.1, 0.2, -0.3, 0.4, 0.7, -0.6)", f"({values})")


def test_external_weights_lie_beside_the_model_and_are_checked(convert, output, command, tmp_path):
    convert(large_model())
    inside, size = output(x=ones(2, 32))["y"], (tmp_path / "model.om").stat().st_size
    convert(large_model(), "--external_weight=1")
    (file,) = (tmp_path / "weight").iterdir()
    assert file.stat().st_size == 256 and (tmp_path / "model.om").stat().st_size < size
    np.testing.assert_array_equal(output(x=ones(2, 32))["y"], inside)
    assert command("cairn", "check", "model.om").returncode == 0
    content = file.read_bytes()
    file.write_bytes(content[:-1] + b"x")
    assert "checksum" in command("cairn", "check", "model.om").stderr
    file.write_bytes(content[:-1])
    assert output(x=ones(2, 32)) is None and output.why.count("\n") == 1
    file.unlink()
    assert output(x=ones(2, 32)) is None and "weight_" in output.why


def test_the_original_model_is_written_beside(convert, output, tmp_path):
    convert(DENSE, "--precision_mode=force_fp16", "--save_original_model=true")
    np.testing.assert_allclose(output(model="model_original.om", x=X)["y"], exact(X), rtol=2e-6, atol=1e-6)


CHAIN = """module @m {
  func @main(%x: f32[64, 64]) -> (%y: f32[64, 64]) {
    %a = matmul %x, %x : f32[64, 64]
    %b = matmul %a, %a : f32[64, 64]
    %c = matmul %b, %b : f32[64, 64]
    %d = matmul %c, %c : f32[64, 64]
    %y = matmul %d, %d : f32[64, 64]
    return %y
  }
}
"""


def test_memory_is_not_shared_when_not_wanted(convert, command):
    def memory():
        said = command("atc", "--mode=6", "--om=model.om").stdout
        return int(said.split("memory_size[")[1].split(" B")[0])

    convert(CHAIN)
    shared = memory()
    convert(CHAIN, "--disable_reuse_memory=1")
    assert 0 < shared < memory()


# --- modes -----------------------------------------------------------------------------------------------------------


def test_single_operators_become_models_with_the_platforms_names(command, output, tmp_path):
    tensor = {"format": "ND", "shape": [3, 3], "type": "int32"}
    matrix = {"format": "nd", "shape": [2, 2], "type": "FLOAT"}
    ops = [
        {"op": "Add", "input_desc": [tensor, tensor], "output_desc": [tensor]},
        {"op": "MatMulV2", "name": "product", "input_desc": [matrix, matrix], "output_desc": [matrix],
         "attr": [{"name": "transpose_a", "type": "bool", "value": True}]},
    ]  # fmt: skip
    (tmp_path / "ops.json").write_text(json.dumps(ops))
    done = command("atc", "--singleop=ops.json", "--output=out_ops", "--soc_version=Ascend310")
    assert done.returncode == 0 and SUCCESS in done.stdout
    names = sorted(file.name for file in (tmp_path / "out_ops").iterdir())
    assert names == ["0_Add_3_2_3_3_3_2_3_3_3_2_3_3.om", "product.om"]
    a, b = np.float32([[1, 2], [3, 4]]), np.float32([[5, 6], [7, 8]])
    (found,) = output(model="out_ops/product.om", x0=a, x1=b).values()
    np.testing.assert_array_equal(found, a.T @ b)


@pytest.mark.parametrize(
    "text, code",
    [
        ("{", "E10025"),
        ("[{}]", "E10026"),
        ('[{"op": "Add", "input_desc": [{"format": "ND", "shape": [1], "type": "int3"}]}]', "E10027"),
        ('[{"op": "Neg", "input_desc": [], "output_desc": [{"format": "ND", "shape": "x", "type": "int8"}]}]', "E10027"),
        ('[{"op": "Neg", "output_desc": [{"format": "ND", "shape": [], "type": "int8"}], "attr": [{}]}]', "E10029"),
        ('[{"op": "NoSuchOp", "output_desc": [{"format": "ND", "shape": [], "type": "int8"}]}]', "E19010"),
    ],
)
def test_a_wrong_list_of_single_operators_is_refused(command, tmp_path, text, code):
    (tmp_path / "ops.json").write_text(text)
    done = command("atc", "--singleop=ops.json", "--output=out")
    assert done.returncode == 255 and f"\n{code}:" in done.stdout


def test_a_text_dump_becomes_json_without_weights(command, tmp_path):
    (tmp_path / "ge_proto_1.txt").write_text(
        'name: "m" graph { name: "g" op { name: "a" type: "Data" output_desc { shape { dim: 1 dim: 3 } } }\n'
        'op { name: "b" type: "Const" input: "a:0" attr { key: "t" value { t { data: "\\001\\002" } } } } }'
    )
    done = command("atc", "--mode=5", "--om=ge_proto_1.txt", "--json=out.json")
    assert done.returncode == 0, done.stdout
    found = json.loads((tmp_path / "out.json").read_text())
    assert [op["name"] for op in found["graph"][0]["op"]] == ["a", "b"]
    assert found["graph"][0]["op"][0]["output_desc"][0]["shape"]["dim"] == [1, 3]
    assert "data" not in json.dumps(found).lower().replace('"data"', "", 1)
    for broken in ["op {", "}", "op { name }", "name: 'x", "x: 1", ""]:
        (tmp_path / "ge_proto_1.txt").write_text(broken)
        done = command("atc", "--mode=5", "--om=ge_proto_1.txt", "--json=out.json")
        assert done.returncode == 255 and done.stdout.count("\n") == 3, done.stdout


def test_the_check_report_lists_operators_in_network_order(command, tmp_path):
    (tmp_path / "m.pb").write_text(graph(("x", [2, 3])))
    done = command("atc", "--mode=3", "--model=m.pb", "--framework=3", "--check_report=r.json")
    report = json.loads((tmp_path / "r.json").read_text())
    assert done.returncode == 0 and report["result"] == "success" and report["fail"] == 0
    assert {"name": "y", "type": "Neg", "result": "success"} in report["op"] and report["total"] == report["pass"]
    (tmp_path / "m.pb").write_text(graph(("x", [2, 3])).replace('op: "Neg"', 'op: "NoSuchOp"'))
    done = command("atc", "--mode=3", "--model=m.pb", "--framework=3", "--check_report=r.json")
    report = json.loads((tmp_path / "r.json").read_text())
    assert done.returncode == 255 and report["result"] == "failed" and report["op"][0]["cause"][0]["code"] == 1


def test_a_conversion_that_operators_stop_leaves_the_report(command, tmp_path):
    (tmp_path / "m.pb").write_text(graph(("x", [2, 3])).replace('op: "Neg"', 'op: "NoSuchOp"'))
    done = command("atc", "--model=m.pb", "--framework=3", "--output=m")
    report = json.loads((tmp_path / "check_result.json").read_text())
    assert done.returncode == 255 and report["result"] == "failed" and report["op"][0]["name"] == "y"
    (tmp_path / "check_result.json").unlink()
    assert command("atc", "--model=m.pb", "--framework=3", "--output=m", "--log=loud").returncode == 255
    assert not (tmp_path / "check_result.json").exists()


def test_the_remedy_for_an_unknown_operator_is_a_command_that_works(command, tmp_path):
    (tmp_path / "odd name.pb").write_text(
        graph(("x", [2, 3])).replace('op: "Neg"', 'op: "NoSuchOp"')
        + 'node { name: "z" op: "Exp" input: "y" attr { key: "T" value { type: DT_FLOAT } } }\n'
    )
    done = command("atc", "--model=odd name.pb", "--framework=3", "--output=whole", "--soc_version=Ascend310")
    assert done.returncode == 255, done.stdout
    (line,) = [text for text in done.stdout.splitlines() if "cairn convert" in text]
    remedy = line[line.index("cairn convert") :]
    words = shlex.split(remedy)
    assert words == ["cairn", "convert", "odd name.pb", "--cut=y", "-o", "whole"]
    done = command(*words)
    assert done.returncode == 0 and (tmp_path / "whole.om").exists(), done.stderr


# --- msame -----------------------------------------------------------------------------------------------------------


def test_msame_runs_profiles_and_keeps_what_steps_make(convert, command, tmp_path):
    convert(graph(("x", [-1, 3])), "--input_shape=x:-1,3", "--dynamic_batch_size=2,4")
    np.arange(12, dtype=np.float32).tofile(tmp_path / "x.bin")
    done = command("msame", "--model", "model.om", "--dymBatch", 4, "--input", "x.bin", "--output", "out", "--dump")
    assert done.returncode == 0, done.stdout
    np.testing.assert_array_equal(np.fromfile(tmp_path / "out/x_output_0.bin", np.float32), -np.arange(12))
    (manifest,) = (tmp_path / "out/dump").rglob("manifest.jsonl")
    (line,) = [json.loads(text) for text in manifest.read_text().splitlines()]
    assert line["sources"] == ["tf:y"] and np.load(manifest.with_name(line["file"])).shape == (4, 3)
    done = command("msame", "--model", "model.om", "--dymBatch", 3, "--output", "out")
    assert done.returncode == 1 and "x:2,3 | x:4,3" in done.stdout
    done = command("msame", "--model", "model.om", "--output", "out", "--profiler", "--loop", 3)
    assert done.returncode == 0 and "x:2,3" in done.stdout
    assert "cpu/" in (tmp_path / "out/profiler/steps.csv").read_text()
    for words in (["--dump"], ["--dump", "--profiler", "--output", "o"], ["--dymBatch", "2", "--dymHW", "1,1"], ["--dymHW", "1"], ["--dymShape", "x:2,3"]):
        assert command("msame", "--model", "model.om", *words).returncode == 1

"""Every command line in data/atc_lines.txt is taken, or refused with its code and a reason."""

import json
import shlex
from pathlib import Path

import pytest

FILE = Path(__file__).parent / "data" / "atc_lines.txt"
LINES = [line for line in FILE.read_text().splitlines() if line and not line.startswith("#")]
SUCCESS = {"atc": "ATC run success, welcome to the next use.", "omg": "OMG generate offline model success"}
FAILURE = {
    "atc": "ATC run failed, Please check the detail log, Try 'atc --help' for more information",
    "omg": "OMG generate offline model failed, Try 'omg --help' for more information",
}

IMAGE = """aipp_op {{
  aipp_mode: static
  input_format: RGB888_U8
  src_image_size_w: {size}
  src_image_size_h: {size}
  mean_chn_0: 124
  mean_chn_1: 117
  mean_chn_2: 104
  var_reci_chn_0: 0.0171
}}
"""
FILES = {
    "rgb_224.cfg": IMAGE.format(size=224),
    "rgb_416.cfg": IMAGE.format(size=416),
    "aipp_dynamic.cfg": "aipp_op { aipp_mode: dynamic related_input_rank: 0 max_src_image_size: 752640 }",
    "fusion_switch.cfg": json.dumps({"Switch": {"GraphFusion": {"ConstantFoldingPass": "off"}, "UBFusion": {}}}),
    "mixlist.json": json.dumps({"black-list": {"to-add": ["Neg"]}, "white-list": {"to-remove": ["MatMulV2"]}}),
    "op_precision.ini": "[ByOpType]\nNeg=high_precision\nGelu=high_performance\n",
    "keep_dtype.cfg": "OpType::Neg\n",
    "customize_dtypes.cfg": "y::InputDtype:float16,OutputDtype:float32\n",
    "ge_proto_00000000_graph_0_Build.txt": 'name: "g" graph { op { name: "a" type: "Data" } }',
    "m.prototxt": 'input: "a" input_shape { dim: 2 dim: 4 } layer { name: "y" type: "MyPower" bottom: "a" top: "y" power_param { scale: -1 } }',
    "w.caffemodel": "\x12\x03\x22\x01a",
    "map.cfg": "MyPower:Power\n",
    "m.air": "air",
}


def frozen(inputs):
    text = ""
    for i, (name, dims) in enumerate(inputs):
        sizes = " ".join(f"dim {{ size: {size} }}" for size in dims)
        text += f"""node {{ name: "{name}" op: "Placeholder" attr {{ key: "dtype" value {{ type: DT_FLOAT }} }}
  attr {{ key: "shape" value {{ shape {{ {sizes} }} }} }} }}
node {{ name: "y{i or ""}" op: "Neg" input: "{name}" attr {{ key: "T" value {{ type: DT_FLOAT }} }} }}
"""
    return text.encode()


def field(number, content):
    """A field of a protocol buffer: bytes with their length, or a number."""
    if isinstance(content, int):
        return bytes([number << 3, content])
    content = content.encode() if isinstance(content, str) else content
    return bytes([number << 3 | 2]) + length(len(content)) + content


def length(size):
    return bytes([size]) if size < 128 else bytes([size & 127 | 128]) + length(size >> 7)


def port(name, dims):
    sizes = b"".join(field(1, field(2, "n") if size < 0 else b"\x08" + length(size)) for size in dims)
    return field(1, name) + field(2, field(1, field(1, 1) + field(2, sizes)))


def onnx(inputs):
    graph = field(2, "g")
    for i, (name, dims) in enumerate(inputs):
        named = [size if size >= 0 else -1 for size in dims]
        graph += field(1, field(1, name) + field(2, f"y{i or ''}") + field(4, "Neg"))
        graph += field(11, port(name, named)) + field(12, field(1, f"y{i or ''}"))
    return field(1, 8) + field(7, graph) + field(8, field(1, "") + field(2, 13))


@pytest.mark.parametrize("line", LINES, ids=range(len(LINES)))
def test_the_line_is_taken_or_refused_with_a_reason(command, tmp_path, line):
    outcome, inputs, words = (part.strip() for part in line.split("|", 2))
    tool, *words = shlex.split(words)
    pairs = [(part.rsplit(":", 1)[0], part.rsplit(":", 1)[1]) for part in inputs.split(";")]
    ports = [(name, [int(size) for size in sizes.split(",") if size]) for name, sizes in pairs]
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    for word in words:
        name = word.split("=")[-1]
        if name.endswith(".pb"):
            (tmp_path / name).write_bytes(frozen(ports))
        elif name.endswith(".onnx"):
            (tmp_path / name).write_bytes(onnx(ports))
    done = command(tool, *words)
    said = done.stdout.splitlines()
    if outcome == "ok":
        assert done.returncode == 0, done.stdout + done.stderr
        assert "--help" in words or said[-1] == SUCCESS[tool]
    else:
        assert done.returncode in (1, 255), done.stdout
        reasons = [text for text in said[said.index(FAILURE[tool]) + 1 :] if text.startswith(outcome + ": ")]
        assert reasons and all(len(reason) > len(outcome) + 20 for reason in reasons), done.stdout


def test_every_option_that_has_a_meaning_stands_in_a_line(command):
    text = FILE.read_text().replace("-", "_")
    listed = {line.split()[0].lstrip("-") for line in command("atc", "--help").stdout.splitlines() if line.startswith("  --")}
    missing = sorted(name for name in listed if f"{name}=" not in text and f"{name} " not in text and f"{name}\n" not in text)
    assert missing == ["singleop"]  # which test_atc.py has


@pytest.mark.parametrize(
    "words, hint",
    [
        ("--model=m.onnx --framework=5 --output=o --out_nodes=Y:0", "did you mean y?"),
        ("--model=m.onnx --framework=5 --output=o --input_shape=x:-1,3 --dynamic_batch_size='1 2'", '"1,2,4"'),
        ("--model=m.onnx --framework=5 --output=o --input_shape_range=y:[1~2,3]", "specified in [--input_shape_range]"),
        ("--model=m.onnx --framework=5 --output=o --output_type=Y:FP16", "specified in [--output_type] is not found: it is no"),
        ("--model=m.pb --framework=3 --output=o --out_nodes=y:x", "E10016: An opname specified in [--out_nodes]"),
        ("--model=m.onnx --framework=5 --output=o --insert_op_conf=utf16.cfg", "3], expected an image of 4 dimensions"),
        ("--model=m.onnx --framework=5 --output=o --insert_op_conf=name.cfg", "which has x; did you mean x?"),
        ("--model=m.onnx --framework=5 --output=o --fusion_switch_file=of.json", "APass is 'of', expected on or off"),
        ("--model=m.onnx --framework=5 --output=o --precision_mode=allow_mix_precision --modify_mixlist=both.json",
         "'Neg' is added to black-list and to white-list"),
        ("--model=m.onnx --framework=5 --output=o --precision_mode=allow_mix_precision --modify_mixlist=text.json",
         "'to-add' of black-list is no list of operators"),
        ("--singleop=key.json --output=o", "did you mean input_desc?"),
        ("", "[--output] is empty"),
        ("", "[--model] is empty"),
        ("--mode=6 --model=m.om", "--om=m.om in place of --model"),
        ("--mode=1 --model=m.onnx --json=m.json", "--om=m.onnx in place of --model"),
    ],
)
def test_a_refusal_says_what_would_be_taken(command, tmp_path, words, hint):
    (tmp_path / "m.onnx").write_bytes(onnx([("x", [-1, 3])]))
    (tmp_path / "m.pb").write_bytes(frozen([("x", [-1, 3])]))
    (tmp_path / "utf16.cfg").write_text(IMAGE.format(size=8), "utf-16")
    (tmp_path / "name.cfg").write_text('aipp_op { aipp_mode: static related_input_name: "X" input_format: RGB888_U8 }')
    (tmp_path / "of.json").write_text('{"Switch": {"GraphFusion": {"APass": "of"}}}')
    (tmp_path / "both.json").write_text('{"black-list": {"to-add": ["Neg"]}, "white-list": {"to-add": ["Neg"]}}')
    (tmp_path / "text.json").write_text('{"black-list": {"to-add": "Neg"}}')
    (tmp_path / "key.json").write_text('[{"op": "Neg", "inputs_desc": [], "output_desc": []}]')
    done = command("atc", "--soc_version=Ascend310", *shlex.split(words))
    assert done.returncode == 255 and hint in done.stdout, done.stdout

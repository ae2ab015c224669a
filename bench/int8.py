"""Networks of 8 bits (QDQ, quantised by ONNX Runtime's own tool) against ONNX Runtime and OpenVINO, interleaved, 2 threads:

  .venv-peers/bin/python bench/int8.py [options of ./dev bench]

Writes the table and out/int8.json. A peer's ratio is its time divided by Cairn's."""

import sys

import compare

NETS = ("resnet50:1:2", "resnet50:32:2", "mobilenetv2:1:2", "bert:1:2")

if __name__ == "__main__":
    cases = [f"{peer}+int8:{net}" for net in NETS for peer in ("cairn", "openvino", "ort")]
    sys.argv[1:] = [*cases, "--json", "out/int8.json", *sys.argv[1:]]
    sys.exit(compare.main())

"""One token of GPT-2 (small) behind a cache, weights of few bits alone, against ONNX Runtime and OpenVINO, interleaved, 2 threads:

  .venv-peers/bin/python bench/decode.py [options of ./dev bench]

Writes the table and out/decode.json. `a8` files let activations have 8 bits (accuracy_level 4), which OpenVINO's always have."""

import sys

import compare

TYPES = ("w4", "w4a8", "w8", "w8a8", "w8c")

if __name__ == "__main__":
    cases = [f"{peer}+{kind}:gpt2:1:2" for kind in TYPES for peer in ("cairn", "openvino", "ort")]
    sys.argv[1:] = [*cases, "--json", "out/decode.json", *sys.argv[1:]]
    sys.exit(compare.main())

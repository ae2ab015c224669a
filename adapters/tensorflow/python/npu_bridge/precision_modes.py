"""Names of precision modes; written by `./dev docs` from src/support/precision_modes.cpp."""

PRECISION = (
    "force_fp16",
    "force_fp32",
    "cube_fp16in_fp32out",
    "allow_fp32_to_fp16",
    "allow_mix_precision",
    "allow_mix_precision_fp16",
    "allow_mix_precision_bf16",
    "must_keep_origin_dtype",
    "allow_fp32_to_bf16",
    "origin",
)
PRECISION_V2 = (
    "fp16",
    "cube_fp16in_fp32out",
    "mixed_float16",
    "mixed_bfloat16",
    "origin",
)
MIXED = (
    "allow_mix_precision",
    "allow_mix_precision_fp16",
    "mixed_float16",
    "allow_mix_precision_bf16",
    "mixed_bfloat16",
)

"""Runs TensorFlow 1 scripts on TensorFlow 2.15: `tensorflow` means compat.v1, `tf.contrib` exists, names that moved are back.
`python -m cairn_tf1 train.py args` runs a script; `cairn_tf1.install()` does it for the process at hand."""

from cairn_tf1.alias import install

__all__ = ["install"]

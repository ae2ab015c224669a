"""Helpers for primitives of one's own."""

from mindspore.ops._utils.utils import generate_shape_index, get_1d_shape, get_broadcast_shape, get_concat_offset, range_op  # noqa: F401

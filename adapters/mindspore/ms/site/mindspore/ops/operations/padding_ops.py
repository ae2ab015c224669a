"""Primitives of borders, blocks and windows."""

import numpy as np
from cairn.ms.numerics import images
from mindspore._checkparam import Rel, Validator
from mindspore.ops.operations._form import REQUIRED, primitive, static, tensor

Padding = primitive(
    "Padding", lambda self, x: images.pad(x, [(0, 0)] * (len(x.shape) - 1) + [(0, self.pad_dim_size - 1)]),
    "The last axis, of size 1, filled up with zeros.", lambda self: Validator.check_positive_int(self.pad_dim_size, "pad_dim_size", "Padding"),
    pad_dim_size=8,
)  # fmt: skip


def _pad(self, x):
    if len(self.paddings) != len(tensor(x, "Pad").shape):
        raise ValueError(f"For 'Pad', 'paddings' must have a pair for each of {len(x.shape)} axes, but got {self.paddings}.")
    return images.pad(x, [tuple(each) for each in self.paddings])


def _check_pad(self):
    if not isinstance(self.paddings, tuple):
        raise TypeError(f"For 'Pad', 'paddings' must be a tuple, but got {type(self.paddings).__name__}.")
    for each in self.paddings:
        if len(each) != 2:
            raise ValueError(f"For 'Pad', 'paddings' must be pairs, but got {self.paddings}.")
        if min(each) < 0:
            raise ValueError(f"For 'Pad', all elements of 'paddings' must be at least 0, but got {self.paddings}.")


Pad = primitive("Pad", _pad, "x with zeros around.", _check_pad, paddings=REQUIRED)
MirrorPad = primitive(
    "MirrorPad", lambda self, x, paddings: images.mirror(x, static(paddings, "MirrorPad", "paddings"), self.mode), "x mirrored around.",
    lambda self: Validator.check_string(self.mode, ["REFLECT", "SYMMETRIC"], "mode", "MirrorPad"), mode="REFLECT",
)  # fmt: skip


def _positive_block(self):
    Validator.check_int(self.block_size, 2, Rel.GE, "block_size", self.name)


SpaceToDepth = primitive(
    "SpaceToDepth",
    lambda self, x: images.blocks_to_depth(x, self.block_size),
    "Blocks as channels.",
    _positive_block,
    block_size=REQUIRED,
)
DepthToSpace = primitive(
    "DepthToSpace",
    lambda self, x: images.depth_to_blocks(x, self.block_size),
    "Channels as blocks.",
    _positive_block,
    block_size=REQUIRED,
)


def _blocks(self):
    return [self.block_size] * 2 if "block_size" in self.attrs else _listed(self.block_shape)


def _listed(sizes):
    return [sizes] * 2 if isinstance(sizes, int) else list(sizes)


def _check_blocks(self):
    for each in _blocks(self):
        Validator.check_positive_int(each, "block_shape", self.name)
    for each in np.ravel(getattr(self, "paddings", getattr(self, "crops", ()))).tolist():
        Validator.check_non_negative_int(each, "paddings", self.name)


for _name, _attribute in {"": "block_size", "ND": "block_shape"}.items():
    globals()["SpaceToBatch" + _name] = primitive(
        "SpaceToBatch" + _name, lambda self, x: images.space_to_batch(x, _blocks(self), self.paddings), "Blocks as batch.", _check_blocks,
        **{_attribute: REQUIRED, "paddings": REQUIRED},
    )  # fmt: skip
    globals()["BatchToSpace" + _name] = primitive(
        "BatchToSpace" + _name, lambda self, x: images.batch_to_space(x, _blocks(self), self.crops), "Batch as blocks.", _check_blocks,
        **{_attribute: REQUIRED, "crops": REQUIRED},
    )  # fmt: skip


Im2Col = primitive(
    "Im2Col", lambda self, x: images.patches(x, _listed(self.ksizes), _listed(self.strides), _listed(self.dilations), _around(self.pads)),
    "Windows as columns.", ksizes=REQUIRED, strides=1, dilations=1, padding_mode="CALCULATED", pads=0,
)  # fmt: skip


def _around(pads):
    pads = [pads] * 2 if isinstance(pads, int) else list(pads)
    return (pads[0], pads[0], pads[1], pads[1]) if len(pads) == 2 else pads


del _name, _attribute

"""Tensors laid one behind the other in memory that they share: a chunk for each type, or several of at most a given size."""

import numpy

from cairn.ms.tensor import Tensor

_ORDER = "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64 complex64 complex128".split()


class Chunk(Tensor):
    """The memory of several tensors, as one row."""

    fusion_size = 0

    @property
    def shape(self):
        return list(self._array.shape)


def _is_of(tensor):
    held = tensor.__dict__.get("_chunk")
    return held is not None and tensor._array is not None and numpy.shares_memory(held._array, tensor._array)


def is_flattened(tensors):
    return all(map(_is_of, tensors))


def flatten_tensors(tensors, fusion_size=0):
    """Moves the tensors into chunks, by type; a chunk of more than fusion_size bytes has one tensor. Returns the chunks."""
    if isinstance(fusion_size, bool) or not isinstance(fusion_size, int) or fusion_size < 0:
        raise ValueError(f"For 'flatten', the 'fusion_size' must be an int of 0 or more, but got {fusion_size!r}.")
    groups = {}
    for each in dict.fromkeys(tensors):
        groups.setdefault(each.asnumpy().dtype, []).append(each)
    made = []
    for dtype in sorted(groups, key=_place):
        parts, size = [[]], 0
        for each in groups[dtype]:
            size += each._array.nbytes
            if fusion_size and parts[-1] and size > fusion_size:
                parts.append([])
                size = each._array.nbytes
            parts[-1].append(each)
        made += [_chunk(part, fusion_size) for part in parts]
    return made


def _chunk(tensors, fusion_size):
    chunk = Chunk(numpy.concatenate([each._array.ravel() for each in tensors]))
    chunk.fusion_size, start = fusion_size, 0
    for each in tensors:
        end = start + each._array.size
        each._array, each._chunk, start = chunk._array[start:end].reshape(each._array.shape), chunk, end
    return chunk


def get_flattened_tensors(tensors):
    """The chunks that the tensors lie in; none unless all do."""
    return sorted(dict.fromkeys(each._chunk for each in tensors), key=lambda chunk: _place(chunk._array.dtype)) if is_flattened(tensors) else []


def _place(dtype):
    return _ORDER.index(dtype.name) if dtype.name in _ORDER else len(_ORDER)


def get_fusion_size(chunks):
    return chunks[0].fusion_size if chunks else 0


for _name, _function in (("_is_flattened", is_flattened), ("_flatten_tensors", flatten_tensors),
                         ("_get_flattened_tensors", get_flattened_tensors), ("_get_fusion_size", get_fusion_size)):  # fmt: skip
    setattr(Tensor, _name, staticmethod(_function))

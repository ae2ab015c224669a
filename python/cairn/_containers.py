"""Sequences and optionals of ONNX models: lists and None in Python, which a model takes and gives as packed tensors
(`NAME`, `NAME:dims`, `NAME:ranks`, `NAME:given`).
"""

import numpy as np

PARTS = (":dims", ":ranks", ":given")


def grouped(ports):
    """{name: the suffixes of its packed parts, none for a tensor}."""
    names = {port.name for port in ports}
    whole = [port.name for port in ports if not (port.name.endswith(PARTS) and port.name.rpartition(":")[0] + ":dims" in names)]
    return {name: [part for part in PARTS if f"{name}:dims" in names and name + part in names] for name in whole}


def packed(name, value, parts, dtype, rank):
    given = value is not None
    sequence = ":ranks" in parts
    lacking = not given and not sequence  # zeros of no element, or the scalar that it would be
    elements = [np.asarray(x) for x in (value if sequence and given else [value] if given else [])]
    empty = [] if elements else [np.zeros(int(sequence or rank == 0), dtype)]  # as a list of scalars needs one to be typed
    dims = [0] * rank if lacking else [size for x in elements for size in x.shape]
    made = {
        name: np.concatenate([x.ravel() for x in elements] + empty),
        f"{name}:dims": np.array(dims, np.int64),
        f"{name}:ranks": np.array([x.ndim for x in elements], np.int64),
        f"{name}:given": np.array(given),
    }
    return {key: x for key, x in made.items() if key == name or key[len(name) :] in parts}


def unpacked(name, results, parts):
    values, dims = results[name], results[f"{name}:dims"].tolist()
    if ":given" in parts and not results[f"{name}:given"]:
        return None
    if ":ranks" not in parts:
        return values.reshape(dims)
    elements, at = [], 0
    for rank in results[f"{name}:ranks"].tolist():
        shape, dims = dims[:rank], dims[rank:]
        end = at + int(np.prod(shape, dtype=np.int64))
        elements.append(values[at:end].reshape(shape))
        at = end
    return elements


def run(model, arguments, max_seconds):
    """Model.run of a model with packed inputs or results."""
    groups = grouped(model.inputs)
    ports = {port.name: port for port in model.inputs}
    if len(arguments) == 1 and isinstance(arguments[0], dict):
        given = dict(arguments[0])
    else:
        given = dict(zip(groups, arguments, strict=True))
    for name, parts in groups.items():
        if parts and name in given and f"{name}:dims" not in given:
            (rank,) = ports[f"{name}:dims"].shape
            given |= packed(name, given[name], parts, ports[name].dtype, 1 if rank is None else rank)
    results = model._run(given, max_seconds=max_seconds)
    return {name: unpacked(name, results, parts) if parts else results[name] for name, parts in grouped(model.outputs).items()}

"""Reads and updates of one variable in one session run that nothing orders: what such a run gives depends on timing, on every
engine. `cairn port` does not call a difference in such values a fault."""

WRITERS = ("Apply", "ResourceApply", "SparseApply", "ResourceSparseApply", "Assign", "Scatter", "ResourceScatter")
HOLDERS = ("Variable", "VariableV2", "VarHandleOp")


def closure(fetched):
    """The operations that a run of `fetched` needs."""
    seen, pending = set(fetched), list(fetched)
    while pending:
        op = pending.pop()
        before = ({tensor.op for tensor in op.inputs} | set(op.control_inputs)) - seen
        seen |= before
        pending += before
    return seen


def races(fetched):
    """{name of an operation or of a variable whose value a race decides: sentence} for a run of these operations."""
    ops = closure(fetched)
    order, bits = _after(ops)
    found = {}
    for holder in ops:
        if not holder.type.startswith(HOLDERS):
            continue
        users = {op for tensor in holder.outputs for op in tensor.consumers() if op in ops}
        writers = [op for op in users if _writes(op, holder)]
        for writer in writers:
            for other in users - {writer}:
                if other in writers and bits[other] > bits[writer]:
                    continue  # the pair comes once more
                if order[other] & bits[writer] or order[writer] & bits[other]:
                    continue
                reason = f"{holder.name} is used by {_place(other)} and updated by {_place(writer)} in one run, in no order"
                late = order[other] | (order[writer] | bits[writer] if other in writers else 0)
                for op in ops:
                    if late & bits[op]:
                        found.setdefault(op.name, reason)
                        for variable in _written(op):
                            found.setdefault(variable, reason)
    return found


def _after(ops):
    """({op: bits of all that runs after it and of itself}, {op: its bit}); an edge back into a loop orders nothing."""
    consumers = {op: set() for op in ops}
    for op in ops:
        for before in {tensor.op for tensor in op.inputs} | set(op.control_inputs):
            if before.type not in ("NextIteration", "RefNextIteration"):
                consumers[before].add(op)
    bits = {op: 1 << index for index, op in enumerate(ops)}
    after, open_ = {}, []
    for first in ops:
        open_.append((first, iter(consumers[first])))
        while open_:
            op, rest = open_[-1]
            following = next((user for user in rest if user not in after), None)
            if following is not None:
                open_.append((following, iter(consumers[following])))
                continue
            open_.pop()
            after[op] = bits[op]
            for user in consumers[op]:
                after[op] |= after[user]
    return after, bits


def _writes(op, holder):
    """Optimizers hold a variable and its slots in their first inputs; the gradient may come from a variable as well."""
    if not op.type.startswith(WRITERS):
        return False
    return any(tensor.op is holder and (tensor.dtype.name == "resource" or tensor.dtype._is_ref_dtype) for tensor in op.inputs)


def _written(op):
    return [tensor.op.name for tensor in op.inputs if tensor.op.type.startswith(HOLDERS)] if op.type.startswith(WRITERS) else []


def _place(op):
    """Name and line of the script."""
    for frame in reversed(op.traceback or ()):
        if "site-packages" not in frame.filename and "cairn_tf1" not in frame.filename and not frame.filename.startswith("<"):
            return f"{op.name} ({frame.filename.rpartition('/')[2]}:{frame.lineno})"
    return op.name

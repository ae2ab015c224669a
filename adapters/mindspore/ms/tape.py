"""The calls that were made while gradients are being taken, and gradients from them.

The gradients that the engine derives for the calls between the inputs and a result become one function, which reads what the
calls computed and is kept by its structure: a second step of the same calls compiles nothing. Where a script's own function
stands in between (bprop of a Cell, a hook), the calls before and after it have functions of their own."""

import functools

import numpy

from cairn import _cairn
from cairn.ms import core, kept
from cairn.ms.tensor import Tensor, laid, order_of, unlaid, wrap

_identity, _stop, _cast = (core.row_of(name) for name in ("identity", "stop_gradient", "cast"))
_compiled = {}  # key of a segment: its gradients as a kept.Function
_plans = {}  # what Scope._key() tells: a _Plan
_MOST_PLANS = 8  # of one function


class Value:
    """What a tensor held when it was recorded: elements, and the call that made them. later: what a Parameter holds since it was assigned.
    origin: of integers the floating value that they were cast from, to which MindSpore passes gradients on. owner: the tensor
    that gradients are kept beside (recorded.py)."""

    __slots__ = ("tape", "array", "record", "used", "later", "number", "origin", "owner")

    def __init__(self, tape, array, record=None, owner=None):
        self.tape, self.array, self.record, self.used, self.later, self.origin, self.owner = tape, array, record, False, None, None, owner
        self.number = len(tape.values)
        tape.values.append(self)

    def versions(self):
        """The value and those of the same Parameter after it."""
        value, found = self, []
        while value is not None:
            found.append(value)
            value = value.later
        return found


class Record:
    """A call. Inputs are values, or arrays that are constants."""

    __slots__ = ("inputs", "outputs", "row", "attributes", "results")

    def __init__(self, row, inputs, attributes, results):
        self.row, self.inputs, self.attributes, self.results = row, inputs, attributes, results
        self.outputs = ()

    def key(self):
        return self.row.name, _frozen(self.attributes), self.results

    def add(self, builder, inputs):
        return builder.add(self.row.name, inputs, self.attributes, self.results)


class GradientRecord:
    """The gradients of a segment of calls, taken while something outside is differentiated as well."""

    __slots__ = ("inputs", "outputs", "segment")

    def __init__(self, segment, inputs):
        self.segment, self.inputs, self.outputs = segment, inputs, ()

    def key(self):
        return self.segment.key()

    def add(self, builder, inputs):
        return self.segment.add(builder, inputs)


class Cut:
    """A function of the script with a gradient of its own. always: it wants the gradients of its results whoever asks."""

    __slots__ = ("inputs", "outputs", "tensors", "results", "backward", "always")

    def __init__(self, inputs, tensors, results, backward, always):
        self.inputs, self.tensors, self.results, self.backward, self.always, self.outputs = inputs, tensors, results, backward, always, ()


def _frozen(attributes):
    return () if not attributes else tuple(
        (name, tuple(value) if isinstance(value, list) else str(value) if hasattr(value, "kind") else value)
        for name, value in sorted(attributes.items())
    )


def _is_float(array):
    return array.dtype.kind in "fc"


class Tape:
    symbolic = False

    def __init__(self):
        self.records, self.depth = [], 0
        self.values, self.lines = [], []  # all values as they were made, and how: equal lines make equal gradients
        self.plain = True  # whether all records are calls, with a line each

    def leaf(self, array):
        """The value of elements that the tape did not see made."""
        self.lines.append((array.dtype.char, array.shape, order_of(array)))
        return Value(self, array)

    def value(self, tensor):
        """The value of a tensor, which is a leaf where the tape did not see it made."""
        mark = tensor._mark
        if mark is None or mark.tape is not self:
            mark = tensor._mark = self.leaf(tensor.asnumpy())
        return mark

    def call(self, row, inputs, attributes):
        made = row.run(*inputs, **attributes)
        results = made if made.__class__ is tuple else (made,)
        if row.random:
            return made
        if row is _cast and isinstance(inputs[0], Tensor):
            inputs = self._from_origin(inputs[0], made)
        for each in results:
            if each._array.dtype.kind in "fc":
                break
        else:
            return made
        values, line = [], [row, tuple([(name, tuple(value) if value.__class__ is list else value) for name, value in attributes.items()])]
        for i, each in enumerate(inputs):
            if isinstance(each, Tensor) and (row.plain or row.role(i) != "shape"):
                mark = each._mark
                if mark is None or mark.tape is not self:
                    mark = each._mark = self.leaf(each.asnumpy())
                mark.used = True
                values.append(mark)
                line.append(mark.number)
            elif each is not None:
                given = self._constant(row.role(i), each, inputs)
                values.append(given)
                line.append(given.number if given.__class__ is Value else (given.tobytes(), given.shape))
            else:
                line.append(None)
        self.lines.append(tuple(line))
        self._append(Record(row, values, attributes, len(results)), results)
        return made

    def _from_origin(self, given, made):
        """The input of a cast: of integers that were cast from floating numbers, those."""
        mark = given._mark
        if mark is None or mark.tape is not self or mark.origin is None:
            return (given,)
        if not _is_float(made._array):
            self.came(made, given)
            return (given,)
        standing = wrap(mark.origin.array)
        standing._mark = mark.origin
        return (standing,)

    def came(self, integers, given):
        """A script cast the tensor to these integers."""
        mark = given._mark
        origin = self.value(given) if _is_float(given._array) else mark.origin if mark is not None and mark.tape is self else None
        if origin is not None:
            self.lines.append(("of", origin.number))
            integers._mark = Value(self, integers._array)
            integers._mark.origin = origin

    def _constant(self, role, given, inputs):
        if role == "shape":
            return numpy.array(core.elements(given), numpy.int64)
        arrays = (core.elements(each) for each in inputs)
        like = next((each.dtype for each in arrays if isinstance(each, numpy.ndarray)), numpy.dtype("float32"))
        if isinstance(given, numpy.generic) and role != "index":
            given = numpy.asarray(given)
        if not isinstance(given, numpy.ndarray):
            given = numpy.array(given, numpy.int64 if role == "index" else like)
        return self.leaf(given)

    def _append(self, record, results):
        self.records.append(record)
        record.outputs = outputs = []
        for each in results:
            each._mark = value = Value(self, each._array, record)
            outputs.append(value)

    def assign(self, parameter, value):
        mark = parameter._mark
        if mark is not None and mark.tape is self and mark.used:
            mark.array = mark.array.copy()  # the calls before read what it held then
            self.lines.append(("assign", mark.number))
            mark.later = parameter._mark = Value(self, parameter._array)
        numpy.copyto(parameter._array, core.elements(value), casting="same_kind")

    def custom(self, forward, backward, inputs, always=False):
        self.plain = False
        tensors = [each for each in inputs if isinstance(each, Tensor)]
        values = [self.value(each) for each in tensors]
        core.here.recorder = None
        try:
            made = forward(*inputs)
        finally:
            core.here.recorder = self
        results = tuple(wrap(each._array) for each in made)
        for tensor, value in zip(tensors, values):
            tensor._mark, value.used = value, True  # gradients that forward() takes are of a tape of their own
        self._append(Cut(values, inputs, results, backward, always), results)
        return results

    def scope(self):
        return Scope(self)

    def prepared(self, function):
        return function

    def close(self):
        for record in self.records:
            record.inputs = record.outputs = ()
        self.records, self.values, self.lines = [], [], []


class Scope:
    """Calls made inside of it can be differentiated; scopes nest on one tape."""

    def __init__(self, tape=None):
        self._tape = tape or Tape()

    def __enter__(self):
        self._outer, core.here.recorder = core.here.recorder, self._tape
        self._tape.depth += 1
        self._tape.plain &= self._tape.depth == 1
        self._start, self._given = len(self._tape.records), {}  # id of an argument -> what it held at first
        return self

    def __exit__(self, *exception):
        core.here.recorder = self._outer
        self._tape.depth -= 1
        if self._tape.depth == 0:
            self._tape.close()

    def argument(self, tensor):
        """The tensor as an argument of the function that is differentiated: nothing else in it is this one."""
        made = wrap(tensor._array)
        if self._tape.depth > 1:
            value = self._tape.value(tensor)
            self._tape._append(Record(_identity, [value], {}, 1), (made,))
            value.used = True
            self._start += 1
        self._given[id(made)] = self._tape.value(made)
        return made

    def origin(self, result):
        """The floating tensor that a result of integers was cast from; the result itself without one."""
        mark = result._mark
        if mark is None or mark.tape is not self._tape or mark.origin is None:
            return result
        made = wrap(mark.origin.array)
        made._mark = mark.origin
        return made

    def parameter(self, parameter):
        """Has gradients taken with respect to the parameter, as it is now."""
        return self._tape.value(parameter)

    def _of(self, value):
        """The values whose gradients are that of an argument: of one that is not floating, what it was converted to."""
        if _is_float(value.array):
            return [value]
        casts = [each for each in self._tape.records[self._start :] if getattr(each, "row", None) is _cast and each.inputs[0] is value]
        return [each.outputs[0] for each in casts if _is_float(each.outputs[0].array)]

    def gradients(self, results, seeds, wanted):
        """Tensors: the gradients of `wanted`, which are arguments, or values from parameter(). seeds: tensors or None for
        ones. The gradient by a Parameter is the sum of those by all that it held: an assignment passes none on to the value."""
        tape = self._tape
        key = self._key(results, wanted)
        try:
            plan = _plans.get(key)
        except TypeError:  # an attribute that has no hash
            key, plan = None, None
        if plan is not None:
            return plan.run(tape, results, seeds)
        versions = [each.versions() if isinstance(each, Value) else self._of(self._given[id(each)]) for each in wanted]
        values = [value for each in versions for value in each]
        calls = _path(tape.records[self._start :], {*values}, [each._mark for each in results])
        pending = {}
        core.here.recorder = tape if tape.depth > 1 else None
        for result, seed in zip(results, seeds):
            if _is_float(result._array):
                value = tape.value(result)
                _accumulate(pending, value, wrap(numpy.ones_like(value.array)) if seed is None else seed)
        nested = tape if tape.depth > 1 else None
        active = {*values, *(value for call in calls for value in call.outputs)}
        parts, segment = _parts(calls), None
        for part in reversed(parts):
            if isinstance(part, Cut):
                _through_cut(part, pending, active)
            else:
                segment = _through_calls(part, pending, active, nested)
        if key is not None and segment is not None:
            segment.function.plan(key, _Plan(segment, results, values))
        made = []
        for each, of in zip(versions, wanted):
            found = [pending[value] for value in each if value in pending]
            like = of.array if isinstance(of, Value) else of._array
            total = functools.reduce(core.add, found) if found else wrap(numpy.zeros_like(like))
            made.append(total if _is_float(like) or not found else core.cast(total, dtype=like.dtype))
        core.here.recorder = tape
        return made


    def _key(self, results, wanted):
        """What tells these gradients apart from others; None where they are not those of one recorded function."""
        tape = self._tape
        if not tape.plain:
            return None
        marks = [each._mark for each in results]
        given = [each if each.__class__ is Value else self._given[id(each)] for each in wanted]
        for each in marks:
            if each is None or each.tape is not tape or not _is_float(each.array):
                return None
        for each in given:
            if each.later is not None or not _is_float(each.array):
                return None
        numbers = tuple([each.number for each in marks])
        return (tuple(tape.lines), numbers, tuple([each.number for each in given])) if len({*numbers}) == len(numbers) else None


class _Plan:
    """How gradients of a tape are taken whose lines are those of an earlier one: values are told by their numbers."""

    def __init__(self, segment, results, wanted):
        made, marks = segment.made(), [each._mark for each in results]
        self.function = segment.function
        self.leaves = [(value.number, order_of(value.array)) for value in segment.leaves]
        self.seeds = [marks.index(value) for value in segment.results]
        self.reads = [made[place].number for place in self.function.reads]
        self.wanted = [(value.number, segment.wanted.index(value) if value in segment.wanted else None, order_of(value.array)) for value in wanted]

    def run(self, tape, results, seeds):
        values = tape.values
        self.function.used()
        arrays = [laid(values[number].array, order) for number, order in self.leaves]
        for place in self.seeds:
            seed = seeds[place]
            arrays.append(numpy.ones_like(results[place]._array) if seed is None else seed._array)
        for number in self.reads:
            arrays.append(numpy.asarray(values[number].array, order="C"))
        made = self.function.model.run(*arrays)
        return [wrap(numpy.zeros_like(values[number].array) if place is None else unlaid(made[f"g{place}"], order)) for number, place, order in self.wanted]


class _Compiled(kept.Function):
    """The gradients of a segment. `reads`: which of the made values it reads; `plans`: keys of plans that run it."""

    def __init__(self, module, reads):
        super().__init__(module)
        self.reads, self.plans = reads, []

    def plan(self, key, plan):
        _plans[key] = plan
        self.plans.append(key)
        if len(self.plans) > _MOST_PLANS:
            _plans.pop(self.plans.pop(0), None)

    def forget(self, key):
        _compiled.pop(key, None)
        for each in self.plans:
            _plans.pop(each, None)


def _path(records, wanted, results):
    """The calls that lie between the wanted values and the results."""
    active = set(wanted)
    forward = []
    for record in records:
        always = record.__class__ is Cut and record.always
        for value in record.inputs:
            if always or value.__class__ is Value and value in active:
                if getattr(record, "row", None) is not _stop:
                    forward.append(record)
                    active.update([v for v in record.outputs if v.array.dtype.kind in "fc"])
                break
    needed = {value for value in results if value is not None}
    chosen = []
    for record in reversed(forward):
        for value in record.outputs:
            if value in needed:
                chosen.append(record)
                needed.update([v for v in record.inputs if v.__class__ is Value])
                break
    return chosen[::-1]


def _parts(calls):
    """Cuts, and between them lists of calls."""
    parts = []
    for call in calls:
        if isinstance(call, Cut):
            parts.append(call)
        elif parts and isinstance(parts[-1], list):
            parts[-1].append(call)
        else:
            parts.append([call])
    return parts


def _accumulate(pending, value, gradient):
    known = pending.get(value)
    pending[value] = gradient if known is None else core.add(known, gradient)


def _through_cut(cut, pending, active):
    gradients = []
    for value in cut.outputs:
        found = pending.pop(value, None)
        gradients.append(wrap(numpy.zeros_like(value.array)) if found is None else found)
    made = cut.backward(cut.tensors, cut.results, tuple(gradients))
    tensors = [each for each in cut.tensors if isinstance(each, Tensor)]
    if len(made) == len(cut.tensors):
        made = [g for g, each in zip(made, cut.tensors) if isinstance(each, Tensor)]
    for value, gradient in zip(cut.inputs, made[: len(tensors)]):
        if value in active and gradient is not None and _is_float(value.array):
            _accumulate(pending, value, gradient)


def _through_calls(calls, pending, active, tape):
    """The segment that the calls are; None where nothing goes through them."""
    segment = Segment(calls, pending, active)
    if not segment.results or not segment.wanted:
        return None
    seeds = [pending.pop(value) for value in segment.results]
    made = segment.run(seeds)
    if tape is not None:
        record = GradientRecord(segment, [*segment.leaves, *(tape.value(seed) for seed in seeds)])
        tape._append(record, made)
    for value, gradient in zip(segment.wanted, made):
        _accumulate(pending, value, gradient)
    return segment


def from_laid(builder, handle, order):
    """The value of which laid() made this one."""
    return handle if order is None else builder.add("transpose", [handle], {"permutation": [order.index(i) for i in range(len(order))]}, 1)[0]


def to_laid(builder, handle, order):
    """The value as laid() gives it."""
    return handle if order is None else builder.add("transpose", [handle], {"permutation": list(order)}, 1)[0]


class Segment:
    """Calls as a function of the values that they do not make, and of gradients of results, which gives the gradients of the
    active ones among the former."""

    def __init__(self, calls, pending, active):
        self.calls = calls
        made = {value for call in calls for value in call.outputs}
        self.leaves = list(dict.fromkeys(v for c in calls for v in c.inputs if isinstance(v, Value) and v not in made))
        self.results = [value for value in pending if value in made]
        self.wanted = [value for value in self.leaves if value in active and _is_float(value.array)]
        self._key = None

    def key(self):
        if self._key is None:
            numbers = {value: i for i, value in enumerate(self.leaves)}
            lines = [tuple((v.array.dtype.char, v.array.shape, order_of(v.array)) for v in self.leaves)]
            for call in self.calls:
                inputs = tuple(numbers[v] if isinstance(v, Value) else (v.tobytes(), v.shape) for v in call.inputs)
                for value in call.outputs:
                    numbers[value] = len(numbers)
                lines.append((call.key(), inputs))
            lines.append((tuple(numbers[v] for v in self.results), tuple(numbers[v] for v in self.wanted)))
            self._key = tuple(lines)
        return self._key

    def add(self, builder, inputs):
        """The handles of the gradients, in the order of `wanted`."""
        handles, seeds = self._forward(builder, inputs)
        return builder.gradients([handles[v] for v in self.results], seeds, [handles[v] for v in self.wanted])

    def _forward(self, builder, inputs):
        """({value: its handle}, the handles of the gradients of results)"""
        handles = dict(zip(self.leaves, inputs))
        for call in self.calls:
            given = [handles[v] if isinstance(v, Value) else builder.constant(v) for v in call.inputs]
            handles.update(zip(call.outputs, call.add(builder, given)))
        return handles, inputs[len(self.leaves) :]

    def made(self):
        """What the calls have computed already, as they were made."""
        return [value for call in self.calls if isinstance(call, Record) for value in call.outputs]

    def _compile(self, seeds):
        builder = _cairn._Builder("gradient")
        arrays = [v.array for v in self.leaves] + [seed._array for seed in seeds]
        params = []
        for i, array in enumerate(arrays):
            order = order_of(array) if i < len(self.leaves) else None
            handle = builder.param(f"x{i}", array.dtype.name, laid(array, order).shape)
            params.append(from_laid(builder, handle, order))
        handles, given = self._forward(builder, params)
        results, wanted, made = ([handles[v] for v in values] for values in (self.results, self.wanted, self.made()))
        gradients, read = builder.gradients_of_kept(results, given, wanted, made)
        for i, (handle, of) in enumerate(zip(gradients, self.wanted)):
            builder.result(f"g{i}", to_laid(builder, handle, order_of(of.array)), 0)
        return _Compiled(_cairn.Module(builder.finish()), [place for place, param in enumerate(read) if param])

    def run(self, seeds):
        """The gradients, for those of the results."""
        key = self.key()
        function = _compiled.get(key)
        if function is None:
            function = _compiled[key] = self._compile(seeds)
            function.keep(lambda own: own.forget(key))
        else:
            function.used()
        self.function = function
        made = self.made()
        read = [numpy.asarray(made[place].array, order="C") for place in function.reads]
        arrays = function.model.run(*[laid(v.array, order_of(v.array)) for v in self.leaves], *[seed._array for seed in seeds], *read)
        return [wrap(unlaid(arrays[f"g{i}"], order_of(v.array))) for i, v in enumerate(self.wanted)]

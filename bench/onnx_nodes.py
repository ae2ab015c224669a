"""The tests of onnx.backend.test through Cairn and ONNX Runtime, at the suite's own tolerances. Runs in .venv-peers.

    .venv-peers/bin/python bench/onnx_nodes.py [--group node] [--only REGEX] [--json FILE] [--pin]

Tests are counted by name over the pinned list bench/onnx_nodes.txt, whose lines are "group name" and, for a test that is not counted,
the reason. A test that the suite no longer has is failed; so is one that ends the process.
"""

import argparse
import collections
import json
import multiprocessing
import os
import re
import sys
import tempfile
import time
import warnings
from pathlib import Path

PINNED = Path(__file__).with_name("onnx_nodes.txt")
GROUPS = ("node", "simple", "light", "pytorch-converted", "pytorch-operator")
SECONDS = 60  # for one test
NARROW = range(17, 27)  # element types below a byte and floats of 8 bits


def suite():
    """{(group, name): test case}; `light` are the networks with generated weights, which the suite keeps under `real`."""
    import onnx.backend.test
    from onnx.backend.test.loader import load_model_tests

    folder = Path(onnx.backend.test.__file__).parent
    cases = {("node", case.name): case for case in load_model_tests(kind="node")}
    for group in ("simple", "pytorch-converted", "pytorch-operator"):
        cases |= {(group, case.name): case for case in load_model_tests(kind=group)}
    for case in load_model_tests(kind="real"):
        if (case.url or "").startswith("onnx/backend/test/data/light/"):
            case.model_dir = str(folder / "data" / "light" / Path(case.url).name)
            cases["light", case.name] = case
    return cases


def pinned():
    """{(group, name): why it is not counted, or nothing}."""
    lines = (line.split(maxsplit=2) for line in PINNED.read_text().splitlines())
    return {(group, name): " ".join(why) for group, name, *why in lines}


def read_value(path, kind):
    import onnx
    from onnx import numpy_helper

    for field, proto, read in (
        ("sequence_type", onnx.SequenceProto, numpy_helper.to_list),
        ("optional_type", onnx.OptionalProto, numpy_helper.to_optional),
        ("tensor_type", onnx.TensorProto, numpy_helper.to_array),
    ):
        if kind.HasField(field):
            message = proto()
            message.ParseFromString(path.read_bytes())
            return read(message)
    raise TypeError("the suite keeps a value of a kind that it cannot read")


def model_and_data(case, group):
    """The model and its (inputs, expected outputs)."""
    import onnx
    from onnx import numpy_helper
    from onnx.backend.test.runner import Runner

    if case.model is not None:
        as_array = lambda x: numpy_helper.to_array(x) if isinstance(x, onnx.TensorProto) else x  # noqa: E731
        return case.model, [tuple([as_array(x) for x in part] for part in data) for data in case.data_sets]
    if group == "light":
        model = onnx.load(case.model_dir)
        weights = {tensor.name for tensor in model.graph.initializer}
        inputs = [Runner.generate_dummy_data(x) for x in model.graph.input if x.name not in weights]
        files = [Path(case.model_dir.removesuffix(".onnx") + f"_output_{i}.pb") for i in range(len(model.graph.output))]
        return model, [(inputs, [read_value(f, o.type) for f, o in zip(files, model.graph.output, strict=True)])]
    model, data = onnx.load(Path(case.model_dir) / "model.onnx"), []
    for folder in sorted(Path(case.model_dir).glob("test_data_set*")):
        pair = []
        for kind, infos in (("input", model.graph.input), ("output", model.graph.output)):
            count = len(list(folder.glob(f"{kind}_*.pb")))
            pair.append([read_value(folder / f"{kind}_{i}.pb", infos[i].type) for i in range(count)])
        data.append(tuple(pair))
    return model, data


def cairn_runner(model):
    import cairn
    import numpy as np
    import onnx

    with tempfile.TemporaryDirectory(dir="/dev/shm" if os.path.isdir("/dev/shm") else None) as folder:
        file = Path(folder) / "model.onnx"
        file.write_bytes(model.SerializeToString())
        loaded = cairn.load(file, threads=1)
    names = [x.name for x in model.graph.output]

    types = {x.name: x.type.tensor_type.elem_type for x in model.graph.output}
    narrow = {code: onnx.helper.tensor_dtype_to_np_dtype(code) for code in NARROW}

    def carried(x):
        """Floats of 8 bits and less go in and out as their bits, integers of less than 8 as integers of 8."""
        if x is None or isinstance(x, list):
            return x
        name = getattr(getattr(x, "dtype", None), "name", "")
        if name.startswith(("float8", "float4")):
            return x.view(np.uint8)
        return x.astype(np.int8 if name[0] == "i" else np.uint8) if name in ("int2", "int4", "uint2", "uint4") else x

    def named(value, name):
        dtype = narrow.get(types[name])
        if dtype is None:
            return text(value)
        return value.view(dtype) if dtype.name.startswith("float") else value.astype(dtype)

    def text(value):
        """Texts of Cairn are bytes, those of the suite are str."""
        if isinstance(value, np.ndarray) and value.dtype == object:
            flat = [x.decode() if isinstance(x, bytes) else x for x in value.ravel()]
            return np.array(flat, dtype=object).reshape(value.shape)
        return [text(x) for x in value] if isinstance(value, list) else value

    def run(inputs):
        inputs = [carried(x) for x in inputs]
        made = loaded.run(*inputs) if len(inputs) != 1 else loaded.run({loaded.inputs[0].name: inputs[0]})
        return [named(made[name], name) for name in names]

    return run


def runtime_runner(model):
    import numpy as np
    import onnx
    import onnxruntime

    os.environ["ALLOW_RELEASED_ONNX_OPSET_ONLY"] = "0"  # it would refuse the newest operator sets before looking at the nodes
    onnxruntime.set_default_logger_severity(4)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    types = {x.name: x.type.tensor_type.elem_type for x in model.graph.input if x.type.HasField("tensor_type")}
    results = {x.name: x.type.tensor_type.elem_type for x in model.graph.output if x.type.HasField("tensor_type")}
    foreign = lambda code: code > onnx.TensorProto.COMPLEX128  # noqa: E731 - types that NumPy does not have

    def run(inputs):
        names = [x.name for x in session.get_inputs()]
        if not any(map(foreign, [*types.values(), *results.values()])):
            return session.run(None, dict(zip(names, inputs, strict=False)))
        given = {}
        for name, x in zip(names, inputs, strict=False):
            raw = x.view(f"u{x.dtype.itemsize}") if foreign(types[name]) else x
            given[name] = onnxruntime.OrtValue.ortvalue_from_numpy_with_onnx_type(np.ascontiguousarray(raw), types[name])
        made = session.run_with_ort_values([x.name for x in session.get_outputs()], given)
        values = []
        for name, value in zip(results, made, strict=True):
            dtype = onnx.helper.tensor_dtype_to_np_dtype(results[name])
            array = value.numpy()
            values.append(array.view(dtype) if foreign(results[name]) and array.dtype != dtype else array)
        return values

    return run


RUNNERS = {"cairn": cairn_runner, "onnxruntime": runtime_runner}


def result_of(case, group, runner):
    """Nothing when the test passes, else the first sentence of what is wrong."""
    import numpy as np
    from onnx.backend.test.runner import Runner

    try:
        model, data = model_and_data(case, group)
        run = RUNNERS[runner](model)
        for inputs, expected in data:
            outputs = run([np.asarray(x) if isinstance(x, np.generic) else x for x in inputs])
            Runner.assert_similar_outputs(expected, outputs, rtol=case.rtol, atol=case.atol)
    except AssertionError as error:
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        return "wrong: " + " ".join(lines[:3])[:200]
    except Exception as error:
        if report := getattr(error, "report", None):
            return f"{report[0]['subject']}: {report[0]['message']}"
        text = re.sub(r"\S*/model.onnx: ", "", str(error))
        return f"{type(error).__name__}: {text}".splitlines()[0][:200] if text else type(error).__name__
    return ""


def work(pipe, runner):
    warnings.simplefilter("ignore")
    cases = suite()
    pipe.send(None)
    while (key := pipe.recv()) is not None:
        pipe.send(result_of(cases[key], key[0], runner) if key in cases else "the suite does not have it")


class Worker:
    """A process that runs tests, started again after one that ends it."""

    def __init__(self, runner):
        self.runner, self.process = runner, None

    def start(self):
        context = multiprocessing.get_context("spawn")
        self.pipe, theirs = context.Pipe()
        self.process = context.Process(target=work, args=(theirs, self.runner), daemon=True)
        self.process.start()
        theirs.close()
        self.pipe.recv()

    def run(self, key):
        if self.process is None:
            self.start()
        try:
            self.pipe.send(key)
            if self.pipe.poll(SECONDS):
                return self.pipe.recv()
            why = f"takes more than {SECONDS} s"
        except (EOFError, ConnectionError):
            why = "ends the process"
        self.process.kill()
        self.process.join()
        self.process = None
        return why

    def end(self):
        if self.process is not None:
            self.pipe.send(None)
            self.process.join()


def run_all(keys, runner, told=False):
    """{key: why it fails, or nothing}."""
    worker, results = Worker(runner), {}
    for i, key in enumerate(keys):
        results[key] = worker.run(key)
        if told and sys.stderr.isatty():
            print(f"\r{runner} {i + 1}/{len(keys)}", end="", file=sys.stderr, flush=True)
    worker.end()
    return results


def operator_of(name, group, case):
    if group != "node" or case is None or case.model is None:
        return group
    nodes = case.model.graph.node
    return nodes[0].op_type if len(nodes) == 1 else re.sub("_.*", "", name.removeprefix("test_")) + " (several nodes)"


def print_table(failed, cases):
    by_operator = collections.defaultdict(list)
    for (group, name), why in failed.items():
        by_operator[operator_of(name, group, cases.get((group, name)))].append(why)
    print(f"\n{'operator':34} {'failed':>6}  first reasons")
    for operator, reasons in sorted(by_operator.items(), key=lambda item: -len(item[1])):
        first = collections.Counter(reasons).most_common(2)
        for i, (why, count) in enumerate(first):
            head = f"{operator:34} {len(reasons):6}" if i == 0 else " " * 41
            print(f"{head}  {count} x {why[:150]}")


def main():
    arguments = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    arguments.add_argument("--group", action="append", choices=GROUPS, help="only this group; repeatable")
    arguments.add_argument("--only", default="", help="tests whose name has this pattern")
    arguments.add_argument("--runner", action="append", choices=list(RUNNERS), help="default: both")
    arguments.add_argument("--json", metavar="FILE", help="why each test fails, by runner, group and name")
    arguments.add_argument("--pin", action="store_true", help="write the list of tests anew, keeping the reasons")
    options = arguments.parse_args()
    cases = suite()
    if options.pin:
        old = pinned() if PINNED.exists() else {}
        lines = [f"{group} {name} {old.get((group, name), '')}".rstrip() for group, name in sorted(cases)]
        PINNED.write_text("\n".join(lines) + "\n")
        return
    listed = pinned()
    groups = options.group or GROUPS
    keys = [key for key, why in listed.items() if key[0] in groups and not why and re.search(options.only, key[1])]
    results = {}
    for runner in options.runner or RUNNERS:
        begin = time.monotonic()
        results[runner] = run_all(keys, runner, told=True)
        print(f"\r{runner}: {time.monotonic() - begin:.0f} s", file=sys.stderr)
    if "cairn" in results:
        print_table({key: why for key, why in results["cairn"].items() if why}, cases)
    print(f"\n{'group':20} {'tests':>6} {'skipped':>8}", *(f"{runner:>12}" for runner in results))
    for group in groups:
        mine = [key for key in keys if key[0] == group]
        skipped = sum(1 for key, why in listed.items() if key[0] == group and why and re.search(options.only, key[1]))
        passed = (sum(not results[runner][key] for key in mine) for runner in results)
        print(f"{group:20} {len(mine):6} {skipped:8}", *(f"{count:12}" for count in passed))
    if options.json:
        tree = {runner: {f"{g}/{n}": why for (g, n), why in made.items()} for runner, made in results.items()}
        Path(options.json).write_text(json.dumps(tree, indent=1) + "\n")


if __name__ == "__main__":
    main()

// The framework's side of `cairn verify` and `cairn diff`, in Python. Arguments: run or trace, model, signature, number of runs,
// folder. Reads ports.json (pairs of our names and the framework's) and in_0.npz ...; writes out_0.npz ... with arrays o0, o1,
// ... in the order of the outputs asked for; to trace, of run 0, also values.npz (v0, v1, ...) and values.json (node, index,
// turn of each). Exits with 3 when the framework is not installed, with 4 when it fails: the sentence is in the file "error".
#pragma once

namespace cairn::cli {

constexpr const char* kFrameworkScript = R"py(
import json, os, re, sys
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
mode, source, signature, runs, folder = sys.argv[1:6]
try:
    import numpy as np
    if source.endswith(".onnx"):
        import onnxruntime
        if mode == "trace":
            import onnx
    else:
        import tensorflow as tf
except ImportError as error:
    sys.stdout.write(error.name or str(error))
    sys.exit(3)

with open(f"{folder}/ports.json") as file:
    ports = json.load(file)
theirs = dict(ports["inputs"])
FLOW = {"Enter", "Exit", "Switch", "Merge", "NextIteration", "LoopCond", "RefEnter", "RefSwitch", "RefMerge", "RefExit"}
CALLS = {"PartitionedCall", "StatefulPartitionedCall", "While", "StatelessWhile", "If", "StatelessIf", "Case", "StatelessCase"}
SILENT = {"Const", "Placeholder", "PlaceholderWithDefault", "VarHandleOp", "VariableV2", "NoOp"}

def feeds_of(run):
    with np.load(f"{folder}/in_{run}.npz") as file:
        return {theirs.get(name, name): file[name] for name in file.files}

def full(name):
    return name if ":" in name else name + ":0"

def sentence(error):
    # What the framework says is wrong, without frames of its own sources.
    text = str(getattr(error, "message", None) or error)
    node = re.search(r"(?:\{\{node |\[\[node |Node: '|Name:')([^\s}']+)", text)
    lines, frame = [], False
    for line in (line.strip() for line in text.splitlines()):
        noise = re.match(r"(File \"|Traceback|Detected at|Graph execution|Node:|\[\[|\(defined at|Errors may have|Input Source|Original stack|"
                         r"Function call|operation created|During handling|[\^~]+$|\d+ root error|\(\d\) )", line)
        if line and not noise and not frame:
            lines.append(line)
        frame = line.startswith('File "')
    said = re.sub(r"\s*\[Op:\w+\].*|\s*\[\[.*", "", lines[0]) if lines else text.strip()[:300]
    if type(error).__module__ == "builtins" and not isinstance(error, (ValueError, RuntimeError)) or not said:
        said = f"{type(error).__name__}: {said}"
    return f"{node[1]}: {said}" if node and node[1] not in said else said

class Onnx:
    maker = "ONNX Runtime"

    def __init__(self):
        self.maker = f"ONNX Runtime {onnxruntime.__version__}"

    def run(self, feeds):
        session = onnxruntime.InferenceSession(source, providers=["CPUExecutionProvider"])
        return session.run([name for _, name in ports["outputs"]], feeds)

    def trace(self, feeds):
        model, entries = onnx.load(source), []
        own = [output.name for output in model.graph.output]
        for node in model.graph.node:
            name = node.name or (node.output[0] if node.output else node.op_type)
            entries += [(name, index, 0, output) for index, output in enumerate(node.output) if output]
        known = set(own)
        for entry in entries:
            if entry[3] not in known:
                known.add(entry[3])
                model.graph.output.append(onnx.ValueInfoProto(name=entry[3]))
        options = onnxruntime.SessionOptions()
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
        session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
        names = list(dict.fromkeys(own + [entry[3] for entry in entries]))
        values = dict(zip(names, session.run(names, feeds)))
        return [(*entry[:3], values[entry[3]]) for entry in entries], [values[name] for _, name in ports["outputs"]]

class Signature:
    """A signature of a SavedModel."""

    stateful = False

    def __init__(self):
        self.maker = f"TensorFlow {tf.__version__}"
        self.load()

    def load(self):
        self.model = tf.saved_model.load(source)
        functions = self.model.signatures
        self.function = functions[signature or ("serving_default" if "serving_default" in functions else list(functions)[0])]
        self.arguments = {spec.name: spec for spec in self.function.structured_input_signature[1].values()}
        self.order, self.keys = self.function._arg_keywords, sorted(self.function.structured_outputs)

    def call(self, feeds):
        return self.function(**feeds)

    def named(self, feeds):
        # Names that the signature does not know stand for its own in their order.
        free = iter([name for name in self.arguments if name not in feeds])
        return {name if name in self.arguments else next(free, name): value for name, value in feeds.items()}

    def chosen(self, results):
        free = iter([name for name in self.keys if name not in [name for _, name in ports["outputs"]]])
        return [results[name if name in results else next(free, name)] for _, name in ports["outputs"]]

    def run(self, feeds):
        if self.stateful:  # every run begins with the states of the file, as in the converted model
            self.load()
        results = self.call({name: tf.constant(value, self.arguments[name].dtype) for name, value in self.named(feeds).items()})
        return [value.numpy() for value in self.chosen(results)]

    def trace(self, feeds):
        outputs = self.run(feeds)
        try:
            entries = self.inside(feeds)
        except Exception:  # it cannot be made one graph without variables: tables, captured resources
            entries = []
        return entries + (layers(feeds) if not os.path.isdir(source) else []), outputs

    def inside(self, feeds):
        from tensorflow.python.framework.convert_to_constants import convert_variables_to_constants_v2
        if self.stateful:
            self.load()
        made = convert_variables_to_constants_v2(self.function, lower_control_flow=True)
        inputs = dict(zip(self.order, (tensor.name for tensor in made.inputs)))
        fed = {inputs[name]: value for name, value in self.named(feeds).items()}
        return values_of(made.graph.as_graph_def(), fed, [tensor.name for tensor in made.outputs])[0]

class KerasFile(Signature):
    """A Keras file, called as one function: to save it would trace each layer several times."""

    def load(self):
        self.model = made = tf.keras.models.load_model(source, compile=False)
        self.stateful = any(getattr(layer, "stateful", False) for layer in made._flatten_layers())
        self.order, self.keys = made.input_names, sorted(made.output_names)
        self.arguments = {name: tf.TensorSpec(tensor.shape, tensor.dtype) for name, tensor in zip(self.order, made.inputs)}

        @tf.function
        def function(*feeds):
            results = made(list(feeds) if len(feeds) > 1 else feeds[0], training=False)
            return dict(zip(made.output_names, tf.nest.flatten(results)))
        self.function = function.get_concrete_function(*self.arguments.values())

    def call(self, feeds):
        return self.function(*[feeds[name] for name in self.order])

def layers(feeds):
    """What each layer gives that is called once: a Keras file names no operators."""
    try:
        model, outputs = tf.keras.models.load_model(source, compile=False), {}
        for layer in model.layers:
            if len(layer.inbound_nodes) == 1 and tf.is_tensor(layer.output) and not isinstance(layer, tf.keras.layers.InputLayer):
                outputs[layer.name] = layer.output
        values = tf.keras.Model(model.inputs, outputs)(feeds if len(feeds) > 1 else next(iter(feeds.values())), training=False)
        return [(name, 0, 0, value.numpy()) for name, value in values.items() if isinstance(value, tf.Tensor)]
    except Exception:  # a model that is called in a way of its own: fewer values to compare
        return []

def in_order(graph_def):
    # Turns of a loop one after the other.
    for node in [*graph_def.node, *(node for function in graph_def.library.function for node in function.node_def)]:
        if "parallel_iterations" in node.attr:
            node.attr["parallel_iterations"].i = 1
    return graph_def

def plain_config():
    config = tf.compat.v1.ConfigProto()
    config.graph_options.rewrite_options.disable_meta_optimizer = True  # node by node
    config.graph_options.optimizer_options.opt_level = -1
    return config

def inlined(graph_def, fed, outputs):
    """Without calls and functional loops, as far as TensorFlow takes them apart."""
    from tensorflow.python.framework.convert_to_constants import convert_variables_to_constants_v2
    try:
        whole = tf.compat.v1.wrap_function(lambda: tf.graph_util.import_graph_def(graph_def, name=""), [])
        part = whole.prune([whole.graph.get_tensor_by_name(name) for name in fed], [whole.graph.get_tensor_by_name(name) for name in outputs])
        made = convert_variables_to_constants_v2(part, lower_control_flow=True)
    except Exception:
        return graph_def, fed, outputs
    return made.graph.as_graph_def(), dict(zip([tensor.name for tensor in made.inputs], fed.values())), [tensor.name for tensor in made.outputs]

def fill_tables(session):
    """A frozen graph names no collection: what fills its tables is told by the operator."""
    fillers = [op for op in session.graph.get_operations() if op.type.startswith(("LookupTableImport", "InitializeTable"))]
    session.run([tf.compat.v1.tables_initializer(), *fillers])

def values_of(graph_def, fed, outputs, restore=None):
    graph = tf.Graph()
    with graph.as_default():
        tf.graph_util.import_graph_def(in_order(graph_def), name="") if restore is None else restore.build()
    needed, pending = set(), [graph.get_tensor_by_name(name).op for name in outputs]
    while pending:
        op = pending.pop()
        if op not in needed:
            needed.add(op)
            pending += [tensor.op for tensor in op.inputs] + list(op.control_inputs)
    ops = [op for op in graph.get_operations() if op in needed]
    tensors = [(op.name, index, tensor) for op in ops if op.type not in SILENT and not tensor_fed(op, fed) for index, tensor in enumerate(op.outputs)
               if tensor.dtype.is_floating or tensor.dtype.is_integer or tensor.dtype.is_bool]
    with tf.compat.v1.Session(graph=graph, config=plain_config()) as session:
        if restore is not None:
            restore.load(session)
        fill_tables(session)
        if not any(op.type in FLOW for op in ops):
            values, results = session.run([[tensor for _, _, tensor in tensors], outputs], fed)
            return [(name, index, 0, value) for (name, index, _), value in zip(tensors, values)], results
        return watched(session, tensors, outputs, fed)

def tensor_fed(op, fed):
    return any(tensor.name in fed for tensor in op.outputs)

def watched(session, tensors, outputs, fed):
    """With a debugger's taps: what stands in a loop has a value in each turn, what is on the dead side of a branch has none."""
    from tensorflow.python.debug.lib import debug_data, debug_utils
    taps = f"{folder}/taps"
    options = tf.compat.v1.RunOptions()
    for name, index, _ in tensors:
        debug_utils.add_debug_tensor_watch(options, name, index, debug_urls=["file://" + taps], tolerate_debug_op_creation_failures=True)
    results = session.run(outputs, fed, options=options)
    found, entries = {}, []
    for place, _, files in os.walk(taps):
        for file in files:
            device, _, path = os.path.relpath(os.path.join(place, file), taps).partition("/")
            parts = re.fullmatch(r"(.+)_(\d+)_DebugIdentity_(\d+)(?:-(\d+))?", path)
            if device.startswith("_tfdbg_device") and parts:
                found.setdefault((parts[1], int(parts[2])), []).append((int(parts[3]), int(parts[4] or 0), os.path.join(place, file)))
    for name, index, _ in tensors:
        turns = sorted(found.get((name, index), []))
        entries += [(name, index, turn, debug_data.load_tensor_from_event_file(file)) for turn, (_, _, file) in enumerate(turns)]
    return entries, results

class Graph:
    def __init__(self):
        self.maker = f"TensorFlow {tf.__version__}"
        self.checkpoint = os.path.exists(source + ".meta")
        self.outputs = [full(name) for _, name in ports["outputs"]]
        if self.checkpoint:
            return
        with open(source, "rb") as file:
            data = file.read()
        self.graph_def = tf.compat.v1.GraphDef()
        try:
            self.graph_def.ParseFromString(data)
        except Exception:
            from google.protobuf import text_format
            text_format.Parse(data.decode(), self.graph_def)

    def build(self):
        from tensorflow.python.framework import meta_graph
        meta = meta_graph.read_meta_graph_file(source + ".meta")
        in_order(meta.graph_def)
        self.saver = tf.compat.v1.train.import_meta_graph(meta, clear_devices=True)

    def load(self, session):
        self.saver.restore(session, source)

    def run(self, feeds):
        fed = {full(name): value for name, value in feeds.items()}
        graph = tf.Graph()
        with graph.as_default(), tf.compat.v1.Session(graph=graph) as session:
            if self.checkpoint:
                self.build()
                self.load(session)
            else:
                tf.graph_util.import_graph_def(self.graph_def, name="")
            fill_tables(session)
            return session.run(self.outputs, fed)

    def trace(self, feeds):
        fed = {full(name): value for name, value in feeds.items()}
        if self.checkpoint:
            return values_of(None, fed, self.outputs, self)
        graph_def, outputs = self.graph_def, self.outputs
        library = {function.signature.name for function in graph_def.library.function}
        if any(node.op in CALLS or node.op in library for node in graph_def.node):
            graph_def, fed, outputs = inlined(graph_def, fed, outputs)
        return values_of(graph_def, fed, outputs)

def storable(value):
    value = np.asarray(value)
    if value.dtype == object:
        return np.array([each if isinstance(each, bytes) else str(each).encode() for each in value.ravel()], dtype="S").reshape(value.shape)
    return np.ascontiguousarray(value).reshape(value.shape)

def outer(name):
    # "while/body/_5/model/add" of a loop that was taken apart is "model/add" of its body.
    return re.sub(r"^.*/(?:body|cond|then|else|branch\d*)/_\d+/", "", name)

def main():
    whole = Onnx() if source.endswith(".onnx") else Signature() if os.path.isdir(source) else KerasFile() if source.endswith((".h5", ".hdf5", ".keras")) else Graph()
    for run in range(int(runs)):
        entries, results = whole.trace(feeds_of(run)) if mode == "trace" else ([], whole.run(feeds_of(run)))
        np.savez(f"{folder}/out_{run}.npz", **{f"o{i}": storable(value) for i, value in enumerate(results)})
    if mode != "trace":
        return
    entries = [entry for entry in entries if isinstance(entry[3], (np.ndarray, np.generic)) and entry[3].dtype.kind in "fiub"]
    np.savez(f"{folder}/values.npz", **{f"v{i}": storable(entry[3]) for i, entry in enumerate(entries)})
    with open(f"{folder}/values.json", "w") as file:
        json.dump({"maker": whole.maker, "values": [[outer(name), index, turn] for name, index, turn, _ in entries]}, file)

try:
    main()
except Exception as error:
    with open(f"{folder}/error", "w") as file:
        file.write(sentence(error))
    sys.exit(4)
)py";

}  // namespace cairn::cli

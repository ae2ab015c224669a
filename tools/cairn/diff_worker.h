// The framework's side of `cairn diff`, in Python. Arguments: model, signature, folder. Reads inputs.npz and, for a graph,
// outputs (names, a line each); writes values.npz (v0, v1, ...), values.json (node, index, op of each, and the outputs'
// names). Exits with 3 when the framework is not installed.
#pragma once

namespace cairn::cli {

constexpr const char* kTraceScript = R"py(
import json, os, sys
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
source, signature, folder = sys.argv[1:4]
try:
    import numpy as np
    if source.endswith(".onnx"):
        import onnx, onnxruntime
    else:
        import tensorflow as tf
except ImportError as error:
    sys.stdout.write(error.name or str(error))
    sys.exit(3)

with np.load(f"{folder}/inputs.npz") as file:
    feeds = {name: file[name] for name in file.files}

def trace_onnx():
    model = onnx.load(source)
    own = [output.name for output in model.graph.output]
    entries = []
    for node in model.graph.node:
        name = node.name or (node.output[0] if node.output else node.op_type)
        entries += [(name, index, node.op_type, output) for index, output in enumerate(node.output) if output]
    model.graph.output.extend(onnx.ValueInfoProto(name=entry[3]) for entry in entries if entry[3] not in own)
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    data = model.SerializeToString()
    session = onnxruntime.InferenceSession(data, options, providers=["CPUExecutionProvider"])
    names = list(dict.fromkeys(own + [entry[3] for entry in entries]))
    values = dict(zip(names, session.run(names, feeds)))
    return [(name, index, op, values[output]) for name, index, op, output in entries], {name: values[name] for name in own}, f"ONNX Runtime {onnxruntime.__version__}"

def load_keras():
    return tf.keras.models.load_model(source, compile=False)

def trace_layers():
    """What each layer gives that is called once: a Keras file names no operators."""
    model, outputs = load_keras(), {}
    for layer in model.layers:
        if len(layer.inbound_nodes) == 1 and tf.is_tensor(layer.output) and not isinstance(layer, tf.keras.layers.InputLayer):
            outputs[layer.name] = layer.output
    kinds = {layer.name: type(layer).__name__ for layer in model.layers}
    values = tf.keras.Model(model.inputs, outputs)(feeds if len(feeds) > 1 else next(iter(feeds.values())), training=False)
    return [(name, 0, kinds[name], value.numpy()) for name, value in values.items() if isinstance(value, tf.Tensor)]

def frozen():
    from tensorflow.python.framework.convert_to_constants import convert_variables_to_constants_v2
    if os.path.isdir(source):
        model = tf.saved_model.load(source)
    else:
        tf.saved_model.save(load_keras(), f"{folder}/saved_model")
        model = tf.saved_model.load(f"{folder}/saved_model")
    key = signature or ("serving_default" if "serving_default" in model.signatures else list(model.signatures)[0])
    function = model.signatures[key]
    made = convert_variables_to_constants_v2(function, lower_control_flow=False)
    inputs = dict(zip(function._arg_keywords, (tensor.name for tensor in made.inputs)))
    outputs = dict(zip(sorted(function.structured_outputs), (tensor.name for tensor in made.outputs)))
    return made.graph.as_graph_def(), {inputs[name]: value for name, value in feeds.items()}, outputs

def read_graph():
    graph = tf.compat.v1.GraphDef()
    with open(source, "rb") as file:
        graph.ParseFromString(file.read())
    with open(folder + "/outputs") as file:
        outputs = file.read().split("\n")[:-1]
    full = lambda name: name if ":" in name else name + ":0"
    return graph, {full(name): value for name, value in feeds.items()}, {name: full(name) for name in outputs}

def trace_tensorflow():
    graph_def, fed, outputs = frozen() if os.path.isdir(source) or source.endswith((".h5", ".keras")) else read_graph()
    graph = tf.Graph()
    with graph.as_default():
        tf.import_graph_def(graph_def, name="")
    needed, pending = set(), [graph.get_tensor_by_name(name).op for name in outputs.values()]
    while pending:
        op = pending.pop()
        if op not in needed:
            needed.add(op)
            pending += [tensor.op for tensor in op.inputs]
    # What stands in a loop of TensorFlow 1, or on one side of a branch, may have no value of its own.
    inner, ops = set(), [op for op in graph.get_operations() if op in needed]
    for _ in range(2):
        for op in ops:
            if op.type in ("Enter", "Switch", "RefSwitch", "NextIteration") or (
                op.type not in ("Exit", "Merge") and any(tensor.op in inner for tensor in op.inputs)):
                inner.add(op)
    entries = [(op, index, tensor) for op in ops if op not in inner and op.type not in ("Const", "Placeholder")
               for index, tensor in enumerate(op.outputs) if tensor.dtype.is_floating or tensor.dtype.is_integer or tensor.dtype.is_bool]
    config = tf.compat.v1.ConfigProto()
    config.graph_options.rewrite_options.disable_meta_optimizer = True  # node by node
    with tf.compat.v1.Session(graph=graph, config=config) as session:
        values, results = session.run([[tensor for _, _, tensor in entries], outputs], fed)
    return [(op.name, index, op.type, value) for (op, index, _), value in zip(entries, values)], results, f"TensorFlow {tf.__version__}"

entries, outputs, maker = trace_onnx() if source.endswith(".onnx") else trace_tensorflow()
if source.endswith((".h5", ".keras")):
    try:
        entries += trace_layers()
    except Exception:  # of a model that is called in a way of its own: fewer values to compare
        pass
kept = [entry for entry in entries if isinstance(entry[3], np.ndarray) or np.isscalar(entry[3])]
arrays = {f"v{i}": np.ascontiguousarray(entry[3]) for i, entry in enumerate(kept)}
arrays |= {f"o{i}": np.ascontiguousarray(value) for i, value in enumerate(outputs.values())}
np.savez(f"{folder}/values.npz", **arrays)
with open(f"{folder}/values.json", "w") as file:
    json.dump({"maker": maker, "outputs": list(outputs), "values": [[name, index, op] for name, index, op, _ in kept]}, file)
)py";

}  // namespace cairn::cli

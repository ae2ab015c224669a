"""TensorFlow. Modes: graph (default: the frozen graph in a session), function (tf.function over it), xla."""

import worker

options = worker.arguments()

import nets  # noqa: E402
import tensorflow as tf  # noqa: E402

v1 = tf.compat.v1
x = nets.make_input(options.model, options.batch, nhwc=True)
with open(f"{options.models}/{options.model}.pb", "rb") as file:
    graph_def = v1.GraphDef.FromString(file.read())
note = "tensorflow " + tf.__version__

if options.mode in ("default", "graph"):
    with tf.Graph().as_default() as graph:
        tf.import_graph_def(graph_def, name="")
    threads = v1.ConfigProto(intra_op_parallelism_threads=options.threads, inter_op_parallelism_threads=1)
    session = v1.Session(graph=graph, config=threads)
    worker.serve(lambda: session.run("y:0", {"x:0": x}), note)
else:
    tf.config.threading.set_intra_op_parallelism_threads(options.threads)
    tf.config.threading.set_inter_op_parallelism_threads(1)
    wrapped = v1.wrap_function(lambda: tf.import_graph_def(graph_def, name=""), [])
    pruned = wrapped.prune("x:0", "y:0")
    function = tf.function(lambda value: pruned(value), jit_compile=options.mode == "xla")
    constant = tf.constant(x)
    worker.serve(lambda: function(constant).numpy(), note)

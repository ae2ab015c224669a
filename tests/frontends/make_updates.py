"""Makes one cluster graph and case for each TensorFlow op that updates variables: two runs from given contents.

    python make_updates.py FOLDER

Variables are arguments named v0, v1, ...; other inputs x0, x1, ... `resource` and `ref` hold the two forms of the graph.
"""
import os
import sys

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["CUDA_VISIBLE_DEVICES"] = "-1"
import numpy as np
import tensorflow as tf

from make_models import save_case

tf1 = tf.compat.v1
R = np.random.default_rng(13)


def f(*shape):
    return R.normal(size=shape).astype(np.float32)


def positive(*shape):
    return np.abs(f(*shape)) + np.float32(0.5)


def number(value):
    return np.float32(value)


ROWS = np.int32([4, 0, 3])
G = f(5, 3)
S = f(3, 3)  # a gradient of three rows
V = f(5, 3), 0.1 * positive(5, 3), positive(5, 3), positive(5, 3)
LR, L1, L2 = number(0.1), number(0.2), number(0.3)
RMS = LR, number(0.9), number(0.8), number(1e-3)

# name: (how many variables, the other inputs in order, attributes). A case may stand for several ops; "Op:variant".
CASES = {
    "ApplyMomentum": (2, [LR, G, number(0.9)], {}),
    "ApplyMomentum:nesterov": (2, [LR, G, number(0.9)], {"use_nesterov": True}),
    "ApplyKerasMomentum": (2, [LR, G, number(0.9)], {}),
    "ApplyKerasMomentum:nesterov": (2, [LR, G, number(0.9)], {"use_nesterov": True}),
    "ApplyAdam": (3, [number(0.81), number(0.99), LR, number(0.9), number(0.999), number(1e-7), G], {}),
    "ApplyAdam:nesterov": (3, [number(0.81), number(0.99), LR, number(0.9), number(0.999), number(1e-7), G], {"use_nesterov": True}),
    "ApplyAdamWithAmsgrad": (4, [number(0.81), number(0.99), LR, number(0.9), number(0.999), number(1e-7), G], {}),
    "ApplyAdaMax": (3, [number(0.81), LR, number(0.9), number(0.999), number(1e-7), G], {}),
    "ApplyAdagrad": (2, [LR, G], {}),
    "ApplyAdagrad:kept": (2, [LR, G], {"update_slots": False}),
    "ApplyAdagradV2": (2, [LR, number(1e-3), G], {}),
    "ApplyAdagradDA": (3, [G, LR, L1, L2, np.int64(7)], {}),
    "ApplyAdadelta": (3, [LR, number(0.95), number(1e-3), G], {}),
    "ApplyRMSProp": (3, [*RMS, G], {}),
    "ApplyCenteredRMSProp": (4, [*RMS, G], {}),
    "ApplyFtrl": (3, [G, LR, L1, L2, number(-0.5)], {}),
    "ApplyFtrl:power": (3, [G, LR, L1, L2, number(-0.7)], {}),
    "ApplyFtrlV2": (3, [G, LR, L1, L2, number(0.4), number(-0.5)], {}),
    "ApplyFtrlV2:times": (3, [G, LR, L1, L2, number(0.4), number(-0.5)], {"multiply_linear_by_lr": True}),
    "ApplyProximalGradientDescent": (1, [LR, L1, L2, G], {}),
    "ApplyProximalAdagrad": (2, [LR, L1, L2, G], {}),
    "ApplyAddSign": (2, [LR, number(1.1), number(0.9), number(0.8), G], {}),
    "ApplyPowerSign": (2, [LR, number(1.1), number(0.9), number(0.8), G], {}),
    "ApplyGradientDescent": (1, [LR, G], {}),
    "SparseApplyMomentum": (2, [LR, S, ROWS, number(0.9)], {}),
    "SparseApplyMomentum:nesterov": (2, [LR, S, ROWS, number(0.9)], {"use_nesterov": True}),
    "SparseApplyKerasMomentum": (2, [LR, S, ROWS, number(0.9)], {}),
    "SparseApplyAdagrad": (2, [LR, S, ROWS], {}),
    "SparseApplyAdagradV2": (2, [LR, number(1e-3), S, ROWS], {}),
    "SparseApplyAdagradDA": (3, [S, ROWS, LR, L1, L2, np.int64(7)], {}),
    "SparseApplyAdadelta": (3, [LR, number(0.95), number(1e-3), S, ROWS], {}),
    "SparseApplyRMSProp": (3, [*RMS, S, ROWS], {}),
    "SparseApplyCenteredRMSProp": (4, [*RMS, S, ROWS], {}),
    "SparseApplyFtrl": (3, [S, ROWS, LR, L1, L2, number(-0.5)], {}),
    "SparseApplyFtrlV2": (3, [S, ROWS, LR, L1, L2, number(0.4), number(-0.5)], {}),
    "SparseApplyProximalGradientDescent": (1, [LR, L1, L2, S, ROWS], {}),
    "SparseApplyProximalAdagrad": (2, [LR, L1, L2, S, ROWS], {}),
    **{"Scatter" + name: (1, [np.int32([[4, 0], [3, 1]]), f(2, 2, 3)], {}) for name in ("Update", "Mul", "Div", "Min", "Max")},
    **{"Scatter" + name: (1, [np.int32([4, 0, 4]), S], {}) for name in ("Add", "Sub")},
    "ScatterAdd:scalar": (1, [ROWS, number(2.5)], {}),
    **{"ScatterNd" + name: (1, [np.int32([[4, 0], [3, 1]]), f(2)], {}) for name in ("Update", "Add", "Sub")},
}
ONLY_RESOURCE = ("ApplyKerasMomentum", "ApplyAdamWithAmsgrad", "SparseApplyKerasMomentum")


def as_cluster(graph_def, reference):
    """Variables and placeholders become arguments."""
    cluster = tf1.GraphDef(versions=graph_def.versions)
    for node in graph_def.node:
        made = cluster.node.add()
        if node.op not in ("VarHandleOp", "Placeholder"):
            made.CopyFrom(node)
            if reference:
                made.op = made.op.replace("Resource", "")
            continue
        made.name, made.op = node.name, "_Arg"
        made.attr["T"].type = node.attr["dtype"].type
        made.attr["index"].i = len(cluster.node) - 1
        if node.op == "VarHandleOp":
            made.attr["handle"].s = b"ref" if reference else b"resource"
    return cluster


def main():
    root = sys.argv[1]
    if os.path.exists(os.path.join(root, "done")):
        return
    for name, (count, arrays, attributes) in CASES.items():
        folder, op = os.path.join(root, name.replace(":", ".")), name.split(":")[0]
        contents = V[:count]
        with tf1.Graph().as_default() as graph:
            handles = [tf.raw_ops.VarHandleOp(dtype=tf.float32, shape=v.shape, name=f"v{n}", shared_name=f"v{n}") for n, v in enumerate(contents)]
            inputs = [tf1.placeholder(a.dtype, a.shape, f"x{n}") for n, a in enumerate(arrays)]
            made = "Resource" + op
            function = getattr(tf.raw_ops, made)
            names = [n for n in function.__signature__.parameters if n not in ("name", "use_locking", "use_nesterov", "update_slots", "multiply_linear_by_lr", "bad_indices_policy")]
            update = function(**dict(zip(names, handles + inputs)), **attributes)
            definition = graph.as_graph_def()
            starts = [tf.raw_ops.AssignVariableOp(resource=h, value=v) for h, v in zip(handles, contents)]
            reads = [tf.raw_ops.ReadVariableOp(resource=h, dtype=tf.float32) for h in handles]
            with tf1.Session(graph=graph) as session:
                session.run(starts)
                for _ in range(2):
                    session.run(update, dict(zip(inputs, arrays)))
                after = session.run(reads)
        case = {f"x{n}": a for n, a in enumerate(arrays)} | {f"v{n}": a for n, a in enumerate(contents)}
        save_case(folder, case, {f"v{n}": a for n, a in enumerate(after)})
        for form in ("resource",) if op in ONLY_RESOURCE else ("resource", "ref"):
            tf1.train.write_graph(as_cluster(definition, form == "ref"), folder, form + ".pb", as_text=False)
    open(os.path.join(root, "done"), "w").close()


main()

"""Labels scripts by the interface of TensorFlow that they are written for: none, tf1, tf2 or both. Knows nothing of Cairn: it reads
imports and attribute chains with ast and asks the installed TensorFlow which interface has a name. The labels of
migrate_generations.txt were made with it; the unclear ones (names of both kinds, one name only) were read by a person.
Run: python tests/python/data/label_generations.py FILE..."""

import ast
import os
import sys
import warnings

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
warnings.simplefilter("ignore")
import tensorflow as tf  # noqa: E402

ROOTS = ("tensorflow", "tensorflow_core", "keras", "tf_slim", "horovod.tensorflow", "horovod.keras")
ASKS = ("__version__", "hasattr", "executing_eagerly", "_version")
MISSING = ("ImportError", "AttributeError", "Exception")
# Names of compat.v1 that build graphs; its others are used by scripts of both interfaces.
GRAPH = {"Session", "InteractiveSession", "placeholder", "get_variable", "variable_scope", "layers"}


def is_root(name):
    return any(name == root or name.startswith(root + ".") for root in ROOTS)


def has(value, chain):
    for position, part in enumerate(chain):
        if part.startswith("__"):
            return True
        try:
            value = getattr(value, part)
        except (AttributeError, ImportError):
            return False
        if position and (isinstance(value, type) or callable(value)):
            return True
    return True


def dotted(node):
    parts = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return [node.id, *reversed(parts)] if isinstance(node, ast.Name) else None


def imports(tree):
    """(bound name, dotted name, weight for v1, weight for v2)"""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                if is_root(alias.name):
                    whole = alias.asname is not None
                    v1 = 3 * (whole and alias.name == "tensorflow.compat.v1") + alias.name.startswith("tf_slim")
                    v2 = 3 * (whole and alias.name == "tensorflow.compat.v2")
                    yield alias.asname or alias.name.split(".")[0], alias.name if whole else alias.name.split(".")[0], v1, v2
        elif isinstance(node, ast.ImportFrom) and not node.level and is_root(node.module or ""):
            for alias in node.names:
                name = f"{node.module}.{alias.name}"
                old = ".contrib" in node.module or node.module.startswith("tf_slim")
                v1, v2 = 3 * (name == "tensorflow.compat.v1") + old, 3 * (name == "tensorflow.compat.v2")
                yield alias.asname or alias.name, name, v1, v2


def asking(tree):
    """Nodes that stand behind a question for the version or for a name."""
    flags = {node.targets[0].id for node in ast.walk(tree) if isinstance(node, ast.Assign)
             and isinstance(node.targets[0], ast.Name) and any(word in ast.unparse(node.value) for word in ASKS)}
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, (ast.If, ast.IfExp)):
            names = {inner.id for inner in ast.walk(node.test) if isinstance(inner, ast.Name)}
            behind = names & flags or any(word in ast.unparse(node.test) for word in ASKS)
        elif isinstance(node, ast.Try):
            behind = any(h.type is None or any(word in ast.unparse(h.type) for word in MISSING) for h in node.handlers)
        else:
            behind = False
        if behind:
            found |= {id(inner) for inner in ast.walk(node)}
    return found


def weigh(rest, compat):
    """What the use of one name says: (v1, v2)"""
    name = ".".join(rest)
    if name in ("disable_v2_behavior", "disable_eager_execution"):
        return 1000, 0
    if name == "enable_v2_behavior":
        return 0, 1000
    if rest[0] == "contrib":
        return 1, 0
    if compat == 1:
        return int(rest[0] in GRAPH or (rest[0] == "train" and name.endswith("Optimizer"))), 0
    if compat == 2:
        return 0, 0
    old, new = has(tf.compat.v1, rest), has(tf, rest)
    return int(old and not new), int((new and not old) or name in ("function", "GradientTape"))


def label(source):
    tree = ast.parse(source)
    bound, v1, v2 = {}, 0, 0
    for name, full, old, new in imports(tree):
        bound[name], v1, v2 = full, v1 + old, v2 + new
    if not bound:
        return "none"
    asked = asking(tree)
    inner = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    for node in ast.walk(tree):
        chain = dotted(node) if isinstance(node, (ast.Attribute, ast.Name)) and id(node) not in inner else None
        if not chain or chain[0] not in bound or id(node) in asked:
            continue
        full = bound[chain[0]].split(".") + chain[1:]
        rest, compat = full[1:], 0
        while rest[:1] == ["compat"] and rest[1:2] in (["v1"], ["v2"]):
            compat, rest = int(rest[1][1]), rest[2:]
        if full[0] == "tensorflow" and rest and rest[0] not in ("python", "core"):
            old, new = weigh(rest, compat)
            v1, v2 = v1 + old, v2 + new
    return "tf1" if v1 > 3 * v2 else "tf2" if v2 > 3 * v1 else "both"


if __name__ == "__main__":
    for path in sys.argv[1:]:
        with open(path, "rb") as file:
            print(label(file.read()), path)

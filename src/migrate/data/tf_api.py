"""Writes tf_api.txt: the public names of the installed TensorFlow with their kind (module, class, function, value) and the
API versions (1 = tf.compat.v1, 2 = tf) that have them. Run: python src/migrate/data/tf_api.py > src/migrate/data/tf_api.txt
"""
import inspect
import os

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import tensorflow as tf  # noqa: E402

# What tells a module of the public interface from one that merely leaked into it.
PUBLIC = ("_api.", "keras.api", "estimator.api", "tensorboard.summary._tf", "app.flags", "platform.flags", "absl.flags")
ALWAYS = ("app.flags", "flags", "logging", "compat")


def kind_of(value):
    if inspect.ismodule(value):
        return "m"
    if inspect.isclass(value):
        return "c"
    return "f" if callable(value) else "v"


def public_names(root):
    names, todo = {}, [(root, "")]
    while todo:
        value, prefix = todo.pop()
        for name in dir(value):
            full = prefix + name
            if name.startswith("_") or full in names or full.startswith("compat.v"):
                continue
            try:
                member = getattr(value, name)
            except (AttributeError, ImportError):
                continue
            if inspect.ismodule(member):
                module = getattr(member, "__name__", "")
                if full not in ALWAYS and not any(part in module for part in PUBLIC):
                    continue
                todo.append((member, full + "."))
            names[full] = kind_of(member)
    return names


def main():
    v1, v2 = public_names(tf.compat.v1), public_names(tf)
    print(f"# Public names of TensorFlow {tf.__version__}; written by tf_api.py")
    for name in sorted(set(v1) | set(v2)):
        print(name, (v1.get(name) or v2.get(name)) + "1" * (name in v1) + "2" * (name in v2))


main()

"""`traced.py FILE script.py arguments`: a TensorFlow 1 script with TensorFlow's own timeline of each session.run. FILE gets, for
each run, the operators that TensorFlow ran as [op, node, begin, end] in microseconds."""

import json
import re
import runpy
import sys
from pathlib import Path


def operators(metadata):
    for device in metadata.step_stats.dev_stats:
        for node in device.node_stats:
            found = re.match(r"\S+ = (\w+)\(", node.timeline_label)
            op = found[1] if found else re.sub(r"_\d+$", "", node.node_name)  # very long labels name the node only
            yield op, node.node_name, node.all_start_micros, node.all_start_micros + node.all_end_rel_micros


def main():
    file, script, *arguments = sys.argv[1:]
    sys.path[0] = str(Path(script).parent)
    sys.argv = [script, *arguments]
    from cairn_tf1 import alias

    alias.install()
    import tensorflow.compat.v1 as tf

    stock, runs = tf.Session.run, []

    def run(self, fetches, feed_dict=None, options=None, run_metadata=None):
        metadata = tf.RunMetadata()
        result = stock(self, fetches, feed_dict, tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE), metadata)
        runs.append(list(operators(metadata)))
        return result

    tf.Session.run = run
    try:
        runpy.run_path(script, run_name="__main__")
    finally:
        Path(file).write_text(json.dumps(runs))


if __name__ == "__main__":
    main()

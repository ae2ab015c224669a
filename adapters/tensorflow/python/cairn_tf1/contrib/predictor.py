"""tf.contrib.predictor: a SavedModel as a function of NumPy arrays."""

import tensorflow.compat.v1 as tf


class Predictor:
    """Calls the signature's session with {input name: array} and gives {output name: array}."""

    def __init__(self, graph, session, inputs, outputs):
        self.graph, self.session, self.feed_tensors, self.fetch_tensors = graph, session, inputs, outputs

    def __call__(self, input_dict):
        unknown = sorted(set(input_dict) - set(self.feed_tensors))
        if unknown:
            raise ValueError(f"Got unexpected keys in input_dict: {unknown}\nexpected: {sorted(self.feed_tensors)}")
        return self.session.run(self.fetch_tensors, {self.feed_tensors[name]: value for name, value in input_dict.items()})


def from_saved_model(export_dir, signature_def_key=None, signature_def=None, input_names=None, output_names=None, tags=None,
                     graph=None, config=None):  # fmt: skip
    graph = graph or tf.Graph()
    with graph.as_default():
        session = tf.Session(graph=graph, config=config)
        tags = tags.split(",") if isinstance(tags, str) else tags or [tf.saved_model.tag_constants.SERVING]
        meta = tf.saved_model.loader.load(session, tags, export_dir)
        if signature_def is None and input_names is None:
            signature_def = meta.signature_def[signature_def_key or "serving_default"]
        tensor = lambda name: graph.get_tensor_by_name(getattr(name, "name", name))
        inputs = {key: tensor(value) for key, value in (input_names or signature_def.inputs).items()}
        outputs = {key: tensor(value) for key, value in (output_names or signature_def.outputs).items()}
    return Predictor(graph, session, inputs, outputs)

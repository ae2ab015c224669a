"""tf.contrib.quantize: importable; rewriting a graph for quantised training is not supported and says so when called."""


def _refuse(name):
    def refuse(*args, **kwargs):
        raise NotImplementedError(f"tf.contrib.quantize.{name}: quantised training is not supported")

    return refuse


create_training_graph, create_eval_graph = _refuse("create_training_graph"), _refuse("create_eval_graph")
experimental_create_training_graph = _refuse("experimental_create_training_graph")
experimental_create_eval_graph = _refuse("experimental_create_eval_graph")

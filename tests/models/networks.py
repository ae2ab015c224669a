"""Builds networks for tests/python/test_networks.py with stock TensorFlow: calibrated like the other test models, frozen,
with what TensorFlow computes from made images."""

import multiprocessing
import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import numpy as np
import tensorflow as tf
from make_models import images
from tensorflow.python.framework.convert_to_constants import convert_variables_to_constants_v2_as_graph

INNER = 5  # tensors inside that are compared as well
RUNS = 4  # of TensorFlow on inputs rounded otherwise: of few, the largest difference is luck
SHOWN = {"Conv2D", "DepthwiseConv2dNative", "MatMul", "BatchMatMulV2", "AddV2", "FusedBatchNormV3", "Relu", "Relu6", "Mul", "BiasAdd",
         "ConcatV2", "Mean", "MaxPool", "Softmax", "Tanh", "Conv3D", "ResizeBilinear", "ResizeNearestNeighbor", "Transpose"}  # fmt: skip
tf1 = tf.compat.v1


class Frozen:
    """A frozen graph: `file`, `inputs` {name: array}, and `expected` {tensor: array}, the outputs first."""

    def __init__(self, file, inputs, outputs, inner=INNER):
        self.file = str(file)
        self.inputs = inputs
        with tf.Graph().as_default() as imported:
            tf.import_graph_def(tf1.GraphDef.FromString(file.read_bytes()), name="")
            names = list(outputs) + inner_tensors(imported, list(inputs), outputs, inner)
            self.outputs = list(outputs)
            self.expected = self._run(imported, names, 1, inputs)
            # How far stock TensorFlow is from itself: the work split otherwise, inputs rounded otherwise in their last bit.
            self.noise = dict.fromkeys(names, 0.0)
            for seed in range(RUNS):
                other = self._run(imported, names, 2, rounded(inputs, seed))
                for name in names:
                    difference = np.abs(other[name].astype(np.float64) - self.expected[name]).max(initial=0)
                    self.noise[name] = max(self.noise[name], difference)

    @staticmethod
    def _run(graph, names, threads, inputs):
        config = tf1.ConfigProto(intra_op_parallelism_threads=threads, inter_op_parallelism_threads=1)
        # Node by node: the graph optimiser's fused layer norm is off by 1e-2 here.
        config.graph_options.rewrite_options.disable_meta_optimizer = True
        with tf1.Session(graph=graph, config=config) as session:
            values = session.run([f"{name}:0" if ":" not in name else name for name in names],
                                 {f"{name}:0": value for name, value in inputs.items()})
        return dict(zip(names, values))


def rounded(inputs, seed):
    """The inputs with every float one step up or down."""
    random = np.random.default_rng(seed)
    return {name: np.nextafter(value, value + random.choice([-1, 1], value.shape).astype(value.dtype))
            if value.dtype.kind == "f" else value for name, value in inputs.items()}  # fmt: skip


def inner_tensors(graph, inputs, outputs, count):
    """Names of tensors of floats, evenly from input to output."""
    operations = [op for op in graph.get_operations() if op.type in SHOWN and op.outputs[0].dtype == tf.float32
                  and op.outputs[0].shape.rank and op.name not in outputs and depends(op)]
    step = max(1, len(operations) // count)
    return [op.name for op in operations[step // 2 :: step][:count]]


def depends(operation):
    """Whether the operation depends on an input of the graph, and on no branch or loop: there it may have no value."""
    seen, pending, found = set(), [operation], False
    while pending:
        op = pending.pop()
        if op.type in ("Switch", "Enter"):
            return False
        found = found or op.type == "Placeholder"
        for tensor in op.inputs:
            if tensor.op.name not in seen:
                seen.add(tensor.op.name)
                pending.append(tensor.op)
    return found


def freeze(function, inputs):
    """`function` of named arrays, traced with the first dim open: graph, inputs by the graph's names, names of outputs."""
    names = list(inputs)
    signature = [tf.TensorSpec((None, *np.shape(v)[1:]), np.asarray(v).dtype, k) for k, v in inputs.items()]
    concrete = tf.function(lambda *tensors: function(**dict(zip(names, tensors)))).get_concrete_function(*signature)
    made, graph = convert_variables_to_constants_v2_as_graph(concrete, lower_control_flow=False)
    fed = {tensor.op.name: value for tensor, value in zip(made.inputs, inputs.values())}
    return graph, fed, [tensor.name.removesuffix(":0") for tensor in made.outputs]


def frozen(function, inputs, file, inner=INNER):
    graph, inputs, outputs = freeze(function, inputs)
    file.write_bytes(graph.SerializeToString())
    return Frozen(file, inputs, outputs, inner)


def calibrate(model, x):
    """Gives every batch norm the statistics of the batch, by one pass in training mode without dropping anything, and
    scales and offsets that do something; then none of a network's signals dies out or grows beyond bounds."""
    random = np.random.default_rng(7)
    for layer in model._flatten_layers():
        if hasattr(layer, "rate"):
            layer.rate = 0.0
        if hasattr(layer, "drop_path_rate"):
            layer.drop_path_rate = 0.0
        if isinstance(layer, tf.keras.layers.BatchNormalization):
            layer.momentum = 0.0
            layer.gamma is None or layer.gamma.assign(random.uniform(0.8, 1.2, layer.gamma.shape))
            layer.beta is None or layer.beta.assign(random.uniform(-0.3, 0.5, layer.beta.shape))
        elif isinstance(layer, tf.keras.layers.Conv2D):
            # Partly smoothing: differences of neighbouring pixels would blow rounding up.
            kernel = layer.depthwise_kernel if isinstance(layer, tf.keras.layers.DepthwiseConv2D) else layer.kernel
            mean = tf.abs(kernel) if kernel is not getattr(layer, "kernel", None) else kernel
            kernel.assign(0.3 * kernel + 0.7 * tf.reduce_mean(mean, (0, 1), keepdims=True))
    model(x, training=True)
    norms = [layer for layer in model._flatten_layers() if isinstance(layer, tf.keras.layers.BatchNormalization)]
    for layer in norms:  # a channel that hardly varies would blow rounding up
        layer.moving_variance.assign(tf.maximum(layer.moving_variance, 0.5 * tf.reduce_mean(layer.moving_variance)))
    y = centred(model, x)[:4]
    if np.sqrt(np.var(y, axis=0).mean()) <= 0.02 * np.abs(y).max():  # in a very deep network what that moves adds up: by an epsilon then
        for layer in norms:
            layer.epsilon = max(layer.epsilon, float(0.5 * tf.reduce_mean(layer.moving_variance)))
        model(x, training=True)
        centred(model, x)


def centred(model, x):
    """Takes most of what all images have in common from the logits, which it returns; all of it, and only rounding is left."""
    head = model.layers[-1]
    if isinstance(head, tf.keras.layers.Dense):
        head.bias.assign(tf.zeros_like(head.bias))
        head.bias.assign(-0.9 * tf.reduce_mean(model(x, training=False), 0))
    return model(x, training=False).numpy()


def freeze_application(name, size, file):
    """Writes one of keras.applications with random weights, calibrated; its inputs and the names of its outputs."""
    tf.keras.utils.set_random_seed(1)
    tf.keras.backend.clear_session()
    shape = (size, size, 3)
    model = getattr(tf.keras.applications, name)(weights=None, input_shape=shape, classifier_activation=None)
    x = np.concatenate([images(size, 3, seed=seed)[:4] for seed in range(9, 15)])
    if name.startswith(("EfficientNet", "MobileNetV3", "ConvNeXt", "RegNet", "ResNetRS")):
        x = 128 + 60 * x  # the network scales colours itself
    calibrate(model, x)  # on more images than are run: the last ones are a few pixels large
    graph, inputs, outputs = freeze(lambda x: model(x, training=False), {"x": x[:4]})
    file.write_bytes(graph.SerializeToString())
    return inputs, outputs


def application(name, size, file, apart=False):
    """`apart`: made and run in two processes of their own, whose memory goes with them."""
    if not apart:
        return Frozen(file, *freeze_application(name, size, file))
    with multiprocessing.get_context("spawn").Pool(1, maxtasksperchild=1) as pool:
        inputs, outputs = pool.apply(freeze_application, (name, size, file))
        return pool.apply(Frozen, (file, inputs, outputs))


# Transformers ----------------------------------------------------------------------------------------------------------


def transformer(kind, file):
    """A small model of the transformers library, its weights random and large enough that attention is not uniform."""
    import transformers as hf

    tf.keras.utils.set_random_seed(2)
    tf.keras.backend.clear_session()
    small = {"vocab_size": 99, "attn_implementation": "eager"}
    text = {"num_hidden_layers": 3, "hidden_size": 48, "num_attention_heads": 4, "intermediate_size": 80, "initializer_range": 0.25}
    random = np.random.default_rng(3)
    ids = random.integers(0, 99, (4, 12)).astype(np.int32)
    mask = (np.arange(12) < np.array([12, 7, 9, 12])[:, None]).astype(np.int32)
    inputs = {"input_ids": ids, "attention_mask": mask}
    if kind == "bert":
        model = hf.TFBertForSequenceClassification(hf.BertConfig(num_labels=5, **small, **text))
        inputs["token_type_ids"] = random.integers(0, 2, (4, 12)).astype(np.int32)
    elif kind == "distilbert":
        model = hf.TFDistilBertModel(hf.DistilBertConfig(n_layers=3, dim=48, n_heads=4, hidden_dim=80, initializer_range=0.25, **small))
    elif kind == "gpt2":
        model = hf.TFGPT2LMHeadModel(hf.GPT2Config(n_layer=3, n_embd=48, n_head=4, n_positions=32, initializer_range=0.2, **small))
    elif kind == "t5":
        config = hf.T5Config(d_model=48, d_kv=12, d_ff=80, num_layers=2, num_heads=4, vocab_size=99, initializer_factor=1.0)
        model = hf.TFT5ForConditionalGeneration(config)
        inputs["decoder_input_ids"] = random.integers(0, 99, (4, 6)).astype(np.int32)
    else:
        model = hf.TFViTForImageClassification(hf.ViTConfig(image_size=32, patch_size=8, num_labels=7, **text))
        inputs = {"pixel_values": random.normal(size=(4, 3, 32, 32)).astype(np.float32)}
    output = "last_hidden_state" if kind == "distilbert" else "logits"
    return frozen(lambda **tensors: model(tensors, training=False)[output], inputs, file)


# Layers of Keras --------------------------------------------------------------------------------------------------------

L = tf.keras.layers
LAYERS = {
    "lstm": ((6, 5), lambda x: L.LSTM(7, return_sequences=True)(x)),
    "lstm_stacked": ((6, 5), lambda x: L.LSTM(4)(L.LSTM(7, return_sequences=True)(x))),
    "gru": ((6, 5), lambda x: L.GRU(7)(x)),
    "gru_v1": ((6, 5), lambda x: L.GRU(7, reset_after=False, return_sequences=True)(x)),
    "simple_rnn": ((6, 5), lambda x: L.SimpleRNN(7)(x)),
    "bidirectional": ((6, 5), lambda x: L.Bidirectional(L.LSTM(4, return_sequences=True))(x)),
    "backwards": ((6, 5), lambda x: L.GRU(4, go_backwards=True)(x)),
    "unrolled": ((4, 5), lambda x: L.LSTM(4, unroll=True)(x)),
    "masked_lstm": ((6, 5), lambda x: L.LSTM(4)(L.Masking()(L.ReLU(threshold=0.3)(x)))),
    "conv_lstm": ((3, 6, 6, 2), lambda x: L.ConvLSTM2D(3, 3, padding="same", return_sequences=True)(x)),
    "conv3d": ((5, 6, 7, 2), lambda x: L.MaxPool3D(2)(L.Conv3D(4, 3, padding="same")(x))),
    "pool3d": ((6, 6, 7, 2), lambda x: L.AveragePooling3D(2, padding="same")(L.ZeroPadding3D(1)(x))),
    "conv2d_transpose": ((5, 6, 3), lambda x: L.Conv2DTranspose(4, 3, strides=2, padding="same")(x)),
    "conv2d_transpose_valid": ((5, 6, 3), lambda x: L.Conv2DTranspose(4, (3, 2), strides=(2, 3))(x)),
    "conv1d": ((9, 4), lambda x: L.Conv1D(6, 3, padding="causal", dilation_rate=2)(x)),
    "conv1d_transpose": ((5, 4), lambda x: L.Conv1DTranspose(3, 4, strides=2)(x)),
    "separable": ((7, 8, 3), lambda x: L.SeparableConv2D(6, 3, depth_multiplier=2)(x)),
    "separable1d": ((9, 3), lambda x: L.SeparableConv1D(6, 3)(x)),
    "multi_head_attention": ((6, 8), lambda x: L.MultiHeadAttention(2, 5)(x, x)),
    "causal_attention": ((6, 8), lambda x: L.MultiHeadAttention(2, 5)(x, x, use_causal_mask=True)),
    "attention": ((6, 8), lambda x: L.Attention()([x, x])),
    "additive_attention": ((6, 8), lambda x: L.AdditiveAttention()([x, x])),
    "resizing": ((9, 7, 3), lambda x: L.Resizing(13, 11)(x)),
    "resizing_nearest": ((9, 7, 3), lambda x: L.Resizing(13, 11, interpolation="nearest")(x)),
    "up_sampling": ((4, 5, 3), lambda x: L.UpSampling2D(3)(x)),
    "up_sampling_bilinear": ((4, 5, 3), lambda x: L.UpSampling2D(2, interpolation="bilinear")(x)),
    "cropping": ((8, 9, 3), lambda x: L.Cropping2D(((1, 2), (0, 3)))(x)),
    "center_crop": ((8, 9, 3), lambda x: L.CenterCrop(5, 4)(x)),
    "layer_norm": ((6, 8), lambda x: L.LayerNormalization()(x)),
    "group_norm": ((6, 6, 8), lambda x: L.GroupNormalization(4)(x)),
    "unit_norm": ((6, 8), lambda x: L.UnitNormalization()(x)),
    "global_pooling": ((6, 6, 8), lambda x: L.Concatenate()([L.GlobalMaxPooling2D()(x), L.GlobalAveragePooling2D()(x)])),
    "dot": ((6, 8), lambda x: L.Dot(axes=2)([x, x])),
    "activations": ((6, 8), lambda x: L.PReLU()(L.ELU()(L.Softmax()(tf.keras.activations.gelu(x) + tf.keras.activations.swish(x))))),
    "locally_connected": ((8, 3), lambda x: L.LocallyConnected1D(4, 3)(x)),
    "time_distributed": ((4, 6, 6, 2), lambda x: L.TimeDistributed(L.Conv2D(3, 3, activation="relu"))(x)),
    "permute": ((3, 4, 5), lambda x: L.Flatten()(L.Permute((3, 1, 2))(x))),
    "repeat": ((5,), lambda x: L.Reshape((5, 3))(L.RepeatVector(3)(x))),
}


def layer(name, file):
    tf.keras.utils.set_random_seed(4)
    tf.keras.backend.clear_session()
    shape, function = LAYERS[name]
    x = tf.keras.Input(shape, name="x")
    model = tf.keras.Model(x, function(x))
    random = np.random.default_rng(6)
    for weight in model.weights:  # biases and normalisations that do something
        if len(weight.shape) == 1:
            weight.assign(weight + 0.3 * np.abs(random.normal(size=weight.shape)).astype(np.float32))
    return frozen(lambda x: model(x, training=False), {"x": random.normal(size=(3, *shape)).astype(np.float32)}, file, inner=3)


# Graphs of TensorFlow 1 ---------------------------------------------------------------------------------------------------


def resnet_v2(x):
    """ResNet-v2 as slim builds it: pre-activation, fixed padding before strides, batch norm decided by a placeholder."""
    random = np.random.default_rng(8)
    training = tf1.placeholder_with_default(False, [], "is_training")

    def conv(y, channels, size, stride=1):
        kernel = random.normal(size=(size, size, y.shape[3], channels)).astype(np.float32) * (2 / (size * size * int(y.shape[3]))) ** 0.5
        if stride > 1:
            before = (size - 1) // 2
            y = tf.pad(y, [[0, 0], [before, size - 1 - before], [before, size - 1 - before], [0, 0]])
        return tf1.nn.conv2d(y, tf1.get_variable(f"w{len(tf1.global_variables())}", initializer=kernel), [1, stride, stride, 1],
                             "VALID" if stride > 1 else "SAME")

    def norm(y):
        channels, number = int(y.shape[3]), len(tf1.global_variables())
        scale, offset, mean, variance = (tf1.get_variable(f"{name}{number}", initializer=value.astype(np.float32)) for name, value in (
            ("gamma", random.uniform(0.8, 1.2, channels)), ("beta", random.normal(size=channels) * 0.3),
            ("mean", random.normal(size=channels) * 0.2), ("variance", random.uniform(0.5, 1.5, channels))))
        batch = lambda: tf1.nn.fused_batch_norm(y, scale, offset)[0]  # noqa: E731
        return tf.nn.relu(tf1.cond(training, batch, lambda: tf1.nn.fused_batch_norm(y, scale, offset, mean, variance, is_training=False)[0]))

    y = tf1.nn.max_pool(conv(x, 8, 7, 2), [1, 3, 3, 1], [1, 2, 2, 1], "SAME")
    for channels, stride in ((8, 1), (16, 2)):
        for unit in range(2):
            step = stride if unit == 1 else 1
            before = norm(y)
            shortcut = tf1.nn.max_pool(y, [1, 1, 1, 1], [1, step, step, 1], "SAME")
            if int(y.shape[3]) != 4 * channels:
                shortcut = conv(before, 4 * channels, 1)
            y = shortcut + 0.5 * conv(norm(conv(norm(conv(before, channels, 1)), channels, 3, step)), 4 * channels, 1)
    return [tf.reduce_mean(norm(y), [1, 2], name="pool5")]


def ssd_detection(x):
    """Boxes decoded from anchors, scores by sigmoid, the best of each image kept, as the object detection library exports."""
    random = np.random.default_rng(10)
    kernel = tf1.get_variable("kernel", initializer=random.normal(size=(3, 3, 3, 3 * 7)).astype(np.float32) * 0.3)
    y = tf1.nn.conv2d(x, kernel, [1, 4, 4, 1], "SAME")
    predictions = tf.reshape(y, [tf.shape(x)[0], -1, 7])
    codes, scores = predictions[..., :4], tf.sigmoid(predictions[..., 4:])
    rows = np.stack(np.meshgrid(np.arange(8), np.arange(8), indexing="ij"), -1).reshape(-1, 1, 2) / 8 + 1 / 16
    anchors = np.concatenate([np.broadcast_to(rows, (64, 3, 2)), np.broadcast_to(np.array([[0.1], [0.2], [0.35]]), (64, 3, 1)),
                              np.broadcast_to(np.array([[0.1], [0.3], [0.2]]), (64, 3, 1))], 2).reshape(-1, 4).astype(np.float32)
    ty, tx, th, tw = tf.unstack(codes, axis=2)
    height, width = tf.exp(th / 5.0) * anchors[:, 2], tf.exp(tw / 5.0) * anchors[:, 3]
    cy, cx = ty / 10.0 * anchors[:, 2] + anchors[:, 0], tx / 10.0 * anchors[:, 3] + anchors[:, 1]
    boxes = tf.stack([cy - height / 2, cx - width / 2, cy + height / 2, cx + width / 2], 2)

    def best(pair):
        box, score = pair
        parts = []
        for number in range(3):
            chosen = tf.image.non_max_suppression(box, score[:, number], 5, 0.5, 0.3)
            parts.append((tf.gather(box, chosen), tf.gather(score[:, number], chosen)))
        all_boxes, all_scores = tf.concat([p[0] for p in parts], 0), tf.concat([p[1] for p in parts], 0)
        values, order = tf.nn.top_k(all_scores, tf.minimum(10, tf.shape(all_scores)[0]))
        missing = 10 - tf.shape(values)[0]
        return tf.pad(tf.gather(all_boxes, order), [[0, missing], [0, 0]]), tf.pad(values, [[0, missing]])

    return list(tf1.map_fn(best, (boxes, scores), dtype=(tf.float32, tf.float32)))


GRAPHS = {"resnet_v2": (resnet_v2, (64, 64, 3), 5), "ssd_detection": (ssd_detection, (32, 32, 3), 5)}


def graph(name, file):
    """A graph with TensorFlow 1's control flow and reference variables, frozen by TensorFlow's own tool."""
    from tensorflow.python.ops import control_flow_util, variable_scope

    function, shape, inner = GRAPHS[name]
    x = images(shape[0], 3, seed=9)[:4]
    before = control_flow_util.ENABLE_CONTROL_FLOW_V2, variable_scope.resource_variables_enabled()
    tf1.disable_control_flow_v2()
    tf1.disable_resource_variables()
    try:
        with tf1.Graph().as_default() as made, tf1.Session(graph=made) as session:
            results = function(tf1.placeholder(tf.float32, (None, *shape), "x"))
            outputs = [tf.identity(result, f"y{n}").op.name for n, result in enumerate(results)]
            session.run(tf1.global_variables_initializer())
            graph_def = tf1.graph_util.convert_variables_to_constants(session, made.as_graph_def(), outputs)
    finally:
        if before[0]:
            tf1.enable_control_flow_v2()
        if before[1]:
            tf1.enable_resource_variables()
    file.write_bytes(graph_def.SerializeToString())
    return Frozen(file, {"x": x}, outputs, inner)

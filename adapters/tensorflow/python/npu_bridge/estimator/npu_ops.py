"""Operators that scripts call by hand. Each is a composition of stock TensorFlow operators, so that its gradient, its random
stream and its value are the same on every engine."""

import numbers

import tensorflow.compat.v1 as tf

from npu_bridge import environment


def _graph_only(name):
    if tf.executing_eagerly():
        raise RuntimeError(f"tf.{name}() is not compatible with eager execution.")


def _not_supported(name, reason):
    raise NotImplementedError(f"npu_ops.{name}: {reason}")


def NPUInit(name=None):
    """The op that a script runs to bring the system up. Nothing has to be brought up here; the environment is checked."""
    _graph_only("NPUInit")
    environment.check()
    return tf.no_op(name=name or "NPUInit")


def NPUShutdown(name=None):
    _graph_only("NPUShutdown")
    return tf.no_op(name=name or "NPUShutdown")


def initialize_system(name=None):
    return NPUInit(name)


def shutdown_system(name=None):
    return NPUShutdown(name)


def dropout(x, keep_prob, noise_shape=None, seed=None, name=None):
    """tf.nn.dropout: keeps with probability `keep_prob`, scales by 1 / keep_prob, and draws the one op seed that
    tf.nn.dropout draws, so that replacing one by the other changes no random number of the graph."""
    _graph_only("dropout")
    x = tf.convert_to_tensor(x, name="x")
    if not x.dtype.is_floating:
        raise ValueError(
            f"x has to be a floating point tensor since it's going to be scaled. Got a {x.dtype} tensor instead."
        )
    if isinstance(keep_prob, numbers.Real) and not 0 < keep_prob <= 1:
        raise ValueError(f"keep_prob must be a scalar tensor or a float in the range (0, 1], got {keep_prob:g}")
    return tf.nn.dropout(x, rate=1 - keep_prob, noise_shape=noise_shape, seed=seed, name=name)


def _lars(weight, gradient, weight_decay, hyperpara, epsilon):
    norm_w, norm_g = tf.norm(weight), tf.norm(gradient)
    ratio = hyperpara * norm_w / (norm_g + weight_decay * norm_w + epsilon)
    return ratio, gradient + weight_decay * weight


def LARS(inputs_w, inputs_g, weight_decay, hyperpara=0.001, epsilon=0.00001, name=None):
    """Scaled gradients: (g + decay * w) * hyperpara * |w| / (|g| + decay * |w| + epsilon), per tensor. A list gives a list."""
    _graph_only("LARS")
    single = not isinstance(inputs_w, (list, tuple))
    pairs = [(inputs_w, inputs_g)] if single else list(zip(inputs_w, inputs_g, strict=True))
    with tf.name_scope(name, "LARS"):
        scaled = []
        for weight, gradient in pairs:
            ratio, decayed = _lars(weight, gradient, weight_decay, hyperpara, epsilon)
            scaled.append(decayed * ratio)
    return scaled[0] if single else scaled


def LARSV2(input_weight, input_grad, weight_decay, learning_rate, hyperpara=0.001, epsilon=0.00001, use_clip=False,
           name=None):  # fmt: skip
    """As LARS for one tensor; `use_clip` bounds the ratio by the learning rate: min(ratio / learning_rate, 1)."""
    _graph_only("LARSV2")
    with tf.name_scope(name, "LARSV2"):
        ratio, decayed = _lars(input_weight, input_grad, weight_decay, hyperpara, epsilon)
        if use_clip:
            ratio = tf.clip_by_value(ratio / learning_rate, 0.0, 1.0)
        return decayed * ratio


def basic_lstm_cell(x, h, c, w, b, keep_prob, forget_bias, state_is_tuple, activation, name=None):
    """One LSTM step with gates i, j, f, o in `w` [input + hidden, 4 * hidden]: returns ct, ht, it, jt, ft, ot, tanhct."""
    _graph_only("basic_lstm_cell")
    with tf.name_scope(name, "BasicLSTMCell"):
        if keep_prob != 1:
            _not_supported("basic_lstm_cell", f"keep_prob is {keep_prob}, only 1.0 is supported")
        act = getattr(tf, activation if isinstance(activation, str) else activation.__name__)
        i, j, f, o = tf.split(tf.nn.bias_add(tf.matmul(tf.concat([x, h], 1), w), b), 4, axis=1)
        i, j, f, o = tf.sigmoid(i), act(j), tf.sigmoid(f + forget_bias), tf.sigmoid(o)
        ct = c * f + i * j
        tanhct = act(ct)
        return ct, tanhct * o, i, j, f, o, tanhct


def _adam(gradient, v, m, mul, epsilon):
    gradient, v, m = (tf.convert_to_tensor(value) for value in (gradient, v, m))
    next_m = mul[0] * m + mul[1] * gradient
    next_v = mul[2] * v + mul[3] * tf.square(gradient)
    return next_v, next_m, next_m / (epsilon + tf.sqrt(next_v))


def _store(targets, values):
    """The values, written to those targets that are variables once all of them are known."""
    with tf.control_dependencies(values):
        return [tf.assign(t, v) if isinstance(t, tf.Variable) else v for t, v in zip(targets, values)]


def adam_apply_one_assign(input0, input1, input2, input3, input4, mul0_x, mul1_x, mul2_x, mul3_x, add2_y, name=None):
    """Adam without bias correction: gradient, v, m, weight, rate; b1, 1 - b1, b2, 1 - b2; epsilon. Returns v, m, weight,
    and writes those that are variables."""
    _graph_only("adam_apply_one_assign")
    with tf.name_scope(name, "AdamApplyOneAssign"):
        v, m, step = _adam(input0, input1, input2, (mul0_x, mul1_x, mul2_x, mul3_x), add2_y)
        return _store((input1, input2, input3), (v, m, input3 - input4 * step))


def adam_apply_one_with_decay_assign(input0, input1, input2, input3, input4, mul0_x, mul1_x, mul2_x, mul3_x, mul4_x,
                                     add2_y, name=None):  # fmt: skip
    """The same with weight decay `mul4_x` added to the step."""
    _graph_only("adam_apply_one_with_decay_assign")
    with tf.name_scope(name, "AdamApplyOneWithDecayAssign"):
        v, m, step = _adam(input0, input1, input2, (mul0_x, mul1_x, mul2_x, mul3_x), add2_y)
        return _store((input1, input2, input3), (v, m, input3 - input4 * (step + mul4_x * input3)))


def scatter_elements(data, indices, updates, axis=0, name=None):
    """A copy of `data` with updates[i][j] written at row indices[i][j] (for axis 0), as ONNX's ScatterElements."""
    with tf.name_scope(name, "ScatterElements"):
        data, indices = tf.convert_to_tensor(data), tf.convert_to_tensor(indices)
        rank = data.shape.rank
        if rank is None:
            raise ValueError("scatter_elements: the rank of data must be known")
        axis = axis % rank
        size = tf.cast(tf.shape(data)[axis], indices.dtype)
        along = tf.where(indices < 0, indices + size, indices)
        grid = tf.meshgrid(*[tf.range(tf.shape(indices)[d]) for d in range(rank)], indexing="ij")
        places = [along if d == axis else tf.cast(grid[d], indices.dtype) for d in range(rank)]
        return tf.tensor_scatter_nd_update(data, tf.stack(places, axis=-1), updates)


def k_means_centroids(x, y, sum_square_y, sum_square_x, use_actual_distance=False, name=None):
    """One step of k-means: sums and counts of the points of `x` [n, d] nearest to each centroid of `y` [k, d], and the sum of
    the smallest distances (without |x|^2 unless `use_actual_distance`)."""
    with tf.name_scope(name, "KMeansCentroids"):
        x, y = tf.convert_to_tensor(x), tf.convert_to_tensor(y)
        distance = tf.reshape(sum_square_y, [1, -1]) - 2.0 * tf.matmul(x, y, transpose_b=True)
        if use_actual_distance:
            distance += tf.reshape(sum_square_x, [-1, 1])
        chosen = tf.one_hot(tf.argmin(distance, axis=1), tf.shape(y)[0], dtype=x.dtype)
        counts = tf.reshape(tf.reduce_sum(chosen, axis=0), [-1, 1])
        return tf.matmul(chosen, x, transpose_a=True), counts, tf.reduce_sum(tf.reduce_min(distance, axis=1))


def npu_onnx_graph_op(inputs, tout, model_path, name=None):
    _not_supported("npu_onnx_graph_op", "an ONNX model inside a training graph is not supported; run it with cairn run")


def outfeed_enqueue_op(channel_name, inputs, name=None):
    _not_supported("outfeed_enqueue_op", "there is no device channel here; fetch the tensors with session.run")


def outfeed_dequeue_op(channel_name, output_types, output_shapes, name=None):
    _not_supported("outfeed_dequeue_op", "there is no device channel here; fetch the tensors with session.run")


def stop_outfeed_dequeue_op(channel_name, name=None):
    _not_supported("stop_outfeed_dequeue_op", "there is no device channel here; fetch the tensors with session.run")


def channel_get_next(channel_name, output_types, output_shapes, name=None):
    _not_supported("channel_get_next", "there is no device channel here; use tf.data")

"""Single layers and functions of odd and usual sizes: `trained()` for TensorFlow, {name: (function that makes the layer, inputs)}, and
`exported()` for torch, {name: (module, inputs)}."""

import numpy as np


def trained():
    import tensorflow as tf

    layers = tf.keras.layers
    cases = {}

    def values(*dims):
        return tf.constant(np.random.RandomState(0).randn(*dims).astype(np.float32))

    def places(count, *dims):
        return tf.constant(np.random.RandomState(0).randint(0, count, dims))

    def add(name, make, *inputs):
        cases[name] = (make, inputs)

    for k, n in ((1024, 10), (2048, 10), (4096, 2), (512, 512), (1000, 37), (64, 4096)):
        add(f"dense {k}-{n}", lambda n=n: layers.Dense(n), values(64, k))
    add("dense of many rows", lambda: layers.Dense(8), values(5000, 8))
    for ci, co, k, stride, size, more in (
        (3, 32, 3, 1, 64, {}), (3, 64, 7, 2, 112, {}), (1, 16, 5, 1, 28, {}), (64, 64, 3, 1, 16, {}), (64, 128, 3, 2, 32, {}),
        (128, 128, 1, 1, 16, {}), (1024, 64, 1, 1, 8, {}), (512, 16, 1, 1, 8, {}), (32, 32, (1, 7), 1, 16, {}), (32, 3, 3, 1, 64, {}),
        (32, 32, 3, 1, 32, {"dilation_rate": 4}), (48, 48, 3, 1, 16, {"groups": 16}), (37, 53, 3, 1, 19, {}), (256, 256, 3, 1, 4, {}),
    ):  # fmt: skip
        name = f"conv {ci}-{co} {k} s{stride} @{size} {' '.join(more)}".strip()
        add(name, lambda co=co, k=k, s=stride, more=more: layers.Conv2D(co, k, s, "same", **more), values(8, size, size, ci))
    for c, k, stride, size, filters in ((32, 3, 1, 32, 1), (32, 5, 2, 32, 1), (3, 5, 1, 64, 1), (128, 3, 1, 7, 1), (12, 3, 1, 32, 3), (32, 13, 1, 16, 1)):
        make = lambda k=k, s=stride, m=filters: layers.DepthwiseConv2D(k, s, "same", depth_multiplier=m)  # noqa: E731
        add(f"depthwise {c}x{filters} {k} s{stride} @{size}", make, values(8, size, size, c))
    for ci, co, k, stride, size in ((64, 32, 4, 2, 16), (16, 3, 5, 2, 32), (64, 64, 2, 2, 16), (128, 64, 5, 1, 7)):
        add(f"transposed {ci}-{co} {k} s{stride} @{size}", lambda co=co, k=k, s=stride: layers.Conv2DTranspose(co, k, s, "same"), values(8, size, size, ci))
    for ci, co, k, length, more in ((1, 32, 80, 4000, {"strides": 4}), (64, 64, 3, 200, {"padding": "causal", "dilation_rate": 16}), (8, 8, 9, 1000, {})):
        add(f"conv1d {ci}-{co} {k} @{length}", lambda co=co, k=k, more=more: layers.Conv1D(co, k, **more), values(8, length, ci))
    add("conv3d", lambda: layers.Conv3D(16, 3, padding="same"), values(2, 8, 16, 16, 8))
    images = values(16, 28, 28, 32)
    for name, make in {
        "max pool 2": lambda: layers.MaxPool2D(2), "max pool 3 s2": lambda: layers.MaxPool2D(3, 2, "same"), "max pool 5 s1": lambda: layers.MaxPool2D(5, 1, "same"),
        "mean pool 3 s1": lambda: layers.AvgPool2D(3, 1, "same"), "mean of images": layers.GlobalAveragePooling2D, "batch norm": layers.BatchNormalization,
        "layer norm 32": layers.LayerNormalization, "group norm": lambda: layers.GroupNormalization(8), "upsampling": lambda: layers.UpSampling2D(2),
        "bilinear upsampling": lambda: layers.UpSampling2D(2, interpolation="bilinear"), "padding": lambda: layers.ZeroPadding2D(1),
        "prelu": lambda: layers.PReLU(shared_axes=[1, 2]), "dropout": lambda: layers.Dropout(0.3), "softmax 32": layers.Softmax,
        "permute": lambda: layers.Permute((3, 1, 2)),
    }.items():  # fmt: skip
        add(name, make, images)
    for c in (64, 256, 768):
        add(f"layer norm {c}", layers.LayerNormalization, values(8, 64, c))
    for name, make in {
        "lstm": lambda: layers.LSTM(32), "gru": lambda: layers.GRU(32), "simple rnn": lambda: layers.SimpleRNN(32),
        "bidirectional": lambda: layers.Bidirectional(layers.LSTM(32)), "max pool 1d": lambda: layers.MaxPool1D(2),
    }.items():  # fmt: skip
        add(name, make, values(16, 30, 32))
    words = values(8, 50, 64)
    add("attention heads", lambda: lambda x, layer=layers.MultiHeadAttention(4, 16): layer(x, x), words)
    add("additive attention", lambda: lambda x, layer=layers.AdditiveAttention(): layer([x, x]), words)
    for name, function, x in (
        ("softmax 1000", tf.nn.softmax, values(64, 1000)), ("sums so far by columns", lambda x: tf.cumsum(x, 0), values(500, 64)),
        ("products so far", lambda x: tf.math.cumprod(x, 1), values(64, 50)), ("sort", lambda x: tf.sort(x, 1), values(64, 500)),
        ("largest ten", lambda x: tf.math.top_k(x, 10)[0], values(64, 5000)), ("norm of rows", lambda x: tf.norm(x, axis=1), values(500, 64)),
        ("log of sums of powers", lambda x: tf.reduce_logsumexp(x, 1), values(500, 200)), ("deviation", lambda x: tf.math.reduce_std(x, 1), values(500, 200)),
        ("gelu", tf.nn.gelu, values(200, 1000)), ("sine", tf.sin, values(200, 1000)), ("gather", lambda x: tf.gather(x, places(1000, 4096)), values(1000, 64)),
        ("segment sums", lambda x: tf.math.unsorted_segment_sum(x, places(100, 4096), 100), values(4096, 32)),
        ("segment maxima", lambda x: tf.math.unsorted_segment_max(x, places(100, 4096), 100), values(4096, 32)),
        ("scattered rows", lambda x: tf.scatter_nd(places(500, 2000, 1), x, (500, 32)), values(2000, 32)),
        ("roll", lambda x: tf.roll(x, 3, 1), values(500, 400)), ("mirrored borders", lambda x: tf.pad(x, ((0, 0), (3, 3), (3, 3), (0, 0)), "REFLECT"), values(4, 32, 32, 16)),
        ("every second", lambda x: x[:, ::2, 1:-1], values(16, 100, 100)), ("resize", lambda x: tf.image.resize(x, (50, 50)), values(4, 32, 32, 16)),
        ("patches", lambda x: tf.image.extract_patches(x, (1, 3, 3, 1), (1, 1, 1, 1), (1, 1, 1, 1), "SAME"), values(4, 32, 32, 8)),
        ("small batched products", lambda x: tf.matmul(x, x, transpose_b=True), values(100, 16, 16)),
        ("inverse", lambda x: tf.linalg.inv(x + 5 * tf.eye(16)), values(16, 16, 16)), ("eigenvalues", lambda x: tf.linalg.eigvalsh(x + tf.transpose(x, (0, 2, 1))), values(8, 16, 16)),
        ("Fourier transform", lambda x: tf.abs(tf.signal.rfft(x)) + 1e-3, values(32, 256)), ("LRN", tf.nn.lrn, values(4, 28, 28, 64)),
    ):  # fmt: skip
        add(name, lambda function=function: function, x)
    return cases


def exported():
    import torch
    from torch import nn

    functional, values, cases = nn.functional, torch.randn, {}

    class Call(nn.Module):
        def __init__(self, function):
            super().__init__()
            self.function = function

        def forward(self, *inputs):
            return self.function(*inputs)

    def add(name, module, *inputs):
        cases[name] = (module if isinstance(module, nn.Module) else Call(module), inputs)

    for ci, co, k, size, more in (
        (32, 32, (31, 1), 28, {"padding": (15, 0)}), (3, 64, 11, 224, {"stride": 4}), (128, 128, 3, 33, {"padding": 12, "dilation": 12}),
        (96, 256, 5, 27, {"padding": 2, "groups": 2}), (128, 128, 3, 28, {"padding": 1, "groups": 32}), (32, 96, 3, 28, {"padding": 1, "groups": 32}),
        (96, 96, 5, 56, {"padding": 2, "stride": 2, "groups": 96}), (64, 64, 31, 28, {"padding": 15, "groups": 64}), (3, 96, 4, 224, {"stride": 4}),
        (64, 128, 1, 56, {"stride": 2}), (1, 16, 7, 128, {"padding": 3}), (64, 1, 3, 112, {"padding": 1}), (37, 53, 3, 45, {"padding": 1}),
        (16, 16, 7, 64, {"padding": 3, "padding_mode": "reflect"}),
    ):  # fmt: skip
        add(f"conv {ci}-{co} {k} @{size} {' '.join(more)}", nn.Conv2d(ci, co, k, **more), values(1, ci, size, size))
    for ci, co, k, length, more in ((1, 64, 80, 16000, {"stride": 4}), (256, 256, 3, 400, {}), (768, 768, 128, 149, {"padding": 64, "groups": 16}), (256, 256, 31, 400, {"groups": 256})):
        add(f"conv1d {ci}-{co} {k} @{length}", nn.Conv1d(ci, co, k, **more), values(1, ci, length))
    for name, module, size in (("4 s2", nn.ConvTranspose2d(64, 32, 4, 2, 1), 32), ("depthwise 4 s2", nn.ConvTranspose2d(64, 64, 4, 2, 1, groups=64), 32), ("2 s2", nn.ConvTranspose2d(64, 32, 2, 2), 28)):
        add(f"transposed {name}", module, values(1, 64, size, size))
    for m, k, n in ((1, 1024, 1000), (7, 512, 512), (20000, 16, 16), (64, 4096, 2), (256, 1024, 10), (1000, 128, 3)):
        add(f"dense {m} x {k}-{n}", nn.Linear(k, n), values(m, k))
    for name, module, dims in (
        ("max pool 13", nn.MaxPool2d(13, 1, 6), (1, 128, 20, 20)), ("max pool 3 s2", nn.MaxPool2d(3, 2, 1), (1, 64, 112, 112)), ("pool to 6", nn.AdaptiveAvgPool2d(6), (1, 256, 60, 60)),
        ("instance norm", nn.InstanceNorm2d(64), (1, 64, 64, 64)), ("group norm", nn.GroupNorm(32, 256), (1, 256, 32, 32)), ("layer norm", nn.LayerNorm(96), (1, 3136, 96)),
        ("LRN", nn.LocalResponseNorm(5), (1, 96, 55, 55)), ("pixel shuffle", nn.PixelShuffle(2), (1, 256, 64, 64)), ("softmax of channels", nn.Softmax(1), (1, 21, 64, 64)),
        ("log softmax", nn.LogSoftmax(-1), (8, 30000)), ("gelu", nn.GELU(), (196, 3072)), ("mish", nn.Mish(), (1, 64, 52, 52)), ("unfold", nn.Unfold(3, padding=1), (1, 32, 56, 56)),
        ("fold", nn.Fold((56, 56), 2, stride=2), (1, 128, 784)), ("lstm", nn.LSTM(64, 128, batch_first=True), (1, 50, 64)), ("two-way gru", nn.GRU(64, 96, bidirectional=True), (50, 1, 64)),
        ("sums so far", lambda x: x.cumsum(-1), (64, 2000)), ("sums so far by columns", lambda x: x.cumsum(0), (2000, 64)), ("largest fifty", lambda x: x.topk(50), (16, 8000)),
        ("sort", lambda x: x.sort(-1)[0], (32, 1000)), ("place of the largest", lambda x: x.argmax(1), (1, 21, 128, 128)), ("roll", lambda x: torch.roll(x, (3, 3), (1, 2)), (1, 56, 56, 96)),
        ("lower triangle", torch.tril, (8, 256, 256)), ("bilinear", lambda x: functional.interpolate(x, scale_factor=2, mode="bilinear"), (1, 64, 64, 64)),
        ("remainder", lambda x: torch.fmod(x, 0.7), (100000,)), ("channels last", lambda x: x.permute(0, 2, 3, 1).contiguous(), (1, 256, 56, 56)),
    ):  # fmt: skip
        add(name, module, values(*dims))
    for heads, length, width in ((8, 196, 64), (4, 1024, 32), (192, 49, 24)):
        add(f"attention {heads} x {length} x {width}", functional.scaled_dot_product_attention, *(values(1, heads, length, width) for _ in range(3)))
    add("gather along rows", lambda x, at: torch.gather(x, 1, at), values(100, 1000), torch.randint(0, 1000, (100, 500)))
    add("scattered sums", lambda x, at, y: x.scatter_add(0, at, y), torch.zeros(500, 32), torch.randint(0, 500, (4000, 32)), values(4000, 32))
    add("embedding bag", nn.EmbeddingBag(1000, 64, mode="mean"), torch.randint(0, 1000, (64, 50)))
    return cases

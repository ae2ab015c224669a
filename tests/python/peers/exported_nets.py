"""Small nets of many architectures, exported by torch: each with inputs at several sizes and the axes that may change.

Weights are random, of a size that keeps the spread of values from layer to layer, and norms' statistics are those of noise, so
that outputs depend on inputs."""

import logging
import warnings
from dataclasses import dataclass, field

import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812

for name in ("torch.onnx", "onnxscript", "transformers"):
    logging.getLogger(name).setLevel(logging.ERROR)


@dataclass
class Net:
    module: nn.Module
    inputs: callable  # (turn) -> tensors; turn 1 has other sizes than turn 0 where axes are open
    axes: dict = field(default_factory=dict)  # {input: {axis: name}}


class Call(nn.Module):
    def __init__(self, function, **parts):
        super().__init__()
        self.parts, self.function = nn.ModuleDict(parts), function

    def forward(self, *values):
        return self.function(self.parts, *values)


def normal(turn, *shape):
    return torch.randn(shape, generator=torch.Generator().manual_seed(turn + 1))


def tokens(turn, *shape, words=99):
    return torch.randint(1, words, shape, generator=torch.Generator().manual_seed(turn + 1))


def calibrate(net, inputs):
    """Weights that keep the spread of what they multiply; statistics of batch norms are those of the inputs."""
    torch.manual_seed(5)
    for name, weight in net.named_parameters():
        with torch.no_grad():
            if weight.dim() > 1:
                weight.normal_(std=weight[0].numel() ** -0.5 if "embed" not in name else 1.0)
            elif "bias" in name:
                weight.normal_(std=0.1)
            elif weight.dim() == 1:
                weight.uniform_(0.7, 1.3)
    norms = [part for part in net.modules() if isinstance(part, nn.modules.batchnorm._BatchNorm)]
    for part in norms:
        part.momentum = 1.0
        part.train()
    if norms:
        with torch.no_grad():
            net(*inputs)
    return net.eval()


def of_transformers(name, configuration, run=None, **settings):
    import transformers

    settings = {"attn_implementation": "eager", **settings}
    net = getattr(transformers, name)(getattr(transformers, configuration)(**settings))
    return Call(run or (lambda p, x: p["net"](x)[0]), net=net)


def conv(inputs, outputs, size=3, stride=1, groups=1, activation=nn.ReLU, dilation=1):
    padding = dilation * (size // 2)
    return nn.Sequential(nn.Conv2d(inputs, outputs, size, stride, padding, dilation, groups, False), nn.BatchNorm2d(outputs), activation())


BATCH, TEXT = {0: "batch"}, {0: "batch", 1: "length"}
SMALL = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64, "vocab_size": 99}


def texts(turn, words=99):
    return tokens(turn, 2 + turn, 12 + 5 * turn, words=words)


def bert():
    def run(p, ids, mask, kinds):
        y = p["net"](ids, attention_mask=mask, token_type_ids=kinds)
        return y.last_hidden_state, y.pooler_output

    def inputs(turn):
        ids = texts(turn)
        mask = torch.ones_like(ids)
        mask[0, 7:] = 0
        return ids, mask, tokens(turn + 5, *ids.shape, words=3) - 1

    return Net(of_transformers("BertModel", "BertConfig", run, **SMALL), inputs, {"ids": TEXT, "mask": TEXT, "kinds": TEXT})


def cached(name, configuration, heads, size, **settings):
    """A decoder of two layers that reads new tokens, with the keys and values of those before."""

    def run(p, ids, mask, k0, v0, k1, v1):
        from transformers import DynamicCache

        y = p["net"](ids, attention_mask=mask, past_key_values=DynamicCache([(k0, v0), (k1, v1)]), use_cache=True)
        return y.logits, *(part for layer in y.past_key_values.layers for part in (layer.keys, layer.values))

    def inputs(turn):
        batch, past, new = 2 + turn, 7 + 4 * turn, 3 + turn
        mask = torch.ones(batch, past + new, dtype=torch.int64)
        mask[0, :2] = 0
        return tokens(turn, batch, new), mask, *(normal(turn + 10 * i, batch, heads, past, size) for i in range(4))

    axes = {"ids": TEXT, "mask": {0: "batch", 1: "all"}, **{k: {0: "batch", 2: "past"} for k in ("k0", "v0", "k1", "v1")}}
    return Net(of_transformers(name, configuration, run, **settings), inputs, axes)


def gpt2():
    return cached("GPT2LMHeadModel", "GPT2Config", 4, 8, n_embd=32, n_layer=2, n_head=4, vocab_size=99, n_positions=64)


def llama():
    return cached("LlamaForCausalLM", "LlamaConfig", 2, 8, **SMALL, num_key_value_heads=2)


def mixtral():
    settings = {**SMALL, "num_key_value_heads": 2, "num_local_experts": 4, "num_experts_per_tok": 2, "experts_implementation": "batched_mm"}
    return cached("MixtralForCausalLM", "MixtralConfig", 2, 8, **settings)


def t5():
    def run(p, ids, so_far):
        return p["net"](input_ids=ids, decoder_input_ids=so_far, use_cache=False).logits

    net = of_transformers("T5ForConditionalGeneration", "T5Config", run, d_model=32, d_kv=8, d_ff=64, num_layers=2, num_heads=4, vocab_size=99)
    axes = {"ids": TEXT, "so_far": {0: "batch", 1: "done"}}
    return Net(net, lambda turn: (texts(turn), tokens(turn, 2 + turn, 5 + turn)), axes)


def whisper():
    def run(p, sound, ids):
        return p["net"](input_features=sound, decoder_input_ids=ids, decoder_attention_mask=torch.ones_like(ids), use_cache=False).logits

    net = of_transformers("WhisperForConditionalGeneration", "WhisperConfig", run, d_model=32, encoder_layers=2, decoder_layers=2, vocab_size=99,
                          encoder_attention_heads=4, decoder_attention_heads=4, encoder_ffn_dim=64, decoder_ffn_dim=64, num_mel_bins=20,
                          max_source_positions=50, max_target_positions=40, pad_token_id=0, bos_token_id=1, eos_token_id=2,
                          decoder_start_token_id=1)  # fmt: skip
    return Net(net, lambda turn: (normal(turn, 2 + turn, 20, 100), tokens(turn, 2 + turn, 6 + turn)), {"sound": BATCH, "ids": TEXT})


def wav2vec2():
    net = of_transformers("Wav2Vec2ForCTC", "Wav2Vec2Config", **SMALL, conv_dim=(16, 16, 16), conv_stride=(5, 2, 2), conv_kernel=(10, 3, 3),
                          num_feat_extract_layers=3, num_conv_pos_embeddings=16, num_conv_pos_embedding_groups=4)  # fmt: skip
    return Net(net, lambda turn: (normal(turn, 2 + turn, 1600 + 400 * turn),), {"sound": TEXT})


def images(size, channels=3):
    return lambda turn: (normal(turn, 2 + turn, channels, size, size),)


def vit():
    return Net(of_transformers("ViTModel", "ViTConfig", **SMALL, image_size=32, patch_size=8), images(32), {"image": BATCH})


def swin():
    net = of_transformers("SwinForImageClassification", "SwinConfig", image_size=64, patch_size=4, embed_dim=16, depths=[2, 2], num_heads=[2, 4], window_size=4)
    return Net(net, images(64), {"image": BATCH})


def convnext():
    net = of_transformers("ConvNextForImageClassification", "ConvNextConfig", hidden_sizes=[8, 16, 24, 32], depths=[1, 1, 2, 1])
    return Net(net, images(64), {"image": BATCH})


def efficientnet():
    net = of_transformers("EfficientNetForImageClassification", "EfficientNetConfig", image_size=64, width_coefficient=0.25, depth_coefficient=0.25,
                          hidden_dim=320, num_labels=10)  # fmt: skip
    return Net(net, images(64), {"image": BATCH})


def segformer():
    net = of_transformers("SegformerForSemanticSegmentation", "SegformerConfig", hidden_sizes=[8, 16, 24, 32], depths=[1, 1, 1, 1],
                          num_attention_heads=[1, 2, 3, 4], decoder_hidden_size=16)  # fmt: skip
    return Net(net, images(64), {"image": BATCH})


def detr_head():
    """Queries attend to an image's features; boxes and classes come out."""

    def run(p, x):
        y = p["body"](x).flatten(2).transpose(1, 2)
        y = p["net"](y, p["queries"].weight.expand(x.shape[0], -1, -1))
        return p["classes"](y).softmax(-1), p["boxes"](y).sigmoid()

    body = nn.Sequential(conv(3, 16, 3, 2), conv(16, 32, 3, 2), conv(32, 32, 3, 2))
    module = Call(run, body=body, net=nn.Transformer(32, 4, 1, 1, 64, 0.0, batch_first=True), queries=nn.Embedding(10, 32), classes=nn.Linear(32, 7), boxes=nn.Linear(32, 4))
    return Net(module, images(64), {"image": BATCH})


def deeplab():
    def run(p, x):
        y = p["body"](x)
        pooled = F.interpolate(p["pool"](y), size=y.shape[2:], mode="bilinear", align_corners=False)
        y = p["out"](torch.cat([part(y) for part in p["parts"]] + [pooled], 1))
        return F.interpolate(y, size=x.shape[2:], mode="bilinear", align_corners=False)

    parts = [conv(32, 16, 1)] + [conv(32, 16, 3, dilation=rate) for rate in (2, 4, 6)]
    body = nn.Sequential(conv(3, 16, 3, 2), conv(16, 32, 3, 2))
    module = Call(run, body=body, parts=nn.ModuleList(parts), pool=nn.Sequential(nn.AdaptiveAvgPool2d(1), conv(32, 16, 1)),
                  out=nn.Sequential(conv(80, 16, 1), nn.Conv2d(16, 5, 1)))  # fmt: skip
    return Net(module, lambda turn: (normal(turn, 2 + turn, 3, 65 + 8 * turn, 57),), {"image": {0: "batch", 2: "height", 3: "width"}})


def unet():
    def run(p, x):
        a = p["a"](x)
        b = p["b"](a)
        b = p["d"](torch.cat([p["up"](p["c"](b)), b], 1))
        return p["out"](torch.cat([F.interpolate(b, scale_factor=2, mode="bilinear", align_corners=True), a], 1))

    double = lambda i, o: nn.Sequential(conv(i, o), conv(o, o))  # noqa: E731
    module = Call(run, a=double(1, 8), b=nn.Sequential(nn.MaxPool2d(2), double(8, 16)), c=nn.Sequential(nn.MaxPool2d(2), double(16, 32)),
                  up=nn.ConvTranspose2d(32, 16, 2, 2), d=double(32, 16), out=nn.Sequential(conv(24, 8), nn.Conv2d(8, 2, 1)))  # fmt: skip
    return Net(module, lambda turn: (normal(turn, 2 + turn, 1, 32 + 16 * turn, 48),), {"image": {0: "batch", 2: "height", 3: "width"}})


def overlap(box, boxes):
    def area(x):
        return (x[..., 2] - x[..., 0]) * (x[..., 3] - x[..., 1])

    low, high = torch.maximum(box[:2], boxes[:, :2]), torch.minimum(box[2:], boxes[:, 2:])
    common = (high - low).clamp(min=0).prod(-1)
    return common / (area(box) + area(boxes) - common)


@torch.library.custom_op("nets::suppress", mutates_args=())
def suppress(boxes: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
    """ONNX's NonMaxSuppression; torch has none of its own."""
    kept = []
    for image in range(scores.shape[0]):
        for kind in range(scores.shape[1]):
            free = scores[image, kind].clone()
            while len([row for row in kept if row[:2] == (image, kind)]) < 5:
                best = int(free.argmax())
                if free[best] <= 0.3:
                    break
                kept.append((image, kind, best))
                free[overlap(boxes[image, best], boxes[image]) > 0.5] = -1
                free[best] = -1
    return torch.tensor(kept, dtype=torch.int64).reshape(-1, 3)


@suppress.register_fake
def _(boxes, scores):
    return boxes.new_empty((torch.library.get_ctx().new_dynamic_size(), 3), dtype=torch.int64)


def suppress_in_script(g, boxes, scores):
    limits = [g.op("Constant", value_t=torch.tensor(value)) for value in ([5], [0.5], [0.3])]
    return g.op("NonMaxSuppression", boxes, scores, *limits)


def suppress_in_dynamo(boxes, scores):
    from onnxscript import opset18 as op

    return op.NonMaxSuppression(boxes, scores, op.Constant(value_ints=[5]), op.Constant(value_floats=[0.5]), op.Constant(value_floats=[0.3]))


def yolo():
    """Boxes of two grids are decoded, suppressed, and gathered."""

    def run(p, x):
        small = p["a"](x)
        large = p["b"](small)
        joined = torch.cat([F.interpolate(p["up"](large), scale_factor=2, mode="nearest"), small], 1)
        out = torch.cat([p["h1"](joined).flatten(2), p["h2"](large).flatten(2)], 2).transpose(1, 2)
        centre, size = 64 * out[..., :2].sigmoid(), 20 * out[..., 2:4].clamp(max=1).exp()
        boxes, scores = torch.cat([centre - size / 2, centre + size / 2], -1), out[..., 4:].sigmoid().transpose(1, 2)
        kept = suppress(boxes, scores)
        image, kind, place = kept.unbind(1)
        return boxes[image, place], scores[image, kind, place], kept

    module = Call(run, a=nn.Sequential(conv(3, 8, 3, 2, activation=nn.SiLU), conv(8, 16, 3, 2, activation=nn.SiLU), conv(16, 16, 3, 2, activation=nn.SiLU)),
                  b=conv(16, 32, 3, 2, activation=nn.SiLU), up=nn.Conv2d(32, 16, 1), h1=nn.Conv2d(32, 7, 1), h2=nn.Conv2d(32, 7, 1))  # fmt: skip
    return Net(module, images(64), {"image": BATCH})


def recurrent(layer, **options):
    net = layer(16, 24, batch_first=True, **options)
    width = 24 * (2 if options.get("bidirectional") else 1)
    module = Call(lambda p, x: (p["out"](p["net"](x)[0]), p["net"](x)[0][:, -1]), net=net, out=nn.Linear(width, 5))
    return Net(module, lambda turn: (normal(turn, 2 + turn, 9 + 4 * turn, 16),), {"x": TEXT})


def lstm():
    return recurrent(nn.LSTM, num_layers=2, bidirectional=True)


def gru():
    return recurrent(nn.GRU, num_layers=2)


def diffusion_unet():
    norm = lambda c: nn.Sequential(nn.GroupNorm(4, c), nn.SiLU())  # noqa: E731

    def run(p, x, time, text):
        rates = torch.exp(-torch.arange(16) * 0.5)
        angles = time[:, None].float() * rates[None]
        y = p["time"](torch.cat([angles.cos(), angles.sin()], -1))
        h = x + p["b"](p["a"](x) + y[..., None, None])
        down = p["down"](h)
        batch, channels, height, width = down.shape
        rows = p["n1"](down).flatten(2).transpose(1, 2)
        rows = rows + p["own"](rows, rows, rows, need_weights=False)[0]
        rows = rows + p["cross"](rows, text, text, need_weights=False)[0]
        a, gate = p["wide"](rows).chunk(2, -1)
        rows = rows + p["narrow"](a * F.gelu(gate))
        down = down + rows.transpose(1, 2).reshape(batch, channels, height, width)
        return p["c"](torch.cat([F.interpolate(down, scale_factor=2.0, mode="nearest"), h], 1))

    attention = lambda: nn.MultiheadAttention(32, 4, batch_first=True)  # noqa: E731
    module = Call(run, a=nn.Sequential(norm(32), nn.Conv2d(32, 32, 3, 1, 1)), time=nn.Sequential(nn.Linear(32, 64), nn.SiLU(), nn.Linear(64, 32)),
                  b=nn.Sequential(norm(32), nn.Conv2d(32, 32, 3, 1, 1)), down=nn.Conv2d(32, 32, 3, 2, 1), n1=norm(32), own=attention(), cross=attention(),
                  wide=nn.Linear(32, 128), narrow=nn.Linear(64, 32), c=nn.Sequential(norm(64), nn.Conv2d(64, 4, 3, 1, 1)))  # fmt: skip

    def inputs(turn):
        return normal(turn, 2 + turn, 32, 16, 16), tokens(turn, 2 + turn, words=1000), normal(turn + 3, 2 + turn, 7, 32)

    return Net(module, inputs, {"x": BATCH, "time": BATCH, "text": BATCH})


def routed_experts():
    """Each expert computes the rows that chose it, however many."""

    def run(p, x):
        gates, chosen = p["gate"](x).softmax(-1).topk(2)
        out = torch.zeros_like(x)
        for i, expert in enumerate(p["experts"]):
            row, which = torch.nonzero(chosen == i, as_tuple=True)
            out = out.index_add(0, row, expert(x[row]) * gates[row, which][:, None])
        return out

    experts = nn.ModuleList([nn.Sequential(nn.Linear(16, 32), nn.GELU(), nn.Linear(32, 16)) for _ in range(4)])
    return Net(Call(run, gate=nn.Linear(16, 4), experts=experts), lambda turn: (normal(turn, 9 + 4 * turn, 16),), {"x": {0: "rows"}})


NETS = {make.__name__: make for make in (
    bert, gpt2, llama, mixtral, t5, whisper, wav2vec2, vit, swin, convnext, efficientnet, segformer, detr_head, deeplab, unet, yolo, lstm, gru,
    diffusion_unet, routed_experts)}  # fmt: skip


def mirrored(values):
    return values[0].flip(-1), *values[1:]


def export(name, file, dynamo, opset, open_axes):
    """Writes the net to `file` and gives the calibrated net and its inputs at two sizes."""
    warnings.filterwarnings("ignore")
    torch.backends.mha.set_fastpath_enabled(False)  # an operator of torch alone
    torch.manual_seed(3)
    net = NETS[name]()
    module = calibrate(net.module, net.inputs(0))
    turns = [net.inputs(0), net.inputs(1) if open_axes else mirrored(net.inputs(0))]
    names = list(net.axes)
    options = {"opset_version": opset, "input_names": names, "dynamo": dynamo}
    if dynamo:
        options["custom_translation_table"] = {torch.ops.nets.suppress.default: suppress_in_dynamo}
    else:
        torch.onnx.register_custom_op_symbolic("nets::suppress", suppress_in_script, 11)
    if open_axes and dynamo:
        options["dynamic_shapes"] = (tuple({axis: torch.export.Dim.DYNAMIC for axis in net.axes[name]} for name in names),)
    elif open_axes:
        options["dynamic_axes"] = net.axes
    with torch.no_grad():
        torch.onnx.export(module, turns[0], str(file), **options)
    return module, names, turns

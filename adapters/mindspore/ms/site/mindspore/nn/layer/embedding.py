"""Embeddings."""

from cairn.ms import core
from cairn.ms.numerics import arrays, basic, reductions
from mindspore._checkparam import Rel, Validator
from mindspore.common import dtype as mstype
from mindspore.common.initializer import initializer
from mindspore.common.parameter import Parameter
from mindspore.common.tensor import Tensor
from mindspore.nn.cell import Cell
from mindspore.ops import operations as P


class Embedding(Cell):
    """Rows of a table by index."""

    _held = {"gather": lambda self: P.Gather(), "reshape": lambda self: P.Reshape(), "get_shp": lambda self: P.Shape(),
             "one_hot": lambda self: P.OneHot(), "array_mul": lambda self: P.MatMul(), "expand": lambda self: P.ExpandDims(),
             "on_value": lambda self: Tensor(1.0, self.dtype), "off_value": lambda self: Tensor(0.0, self.dtype)}  # fmt: skip

    def __init__(
        self,
        vocab_size,
        embedding_size,
        use_one_hot=False,
        embedding_table="normal",
        dtype=mstype.float32,
        padding_idx=None,
    ):
        super().__init__()
        self.vocab_size = Validator.check_value_type("vocab_size", vocab_size, [int], "Embedding")
        self.embedding_size = Validator.check_value_type("embedding_size", embedding_size, [int], "Embedding")
        Validator.check_value_type("use_one_hot", use_one_hot, [bool], "Embedding")
        self.use_one_hot, self.dtype, self.padding_idx = use_one_hot, dtype, padding_idx
        table = initializer(embedding_table, [vocab_size, embedding_size], dtype)
        if padding_idx is not None:
            Validator.check_int_range(padding_idx, 0, vocab_size, Rel.INC_LEFT, "padding_idx", "Embedding")
            table = table.init_data()
            table.asnumpy()[padding_idx] = 0
        self.embedding_table = Parameter(table, name="embedding_table")

    def construct(self, ids):
        if not self.use_one_hot:
            return arrays.gather(self.embedding_table, ids, 0)
        one, zero = basic.number(1, self.embedding_table), basic.number(0, self.embedding_table)
        hot = arrays.one_hot(arrays.wide(basic.reshape(ids, (-1,))), self.vocab_size, one, zero)
        return basic.reshape(core.matmul(hot, self.embedding_table), (*ids.shape, self.embedding_size))

    def extend_repr(self):
        return (
            f"vocab_size={self.vocab_size}, embedding_size={self.embedding_size}, use_one_hot={self.use_one_hot}, "
            f"embedding_table={self.embedding_table}, dtype={self.dtype}, padding_idx={self.padding_idx}"
        )


class EmbeddingLookup(Cell):
    """Rows of a table by index, scaled down to max_norm where they are longer."""

    BATCH_SLICE, FIELD_SLICE, TABLE_ROW_SLICE, TABLE_COLUMN_SLICE = (
        "batch_slice",
        "field_slice",
        "table_row_slice",
        "table_column_slice",
    )

    def __init__(self, vocab_size, embedding_size, param_init="normal", target="CPU", slice_mode="batch_slice",
                 manual_shapes=None, max_norm=None, sparse=True, vocab_cache_size=0):  # fmt: skip
        super().__init__()
        Validator.check_value_type("sparse", sparse, [bool], "EmbeddingLookup")
        self.vocab_size = Validator.check_positive_int(vocab_size, "vocab_size", "EmbeddingLookup")
        Validator.check_non_negative_int(vocab_cache_size, "vocab_cache_size", "EmbeddingLookup")
        self.embedding_size = Validator.check_positive_int(embedding_size, "embedding_size", "EmbeddingLookup")
        if target not in ("CPU", "DEVICE"):
            raise ValueError(f"For 'EmbeddingLookup', the 'target' must be 'CPU' or 'DEVICE', but got {target}.")
        self.target, self.max_norm = target, max_norm
        self.embedding_table = Parameter(initializer(param_init, [vocab_size, embedding_size]), name="embedding_table")

    def construct(self, indices):
        rows = arrays.gather(self.embedding_table, indices, 0)
        if self.max_norm is None:
            return rows
        size = reductions.norm(rows, -1, keep_dims=True)
        bound = basic.number(self.max_norm, rows)
        return core.mul(rows, core.div(bound, core.maximum(size, bound)))


class MultiFieldEmbeddingLookup(EmbeddingLookup):
    """Rows of a table by field, combined by sum, mean or max."""

    def __init__(self, vocab_size, embedding_size, field_size, param_init="normal", target="CPU", slice_mode="batch_slice",
                 feature_num_list=None, max_norm=None, sparse=True, operator="SUM"):  # fmt: skip
        super().__init__(vocab_size, embedding_size, param_init, target, slice_mode, feature_num_list, max_norm, sparse)
        self.field_size = Validator.check_positive_int(field_size, "field_size", "MultiFieldEmbeddingLookup")
        self.mode = {"SUM": "sum", "MEAN": "mean", "MAX": "max"}[
            Validator.check_string(operator, ["SUM", "MAX", "MEAN"], "operator")
        ]

    def construct(self, input_indices, input_values, field_ids):
        batch, count = input_indices.shape
        rows = core.mul(super().construct(input_indices), basic.expand(input_values, -1))
        fields = core.add(
            arrays.wide(field_ids), basic.number([[i * self.field_size] for i in range(batch)], arrays.wide(field_ids))
        )
        out = arrays.unsorted_segment(rows, fields, batch * self.field_size, self.mode)
        return basic.reshape(out, (batch, self.field_size, self.embedding_size))


__all__ = ["Embedding", "EmbeddingLookup", "MultiFieldEmbeddingLookup"]

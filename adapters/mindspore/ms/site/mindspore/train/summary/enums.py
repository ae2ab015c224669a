"""Names that summaries and their tests use."""

from enum import Enum


class BaseEnum(Enum):
    """An enumeration that knows its values."""

    @classmethod
    def to_list(cls):
        """The values."""
        return [each.value for each in cls]


class PluginEnum(BaseEnum):
    """What a value of a summary is."""

    GRAPH, SCALAR, IMAGE, TENSOR, HISTOGRAM = "graph", "scalar", "image", "tensor", "histogram"
    TRAIN_LINEAGE, EVAL_LINEAGE, CUSTOM_LINEAGE_DATA = "train_lineage", "eval_lineage", "custom_lineage_data"
    DATASET_GRAPH, LANDSCAPE = "dataset_graph", "landscape"


class ModeEnum(BaseEnum):
    """Whether a network trains."""

    TRAIN, EVAL = "train", "eval"

"""The transforms of any column, with the words of the release that told those of C++ apart."""

from mindspore.dataset.transforms import transforms
from mindspore.dataset.transforms.transforms import *  # noqa: F403


class Compose(transforms.Compose):
    """Several transforms, one after the other."""

    EMPTY = "op_list can not be empty."

    def __init__(self, transforms):
        super().__init__(transforms)

    @staticmethod
    def refused(place):
        raise TypeError(f"op_list[{place}] is neither a c_transform op (TensorOperation) nor a callable pyfunc.")

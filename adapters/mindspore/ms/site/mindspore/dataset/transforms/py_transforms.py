"""The same transforms, under the names and with the words that Python's had."""

from mindspore.dataset.transforms import transforms
from mindspore.dataset.transforms.transforms import *  # noqa: F403
from mindspore.dataset.transforms.transforms import OneHot

OneHotOp = OneHot


class Compose(transforms.Compose):
    """Several transforms, one after the other."""

    @staticmethod
    def refused(place):
        raise ValueError(f"transforms[{place}] is not callable.")

    def __call__(self, *values):
        if not values:
            raise TypeError("Compose was called without an image. Fix invocation (avoid it being invoked as Compose([...])()).")
        return super().__call__(*values)

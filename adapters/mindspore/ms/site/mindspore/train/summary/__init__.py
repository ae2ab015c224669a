"""Summary files."""

from mindspore.train.summary.summary_record import SummaryRecord

__all__ = ["SummaryRecord"]

"""Where MindSpore keeps the rules of its summaries' values."""

from mindspore.train.summary.summary_record import _calc_histogram_bins

__all__ = ["_calc_histogram_bins"]

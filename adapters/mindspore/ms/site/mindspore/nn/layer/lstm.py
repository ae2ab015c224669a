"""The module of LSTM up to 1.1."""

from mindspore.nn.layer.rnns import LSTM, LSTMCell

__all__ = ["LSTM", "LSTMCell"]

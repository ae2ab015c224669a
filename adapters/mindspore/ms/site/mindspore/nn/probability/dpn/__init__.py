"""A variational autoencoder."""

from mindspore.nn.cell import Cell
from mindspore.nn.layer.basic import Dense
from mindspore.nn.probability import _values as _v

__all__ = ["VAE"]


def _cell(value, name, owner):
    if not isinstance(value, Cell):
        raise TypeError(f"For '{owner}', {name} needs to be a Cell, not {type(value).__name__}")
    return value


def _size(value, name, owner):
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"For '{owner}', {name} needs to be an int, not {type(value).__name__}")
    if value <= 0:
        raise ValueError(f"For '{owner}', {name} needs to be greater than 0, not {value}")
    return value


class VAE(Cell):
    """An autoencoder of numbers that are drawn from a normal distribution of what the encoder says."""

    def __init__(self, encoder, decoder, hidden_size, latent_size):
        super().__init__()
        self.encoder, self.decoder = _cell(encoder, "encoder", "VAE"), _cell(decoder, "decoder", "VAE")
        self.hidden_size, self.latent_size = _size(hidden_size, "hidden_size", "VAE"), _size(latent_size, "latent_size", "VAE")
        self.dense1, self.dense2 = Dense(hidden_size, latent_size), Dense(hidden_size, latent_size)
        self.dense3 = Dense(latent_size, hidden_size)

    def _drawn(self, hidden):
        mean, sd = self.dense1(hidden), _v.exp(0.5 * self.dense2(hidden))
        return mean + sd * _v.P.StandardNormal()(tuple(mean.shape)), mean, sd

    def construct(self, x):
        z, mean, sd = self._drawn(self.encoder(x))
        return self.decoder(self.dense3(z)), x, mean, sd

    def generate_sample(self, generate_nums, shape):
        """New numbers in the shape of the decoder's result."""
        count = _size(generate_nums, "generate_nums", "VAE")
        drawn = _v.P.StandardNormal()((count, self.latent_size))
        return self.decoder(self.dense3(drawn)).reshape(shape)

    def reconstruct_sample(self, x):
        """What the decoder makes of the encoded numbers."""
        return self.decoder(self.dense3(self._drawn(self.encoder(x))[0]))

"""Distributions and bijectors: functions agree with sums and integrals, in graphs and outside, and refuse bad values."""

import numpy as np
import pytest
import mindspore as ms
import mindspore.nn as nn
import mindspore.nn.probability.bijector as msb
import mindspore.nn.probability.distribution as msd
from mindspore import Tensor

REAL = {
    "Normal": ((0.5, 1.2), (-0.3, 0.8), (-9, 9)),
    "Exponential": ((1.5,), (0.7,), (0, 25)),
    "Gamma": ((3.0, 2.0), (2.0, 1.5), (1e-6, 20)),
    "Beta": ((2.5, 3.0), (2.0, 2.0), (1e-6, 1 - 1e-6)),
    "Uniform": ((-1.0, 2.0), (-2.0, 2.5), (-1, 2)),
    "Logistic": ((0.3, 0.5), None, (-20, 20)),
    "Gumbel": ((0.4, 0.8), (0.4, 1.0), (-8, 25)),
    "LogNormal": ((0.2, 0.4), (0.0, 0.6), (1e-4, 12)),
}
WHOLE = {
    "Bernoulli": ((0.3,), (0.6,), 2),
    "Geometric": ((0.4,), (0.5,), 60),
    "Poisson": ((2.5,), None, 30),
}


@pytest.fixture(params=["graph", "pynative"])
def mode(request):
    ms.set_context(mode=ms.GRAPH_MODE if request.param == "graph" else ms.PYNATIVE_MODE)
    yield request.param
    ms.set_context(mode=ms.PYNATIVE_MODE)


class Functions(nn.Cell):
    def __init__(self, distribution, names):
        super().__init__()
        self.distribution, self.names = distribution, names

    def construct(self, value):
        found = ()
        for name in self.names:
            found += (self.distribution(name, value),)
        return found


def of(distribution, value, *names):
    return [each.asnumpy().astype(np.float64) for each in Functions(distribution, names)(Tensor(value, ms.float32))]


def integral(y, x):
    return np.sum((y[1:] + y[:-1]) / 2 * np.diff(x))


@pytest.mark.parametrize("name", REAL)
def test_functions_of_real_numbers_agree_with_integrals(name, mode):
    own, other, span = REAL[name]
    kind, x = getattr(msd, name), np.linspace(*span, 20001)
    p, log_p, cdf, log_cdf, above, log_above = of(
        kind(*own), x, "prob", "log_prob", "cdf", "log_cdf", "survival_function", "log_survival"
    ) if name != "Beta" else [*of(kind(*own), x, "prob", "log_prob"), None, None, None, None]  # fmt: skip
    assert integral(p, x) == pytest.approx(1, abs=2e-3)
    assert np.allclose(np.exp(log_p), p, rtol=1e-3, atol=1e-5)
    if cdf is not None:
        middle = len(x) // 2
        assert cdf[middle] == pytest.approx(integral(p[: middle + 1], x[: middle + 1]), abs=2e-3)
        assert np.allclose(cdf + above, 1, atol=1e-5)
        kept = (cdf > 0.01) & (above > 0.01)
        assert np.allclose(np.exp(log_cdf), cdf, atol=1e-4) and np.allclose(log_above[kept], np.log(above[kept]), atol=1e-4)
    distribution = kind(*own)
    mean = integral(p * x, x)
    assert distribution.mean().asnumpy() == pytest.approx(mean, abs=5e-3)
    assert distribution.var().asnumpy() == pytest.approx(integral(p * (x - mean) ** 2, x), rel=1e-2)
    assert distribution.sd().asnumpy() ** 2 == pytest.approx(distribution.var().asnumpy(), rel=1e-4)
    if name != "Uniform":
        assert distribution.mode().asnumpy() == pytest.approx(x[np.argmax(p)], abs=1e-2)
    inside = p > 0
    terms = np.where(inside, -p * np.log(np.where(inside, p, 1)), 0)
    assert distribution.entropy().asnumpy() == pytest.approx(integral(terms, x), abs=5e-3)
    if other is not None:
        arguments = [Tensor(each, ms.float32) for each in other]
        divergence = distribution.kl_loss(name, *arguments).asnumpy()
        (log_q,) = of(kind(*other), x, "log_prob")
        assert divergence == pytest.approx(integral(np.where(inside, p * (log_p - log_q), 0), x), abs=1e-2)
        together = distribution.cross_entropy(name, *arguments).asnumpy()
        assert together == pytest.approx(distribution.entropy().asnumpy() + divergence, abs=1e-5)


@pytest.mark.parametrize("name", WHOLE)
def test_functions_of_whole_numbers_agree_with_sums(name, mode):
    own, other, count = WHOLE[name]
    kind, x = getattr(msd, name), np.arange(count)
    p, log_p, cdf, above = of(kind(*own), x, "prob", "log_prob", "cdf", "survival_function")
    assert p.sum() == pytest.approx(1, abs=1e-5) and np.allclose(np.exp(log_p), p, atol=1e-6)
    assert np.allclose(cdf, np.cumsum(p), atol=1e-5) and np.allclose(above, 1 - np.cumsum(p), atol=1e-5)
    distribution = kind(*own)
    mean = (p * x).sum()
    assert distribution.mean().asnumpy() == pytest.approx(mean, abs=1e-4)
    assert distribution.var().asnumpy() == pytest.approx((p * (x - mean) ** 2).sum(), rel=1e-3)
    assert distribution.mode().asnumpy() == np.argmax(p)
    if other is not None:
        assert distribution.entropy().asnumpy() == pytest.approx(-(p * log_p).sum(), abs=1e-4)
        (log_q,) = of(kind(*other), x, "log_prob")
        divergence = distribution.kl_loss(name, *(Tensor(each, ms.float32) for each in other))
        assert divergence.asnumpy() == pytest.approx((p * (log_p - log_q)).sum(), abs=1e-4)


def test_classes_by_the_last_axis(mode):
    probs = np.array([0.2, 0.1, 0.7], np.float32)
    p, cdf, above = of(msd.Categorical(probs), [2, 0, 1, 2, -1, 3], "prob", "cdf", "survival_function")
    assert np.allclose(p, [0.7, 0.2, 0.1, 0.7, 0, 0]) and np.allclose(cdf, [1, 0.2, 0.3, 1, 0, 1])
    assert np.allclose(above, 1 - cdf, atol=1e-6)
    distribution = msd.Categorical(probs)
    assert distribution.mean().asnumpy() == pytest.approx(1.5) and distribution.var().asnumpy() == pytest.approx(0.65)
    assert distribution.mode().asnumpy() == 2 and distribution.mode().dtype == ms.int32
    assert distribution.entropy().asnumpy() == pytest.approx(-(probs * np.log(probs)).sum())
    assert distribution.kl_loss("Categorical", Tensor(probs)).asnumpy() == pytest.approx(0, abs=1e-6)


def test_values_of_the_rarer_ones():
    x = np.array([-2.0, 0.5, 3.0])
    z = (x - 0.5) / 2
    p, cdf = of(msd.Cauchy(0.5, 2.0), x, "prob", "cdf")
    assert np.allclose(p, 1 / (np.pi * 2 * (1 + z**2))) and np.allclose(cdf, np.arctan(z) / np.pi + 0.5)
    assert np.allclose(of(msd.Laplace(0.5, 2.0), x, "prob")[0], np.exp(-np.abs(z)) / 4)
    half = np.where(x < 0.5, 0, 2 * np.exp(-(z**2) / 2) / (2 * np.sqrt(2 * np.pi)))
    assert np.allclose(of(msd.HalfNormal(0.5, 2.0), x, "prob")[0], half)
    assert np.allclose(of(msd.StudentT(1.0, 0.5, 2.0), x, "prob")[0], p)
    for name in ("mean", "sd", "var"):
        with pytest.raises(ValueError):
            getattr(msd.Cauchy(0.5, 2.0), name)()


@pytest.mark.parametrize("name", [*REAL, *WHOLE])
def test_samples_have_the_mean(name):
    own = {**REAL, **WHOLE}[name][0]
    distribution = getattr(msd, name)(*([each, each] for each in own), seed=3)
    drawn = distribution.sample((4000,))
    assert drawn.shape == (4000, 2) and drawn.dtype == distribution.dtype
    sd = distribution.sd().asnumpy()
    assert np.all(np.abs(drawn.asnumpy().mean(0) - distribution.mean().asnumpy()) < 6 * sd / np.sqrt(4000))
    assert getattr(msd, name)(*own).sample(()).shape == ()


def test_parameters_of_a_call():
    normal, value = msd.Normal(), Tensor([0.5, 1.0], ms.float32)
    given = Tensor([0.0], ms.float32), Tensor([2.0], ms.float32)
    assert np.allclose(normal.prob(value, *given).asnumpy(), msd.Normal(0.0, 2.0).prob(value).asnumpy())
    assert np.allclose(normal.prob(value, mean=given[0], sd=given[1]).asnumpy(), normal.prob(value, *given).asnumpy())
    assert normal.get_dist_type() == "Normal" and normal.get_dist_args(*given)[1] is given[1]
    assert normal.sample((2, 3), *given).shape == (2, 3, 1)
    with pytest.raises(TypeError, match="mean"):
        normal.prob(value)
    with pytest.raises(TypeError):
        normal.prob(0.5, *given)
    with pytest.raises(ValueError):
        normal.kl_loss("Uniform", *given)


@pytest.mark.parametrize(
    "error, make",
    [
        (ValueError, lambda: msd.Normal([[2.0], [1.0]], [[2.0], [3.0], [4.0]])),
        (ValueError, lambda: msd.Normal(0.0, -1.0)),
        (ValueError, lambda: msd.Uniform(1.0, 0.0)),
        (ValueError, lambda: msd.Bernoulli([1.0])),
        (ValueError, lambda: msd.Categorical([0.4, 0.4])),
        (ValueError, lambda: msd.Normal(0.0, 1.0, seed=-1)),
        (TypeError, lambda: msd.Normal(0.0, 1.0, seed="one")),
        (TypeError, lambda: msd.Normal(0.0, 1.0, name=1.0)),
        (TypeError, lambda: msd.Gumbel(0.0, 1.0, dtype=ms.int32)),
        (TypeError, lambda: msd.Bernoulli([0.1], dtype=ms.bool_)),
        (TypeError, lambda: msd.Normal(np.float16([0]), np.float32([1]))),
        (TypeError, lambda: msb.PowerTransform(power="one")),
        (TypeError, lambda: msb.ScalarAffine(scale=2)),
        (TypeError, lambda: msb.Invert(0.1)),
        (ValueError, lambda: msb.GumbelCDF(scale=0.0)),
    ],
)
def test_refusals(error, make):
    with pytest.raises(error):
        make()


BIJECTORS = {
    "exp": msb.Exp, "power": lambda: msb.PowerTransform(2.0), "affine": lambda: msb.ScalarAffine(2.0, 1.0),
    "softplus": lambda: msb.Softplus(2.0), "gumbel": lambda: msb.GumbelCDF(1.0, 2.0),
    "inverted": lambda: msb.Invert(msb.ScalarAffine(2.0, 1.0)),
}  # fmt: skip


@pytest.mark.parametrize("name", BIJECTORS)
def test_bijectors_and_their_derivatives(name, mode):
    bijector, x = BIJECTORS[name](), np.array([0.3, 0.8, 1.7])
    forward = lambda value: of(bijector, value, "forward")[0]  # noqa: E731
    y = forward(x)
    assert np.allclose(of(bijector, y, "inverse")[0], x, atol=1e-5)
    slope = np.log((forward(x + 1e-2) - forward(x - 1e-2)) / 2e-2)
    assert np.allclose(of(bijector, x, "forward_log_jacobian")[0], slope, atol=2e-3)
    assert np.allclose(of(bijector, y, "inverse_log_jacobian")[0], -slope, atol=2e-3)


def test_a_distribution_of_ones_own(mode):
    class Own(msd.Distribution):
        def __init__(self, rate=None):
            super().__init__(0, ms.float32, "Own", {"param_dict": {"rate": rate}})
            self.rate = self._add_parameter(rate, "rate")

        def _log_prob(self, value):
            return -self.rate * value

        def _sd(self):
            return self.rate

    (p,) = of(Own(2.0), [1.0], "prob")
    assert p == pytest.approx(np.exp(-2)) and Own(2.0).var().asnumpy() == 4
    for name in ("cdf", "mean", "sample", "entropy"):
        with pytest.raises(NotImplementedError, match=name):
            of(Own(2.0), [1.0], name)


def test_transformed_and_gradients(mode):
    made = msd.TransformedDistribution(msb.Exp(), msd.Normal(0.2, 0.4))
    x = [0.5, 1.0, 2.0]
    assert np.allclose(of(made, x, "prob")[0], of(msd.LogNormal(0.2, 0.4), x, "prob")[0], atol=1e-5)
    assert made.sample((5,)).asnumpy().min() > 0
    with pytest.raises(NotImplementedError):
        made.mean()
    assert msb.ScalarAffine(2.0, 1.0)(msd.Normal(1.0, 1.0)).mean().asnumpy() == 3
    normal = msd.Normal()
    slope = ms.ops.grad(lambda mean, sd: normal.log_prob(Tensor([2.0], ms.float32), mean, sd), (0, 1))
    by_mean, by_sd = slope(Tensor([1.0], ms.float32), Tensor([2.0], ms.float32))
    assert by_mean.asnumpy() == pytest.approx(0.25) and by_sd.asnumpy() == pytest.approx(-0.375)


def test_an_autoencoder():
    from mindspore.nn.probability.dpn import VAE

    net = VAE(nn.Dense(6, 3), nn.Dense(3, 6), hidden_size=3, latent_size=2)
    made, x, mean, sd = net(Tensor(np.ones((4, 6), np.float32)))
    assert made.shape == x.shape == (4, 6) and mean.shape == sd.shape == (4, 2)
    assert net.generate_sample(5, (5, 2, 3)).shape == (5, 2, 3) and net.reconstruct_sample(x).shape == (4, 6)

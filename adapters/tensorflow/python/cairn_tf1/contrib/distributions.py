"""tf.contrib.distributions: tf.distributions."""

import tensorflow.compat.v1 as tf

Bernoulli, Beta, Categorical, Dirichlet = (getattr(tf.distributions, n) for n in ("Bernoulli", "Beta", "Categorical", "Dirichlet"))
DirichletMultinomial, Distribution, Exponential = (
    getattr(tf.distributions, n) for n in ("DirichletMultinomial", "Distribution", "Exponential")
)
Gamma, Laplace, Multinomial, Normal = (getattr(tf.distributions, n) for n in ("Gamma", "Laplace", "Multinomial", "Normal"))
StudentT, Uniform, RegisterKL = (getattr(tf.distributions, n) for n in ("StudentT", "Uniform", "RegisterKL"))
kl_divergence = tf.distributions.kl_divergence

"""Solvers of systems whose matrix is sparse, or only known by its products."""

from mindspore.scipy.sparse import linalg

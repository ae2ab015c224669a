"""Functions of SciPy on tensors: linear algebra and solvers of sparse systems."""

from mindspore.scipy import linalg, sparse

"""Functions of primitives behind mindspore.scipy."""

from mindspore.ops import functional as F


def matrix_diag(diagonal, k=0, num_rows=-1, num_cols=-1, padding_value=0, alignment="RIGHT_LEFT"):
    """Matrices of diagonals."""
    return F.matrix_diag(diagonal, k, num_rows, num_cols, padding_value, alignment)


def matrix_diag_part(a, k, padding_value=0, align="RIGHT_LEFT"):
    """Diagonals of matrices."""
    return F.matrix_diag_part(a, k, padding_value, align)


def matrix_set_diag(input_x, diagonal, k=0, alignment="RIGHT_LEFT"):
    """Matrices with other diagonals."""
    return F.matrix_set_diag(input_x, diagonal, k, alignment)

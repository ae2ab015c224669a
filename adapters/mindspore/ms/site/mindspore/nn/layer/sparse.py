"""Cells of sparse tensors, and of the queues and arrays of reinforcement learning."""

from mindspore.common.sparse_tensor import COOTensor
from mindspore.nn.cell import Cell
from mindspore.ops import operations as P


class SparseToDense(Cell):
    """SparseToDense()(coo_tensor): the dense form."""

    def construct(self, coo_tensor):
        if not isinstance(coo_tensor, COOTensor):
            raise TypeError(f"For '{self.cls_name}', the input must be a COOTensor, but got {type(coo_tensor).__name__}.")
        return coo_tensor.to_dense()


class SparseTensorDenseMatmul(Cell):
    """SparseTensorDenseMatmul()(indices, values, sparse_shape, dense): the product of two matrices."""

    def __init__(self, adjoint_st=False, adjoint_dt=False):
        super().__init__()
        self.adj_st, self.adj_dt = adjoint_st, adjoint_dt
        self.sparse_tensor_dense_matmul = P.SparseTensorDenseMatmul(adjoint_st, adjoint_dt)

    def construct(self, indices, values, sparse_shape, dense):
        return self.sparse_tensor_dense_matmul(indices, values, sparse_shape, dense)


class TensorArray(Cell):
    """TensorArray(dtype, element_shape, dynamic_size, size, name): tensors of one shape, by index."""

    def __init__(self, dtype, element_shape, dynamic_size=True, size=0, name="TA"):
        super().__init__()
        self.handle_ = P.TensorArray(dtype, element_shape, dynamic_size, size, name)()

    def write(self, index, value):
        P.TensorArrayWrite()(self.handle_, index, value)
        return True

    def read(self, index):
        return P.TensorArrayRead()(self.handle_, index)

    def close(self):
        P.TensorArrayClose()(self.handle_)
        return True

    def clear(self):
        P.TensorArrayClear()(self.handle_)
        return True

    def stack(self):
        return P.TensorArrayStack()(self.handle_)

    def size(self):
        return P.TensorArraySize()(self.handle_)


class TensorsQueue(Cell):
    """TensorsQueue(dtype, shapes, size, name): tuples of tensors, the first in first out."""

    def __init__(self, dtype, shapes, size=0, name="TQ"):
        super().__init__()
        self.handle_ = P.TensorsQueueCreate(dtype, shapes, size, name)()
        self.of = dtype, shapes

    def put(self, element):
        P.TensorsQueuePut(*self.of)(self.handle_, element)
        return True

    def get(self):
        return P.TensorsQueueGet(*self.of)(self.handle_)

    def pop(self):
        return P.TensorsQueueGet(*self.of, pop_after_get=True)(self.handle_)

    def size(self):
        return P.TensorsQueueSize()(self.handle_)

    def close(self):
        P.TensorsQueueClose()(self.handle_)
        return True

    def clear(self):
        P.TensorsQueueClear()(self.handle_)
        return True


__all__ = ["SparseToDense", "SparseTensorDenseMatmul", "TensorArray", "TensorsQueue"]

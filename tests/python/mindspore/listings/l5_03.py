"""Listing 5-3: a second derivative."""

import mindspore as ms
from mindspore import ops
grad_all = ops.composite.GradOperation()

def func(x): return x * x * x
def df_func(x):
    return grad_all(func)(x)

@ms.ms_function
def df2_func(x):
    return grad_all(df_func)(x)

if __name__ == "__main__":
    print(df2_func(ms.Tensor(2, ms.float32)))

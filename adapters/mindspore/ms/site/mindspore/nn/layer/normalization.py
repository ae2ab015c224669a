"""Normalisations."""

from cairn.ms import ranks
from cairn.ms.numerics import norms
from mindspore._checkparam import Rel, Validator
from mindspore.common.initializer import initializer
from mindspore.common.parameter import Parameter
from mindspore.communication.management import create_group
from mindspore.nn.cell import Cell
from mindspore.ops import operations as P


class _BatchNorm(Cell):
    """By the batch's statistics while it trains, by running ones (momentum * old + (1 - momentum) * new) else."""

    _held = {"bn_train": lambda self: P.BatchNorm(True, self.eps, 1.0 - self.momentum, self.data_format),
             "bn_infer": lambda self: P.BatchNorm(False, self.eps, data_format=self.data_format)}  # fmt: skip
    ranks = (4,)

    def __init__(self, num_features, eps=1e-5, momentum=0.9, affine=True, gamma_init="ones", beta_init="zeros",
                 moving_mean_init="zeros", moving_var_init="ones", use_batch_statistics=None, device_num_each_group=1,
                 process_groups=0, data_format="NCHW"):  # fmt: skip
        super().__init__()
        owner = type(self).__name__
        Validator.check_positive_int(num_features, "num_features", owner)
        if isinstance(momentum, bool) or not 0 <= momentum <= 1:
            raise ValueError(f"For '{owner}', the 'momentum' must be in range [0, 1], but got {momentum}.")
        if not 0 < eps:
            raise ValueError(f"For '{owner}', the 'eps' must be greater than 0, but got {eps}.")
        self.num_features, self.eps, self.momentum = num_features, eps, momentum
        if use_batch_statistics is not None and not isinstance(use_batch_statistics, bool):
            raise ValueError(
                f"For '{owner}', the 'use_batch_statistics' must be True, False or None, but got {use_batch_statistics}."
            )
        self.use_batch_statistics = use_batch_statistics
        self.data_format = Validator.check_string(data_format, ("NCHW", "NHWC", "NCDHW"), "data_format", owner)
        self.moving_mean = Parameter(initializer(moving_mean_init, num_features), name="mean", requires_grad=False)
        self.moving_variance = Parameter(
            initializer(moving_var_init, num_features), name="variance", requires_grad=False
        )
        self.gamma = Parameter(initializer(gamma_init, num_features), name="gamma", requires_grad=affine)
        self.beta = Parameter(initializer(beta_init, num_features), name="beta", requires_grad=affine)
        self.group = self._group(device_num_each_group, process_groups, owner)

    @staticmethod
    def _group(device_num_each_group, process_groups, owner):
        """The ranks whose batches are normalised as one: their group, None where this rank is alone."""
        size, rank = ranks.group().size, ranks.group().rank
        count = Validator.check_positive_int(device_num_each_group, "device_num_each_group", owner)
        if size == 1 or (count == 1 and process_groups == 0):
            return None
        if process_groups is None:
            return ranks.WORLD
        if process_groups == 0:
            if count > size or size % count:
                raise ValueError(f"For '{owner}', the number of ranks must be divisible by 'device_num_each_group', but got {size} and {count}.")
            process_groups = [list(range(first, first + count)) for first in range(0, size, count)]
        if not isinstance(process_groups, list) or not all(isinstance(each, list) for each in process_groups):
            raise TypeError(f"For '{owner}', the 'process_groups' must be a list of lists of ranks, but got {process_groups}.")
        listed = [each for group in process_groups for each in group]
        if any(type(each) is not int or not 0 <= each < size for each in listed) or len(set(listed)) < len(listed):
            raise ValueError(f"For '{owner}', 'process_groups' must hold different ranks in [0, {size - 1}], but got {process_groups}.")
        own = next((group for group in process_groups if rank in group), [])
        if len(own) < 2:
            return None
        name = "sync_bn_" + "_".join(map(str, own))
        create_group(name, own)
        return name

    def construct(self, x):
        channel = 1 if self.data_format.startswith("NC") else len(x.shape) - 1
        if len(x.shape) not in self.ranks or x.shape[channel] != self.num_features:
            ranks = " or ".join(map(str, self.ranks))
            raise ValueError(
                f"For '{type(self).__name__}', x must have {ranks} dimensions and {self.num_features} channels, but got shape {tuple(x.shape)}."
            )
        by_batch = self.training if self.use_batch_statistics is None else self.use_batch_statistics
        if not by_batch:
            statistics = self.moving_mean, self.moving_variance
            return norms.batch_norm(x, self.gamma, self.beta, *statistics, self.eps, self.data_format)
        y, mean, variance = norms.batch_norm_training(x, self.gamma, self.beta, self.eps, self.data_format, self.group)
        norms.follow([(self.moving_mean, mean), (self.moving_variance, variance)], 1.0 - self.momentum)
        return y

    def extend_repr(self):
        return (
            f"num_features={self.num_features}, eps={self.eps}, momentum={1.0 - self.momentum}, gamma={self.gamma}, "
            f"beta={self.beta}, moving_mean={self.moving_mean}, moving_variance={self.moving_variance}"
        )


class BatchNorm1d(_BatchNorm):
    """Of [n, channels] or [n, channels, length]."""

    ranks = (2, 3)

    def __init__(self, num_features, eps=1e-5, momentum=0.9, affine=True, gamma_init="ones", beta_init="zeros",
                 moving_mean_init="zeros", moving_var_init="ones", use_batch_statistics=None):  # fmt: skip
        super().__init__(
            num_features,
            eps,
            momentum,
            affine,
            gamma_init,
            beta_init,
            moving_mean_init,
            moving_var_init,
            use_batch_statistics,
        )


class BatchNorm2d(_BatchNorm):
    """Of [n, channels, height, width], or with channels last."""

    def __init__(self, num_features, eps=1e-5, momentum=0.9, affine=True, gamma_init="ones", beta_init="zeros",
                 moving_mean_init="zeros", moving_var_init="ones", use_batch_statistics=None, data_format="NCHW"):  # fmt: skip
        super().__init__(num_features, eps, momentum, affine, gamma_init, beta_init, moving_mean_init, moving_var_init,
                         use_batch_statistics, data_format=data_format)  # fmt: skip


class BatchNorm3d(_BatchNorm):
    """Of [n, channels, depth, height, width]."""

    ranks = (5,)

    def __init__(self, num_features, eps=1e-5, momentum=0.9, affine=True, gamma_init="ones", beta_init="zeros",
                 moving_mean_init="zeros", moving_var_init="ones", use_batch_statistics=None, data_format="NCDHW"):  # fmt: skip
        super().__init__(num_features, eps, momentum, affine, gamma_init, beta_init, moving_mean_init, moving_var_init,
                         use_batch_statistics, data_format=data_format)  # fmt: skip


class GlobalBatchNorm(_BatchNorm):
    """By the batches of device_num_each_group ranks as one: ranks 0 to n - 1, the next n, and so on."""

    ranks = (2, 4)

    def __init__(self, num_features, eps=1e-5, momentum=0.9, affine=True, gamma_init="ones", beta_init="zeros",
                 moving_mean_init="zeros", moving_var_init="ones", use_batch_statistics=None, device_num_each_group=2):  # fmt: skip
        super().__init__(num_features, eps, momentum, affine, gamma_init, beta_init, moving_mean_init, moving_var_init,
                         use_batch_statistics, device_num_each_group)  # fmt: skip


class SyncBatchNorm(_BatchNorm):
    """By the batches of the ranks of a group as one; without process_groups of all ranks."""

    ranks = (2, 4)

    def __init__(self, num_features, eps=1e-5, momentum=0.9, affine=True, gamma_init="ones", beta_init="zeros",
                 moving_mean_init="zeros", moving_var_init="ones", use_batch_statistics=None, process_groups=None):  # fmt: skip
        super().__init__(num_features, eps, momentum, affine, gamma_init, beta_init, moving_mean_init, moving_var_init,
                         use_batch_statistics, process_groups=process_groups)  # fmt: skip


class LayerNorm(Cell):
    """Over the axes from begin_norm_axis on."""

    _held = {"layer_norm": lambda self: P.LayerNorm(self.begin_norm_axis, self.begin_params_axis, self.epsilon)}

    def __init__(
        self,
        normalized_shape,
        begin_norm_axis=-1,
        begin_params_axis=-1,
        gamma_init="ones",
        beta_init="zeros",
        epsilon=1e-7,
    ):
        super().__init__()
        if not isinstance(normalized_shape, (tuple, list)):
            raise TypeError(
                f"For 'LayerNorm', the 'normalized_shape' must be tuple or list, but got {type(normalized_shape).__name__}."
            )
        for name, axis in (("begin_norm_axis", begin_norm_axis), ("begin_params_axis", begin_params_axis)):
            Validator.check_value_type(name, axis, [int], "LayerNorm")
        self.normalized_shape, self.epsilon = normalized_shape, epsilon
        self.begin_norm_axis, self.begin_params_axis = begin_norm_axis, begin_params_axis
        self.gamma = Parameter(initializer(gamma_init, normalized_shape), name="gamma")
        self.beta = Parameter(initializer(beta_init, normalized_shape), name="beta")

    def construct(self, x):
        Validator.check_axis_in_range(self.begin_norm_axis, len(x.shape))
        return norms.layer_norm(x, self.gamma, self.beta, self.begin_norm_axis, self.epsilon)

    def extend_repr(self):
        return (
            f"normalized_shape={self.normalized_shape}, begin_norm_axis={self.begin_norm_axis}, "
            f"begin_params_axis={self.begin_params_axis}, gamma={self.gamma}, beta={self.beta}"
        )


class GroupNorm(Cell):
    """Over groups of channels of each image."""

    def __init__(self, num_groups, num_channels, eps=1e-5, affine=True, gamma_init="ones", beta_init="zeros"):
        super().__init__()
        Validator.check_positive_int(num_groups, "num_groups", "GroupNorm")
        Validator.check_positive_int(num_channels, "num_channels", "GroupNorm")
        if num_channels % num_groups:
            raise ValueError(
                f"For 'GroupNorm', the 'num_channels' {num_channels} must be divisible by 'num_groups' {num_groups}."
            )
        Validator.check_bool(affine, "affine", "GroupNorm")
        self.num_groups, self.num_channels, self.eps = num_groups, num_channels, eps
        self.gamma = Parameter(initializer(gamma_init, num_channels), name="gamma", requires_grad=affine)
        self.beta = Parameter(initializer(beta_init, num_channels), name="beta", requires_grad=affine)

    def construct(self, x):
        if len(x.shape) != 4 or x.shape[1] != self.num_channels:
            raise ValueError(
                f"For 'GroupNorm', x must have 4 dimensions and {self.num_channels} channels, but got shape {tuple(x.shape)}."
            )
        return norms.by_groups(x, self.num_groups, self.gamma, self.beta, self.eps)

    def extend_repr(self):
        return f"num_groups={self.num_groups}, num_channels={self.num_channels}"


class _InstanceNorm(Cell):
    """Of each plane by its own statistics."""

    rank = 4

    def __init__(self, num_features, eps=1e-5, momentum=0.1, affine=True, gamma_init="ones", beta_init="zeros"):
        super().__init__()
        owner = type(self).__name__
        Validator.check_positive_int(num_features, "num_features", owner)
        Validator.check_number_range(momentum, 0, 1, Rel.INC_BOTH, "momentum", owner)
        self.num_features, self.eps = num_features, eps
        self.gamma = Parameter(initializer(gamma_init, num_features), name="gamma", requires_grad=affine)
        self.beta = Parameter(initializer(beta_init, num_features), name="beta", requires_grad=affine)

    def construct(self, x):
        if len(x.shape) != self.rank or x.shape[1] != self.num_features:
            raise ValueError(
                f"For '{type(self).__name__}', x must have {self.rank} dimensions and {self.num_features} channels, but got {tuple(x.shape)}."
            )
        return norms.by_groups(x, self.num_features, self.gamma, self.beta, self.eps)


class InstanceNorm1d(_InstanceNorm):
    """Of rows."""

    rank = 3


class InstanceNorm2d(_InstanceNorm):
    """Of planes."""


class InstanceNorm3d(_InstanceNorm):
    """Of volumes."""

    rank = 5


__all__ = [
    "BatchNorm1d", "BatchNorm2d", "BatchNorm3d", "GlobalBatchNorm", "SyncBatchNorm", "LayerNorm", "GroupNorm",
    "InstanceNorm1d", "InstanceNorm2d", "InstanceNorm3d",
]  # fmt: skip

"""Training with THOR: factors and inverses are computed in one step of several."""

import copy

from mindspore.nn.layer.thor_layer import factored
from mindspore.nn.optim.thor import THOR
from mindspore.train.model import Model

__all__ = ["ConvertModelUtils", "ConvertNetUtils", "ModelThor"]


class ModelThor(Model):
    """A Model with two compiled steps: one that computes THOR's inverses, every `frequency` steps, and one that takes them as they are."""

    def __init__(self, network, loss_fn=None, optimizer=None, metrics=None, amp_level="O0", frequency=None, **more):
        super().__init__(network, loss_fn, optimizer, metrics, amp_level=amp_level, **more)
        self._frequency = optimizer.get_frequency() if frequency is None else frequency
        self._plain_step = copy.copy(self._train_network)
        self._switched = [optimizer, *factored(network)]

    def _run_step(self, row, number):
        renews = number % self._frequency == 0
        for each in self._switched:
            each.thor = renews
        return (self._train_network if renews else self._plain_step)(*row)


class ConvertModelUtils:
    """Makes Models train with THOR."""

    @staticmethod
    def convert_to_thor_model(model, network, loss_fn=None, optimizer=None, metrics=None, amp_level="O0", loss_scale_manager=None,
                              keep_batchnorm_fp32=False, frequency=None):  # fmt: skip
        """A ModelThor where the optimizer is THOR, else the model as it is."""
        if not isinstance(optimizer, THOR):
            return model
        more = {"keep_batchnorm_fp32": keep_batchnorm_fp32}
        if loss_scale_manager is not None:
            more["loss_scale_manager"] = loss_scale_manager
        return ModelThor(network, loss_fn, optimizer, metrics, amp_level, frequency, **more)


class ConvertNetUtils:
    """Makes nets keep what THOR needs."""

    def convert_to_thor_net(self, net):
        """The net, whose layers keep factors from now on."""
        factored(net)
        return net

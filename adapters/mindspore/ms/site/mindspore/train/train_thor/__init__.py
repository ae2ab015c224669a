"""Second-order training."""

from cairn.ms import refuse

__all__ = ["ConvertModelUtils", "ConvertNetUtils"]


class ConvertModelUtils:
    """Refused until the second-order optimizer is there."""

    refused = "second-order updates are not supported"

    @staticmethod
    def convert_to_thor_model(*_, **__):
        """Refused."""
        refuse("ConvertModelUtils.convert_to_thor_model", "the optimizer THOR is not supported yet", "nn.Momentum with Model")


class ConvertNetUtils:
    """Refused until the second-order optimizer is there."""

    refused = "second-order updates are not supported"

    def convert_to_thor_net(self, net):
        """Refused."""
        refuse("ConvertNetUtils.convert_to_thor_net", "the optimizer THOR is not supported yet", "nn.Momentum with Model")

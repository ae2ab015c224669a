"""Methods of a Cell that scripts call for other devices and compilers."""

import functools
import inspect


def told_of_self(construct, owner):
    """A construct() whose first argument has another name, by which `self` may be forgotten."""

    @functools.wraps(construct)
    def checked(self, *inputs, **keywords):
        try:
            inspect.signature(construct).bind(self, *inputs, **keywords)
        except TypeError as error:
            told = f"The method 'construct' of {owner} should have 'self' as its first argument: {error}."
            raise TypeError(told) from None
        return construct(self, *inputs, **keywords)

    return checked


class Accepted:
    """Nothing changes by them: there is one device, and one way to compile."""

    parallel_parameter_name_list = ()

    def set_boost(self, boost_type):
        return self

    def set_jit_config(self, jit_config):
        self.jit_config_dict = jit_config.jit_config_dict
        return self

    def set_inputs(self, *inputs):
        """A compiled function is made for the shapes it meets."""
        self._inputs = inputs

    def get_inputs(self):
        return self._inputs

    def shard(self, in_strategy, out_strategy=None, parameter_plan=None, device="Ascend", level=0):
        return self

    def recompute(self, **kwargs):
        """The compiler decides what is kept."""

    def set_param_ps(self, recurse=True, init_in_server=False):
        """There are no servers of parameters."""

    def flatten_weights(self, fusion_size=0):
        """Parameters keep memory of their own."""

    def generate_scope(self):
        """Operators carry the paths of their cells already."""

    def update_cell_type(self, cell_type):
        self.cell_type = cell_type

    def init_parameters_data(self, auto_parallel_mode=False):
        return {param: param for param in self.get_parameters()}

    def load_parameter_slice(self, params):
        """Parameters are whole."""

    @property
    def pipeline_stage(self):
        return self.__dict__.get("_pipeline_stage", 0)

    @pipeline_stage.setter
    def pipeline_stage(self, value):
        if isinstance(value, bool) or not isinstance(value, int):
            raise TypeError(f"For 'Cell', the property 'pipeline_stage' must be an int, but got {type(value).__name__}.")
        if value < 0:
            raise ValueError(f"For 'Cell', the property 'pipeline_stage' must not be less than 0, but got {value}.")
        self.__dict__["_pipeline_stage"] = value

    set_auto_parallel = set_data_parallel = infer_param_pipeline_stage = remove_redundant_parameters = lambda self: None

    def get_scope(self):
        return self._scope

    @property
    def cls_name(self):
        return type(self).__name__

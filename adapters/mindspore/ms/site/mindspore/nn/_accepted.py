"""Methods of a Cell that scripts call for other devices and compilers."""

import functools
import inspect

from mindspore.common.tensor import Tensor


def told_of_self(construct, owner):
    """A construct() whose first argument has another name, by which `self` may be forgotten."""

    signature = inspect.signature(construct)

    @functools.wraps(construct)
    def checked(self, *inputs, **keywords):
        try:
            signature.bind(self, *inputs, **keywords)
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
        """What calls in graph mode must look like; a compiled function is made for the shapes that it meets."""
        self.__dict__["_inputs"] = inputs

    def get_inputs(self):
        return self.__dict__.get("_inputs", ())

    def check_inputs(self, given):
        """What a call gives is of the types and sizes that set_inputs() said; a size of None is any."""
        said = self.get_inputs()
        if said and len(said) != len(given):
            raise ValueError(f"For 'set_inputs', the length of the inputs must be {len(said)}, but got {len(given)}.")
        for index, (a, b) in enumerate(zip(said, given)):
            if not isinstance(a, Tensor) or not isinstance(b, Tensor):
                if type(a) is not type(b):
                    raise ValueError(f"For 'set_inputs', the input {index} must be of {type(a).__name__}, but got {type(b).__name__}.")
            elif a.dtype != b.dtype or len(a.shape) != len(b.shape) or any(x not in (-1, y) for x, y in zip(a.shape, b.shape)):
                raise ValueError(f"For 'set_inputs', the input {index} must be of {a.dtype} and shape {a.shape}, but got {b.dtype} and shape {b.shape}.")

    def shard(self, in_strategy, out_strategy=None, parameter_plan=None, device="Ascend", level=0):
        return self

    def recompute(self, **kwargs):
        """The compiler decides what is kept; the scopes say what was asked for."""
        unknown = kwargs.keys() - {"mp_comm_recompute", "parallel_optimizer_comm_recompute", "recompute_slice_activation"}
        if unknown:
            raise ValueError(f"For 'recompute', keyword '{min(unknown)}' is not recognized!")
        cells = [cell for _, cell in self.cells_and_names()]
        if any("_recomputed" in cell.__dict__ for cell in cells):
            raise RuntimeError("The recompute interface can be configured only once: a cell within a configured one is configured with it.")
        for cell in cells:
            cell.__dict__.update(_recomputed=True, _scope="recompute_" + (cell._scope or ""))

    def set_param_ps(self, recurse=True, init_in_server=False):
        """There are no servers of parameters."""

    def flatten_weights(self, fusion_size=0):
        """Parameters lie one behind the other in memory: chunks of a type, or of at most fusion_size bytes."""
        if isinstance(fusion_size, bool) or not isinstance(fusion_size, int) or fusion_size < 0:
            raise ValueError(f"Negative 'fusion_size' {fusion_size} is invalid.")
        Tensor._flatten_tensors(self.trainable_params(), fusion_size)

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
            raise ValueError(f"For 'Cell', the property 'pipeline_stage' can not be less than 0, but got {value}.")
        self.__dict__["_pipeline_stage"] = value

    set_auto_parallel = set_data_parallel = infer_param_pipeline_stage = remove_redundant_parameters = lambda self: None

    def get_scope(self):
        return self._scope

    @property
    def cls_name(self):
        return type(self).__name__

"""GradOperation: gradients of a Cell or function."""

from mindspore.common.parameter import Parameter

from cairn.ms import core, gradient, level


class GradOperation:
    """GradOperation(get_all=False, get_by_list=False, sens_param=False): grad(net) or grad(net, weights) is a function of the
    inputs, and with sens_param of the gradient of the output. At level 0.5 a name comes first."""

    def __init__(self, *arguments, **keywords):
        names = ["get_all", "get_by_list", "sens_param"]
        if arguments and isinstance(arguments[0], str) or (arguments and not level.at_least("1.0")):
            names.insert(0, "name")
        given = {"get_all": False, "get_by_list": False, "sens_param": False, **dict(zip(names, arguments)), **keywords}
        self.name = given.pop("name", "grad")
        for name, value in given.items():
            if name not in names:
                raise TypeError(f"GradOperation got an unexpected argument '{name}'")
            if not isinstance(value, bool):
                raise TypeError(f"For 'GradOperation', the '{name}' should be bool, but got {type(value).__name__}.")
        self.get_all, self.get_by_list, self.sens_param = (
            given[name] for name in ("get_all", "get_by_list", "sens_param")
        )

    def __call__(self, fn, weights=None):
        if not callable(fn):
            raise TypeError(
                f"For 'GradOperation', the argument must be a Cell or a function, but got {type(fn).__name__}."
            )
        return Gradient(self, fn, weights)


class Gradient:
    """The gradient function of one function."""

    def __init__(self, operation, function, weights):
        self.operation, self.function, self.weights = operation, function, weights

    def __call__(self, *arguments, **keywords):
        if core.captures():
            return core.graph_entry(self, arguments, keywords)
        return self.uncaptured(*arguments, **keywords)

    @property
    def captured_for(self):
        return self.function

    def capture_key(self):
        operation = self.operation
        flags = operation.get_all, operation.get_by_list, operation.sens_param
        return "gradient", flags, self._weights()[0]

    def uncaptured(self, *arguments, **keywords):
        """What the call computes, eagerly or captured."""
        operation, seed = self.operation, None
        if operation.sens_param:
            if "sens" in keywords:
                seed = keywords.pop("sens")
            elif arguments:
                *arguments, seed = arguments
            else:
                raise TypeError("the gradient of the output is missing: sens_param is True")
        weights, single = self._weights()
        if not arguments and not keywords and not operation.get_by_list:
            return ()
        positions = [i for i, each in enumerate(arguments) if gradient.tensors_of(each)]
        if not positions and not operation.get_by_list:
            positions = [i for i, each in enumerate(arguments) if isinstance(each, (int, float)) and not isinstance(each, bool)]
        if getattr(core.here.recorder, "symbolic", False) and any(map(_is_constant, arguments)):  # constants have no gradient
            first, positions = positions[:1], [i for i in positions if not _is_constant(arguments[i])]
            if not operation.get_by_list and (not positions or not operation.get_all and first != positions[:1]):
                return ()
        if operation.get_all:
            positions = [i for i in positions if not _is_fixed(arguments[i])] or positions
        else:
            positions = positions[:1] if not (operation.get_by_list) else []
        if not positions and not weights and not operation.get_by_list:
            raise ValueError("the function has no tensor among its inputs to take the gradient of")
        _, of_inputs, of_weights = gradient.differentiate(self.function, arguments, keywords, positions, weights, seed)
        of_inputs = [_in_tuples(each) for each in of_inputs]
        by_weights = of_weights[0] if single else tuple(of_weights)
        if not operation.get_by_list:
            return tuple(of_inputs) if operation.get_all else of_inputs[0]
        return (tuple(of_inputs), by_weights) if operation.get_all else by_weights

    def _weights(self):
        if not self.operation.get_by_list:
            return (), False
        weights = self.weights
        if weights is None:
            weights = self.function.trainable_params() if hasattr(self.function, "trainable_params") else ()
        if isinstance(weights, Parameter):
            return (weights,), True
        return tuple(weights), False


def _is_constant(argument):
    tensors = gradient.tensors_of(argument)
    return bool(tensors) and all(each.const_arg for each in tensors)


def _is_fixed(argument):
    """Whether it is a container of inputs that is not mutable(), which GradOperation passes over."""
    if not isinstance(argument, (tuple, list, dict)):
        return False
    return all(each.fixed or each._array is not None and not each.is_mutable for each in gradient.tensors_of(argument))


def _in_tuples(tree):
    """The gradient of a dictionary or list: a tuple of those of its values."""
    if isinstance(tree, dict):
        tree = tuple(tree.values())
    return tuple([_in_tuples(each) for each in tree]) if type(tree) in (tuple, list) else tree


# Gradients by the names that they have at level 0.5.
grad_all, grad_all_with_sens = GradOperation(get_all=True), GradOperation(get_all=True, sens_param=True)
grad_by_list, grad_by_list_with_sens = GradOperation(get_by_list=True), GradOperation(get_by_list=True, sens_param=True)
grad_with_sens = GradOperation(sens_param=True)

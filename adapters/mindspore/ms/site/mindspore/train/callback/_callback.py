"""Callbacks: what is called while a Model trains and evaluates."""

import contextlib
import os

__all__ = ["Callback", "CallbackManager", "InternalCallbackParam", "RunContext", "checkpoint_cb_for_save_op", "set_cur_net"]


class _Unknown(KeyError, AttributeError):
    """A value that the run does not tell."""


class InternalCallbackParam(dict):
    """What a run tells its callbacks: keys that are attributes too."""

    def __getattr__(self, key):
        try:
            return self[key]
        except KeyError:
            raise _Unknown(key) from None

    def __setattr__(self, key, value):
        self[key] = value


class RunContext:
    """What a callback gets: the run's values, and the way to stop it."""

    def __init__(self, original_args):
        if not isinstance(original_args, InternalCallbackParam):
            raise TypeError("The argument 'original_args' of RunContext should be _InternalCallbackParam type.")
        self._original_args, self._stop_requested = original_args, False

    def original_args(self):
        """The run's values."""
        return self._original_args

    def request_stop(self):
        """Ends the run after this step."""
        self._stop_requested = True

    def get_stop_requested(self):
        """Whether the run is to end."""
        return self._stop_requested


class Callback:
    """Base. A run calls the methods on_train_..., on_eval_...; each calls the older one of its moment."""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def begin(self, run_context):
        """Before the first epoch."""

    def epoch_begin(self, run_context):
        """Before each epoch."""

    def epoch_end(self, run_context):
        """After each epoch."""

    def step_begin(self, run_context):
        """Before each step; in sink mode before each unit."""

    def step_end(self, run_context):
        """After each step; in sink mode after each unit."""

    def end(self, run_context):
        """After the last epoch."""


MOMENTS = ("begin", "epoch_begin", "step_begin", "step_end", "epoch_end", "end")


def _on(phase, moment):
    def method(self, run_context):
        getattr(self, moment)(run_context)

    method.__name__ = f"on_{phase}_{moment}"
    method.__doc__ = f"{moment} of a run that is to {phase}."
    return method


for _phase in ("train", "eval"):
    for _moment in MOMENTS:
        setattr(Callback, f"on_{_phase}_{_moment}", _on(_phase, _moment))


class CallbackManager(Callback):
    """Several callbacks as one; closes them at the end of the run."""

    def __init__(self, callbacks):
        callbacks = [] if callbacks is None else list(callbacks) if isinstance(callbacks, (list, tuple)) else [callbacks]
        for each in callbacks:
            if not isinstance(each, Callback):
                raise TypeError("When the 'callbacks' is a list, the elements in 'callbacks' must be Callback functions.")
        self._callbacks, self._stack = callbacks, contextlib.ExitStack()

    def __enter__(self):
        self._stack.__enter__()
        self._callbacks = [self._stack.enter_context(each) or each for each in self._callbacks]
        return self

    def __exit__(self, *error):
        return self._stack.__exit__(*error)


def _of_all(name):
    def method(self, run_context):
        for each in self._callbacks:
            getattr(each, name)(run_context)

    method.__name__, method.__doc__ = name, f"{name} of all."
    return method


for _moment in MOMENTS:
    for _name in (_moment, f"on_train_{_moment}", f"on_eval_{_moment}"):
        setattr(CallbackManager, _name, _of_all(_name))


_current = {"net": None}  # the network that checkpoint_cb_for_save_op fills


def set_cur_net(net):
    """Names the network of checkpoint_cb_for_save_op."""
    _current["net"] = net


def checkpoint_cb_for_save_op(parameter_list):
    """Puts values, a list of {"name": ..., "data": tensor}, into the network that set_cur_net named; whether there is one."""
    from mindspore.common.parameter import Parameter
    from mindspore.train.serialization import load_param_into_net

    if _current["net"] is None:
        return False
    values = {each["name"]: Parameter(each["data"], name=each["name"]) for each in parameter_list}
    load_param_into_net(_current["net"], values)
    return True


def make_directory(path, name="path"):
    """A folder that exists, as an absolute path."""
    if not isinstance(path, str) or not path.strip():
        raise TypeError(f"For 'make_directory', the argument '{name}' must be a path, but got {path!r}.")
    os.makedirs(path, exist_ok=True)
    return os.path.realpath(path)

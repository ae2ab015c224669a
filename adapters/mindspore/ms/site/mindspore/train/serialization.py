"""Checkpoints saved, loaded and put into networks; networks exported."""

import atexit
import difflib
import os
import threading

import numpy as np
from cairn.ms import level, refuse
from cairn.ms.numerics import collectives, random
from cairn.ms.refusal import Wrong

from mindspore import log as logger
from mindspore.common.parameter import Parameter
from mindspore.common.tensor import Tensor
from mindspore.nn.cell import Cell
from mindspore.train import _checkpoint, _encryption

__all__ = ["async_ckpt_thread_status", "convert_model", "export", "load", "load_checkpoint", "load_param_into_net", "parse_print", "save_checkpoint"]

_writer = None


def _entries(save_obj):
    if isinstance(save_obj, Cell):
        save_obj.init_parameters_data()
        return [(name, each) for name, each in ((each.name, each) for _, each in save_obj.parameters_and_names())]
    if isinstance(save_obj, dict):
        return list(save_obj.items())
    if isinstance(save_obj, (list, tuple)):
        for each in save_obj:
            if not isinstance(each, dict) or not {"name", "data"} <= each.keys():
                raise TypeError("For 'save_checkpoint', the elements of the argument 'save_obj' must be dicts with the keys "
                                "'name' and 'data'.")
        return [(each["name"], each["data"]) for each in save_obj]
    raise TypeError("For 'save_checkpoint', the argument 'save_obj' must be nn.Cell or list, but got {}.".format(type(save_obj)))


def _array(name, value):
    if isinstance(value, Tensor):
        return np.array(value.asnumpy())
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return np.array(value)
    if isinstance(value, (int, np.integer)):
        return np.array(value, np.int64)
    if isinstance(value, (float, np.floating)):
        return np.array(value, np.float32 if isinstance(value, np.float32) else np.float64)
    if isinstance(value, np.ndarray):
        return value
    raise TypeError(f"For 'save_checkpoint', the value of '{name}' must be a Tensor, a number or a text, but got {type(value)}.")


def save_checkpoint(save_obj, ckpt_file_name, integrated_save=True, async_save=False, append_dict=None, enc_key=None,
                    enc_mode="AES-GCM", **kwargs):
    """Writes the parameters of a Cell, or a list of {"name", "data"}, and the numbers of append_dict, as one file. The third argument
    of 0.5 is model_type; with it the file is written so that readers of 0.5 take it."""
    model_type = kwargs.pop("model_type", None)
    if isinstance(integrated_save, str):
        model_type, integrated_save = integrated_save, True
    if not level.at_least("1.1"):
        model_type = model_type or _checkpoint.MODEL_TYPE
    if not isinstance(ckpt_file_name, str):
        raise TypeError(f"For 'save_checkpoint', the argument 'ckpt_file_name' must be string, but got {type(ckpt_file_name)}.")
    for name, value in (("integrated_save", integrated_save), ("async_save", async_save)):
        if not isinstance(value, bool):
            raise TypeError(f"For 'save_checkpoint', the argument '{name}' must be bool, but got {type(value)}.")
    if append_dict is not None and not isinstance(append_dict, dict):
        raise TypeError(f"For 'save_checkpoint', the argument 'append_dict' must be dict, but got {type(append_dict)}.")
    _encryption.check(enc_key, enc_mode, "save_checkpoint")
    entries = [*whole_entries(_entries(save_obj), integrated_save), *(append_dict or {}).items()]
    if isinstance(save_obj, Cell):
        entries += [each for each in random.kept(save_obj) if each[0] != random.STATE or _draws(save_obj)]
    write_entries([(name, _array(name, value)) for name, value in _by_name(entries).items()], ckpt_file_name, async_save, model_type,
                  key=enc_key, mode=enc_mode)


def _by_name(entries):
    """The entries by name, the last of each."""
    made = dict(entries)
    if len(made) < len(entries):
        names = sorted({name for name, _ in entries if sum(name == other for other, _ in entries) > 1})
        logger.warning(f"Several parameters are named {', '.join(names)}: the checkpoint holds the last of each name. "
                       "update_parameters_name() of an optimizer gives its parameters names of their own.")
    return made


def whole_entries(entries, integrated_save):
    """The entries, with the state of an optimizer that is spread over the ranks: with integrated_save gathered, which all ranks do together,
    else what this rank has of it."""
    if not integrated_save:
        return [(name, each) for name, each in entries if getattr(each, "is_here", True)]
    return [
        (name, each if getattr(each, "owner", None) is None else collectives.broadcast(each, each.owner))
        for name, each in entries
    ]


def write_entries(entries, ckpt_file_name, async_save=False, model_type=None, read_only=True, key=None, mode="AES-GCM"):
    """Writes arrays by name; with async_save in a thread, one file after the other."""
    global _writer
    path = ckpt_file_name if ckpt_file_name.endswith(".ckpt") else ckpt_file_name + ".ckpt"
    if not os.path.isdir(os.path.dirname(os.path.abspath(path))):
        os.makedirs(os.path.dirname(os.path.abspath(path)), exist_ok=True)
    wait_for_writer()
    if async_save:
        _writer = threading.Thread(target=_checkpoint.write, args=(path, entries, model_type, read_only, key, mode), name="asyn_save_ckpt")
        _writer.start()
    else:
        _checkpoint.write(path, entries, model_type, read_only, key, mode)


@atexit.register
def wait_for_writer():
    """Waits until an asynchronous save has ended."""
    if _writer is not None and _writer is not threading.current_thread():
        _writer.join()


def async_ckpt_thread_status():
    """Whether a save is under way."""
    return _writer is not None and _writer.is_alive()


def _draws(net):
    """Whether the network draws random numbers where it is called as it is."""
    return any(getattr(cell, "draws", False) and cell.training for _, cell in net.cells_and_names())


def _check_file(path):
    if not isinstance(path, str):
        raise Wrong(f"For 'load_checkpoint', the argument 'ckpt_file_name' must be string, but got {type(path)}.")
    if not path.endswith(".ckpt"):
        raise ValueError("For 'load_checkpoint', the checkpoint file should end with '.ckpt', please input the correct "
                         f"'ckpt_file_name', but got {path}.")
    if not os.path.exists(path):
        raise ValueError(f"For 'load_checkpoint', the checkpoint file: {path} does not exist, please check whether the "
                         "'ckpt_file_name' is correct.")
    if os.path.getsize(path) == 0:
        raise ValueError(f"For 'load_checkpoint', the checkpoint file {path} may be empty, please check whether the "
                         "'ckpt_file_name' is correct.")


def _prefixes(value, name):
    if value is None:
        return ()
    if isinstance(value, str):
        value = [value]
    if not isinstance(value, (list, tuple)) or not all(isinstance(each, str) for each in value):
        raise TypeError(f"For 'load_checkpoint', the argument '{name}' must be string, list of string or tuple of string.")
    if not value:
        raise ValueError(f"For 'load_checkpoint', the argument '{name}' can't be empty when it is list or tuple.")
    return tuple(value)


def load_checkpoint(ckpt_file_name, net=None, strict_load=False, filter_prefix=None, dec_key=None, dec_mode="AES-GCM",
                    specify_prefix=None, **kwargs):
    """{name: Parameter} of a file, which is also put into `net` where one is given. In 0.5 the second argument is model_type."""
    model_type = kwargs.pop("model_type", None)
    if isinstance(net, str):
        model_type, net = net, strict_load if isinstance(strict_load, Cell) else None
        strict_load = False
    if net is not None and not isinstance(net, Cell):
        raise TypeError(f"For 'load_checkpoint', the argument 'net' must be nn.Cell, but got {type(net)}.")
    wait_for_writer()
    _check_file(ckpt_file_name)
    _encryption.check(dec_key, dec_mode, "load_checkpoint", ("dec_key", "dec_mode"))
    dropped, wanted = _prefixes(filter_prefix, "filter_prefix"), _prefixes(specify_prefix, "specify_prefix")
    try:
        values, found_type = _checkpoint.read(ckpt_file_name, dec_key, dec_mode)
    except _checkpoint.Damaged as error:
        raise ValueError(f"For 'load_checkpoint', failed to read the checkpoint file: {error}.") from None
    if model_type is not None and found_type not in (None, model_type):
        raise KeyError(f"Checkpoint file model type({found_type}) is not equal to input model type({model_type}).")
    parameters = {}
    for name, value in values.items():
        if (dropped and name.startswith(dropped)) or (wanted and not name.startswith(wanted)):
            continue
        parameters[name] = value if isinstance(value, str) else Parameter(Tensor(value), name=name)
    if not parameters:
        raise ValueError("The loaded parameter dict is empty after filter or specify, please check whether 'filter_prefix' or "
                         f"'specify_prefix' are set correctly: {ckpt_file_name}.")
    if net is not None:
        load_param_into_net(net, parameters, strict_load)
    return parameters


def _network(net):
    """The Cell; a Model stands for its networks."""
    if isinstance(net, Cell):
        return net
    inner = getattr(net, "_train_network", None) or getattr(net, "_network", None)
    if isinstance(inner, Cell):
        return inner
    raise TypeError(f"For 'load_param_into_net', the argument 'net' must be a Cell, but got {type(net)}.")


def load_param_into_net(net, parameter_dict, strict_load=False):
    """Puts values into parameters of equal name, and returns the names of those that got none. Where none of the rest fits, a prefix that
    they share is left away and they are tried again."""
    net = _network(net)
    if not isinstance(parameter_dict, dict):
        raise TypeError(f"For 'load_param_into_net', the argument 'parameter_dict' must be a dict, but got {type(parameter_dict)}.")
    if not isinstance(strict_load, bool):
        raise TypeError(f"For 'load_param_into_net', the argument 'strict_load' must be a bool, but got {type(strict_load)}.")
    for name, value in parameter_dict.items():
        if not isinstance(name, str) or not isinstance(value, (Tensor, str)):
            raise TypeError("For 'load_param_into_net', the argument 'parameter_dict' must be a dict of parameters by name, "
                            f"but '{name}' is {type(value)}.")
    net.init_parameters_data()
    own = {each.name: each for _, each in net.parameters_and_names()}
    missing = []
    for name, parameter in own.items():
        if name not in parameter_dict:
            missing.append(name)
            continue
        if not isinstance(parameter_dict[name], Tensor):
            raise TypeError(f"For 'load_param_into_net', '{name}' in the argument 'parameter_dict' must be a Parameter, but got a text.")
        _put(parameter, parameter_dict[name], strict_load)
    if missing and not strict_load:
        missing = _without_prefix(own, parameter_dict, missing)
    random.restore(net, {name: value for name, value in parameter_dict.items() if name not in own})
    _report(missing, parameter_dict, own)
    return missing


def _without_prefix(own, parameter_dict, missing):
    shared = os.path.commonprefix(missing)
    for end in sorted((place + 1 for place, each in enumerate(shared) if each == "."), reverse=True):
        fitting = [name for name in missing if isinstance(parameter_dict.get(name[end:]), Tensor)]
        if fitting:
            logger.warning(f"The names of {len(fitting)} parameters of the network fit those of the file without the prefix "
                           f"'{shared[:end]}'; they are loaded.")
            for name in fitting:
                _put(own[name], parameter_dict[name[end:]], False)
            return [name for name in missing if name not in fitting]
    return missing


def _report(missing, parameter_dict, own):
    if not missing:
        return
    unused = [name for name in parameter_dict if name not in own]
    logger.warning(f"For 'load_param_into_net', {len(missing)} parameters in the 'net' are not loaded, because they are not in "
                   "the 'parameter_dict', please check whether the network structure is consistent when training and loading checkpoint.")
    for name in missing:
        near = difflib.get_close_matches(name, unused, n=1, cutoff=0.6)
        logger.warning(f"{name} is not loaded." + (f" The nearest name in the file is {near[0]}." if near else ""))


def _family(kind):
    return "f" if kind.kind == "f" else "i" if kind.kind in "iu" else kind.name


def _put(parameter, value, strict_load):
    have, given = parameter.asnumpy(), value.asnumpy()
    name = parameter.name
    if have.shape != given.shape and not _trailing_ones(have.shape, given.shape):
        raise RuntimeError(f"For 'load_param_into_net', {name} in the argument 'net' should have the same shape as {name} in "
                           "the argument 'parameter_dict'. "
                           f"But got its shape {have.shape} in the argument 'net' and shape {given.shape} in the argument 'parameter_dict'. "
                           "May you need to check whether the checkpoint you loaded is correct or the batch size and so on in the 'net' and 'parameter_dict' are same.")
    if have.dtype != given.dtype and (strict_load or _family(have.dtype) != _family(given.dtype)):
        raise RuntimeError(f"For 'load_param_into_net', {name} in the argument 'net' should have the same type as {name} in "
                           "the argument 'parameter_dict'. "
                           f"But got its type {parameter.dtype} in the argument 'net' and type {value.dtype} in the argument 'parameter_dict'.")
    parameter.set_data(Tensor(given.reshape(have.shape).astype(have.dtype)))


def _trailing_ones(one, other):
    longer, shorter = (one, other) if len(one) > len(other) else (other, one)
    return len(longer) > len(shorter) and longer[: len(shorter)] == shorter and all(size == 1 for size in longer[len(shorter) :])


def export(net, *inputs, file_name, file_format="AIR", **kwargs):
    """Writes a network for deployment: OM, ONNX or MINDIR; AIR is refused."""
    from mindspore.train import _export

    return _export.export(net, inputs, file_name, file_format, kwargs)


def load(file_name, dec_key=None, dec_mode="AES-GCM", **kwargs):
    """A graph from a MindIR file, for nn.GraphCell. dec_mode may be a function of the file's path and the key that returns the plain bytes."""
    from mindspore.train import _mindir

    for name in kwargs:
        if kwargs[name] is not None:
            refuse(f"mindspore.load({name}=...)", "obfuscated files are not supported", "load without it")
    if dec_key is not None and callable(dec_mode):
        return _mindir.load(file_name, lambda data: dec_mode(file_name, dec_key))
    if _encryption.check(dec_key, dec_mode, "load", ("dec_key", "dec_mode")):
        return _mindir.load(file_name, lambda data: _encryption.decrypted(data, dec_key, dec_mode))
    return _mindir.load(file_name)


def convert_model(mindir_file, convert_file, file_format):
    """Writes the network of a MindIR file as ONNX."""
    from mindspore.nn import GraphCell

    if file_format != "ONNX":
        raise ValueError(f"For 'convert_model', the argument 'file_format' must be 'ONNX', but got {file_format}.")
    inputs = _get_mindir_inputs(mindir_file)
    export(GraphCell(load(mindir_file)), *(inputs if isinstance(inputs, tuple) else [inputs]), file_name=convert_file, file_format=file_format)


def _get_mindir_inputs(file_name):
    from mindspore.train import _mindir

    return _mindir.inputs_of(file_name)


def parse_print(print_file_name):
    """Refused: print files are of the device."""
    refuse("parse_print", "files of the device's print are not written", "P.Print, which prints at once")


def __getattr__(name):
    if name in ("merge_sliced_parameter", "load_distributed_checkpoint", "build_searched_strategy", "restore_group_info_list",
                "merge_pipeline_strategys", "obfuscate_model", "rank_list_for_transform", "transform_checkpoint_by_rank",
                "transform_checkpoints"):  # fmt: skip
        refuse(f"mindspore.{name}", "checkpoints are not sliced", "load_checkpoint")
    raise AttributeError(f"module 'mindspore.train.serialization' has no attribute '{name}'")


def _save_graph(network, file_name):
    """Writes what the network is made of, as text."""
    from mindspore.train.callback._model_checkpoint import save_graph

    save_graph(network, file_name)

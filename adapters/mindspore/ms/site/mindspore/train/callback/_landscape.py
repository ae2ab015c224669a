"""SummaryLandscape: the loss around the way that a training took, from the parameters that SummaryCollector kept on it."""

import json
import os
import shutil
import types

import numpy as np
from cairn.ms import wire

from mindspore import log as logger
from mindspore.common.tensor import Tensor
from mindspore.train._utils import check_value_type
from mindspore.train.serialization import load_checkpoint, load_param_into_net, save_checkpoint

__all__ = ["SummaryLandscape"]

DEFAULTS = {"landscape_size": 40, "unit": "step", "create_landscape": {"train": True, "result": True}, "num_samples": 2048, "intervals": None}
_KINDS = {"landscape_size": int, "unit": str, "create_landscape": dict, "num_samples": int, "intervals": list}
_MARGIN, _AROUND = 0.2, 5  # of the way on each side; and half as wide as the plane of the result, in directions as long as the parameters
_FLOAT32 = 11


def check_options(told, among=_KINDS):
    """collect_landscape of SummaryCollector, or what another landscape of the same training is to have."""
    check_value_type("collect_landscape", told, (dict, type(None)))
    for name, value in (told or {}).items():
        if name not in among:
            raise ValueError(f"For `collect_landscape` the keys {{{name!r}}} are unsupported, expect the following keys: {sorted(among)}.")
        _check(name, value, _KINDS[name])
        if name == "landscape_size" and not 3 <= value <= 256:
            raise ValueError(f"Landscape size should be between 3 and 256, but got {value}.")
        if name == "unit" and value not in ("step", "epoch"):
            raise ValueError(f"Unit should be step or epoch, but got {value}.")
        if name == "create_landscape":
            for key, each in value.items():
                if key not in ("train", "result"):
                    raise ValueError(f"The key of create landscape should be in train or result, but got {key}.")
                _check(key, each, bool)
        for part in value if name == "intervals" else ():
            _check("each interval in intervals", part, list)
            for each in part:
                _check("each value in interval", each, int)


def _check(name, value, kind):
    if not isinstance(value, kind) or isinstance(value, bool) and kind is not bool:
        raise TypeError(f"For `{name}` the type should be a valid type of ['{kind.__name__}'], but got {type(value).__name__}.")


def _is_weight(name):
    return ("weight" in name or "bias" in name) and "moment" not in name


class SummaryLandscape:
    """Reads what SummaryCollector kept in summary_dir, and writes landscapes there as values of an event file."""

    def __init__(self, summary_dir, intervals=None):
        self._summary_dir = os.path.realpath(summary_dir)
        self._ckpt_dir = os.path.join(self._summary_dir, "ckpt_dir")
        os.makedirs(self._ckpt_dir, exist_ok=True)
        self._metadata = os.path.join(self._ckpt_dir, "train_metadata.json")
        self._epoch_group = {str(place): list(each) for place, each in enumerate(intervals or ())}
        self._model_params_file_map, self._loss_map = {}, {}

    def save_loss_and_model_params(self, cur_num, unit, backbone, loss):
        """Keeps the parameters of a network at a step or epoch, and its loss."""
        path = os.path.join(self._ckpt_dir, f"{type(backbone).__name__}_{cur_num}_{unit}.ckpt")
        save_checkpoint([{"name": each.name, "data": each} for each in backbone.get_parameters()], path)
        self._model_params_file_map[str(cur_num)], self._loss_map[str(cur_num)] = path, float(loss)

    def save_metadata(self, step_per_epoch, unit, num_samples, landscape_size, create_landscape):
        """Writes what the landscapes of the training are to be."""
        self._write({"epoch_group": self._epoch_group, "model_params_file_map": self._model_params_file_map, "step_per_epoch": step_per_epoch,
                     "unit": unit, "num_samples": num_samples, "landscape_size": landscape_size, "create_landscape": create_landscape,
                     "loss_map": self._loss_map})  # fmt: skip

    def _write(self, data):
        with open(self._metadata, "w", encoding="utf-8") as file:
            json.dump(data, file)

    def _read(self):
        if not os.path.exists(self._metadata):
            raise FileNotFoundError(f"{self._metadata} does not exist; SummaryCollector writes it where collect_landscape is given.")
        with open(self._metadata, encoding="utf-8") as file:
            return json.load(file)

    def clean_ckpt(self):
        """Removes the parameters that were kept."""
        shutil.rmtree(self._ckpt_dir, ignore_errors=True)

    def gen_landscapes_with_multi_process(self, callback_fn, collect_landscape=None, device_ids=None, device_target="CPU", output=None):
        """Writes the landscapes; callback_fn() gives a Model, its network, a dataset and the metrics. One process computes them."""
        from mindspore.train.summary.summary_record import SummaryRecord

        check_value_type("device_target", device_target, str)
        self._check_device_ids(device_ids)
        if device_target not in ("Ascend", "GPU", "CPU"):
            raise ValueError(f"Landscape device_target should be Ascend, GPU or CPU, but got {device_target}.")
        check_options(collect_landscape)
        if collect_landscape is not None:
            data = {**self._read(), **collect_landscape}
            intervals = data.pop("intervals", None)
            if intervals is not None:
                data["epoch_group"] = {str(place): each for place, each in enumerate(intervals)}
            self._write(data)
        with SummaryRecord(os.path.realpath(output) if output is not None else self._summary_dir) as record:
            for interval, made in self.list_landscapes(callback_fn, device_ids, device_target):
                record.add_value("landscape", f"landscape_{interval}", made)
                record.record(0)

    @staticmethod
    def _check_device_ids(device_ids):
        check_value_type("device_ids", device_ids, (list, type(None)))
        for each in device_ids or ():
            if isinstance(each, bool) or not isinstance(each, int):
                raise TypeError(f"Landscape device_ids type should be a int, but got {type(each)}.")

    def list_landscapes(self, callback_fn, device_ids=None, device_target="CPU"):
        """Pairs of the steps or epochs that a landscape is of, and the landscape."""
        data = self._read()
        groups = [each for each in data["epoch_group"].values() if each]
        asked = {"train": False, "result": False, **data["create_landscape"]}
        about = {name: data[name] for name in ("unit", "step_per_epoch")}
        for epochs in groups if asked["train"] else ():
            if len(epochs) < 3:
                logger.error(f"The interval {epochs} has fewer than three points and is left out.")
                continue
            yield [epochs[0], epochs[-1]], _along(data, epochs, callback_fn, about)
        if asked["result"] and groups:
            yield [groups[-1][-1]], _around(data, groups[-1][-1], callback_fn, about)


def _parameters(data, epoch):
    return {name: np.float32(each.asnumpy()) for name, each in load_checkpoint(data["model_params_file_map"][str(epoch)]).items()}


def _flat(parameters):
    return np.concatenate([each.ravel() for name, each in parameters.items() if _is_weight(name)])


def _directions(flat, final):
    """A direction in the space of the weights: in each parameter as long as the parameter itself."""
    made, place = {}, 0
    for name, each in final.items():
        if _is_weight(name):
            part = flat[place : place + each.size].reshape(each.shape)
            place += each.size
            length = np.linalg.norm(part)
            made[name] = np.float32(part * (np.linalg.norm(each) / length if length else 0))
    return made


def _along(data, epochs, callback_fn, about):
    """The plane of the two directions in which the parameters moved most, and their way in it."""
    points = [_parameters(data, each) for each in epochs]
    final = points[-1]
    moved = np.stack([_flat(each) for each in points[:-1]]) - _flat(final)
    centred = moved.T - moved.T.mean(0)
    strongest = np.linalg.eigh(centred.T @ centred)[1][:, ::-1][:, :2]
    plane = [_directions(each, final) for each in (centred @ strongest).T]
    basis = np.stack([_flat(each) for each in plane], 1)
    way = np.array([np.linalg.lstsq(basis, _flat(each) - _flat(final), rcond=None)[0] for each in points])
    ends = [(each.min() - _MARGIN * np.ptp(each), each.max() + _MARGIN * np.ptp(each)) for each in way.T]
    x, y = (np.linspace(*each, data["landscape_size"]) for each in ends)
    losses = np.array([data["loss_map"][str(each)] for each in epochs])
    path = (*way.T, losses)
    return Landscape((x, y, _losses(data, final, plane, x, y, callback_fn)), "PCA", about, epochs, path, (way[-1:, 0], way[-1:, 1], losses[-1:]))


def _around(data, epoch, callback_fn, about):
    """A plane of two random directions around the result."""
    final = _parameters(data, epoch)
    rng = np.random.RandomState(0)
    plane = [_directions(rng.normal(size=_flat(final).size), final) for _ in range(2)]
    x = y = np.linspace(-_MARGIN * _AROUND, _MARGIN * _AROUND, data["landscape_size"])
    z, middle = _losses(data, final, plane, x, y, callback_fn), len(x) // 2
    return Landscape((x, y, z), "Random", about, [epoch], None, (x[middle : middle + 1], y[middle : middle + 1], z[middle, middle : middle + 1]))


def _losses(data, final, plane, x, y, callback_fn):
    """The loss at each point: a row for each y."""
    model, network, dataset, *_ = callback_fn()
    dataset = dataset.take(max(data["num_samples"] // dataset.get_batch_size(), 1))
    made = np.empty((len(y), len(x)), np.float32)
    for row, down in enumerate(y):
        for column, across in enumerate(x):
            here = {name: each + across * plane[0][name] + down * plane[1][name] if name in plane[0] else each for name, each in final.items()}
            load_param_into_net(network, {name: Tensor(np.float32(each)) for name, each in here.items()})
            found = model.eval(dataset, dataset_sink_mode=False)
            made[row, column] = found.get("Loss", found.get("loss", next(iter(found.values()))))
    load_param_into_net(network, {name: Tensor(each) for name, each in final.items()})
    return made


class Landscape:
    """Losses over a plane. points, path and end: (x, y, z)."""

    def __init__(self, points, decomposition, about, intervals, path, end):
        self.landscape = _point(points)
        self.loss_path = types.SimpleNamespace(intervals=intervals, points=_point(path)) if path is not None else None
        self.convergence_point = _point(end)
        self.metadata = types.SimpleNamespace(decomposition=decomposition, **about)

    def message(self):
        """The bytes of a LossLandscape."""
        made = wire.bytes_field(1, _point_message(self.landscape))
        if self.loss_path is not None:
            steps = b"".join(wire.number_field(1, each) for each in self.loss_path.intervals)
            made += wire.bytes_field(2, steps + wire.bytes_field(2, _point_message(self.loss_path.points)))
        told = self.metadata
        about = wire.bytes_field(1, told.decomposition) + wire.bytes_field(2, told.unit) + wire.number_field(3, told.step_per_epoch)
        return made + wire.bytes_field(3, about) + wire.bytes_field(4, _point_message(self.convergence_point))


def _point(values):
    return types.SimpleNamespace(**{name: np.float32(each) for name, each in zip("xyz", values)})


def _point_message(point):
    return b"".join(wire.bytes_field(place + 1, _numbers(getattr(point, name))) for place, name in enumerate("xyz"))


def _numbers(array):
    """A TensorProto of float32 numbers."""
    dims = b"".join(wire.number_field(1, size) for size in array.shape)
    return dims + wire.number_field(2, _FLOAT32) + b"".join(wire.float_field(3, float(each)) for each in array.ravel())

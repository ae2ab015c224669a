"""SummaryCollector: losses, parameters and inputs of a training as event files."""

import os
import re

import numpy as np
from cairn.ms import level

from mindspore import log as logger
from mindspore.common.tensor import Tensor
from mindspore.nn.optim.optimizer import Optimizer
from mindspore.train._utils import check_int, number, step_loss
from mindspore.train.callback._callback import Callback
from mindspore.train.callback._landscape import DEFAULTS, SummaryLandscape, check_options

__all__ = ["SummaryCollector", "SummaryStep"]

_DEFAULTS = {"collect_metric": True, "collect_graph": True, "collect_train_lineage": True, "collect_eval_lineage": True,
             "collect_input_data": True, "collect_dataset_graph": True, "histogram_regular": None, "collect_landscape": None}  # fmt: skip


def _check_type(name, value, *types):
    if not isinstance(value, types) or isinstance(value, bool) and bool not in types:
        but = "but" if level.at_least("1.10") else "bug"  # as releases before wrote it
        raise TypeError(f"For `{name}` the type should be a valid type of {[each.__name__ for each in types]}, {but} got {type(value).__name__}.")


class SummaryCollector(Callback):
    """Writes each collect_freq steps the loss, the input images, and histograms of the first parameters, or of those that the pattern
    histogram_regular names; and the measures of evaluations."""

    _DEFAULT_SPECIFIED_DATA = _DEFAULTS

    def __init__(self, summary_dir, collect_freq=10, collect_specified_data=None, keep_default_action=True, custom_lineage_data=None,
                 collect_tensor_freq=None, max_file_size=None, export_options=None, num_process=32):
        _check_type("summary_dir", summary_dir, str)
        if not summary_dir:
            raise ValueError("For `summary_dir` the value should be a valid string of path, but got empty string.")
        if os.path.exists(summary_dir) and not os.path.isdir(summary_dir):
            raise NotADirectoryError(f"For `summary_dir` it should be a directory, but got {summary_dir}.")
        _check_type("collect_freq", collect_freq, int)
        if collect_freq <= 0:
            raise ValueError(f"For `collect_freq` the value should be greater than 0, but got `{collect_freq}`.")
        _check_type("keep_default_action", keep_default_action, bool)
        specified = collect_specified_data
        _check_type("collect_specified_data", specified, dict, type(None))
        self._check_specified(specified or {})
        self._check_lineage(custom_lineage_data)
        for name, value in (("collect_tensor_freq", collect_tensor_freq), ("max_file_size", max_file_size)):
            _check_type(name, value, int, type(None))
            if value is not None and value <= 0:
                raise ValueError(f"For `{name}` the value should be greater than 0, but got `{value}`.")
        _check_type("export_options", export_options, dict, type(None))
        unknown = set(export_options or {}) - {"tensor_format"}
        if unknown:
            raise ValueError(f"For `export_options` the keys {unknown} are unsupported, expect the following keys: ['tensor_format'].")
        defaults = _DEFAULTS if keep_default_action else dict.fromkeys(_DEFAULTS, False)
        self._collect_specified_data = {**defaults, **(specified or {})}
        self._dir, self._freq, self._most, self._record = summary_dir, collect_freq, max_file_size, None
        self._is_parse_loss_success, self._temp_optimizer = True, None
        asked = self._collect_specified_data["collect_landscape"]
        self._of_landscape = {**DEFAULTS, **asked} if asked else None
        self._landscape = SummaryLandscape(summary_dir, self._of_landscape["intervals"]) if asked else None

    def _check_specified(self, specified):
        for name in specified:
            _check_type(name, name, str)
        unknown = set(specified) - set(_DEFAULTS)
        if unknown:
            raise ValueError(f"For `collect_specified_data` the keys {unknown} are unsupported, expect the following keys: {sorted(_DEFAULTS)}.")
        for name, value in specified.items():
            if name == "histogram_regular":
                _check_type(name, value, str, type(None))
                try:
                    re.compile(value or "")
                except re.error as error:
                    raise ValueError(f"For `collect_specified_data`, the value of `histogram_regular` is no regular expression: {error}.") from None
            elif name == "collect_landscape":
                check_options(value)
            else:
                _check_type(name, value, bool)

    def _check_lineage(self, custom):
        _check_type("custom_lineage_data", custom, dict, type(None))
        for key, value in (custom or {}).items():
            _check_type(f"custom_lineage_data -> {key}", key, str)
            _check_type(f"the value of custom_lineage_data -> {key}", value, int, str, float)

    def __enter__(self):
        from mindspore.train.summary.summary_record import SummaryRecord

        self._record = SummaryRecord(self._dir, max_file_size=self._most)
        return self

    def __exit__(self, *_):
        self._record.close()

    def begin(self, run_context):
        told = run_context.original_args()
        self._check_callbacks(told)
        if self._collect_specified_data["collect_dataset_graph"]:
            self._collect_dataset_graph(told)

    def _check_callbacks(self, told):
        several = told.get("list_callback") or ()
        if sum(isinstance(each, SummaryCollector) for each in getattr(several, "_callbacks", several)) > 1:
            raise ValueError("There are more than one SummaryCollector instance in callback list, but expected only one.")

    def end(self, run_context):
        told = run_context.original_args()
        if self._landscape is not None and told.get("mode") == "train":
            asked = [self._of_landscape[name] for name in ("unit", "num_samples", "landscape_size", "create_landscape")]
            self._landscape.save_metadata(told.batch_num, *asked)

    def epoch_end(self, run_context):
        self._keep_parameters(run_context.original_args(), "epoch")

    def _keep_parameters(self, told, unit):
        """What a landscape needs of this step or epoch."""
        asked, now = self._of_landscape, told.cur_epoch_num if unit == "epoch" else told.cur_step_num
        if asked and told.get("mode") == "train" and asked["unit"] == unit and any(now in each for each in asked["intervals"] or ()):
            self._landscape.save_loss_and_model_params(now, unit, told.network, number(step_loss(told.net_outputs)))

    def step_end(self, run_context):
        told = run_context.original_args()
        self._keep_parameters(told, "step")
        if told.cur_step_num % self._freq and told.cur_step_num != 1:
            return
        loss = self._get_loss(told) if self._collect_specified_data["collect_metric"] else None
        if loss is not None:
            self._record.add_value("scalar", "loss", loss)
        self._collect_input_data(told)
        self._collect_histogram(told)
        self._record.record(told.cur_step_num)

    def _collect_input_data(self, told):
        """The first column as images; where a row holds none, no more from then on."""
        if not self._collect_specified_data["collect_input_data"]:
            return
        element = told.get("train_dataset_element")
        first = element if isinstance(element, Tensor) else element[0] if element else None
        if not isinstance(first, (Tensor, np.ndarray)):
            self._collect_specified_data["collect_input_data"] = False
        elif first.ndim == 4 and first.shape[1] in (1, 3):
            self._record.add_value("image", "input_data", Tensor(first))

    def _collect_dataset_graph(self, told):
        """The nodes of the data pipeline."""
        told_as = "train_dataset" if told.get("mode", "train") == "train" else "valid_dataset"
        if hasattr(told.get(told_as), "children"):
            self._record.add_value("dataset_graph", told_as, _nodes(told[told_as]))

    def _get_loss(self, told):
        """The loss of a step as a Tensor; None, and no other from then on, where its outputs hold none."""
        if not self._is_parse_loss_success:
            return None
        loss = step_loss(told.net_outputs)
        if isinstance(loss, bool) or not isinstance(loss, (Tensor, np.ndarray, int, float)):
            logger.warning("The output type could not be identified, so no loss was recorded in SummaryCollector.")
            self._is_parse_loss_success = False
            return None
        return Tensor(number(loss))

    def _get_optimizer(self, told):
        """The optimizer of the training, or the first Cell of the network that is one; None where there is none."""
        if self._temp_optimizer is None:
            network = told.get("train_network") if told.get("mode") == "train" else told.get("eval_network")
            cells = [cell for _, cell in network.cells_and_names()] if network is not None else []
            self._temp_optimizer = told.get("optimizer") or next((each for each in cells if isinstance(each, Optimizer)), "Failed")
        return None if self._temp_optimizer == "Failed" else self._temp_optimizer

    def on_eval_step_end(self, run_context):
        """Steps of evaluations are not written."""

    def on_eval_end(self, run_context):
        told = run_context.original_args()
        for name, value in told.eval_results.items():
            if isinstance(value, float):
                self._record.add_value("scalar", f"eval/{name}", Tensor(value))
        self._record.record(told.cur_epoch_num)

    def _collect_histogram(self, told):
        """The optimizer's parameters that the pattern names, or the first five."""
        optimizer, pattern = self._get_optimizer(told), self._collect_specified_data["histogram_regular"]
        parameters = [] if optimizer is None or pattern is False else list(optimizer.parameters)
        for each in parameters[:5] if pattern is None else [each for each in parameters if re.match(pattern, each.name)]:
            self._record.add_value("histogram", f"{each.name}/auto", each)


def _nodes(dataset):
    """A pipeline as nested names."""
    return {"op_type": type(dataset).__name__, "children": [_nodes(each) for each in dataset.children]}


class SummaryStep(Callback):
    """Flushes a SummaryRecord each flush_step steps: the callback of 0.x."""

    def __init__(self, summary, flush_step=10):
        self._summary, self._flush_step = summary, check_int("flush_step", flush_step, 1, "SummaryStep")
        self.summary_file_name = summary.full_file_name

    def step_end(self, run_context):
        told = run_context.original_args()
        if told.cur_step_num % self._flush_step == 0:
            self._summary.add_value("scalar", "loss", Tensor(number(step_loss(told.net_outputs))))
            self._summary.record(told.cur_step_num)

"""SummaryCollector: losses, parameters and inputs of a training as event files."""

from mindspore.train._utils import check_int, check_value_type, number, step_loss
from mindspore.train.callback._callback import Callback

__all__ = ["SummaryCollector", "SummaryStep"]

_DEFAULTS = {"collect_metric": True, "collect_graph": True, "collect_train_lineage": True, "collect_eval_lineage": True,
             "collect_input_data": True, "collect_dataset_graph": True, "histogram_regular": None, "collect_landscape": None}  # fmt: skip


class SummaryCollector(Callback):
    """Writes each collect_freq steps the loss, the input images, and histograms of the first parameters, or of those that the pattern
    histogram_regular names; and the measures of evaluations."""

    def __init__(self, summary_dir, collect_freq=10, collect_specified_data=None, keep_default_action=True, custom_lineage_data=None,
                 collect_tensor_freq=None, max_file_size=None, export_options=None, num_process=32):
        check_value_type("summary_dir", summary_dir, str, "SummaryCollector")
        check_int("collect_freq", collect_freq, 1, "SummaryCollector")
        check_value_type("keep_default_action", keep_default_action, bool, "SummaryCollector")
        specified = collect_specified_data
        if specified is not None:
            check_value_type("collect_specified_data", specified, dict, "SummaryCollector")
            unknown = [name for name in specified if name not in _DEFAULTS]
            if unknown:
                raise ValueError(f"For 'SummaryCollector', the keys {unknown} of 'collect_specified_data' are not in {sorted(_DEFAULTS)}.")
        defaults = _DEFAULTS if keep_default_action else dict.fromkeys(_DEFAULTS)
        self._chosen = {**defaults, **(specified or {})}
        self._dir, self._freq, self._most, self._record = summary_dir, collect_freq, max_file_size, None

    def __enter__(self):
        from mindspore.train.summary.summary_record import SummaryRecord

        self._record = SummaryRecord(self._dir, max_file_size=self._most)
        return self

    def __exit__(self, *_):
        self._record.close()

    def step_end(self, run_context):
        told = run_context.original_args()
        if told.cur_step_num % self._freq and told.cur_step_num != 1:
            return
        if self._chosen["collect_metric"]:
            self._record.add_value("scalar", "loss", number(step_loss(told.net_outputs)))
        element = told.get("train_dataset_element")
        if self._chosen["collect_input_data"] and element and getattr(element[0], "ndim", 0) == 4 and element[0].shape[1] in (1, 3):
            self._record.add_value("image", "input_data", element[0])
        for parameter in self._parameters(told):
            self._record.add_value("histogram", f"{parameter.name}/auto", parameter)
        self._record.record(told.cur_step_num)

    def on_eval_step_end(self, run_context):
        """Steps of evaluations are not written."""

    def on_eval_end(self, run_context):
        told = run_context.original_args()
        for name, value in told.eval_results.items():
            if isinstance(value, float):
                self._record.add_value("scalar", f"eval/{name}", value)
        self._record.record(told.cur_epoch_num)

    def _parameters(self, told):
        import re

        pattern = self._chosen["histogram_regular"]
        trainable = told.network.trainable_params()
        if pattern is None:
            return trainable[:5] if self._chosen["collect_metric"] else []
        return [each for each in trainable if re.match(pattern, each.name)]


class SummaryStep(Callback):
    """Flushes a SummaryRecord each flush_step steps: the callback of 0.x."""

    def __init__(self, summary, flush_step=10):
        self._summary, self._flush_step = summary, check_int("flush_step", flush_step, 1, "SummaryStep")
        self.summary_file_name = summary.full_file_name

    def step_end(self, run_context):
        told = run_context.original_args()
        if told.cur_step_num % self._flush_step == 0:
            self._summary.add_value("scalar", "loss", number(step_loss(told.net_outputs)))
            self._summary.record(told.cur_step_num)

"""Model: trains, evaluates and predicts with a network, a loss, an optimizer and metrics."""

import os

from cairn.ms import level, ranks

from mindspore import context, nn
from mindspore import log as logger
from mindspore.common.seed import get_seed
from mindspore.common.tensor import Tensor
from mindspore.context import ParallelMode
from mindspore.dataset.engine.datasets import Dataset, warn_epochs
from mindspore.parallel import _utils as parallel
from mindspore.train import amp
from mindspore.train._utils import check_int, check_value_type
from mindspore.train.callback import RunContext, _CallbackManager, _InternalCallbackParam
from mindspore.train.dataset_helper import DatasetHelper

__all__ = ["Model", "ParallelMode"]


class Model:
    """A network with what training and evaluation need.

    With a loss_fn rows have two columns, of which the second goes to the loss; without one the network takes all columns and its result is
    the loss. Without an optimizer the network is called as it is.
    """

    def __init__(self, network, loss_fn=None, optimizer=None, metrics=None, eval_network=None, eval_indexes=None, amp_level="O0",
                 boost_level="O0", **kwargs):
        self._network, self._loss_fn, self._optimizer = network, loss_fn, optimizer
        self._loss_scale_manager, self._loss_scale_manager_set = kwargs.get("loss_scale_manager"), "loss_scale_manager" in kwargs
        self._keep_bn_fp32 = kwargs.get("keep_batchnorm_fp32")
        self._check_kwargs(kwargs)
        if amp_level not in amp.LEVELS:
            raise ValueError(f"The argument 'amp_level' must be one of {list(amp.LEVELS)}, but got {amp_level}.")
        if boost_level not in ("O0", "O1", "O2"):
            raise ValueError(f"The argument 'boost_level' must be one of ['O0', 'O1', 'O2'], but got {boost_level}.")
        self._amp_level, self._boost_level = amp_level, boost_level
        self._parallel_mode = context.get_auto_parallel_context("parallel_mode")
        self._device_number, self._global_rank = parallel._get_device_num(), parallel._get_global_rank()
        self._parameter_broadcast = parallel._get_parameter_broadcast()
        self._eval_network = eval_network
        self._train_network = self._build_train_network()
        self._build_eval_network(metrics, eval_network, eval_indexes)
        self._build_predict_network()
        self._current_epoch_num = self._current_step_num = 0

    @staticmethod
    def _check_kwargs(kwargs):
        for name in kwargs:
            if name not in ("loss_scale_manager", "keep_batchnorm_fp32", "boost_config_dict"):
                raise ValueError(f"The argument '{name}' in '**kwargs' should be one of 'loss_scale_manager', "
                                 "'keep_batchnorm_fp32', 'boost_config_dict'.")
        amp._check_kwargs({name: value for name, value in kwargs.items() if name != "boost_config_dict"})

    def _build_train_network(self):
        if not isinstance(self._network, nn.Cell):
            raise TypeError(f"The argument 'network' must be Cell, but got {type(self._network)}.")
        if self._loss_scale_manager is not None and self._optimizer is None:
            raise ValueError("The argument 'optimizer' can not be None when set 'loss_scale_manager'.")
        loss_fn = _plain_loss(self._loss_fn)
        if self._optimizer is not None:
            told = {"loss_scale_manager": self._loss_scale_manager} if self._loss_scale_manager_set else {}
            if self._keep_bn_fp32 is not None:
                told["keep_batchnorm_fp32"] = self._keep_bn_fp32
            return amp.build_train_network(self._network, self._optimizer, loss_fn, self._amp_level, self._boost_level, **told)
        return nn.WithLossCell(self._network, loss_fn) if loss_fn is not None else self._network

    def _build_eval_network(self, metrics, eval_network, eval_indexes):
        self._metric_fns = nn.get_metrics(metrics)
        if not self._metric_fns:
            return
        if eval_network is not None:
            if eval_indexes is not None and not (isinstance(eval_indexes, list) and len(eval_indexes) == 3):
                raise ValueError("The argument 'eval_indexes' must be a list or None. If 'eval_indexes' is a list, length of "
                                 "it must be three. "
                                 f"But got 'eval_indexes' {eval_indexes}")
            self._eval_network, self._eval_indexes = eval_network, eval_indexes
        else:
            if self._loss_fn is None:
                raise ValueError("If the argument 'metrics' is given, 'loss_fn' must not be None, or 'eval_network' must be given.")
            self._eval_network, self._eval_indexes = nn.WithEvalCell(self._network, _plain_loss(self._loss_fn)), [0, 1, 2]

    def _build_predict_network(self):
        self._predict_network = self._network

    train_network = property(lambda self: self._train_network, doc="The cell of a training step.")
    predict_network = property(lambda self: self._predict_network, doc="The network that predict runs.")
    eval_network = property(lambda self: self._eval_network, doc="The network that eval runs.")

    # Training.

    def train(self, epoch, train_dataset, callbacks=None, dataset_sink_mode=True, sink_size=-1, initial_epoch=0):
        """Trains for `epoch` epochs."""
        self._train_all(epoch, train_dataset, callbacks, dataset_sink_mode, sink_size, initial_epoch, None)

    def fit(self, epoch, train_dataset, valid_dataset=None, valid_frequency=1, callbacks=None, dataset_sink_mode=True,
            valid_dataset_sink_mode=True, sink_size=-1, initial_epoch=0):
        """Trains, and evaluates after each valid_frequency epochs, or after the epochs of a list."""
        if valid_dataset is not None and not self._metric_fns:
            raise ValueError("For Model.fit, the model argument 'metrics' cannot be None or empty, you should set the argument "
                             "'metrics' for model.")
        check_value_type("valid_dataset_sink_mode", valid_dataset_sink_mode, bool, "Model.fit")
        valid = None
        if valid_dataset is not None:
            if isinstance(valid_frequency, int):
                check_int("valid_frequency", valid_frequency, 1, "Model.fit")
            elif not isinstance(valid_frequency, (list, tuple, set)):
                raise TypeError("For Model.fit, the type of 'valid_frequency' must be int, list, tuple or set, but got "
                                f"{type(valid_frequency)}.")
            valid = (valid_dataset, valid_frequency)
        self._train_all(epoch, train_dataset, callbacks, dataset_sink_mode, sink_size, initial_epoch, valid)

    def _train_all(self, epoch, train_dataset, callbacks, dataset_sink_mode, sink_size, initial_epoch, valid):
        check_int("epoch", epoch, 1, "Model.train")
        check_int("initial_epoch", initial_epoch, 0, "Model.train")
        if initial_epoch >= epoch:
            raise ValueError("For 'Model.train', the argument 'epoch' must be greater than the 'initial_epoch', but got the "
                             f"epoch {epoch}, the initial epoch {initial_epoch}.")
        check_value_type("dataset_sink_mode", dataset_sink_mode, bool, "Model.train")
        check_value_type("sink_size", sink_size, int, "Model.train")
        if sink_size != -1 and sink_size <= 0:
            raise ValueError(f"For 'Model.train', The argument 'sink_size' must be -1 or positive, but got {sink_size}.")
        self._check_dataset(train_dataset)
        helper = DatasetHelper(train_dataset, self._sinks(dataset_sink_mode), sink_size, epoch, first_epoch=initial_epoch)
        if isinstance(train_dataset, Dataset):
            warn_epochs(epoch, train_dataset)
        told = _InternalCallbackParam()
        told.update(train_network=self._train_network, network=self._network, loss_fn=self._loss_fn, optimizer=self._optimizer,
                    parallel_mode=self._parallel_mode, device_number=self._device_number, train_dataset=train_dataset,
                    epoch_num=epoch, batch_num=helper.steps(), mode="train", cur_epoch_num=initial_epoch,
                    cur_step_num=initial_epoch * helper.steps(), dataset_sink_mode=helper.sinks, list_callback=callbacks,
                    net_outputs=None, train_dataset_element=None, eval_results={}, metrics=self._metric_fns)  # fmt: skip
        run_context = RunContext(told)
        self._share_parameters()
        self._train_network.set_train()
        if self._optimizer is None:
            logger.warning("The model has no optimizer: training calls the network and changes nothing by itself.")
        with _CallbackManager(callbacks) as manager:
            told["list_callback"] = manager
            try:
                self._train_loop(told, run_context, manager, helper, epoch, valid)
            except BaseException:
                _save_after_exception(manager, told)
                raise
            finally:
                helper.release()

    def _share_parameters(self):
        """In data parallel all ranks begin with the parameters of rank 0, where parameter_broadcast says so."""
        if not ranks.several() or not parallel._reduces_gradients():
            return
        if self._parameter_broadcast:
            self._train_network.set_broadcast_flag()
        elif get_seed() is None:
            logger.warning("The ranks may begin with different parameters: use set_auto_parallel_context(parameter_broadcast=True) or "
                           "mindspore.set_seed() to share them.")

    def _train_loop(self, told, run_context, manager, helper, epoch, valid):
        begun = told.cur_epoch_num
        manager.on_train_begin(run_context)
        if told.cur_epoch_num != begun:  # a callback knows of epochs that are done
            helper.begin_at(told.cur_epoch_num)
        for number in range(told.cur_epoch_num, epoch):
            told.cur_epoch_num = number + 1
            self._current_epoch_num = number + 1
            manager.on_train_epoch_begin(run_context)
            for unit in helper.units():
                manager.on_train_step_begin(run_context)
                for row in unit:
                    told.train_dataset_element = row
                    self._check_row(row)
                    told.net_outputs = self._run_step(row, told.cur_step_num)
                    told.cur_step_num += 1
                    self._update_scale(told.net_outputs)
                self._current_step_num = (told.cur_step_num - 1) % told.batch_num + 1
                manager.on_train_step_end(run_context)
                if run_context.get_stop_requested():
                    break
            if valid is not None and self._valid_now(valid[1], number + 1):
                told.eval_results = self._evaluate(valid[0], manager, told)
                self._train_network.set_train()
            manager.on_train_epoch_end(run_context)
            told.eval_results = {}
            if run_context.get_stop_requested():
                break
        manager.on_train_end(run_context)

    def _run_step(self, row, number):
        """The results of a training step; the first one has number 0."""
        return self._train_network(*row)

    def _update_scale(self, outputs):
        """Where no cell holds the scale, the manager is told of overflow."""
        manager = self._loss_scale_manager
        if manager is not None and manager.get_drop_overflow_update() and isinstance(outputs, tuple) and len(outputs) > 1:
            overflow = outputs[1]
            manager.update_loss_scale(bool(overflow.asnumpy()) if isinstance(overflow, Tensor) else bool(overflow))

    @staticmethod
    def _valid_now(frequency, epoch):
        return epoch % frequency == 0 if isinstance(frequency, int) else epoch in frequency

    def _sinks(self, asked):
        """Whether the loop runs in the backend: not on CPU, which 0.5 refuses."""
        if asked and context.get_context("device_target") == "CPU":
            if not level.at_least("1.1"):
                raise RuntimeError("CPU does not support dataset_sink_mode=True.")
            (logger.info if level.at_least("1.10") else logger.warning)("The CPU cannot support dataset sink mode currently. "
                                                                        "So the training process will be performed with dataset not sink.")
            return False
        return asked

    def _check_dataset(self, dataset):
        if not isinstance(dataset, Dataset) and not hasattr(dataset, "create_tuple_iterator"):
            raise TypeError(f"The argument 'train_dataset' must be a dataset, but got {type(dataset)}.")
        owner = getattr(dataset, "_model", None)
        if owner is not None and owner is not self and getattr(dataset, "_sunk", False):
            raise RuntimeError("The dataset object had been used in other model by model.train(...), please create a new dataset.")
        dataset._model = self
        if dataset.get_dataset_size() == 0:
            raise ValueError("There is no valid data in dataset, please check dataset file firstly.")

    def _check_row(self, row):
        if self._loss_fn is not None and len(row) != 2:
            raise ValueError("When 'loss_fn' is not None, 'train_dataset' should return two elements, but got {}, please check "
                             "the number of elements "
                             "returned by 'train_dataset'".format(len(row)))

    # Evaluation and prediction.

    def eval(self, valid_dataset, callbacks=None, dataset_sink_mode=True):
        """{metric: value} of a dataset."""
        check_value_type("dataset_sink_mode", dataset_sink_mode, bool, "Model.eval")
        if not self._metric_fns:
            raise ValueError("For Model.eval, the model argument 'metrics' cannot be None or empty, you should set the "
                             "argument 'metrics' for model.")
        if isinstance(self._eval_network, nn.GraphCell) and dataset_sink_mode:
            raise ValueError("Sink mode is currently not supported when evaluating with a GraphCell.")
        self._sinks(dataset_sink_mode)
        with _CallbackManager(callbacks) as manager:
            return self._evaluate(valid_dataset, manager, None)

    def _evaluate(self, dataset, manager, training):
        told = _InternalCallbackParam()
        if dataset.get_dataset_size() == 0:
            raise ValueError("There is no valid data in dataset, please check dataset file firstly.")
        told.update(network=self._network, eval_network=self._eval_network, valid_dataset=dataset, batch_num=dataset.get_dataset_size(),
                    mode="eval", cur_step_num=0, cur_epoch_num=training.cur_epoch_num if training else 0, list_callback=manager,
                    device_number=self._device_number, parallel_mode=self._parallel_mode, dataset_sink_mode=False, net_outputs=None,
                    metrics=self._metric_fns, eval_results={}, epoch_num=1, optimizer=self._optimizer, loss_fn=self._loss_fn,
                    train_network=self._train_network)  # fmt: skip
        run_context = RunContext(told)
        for metric in self._metric_fns.values():
            metric.clear()
        self._eval_network.set_train(False)
        manager.on_eval_begin(run_context)
        manager.on_eval_epoch_begin(run_context)
        for unit in DatasetHelper(dataset, False).units():
            for row in unit:
                told.cur_step_num += 1
                manager.on_eval_step_begin(run_context)
                told.net_outputs = self._eval_network(*row)
                manager.on_eval_step_end(run_context)
                self._update_metrics(told.net_outputs)
            if run_context.get_stop_requested():
                break
        measured = {name: metric.eval() for name, metric in self._metric_fns.items()}
        told.eval_results = measured
        manager.on_eval_epoch_end(run_context)
        manager.on_eval_end(run_context)
        return measured

    def _update_metrics(self, outputs):
        if isinstance(outputs, Tensor):
            outputs = (outputs,)
        if not isinstance(outputs, tuple):
            raise ValueError(f"The argument 'outputs' should be tuple, but got {type(outputs)}.")
        if self._eval_indexes is not None and len(outputs) < 3:
            raise ValueError("The length of 'outputs' must be >= 3, but got {}".format(len(outputs)))
        for metric in self._metric_fns.values():
            if self._eval_indexes is None:
                metric.update(*outputs)
            elif isinstance(metric, nn.Loss):
                metric.update(outputs[self._eval_indexes[0]])
            else:
                metric.update(outputs[self._eval_indexes[1]], outputs[self._eval_indexes[2]])

    def predict(self, *predict_data):
        """The network's result."""
        self._predict_network.set_train(False)
        for each in predict_data:
            if not isinstance(each, (Tensor, int, float, bool, tuple, list, type(None))):
                raise TypeError(f"For 'Model.predict', the argument 'predict_data' must be Tensors, but got {type(each)}.")
        return self._predict_network(*predict_data)

    def infer_predict_layout(self, *predict_data):
        """Layouts of parameters, of which each is whole on each rank."""
        return {}

    def infer_train_layout(self, train_dataset, dataset_sink_mode=True, sink_size=-1):
        """Layouts of parameters, of which each is whole on each rank."""
        return {}

    def build(self, train_dataset=None, valid_dataset=None, sink_size=-1, epoch=1):
        """Checks what train and eval would be given. Networks compile with their first row."""
        if train_dataset is None and valid_dataset is None:
            raise ValueError("'Model.build' interface needs at least one of 'train_dataset' and 'valid_dataset'.")
        for dataset in (train_dataset, valid_dataset):
            if dataset is not None and dataset.get_dataset_size() == 0:
                raise ValueError("There is no valid data in dataset, please check dataset file firstly.")
        if valid_dataset is not None and not self._metric_fns:
            raise RuntimeError("If define `valid_dataset`, metric fn can not be None or empty, you should set the argument "
                               "'metrics' for model.")

    def init(self, train_dataset=None, valid_dataset=None):
        """The name of build in 0.5."""
        self.build(train_dataset, valid_dataset)


def _plain_loss(loss_fn):
    """In 0.5 SoftmaxCrossEntropyWithLogits has is_grad=True by default, with which it gives the gradient on CPU and GPU; inside a Model
    the loss is meant."""
    if not level.at_least("1.1") and getattr(loss_fn, "is_grad", False):
        logger.warning("SoftmaxCrossEntropyWithLogits has is_grad=True; inside a Model it gives the loss.")
        loss_fn.is_grad = False
    return loss_fn


def _save_after_exception(manager, told):
    """The file that CheckpointConfig(exception_save=True) asks for."""
    from mindspore.train.callback import ModelCheckpoint

    for each in manager._callbacks:
        if isinstance(each, ModelCheckpoint) and each._config._exception_save and told.cur_step_num:
            step = (told.cur_step_num - 1) % told.batch_num + 1
            path = os.path.join(each._directory, f"{each._prefix}-{told.cur_epoch_num}_{step}_breakpoint.ckpt")
            each.write(told, path)

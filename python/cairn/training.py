"""Training of a model's weights: what `cairn train` does, from Python."""

import json
import math
import os

from cairn import _cairn, job


class Trainer:
    """A model whose weights are trained, step by step or over epochs.

        trainer = cairn.Trainer("net.onnx", loss="cross_entropy", optimizer="sgd", momentum=0.9)
        history = trainer.fit({"x": images}, labels, epochs=5, learning_rate=0.1, validation=(test_images, test_labels))
        trainer.save("trained.onnx")

    source: as for load(). loss, optimizer: names, docs/reference/losses.md and optimizers.md; further keywords are the
    optimizer's numbers. train, freeze: patterns of weights' names. options: as for convert().

    In a job of several ranks (cairn.job.join() before), each has a trainer: step() takes the rank's own part of a batch, fit() all
    examples, of whose batches it takes the rank's part; the weights stay equal, and rank 0 writes what save() is called for.
    """

    def __init__(self, source, loss="cross_entropy", optimizer="sgd", *, loss_numbers=None, class_axis=None, classes=True,
                 weight_decay=0, clip_norm=0, norm_momentum=0.9, train=(), freeze=(), seed=0, threads=0, engines=None,
                 options=None, **numbers):
        chosen = {"loss": loss, "loss_numbers": loss_numbers or {}, "class_axis": class_axis, "classes": classes,
                  "optimizer": optimizer, "numbers": {key: float(value) for key, value in numbers.items()},
                  "weight_decay": weight_decay, "clip_norm": clip_norm, "norm_momentum": norm_momentum,
                  "train": list(train), "freeze": list(freeze), "seed": seed}
        from cairn import _options

        self._trainer = _cairn._Trainer(os.fspath(source), _options(**(options or {})), json.dumps(chosen), threads,
                                        ",".join(engines or ()))

    @property
    def inputs(self):
        """What a batch is: the model's inputs, then the labels."""
        return self._trainer.inputs

    def step(self, inputs, labels, learning_rate):
        """One step on a batch. Returns {"loss", "accuracy"}, of before the step."""
        return _measures(self._trainer.step(self._arrays(inputs, labels), learning_rate))

    def evaluate(self, inputs, labels):
        """The same measures without a step, of all examples as one batch."""
        return _measures(self._trainer.evaluate(self._arrays(inputs, labels)))

    def fit(self, inputs, labels, *, validation=None, watch=None, **options):
        """Epochs over examples; returns a list with a dict for each.

        inputs: {name: array}, or one array. validation: (inputs, labels). watch: called with each epoch's dict; False ends the
        training. options: epochs, batch, learning_rate, schedule (constant, step, cosine, linear), warmup, least_rate, gamma,
        step_epochs, shuffle, keep_rest, seed.
        """
        history = []

        def ends(text):
            history.append(json.loads(text))
            return watch(history[-1]) if watch else True

        held = self._arrays(*validation) if validation else None
        self._trainer.fit(self._arrays(inputs, labels), held, json.dumps(options), ends)
        return history

    def state(self):
        """{name: array}: the number of steps made, weights, statistics of batch norms, slots of the optimizer."""
        return self._trainer.state()

    def restore(self, state):
        """Goes on from what state() gave."""
        self._trainer.restore(dict(state))

    def save(self, path):
        """Writes the trained model: an .om file, or the ONNX file that was opened, with its new weights. Of a job rank 0 writes."""
        if job.group().rank == 0:
            self._trainer.save(os.fspath(path))

    def _arrays(self, inputs, labels):
        *names, _ = [port.name for port in self.inputs]
        if not isinstance(inputs, dict):
            inputs = {names[0]: inputs} if len(names) == 1 else dict(zip(names, inputs))
        for name in inputs:
            if name not in names:
                raise _cairn.Error(f"{name}: is no input of the model; it takes {', '.join(names)}")
        missing = [name for name in names if name not in inputs]
        if missing:
            raise _cairn.Error(f"{missing[0]}: is not given; the model takes {', '.join(names)}")
        return [inputs[name] for name in names] + [labels]


def _measures(pair):
    loss, accuracy = pair
    return {"loss": loss} if math.isnan(accuracy) else {"loss": loss, "accuracy": accuracy}


def train(source, inputs, labels, output=None, *, validation=None, watch=None, epochs=1, batch=32, learning_rate=None,
          schedule="constant", seed=0, **options):
    """Trains a model and writes it to `output` (.om, or .onnx of an ONNX file). Returns the list of epochs.

    options: as for Trainer and its fit().
    """
    fit = {"epochs": epochs, "batch": batch, "schedule": schedule, "seed": seed}
    if learning_rate is not None:
        fit["learning_rate"] = learning_rate
    for key in ("warmup", "least_rate", "gamma", "step_epochs", "shuffle", "keep_rest"):
        if key in options:
            fit[key] = options.pop(key)
    trainer = Trainer(source, seed=seed, **options)
    history = trainer.fit(inputs, labels, validation=validation, watch=watch, **fit)
    if output:
        trainer.save(output)
    return history

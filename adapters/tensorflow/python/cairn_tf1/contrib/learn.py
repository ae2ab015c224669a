"""tf.contrib.learn: what is left of it in scripts: vocabularies, data sets on disk, experiments."""

import collections
import re
import types

import numpy as np
import tensorflow.compat.v1 as tf

from cairn_tf1 import moved
from cairn_tf1.examples.tutorials.mnist import input_data as _mnist

ModeKeys = tf.estimator.ModeKeys
RunConfig = tf.estimator.RunConfig
Dataset = collections.namedtuple("Dataset", ["data", "target"])
Datasets = collections.namedtuple("Datasets", ["train", "validation", "test"])
_WORDS = re.compile(r"[A-Z]{2,}(?![a-z])|[A-Z][a-z]+(?=[A-Z])|[\'\w\-]+", re.UNICODE)


class CategoricalVocabulary:
    """Numbers for words; 0 is the unknown word. New words are taken until it is frozen."""

    def __init__(self, unknown_token="<UNK>", support_reverse=True):
        self._unknown, self._reverse_support = unknown_token, support_reverse
        self._mapping = {unknown_token: 0}
        self._reverse = [unknown_token]
        self._counts = collections.Counter()
        self._frozen = False

    def __len__(self):
        return len(self._mapping)

    def freeze(self, freeze=True):
        self._frozen = freeze

    def get(self, category):
        if category not in self._mapping:
            if self._frozen:
                return 0
            self._mapping[category] = len(self._mapping)
            self._reverse.append(category)
        return self._mapping[category]

    def add(self, category, count=1):
        if self.get(category) > 0:
            self._counts[category] += count

    def trim(self, min_frequency, max_frequency=-1):
        """Keeps words with more than `min_frequency` (and fewer than `max_frequency`) occurrences, the most frequent first."""
        ordered = sorted(sorted(self._counts.items(), key=lambda item: item[0]), key=lambda item: item[1], reverse=True)
        kept = [word for word, count in ordered if count > min_frequency and (max_frequency <= 0 or count < max_frequency)]
        self._counts = collections.Counter({word: self._counts[word] for word in kept})
        self._reverse = [self._unknown, *kept]
        self._mapping = {word: index for index, word in enumerate(self._reverse)}

    def reverse(self, class_id):
        if not self._reverse_support:
            raise ValueError("This vocabulary wasn't initialized with support_reverse to support reverse() function.")
        return self._reverse[class_id]


def _tokenizer(iterator):
    for value in iterator:
        yield _WORDS.findall(value)


class VocabularyProcessor:
    """Texts as rows of `max_document_length` word numbers, cut or filled with 0."""

    def __init__(self, max_document_length, min_frequency=0, vocabulary=None, tokenizer_fn=None):
        self.max_document_length, self.min_frequency = max_document_length, min_frequency
        self.vocabulary_ = vocabulary or CategoricalVocabulary()
        self._tokenizer = tokenizer_fn or _tokenizer

    def fit(self, raw_documents, unused_y=None):
        for tokens in self._tokenizer(raw_documents):
            for token in tokens:
                self.vocabulary_.add(token)
        if self.min_frequency > 0:
            self.vocabulary_.trim(self.min_frequency)
        self.vocabulary_.freeze()
        return self

    def fit_transform(self, raw_documents, unused_y=None):
        self.fit(raw_documents)
        return self.transform(raw_documents)

    def transform(self, raw_documents):
        for tokens in self._tokenizer(raw_documents):
            row = np.zeros(self.max_document_length, np.int64)
            for index, token in enumerate(tokens[: self.max_document_length]):
                row[index] = self.vocabulary_.get(token)
            yield row

    def reverse(self, documents):
        for row in documents:
            yield " ".join(self.vocabulary_.reverse(number) for number in row)

    def save(self, filename):
        import pickle

        with open(filename, "wb") as file:
            pickle.dump(self, file)

    @classmethod
    def restore(cls, filename):
        import pickle

        with open(filename, "rb") as file:
            return pickle.load(file)


class Experiment:
    """An estimator with its inputs; training and evaluation in turn."""

    def __init__(self, estimator, train_input_fn, eval_input_fn, eval_metrics=None, train_steps=None, eval_steps=100,
                 train_monitors=None, eval_hooks=None, eval_delay_secs=120, min_eval_frequency=None, **kwargs):  # fmt: skip
        if eval_metrics:
            raise NotImplementedError("tf.contrib.learn.Experiment: eval_metrics is not supported; give them in the model_fn")
        self.estimator, self._train_input, self._eval_input = estimator, train_input_fn, eval_input_fn
        self._steps, self._eval_steps = train_steps, eval_steps
        self._hooks, self._eval_hooks = list(train_monitors or []), list(eval_hooks or [])

    def train(self, delay_secs=None):
        return self.estimator.train(self._train_input, hooks=self._hooks, max_steps=self._steps)

    def evaluate(self, delay_secs=None, name=None):
        return self.estimator.evaluate(self._eval_input, self._eval_steps, self._eval_hooks, name=name)

    def train_and_evaluate(self):
        return tf.estimator.train_and_evaluate(
            self.estimator,
            tf.estimator.TrainSpec(self._train_input, self._steps, self._hooks),
            tf.estimator.EvalSpec(self._eval_input, self._eval_steps, hooks=self._eval_hooks, start_delay_secs=0),
        )


def _run(experiment_fn, output_dir=None, schedule=None, run_config=None, hparams=None):
    experiment = experiment_fn(output_dir) if run_config is None else experiment_fn(run_config, hparams)
    return getattr(experiment, schedule or "train_and_evaluate")()


_NAME = "tensorflow.contrib.learn"
_base = types.SimpleNamespace(Dataset=Dataset, Datasets=Datasets, maybe_download=_mnist.maybe_download)
preprocessing = moved.module_of(
    f"{_NAME}.preprocessing", {"VocabularyProcessor": VocabularyProcessor, "CategoricalVocabulary": CategoricalVocabulary}
)
learn_runner = moved.module_of(f"{_NAME}.learn_runner", {"run": _run})
datasets = moved.module_of(f"{_NAME}.datasets", {"__path__": [], "base": _base, "mnist": _mnist})
for _place in ("datasets", "python.learn.datasets"):
    moved.module_of(f"{_NAME}.{_place}.mnist", vars(_mnist))
    moved.module_of(f"{_NAME}.{_place}.base", vars(_base))
python = types.SimpleNamespace(learn=types.SimpleNamespace(datasets=datasets, learn_runner=learn_runner))

"""Sentiment of sentences by an LSTM, as model_zoo of MindSpore 1.1 writes it: an embedding table, nn.LSTM, Adam, metrics.

    cairn ms --level 1.1 lstm_sentiment.py

The sentences are made: words that please, words that do not, "not" before a word turns it round, and words without a meaning.
"""

import argparse

import mindspore.dataset as ds
import mindspore.nn as nn
import numpy as np
from mindspore import Model, Tensor, context
from mindspore.common import set_seed
from mindspore.nn import Accuracy, Recall
from mindspore.ops import operations as P
from mindspore.train.callback import LossMonitor

WORDS, LENGTH = 60, 12  # word 0 fills up, 1 is "not", 2 to 11 please, 12 to 21 do not, all others mean nothing


def sentences(count, seed):
    rng = np.random.RandomState(seed)
    rows, labels = rng.randint(22, WORDS, (count, LENGTH)), np.zeros(count, np.int32)
    for row, _ in zip(rows, labels):
        row[LENGTH - rng.randint(0, 4) :] = 0
    for number, row in enumerate(rows):
        good = rng.randint(2)
        negated = rng.rand() < 0.3
        places = rng.choice(np.arange(0, LENGTH - 5, 2), 2, replace=False)
        for place in places:
            row[place + 1] = rng.randint(2, 12) + 10 * (good == negated)
            if negated:
                row[place] = 1
        labels[number] = good
    return rows.astype(np.int32), labels


def create_dataset(count, seed, batch_size=32):
    data = ds.NumpySlicesDataset(sentences(count, seed), ["feature", "label"], shuffle=True)
    return data.batch(batch_size, drop_remainder=True)


class SentimentNet(nn.Cell):
    def __init__(self, vocab_size, embed_size, num_hiddens, num_layers, bidirectional, num_classes, weight, batch_size):
        super(SentimentNet, self).__init__()
        self.embedding = nn.Embedding(vocab_size, embed_size, embedding_table=weight)
        self.embedding.embedding_table.requires_grad = True
        self.trans = P.Transpose()
        self.perm = (1, 0, 2)
        self.encoder = nn.LSTM(input_size=embed_size, hidden_size=num_hiddens, num_layers=num_layers, has_bias=True,
                               bidirectional=bidirectional, dropout=0.0)
        directions = 2 if bidirectional else 1
        self.h = Tensor(np.zeros((num_layers * directions, batch_size, num_hiddens)).astype(np.float32))
        self.c = Tensor(np.zeros((num_layers * directions, batch_size, num_hiddens)).astype(np.float32))
        self.concat = P.Concat(1)
        self.decoder = nn.Dense(num_hiddens * 2 * directions, num_classes)

    def construct(self, inputs):
        embeddings = self.embedding(inputs)
        embeddings = self.trans(embeddings, self.perm)
        output, _ = self.encoder(embeddings, (self.h, self.c))
        encoding = self.concat((output[0], output[-1]))
        return self.decoder(encoding)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="MindSpore LSTM Example")
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--mode", type=str, default="graph", choices=["graph", "pynative"])
    args = parser.parse_args()
    set_seed(1)
    context.set_context(mode=context.GRAPH_MODE if args.mode == "graph" else context.PYNATIVE_MODE, device_target="CPU")
    table = Tensor(np.random.normal(0, 0.5, (WORDS, 16)).astype(np.float32))
    network = SentimentNet(WORDS, 16, 24, 1, True, 2, table, 32)
    loss = nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean")
    opt = nn.Adam(network.trainable_params(), learning_rate=0.01)
    model = Model(network, loss, opt, {"acc": Accuracy(), "recall": Recall()})
    print("============== Starting Training ==============")
    model.train(args.epochs, create_dataset(1024, 1), callbacks=[LossMonitor(32)], dataset_sink_mode=False)
    print("============== {} ==============".format(model.eval(create_dataset(256, 2), dataset_sink_mode=False)))

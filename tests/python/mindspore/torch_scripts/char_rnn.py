"""A recurrent network by characters, its loss summed over a word."""
import numpy as np
import torch
import torch.nn as nn

text = "the quick brown fox jumps over the lazy dog. " * 4
chars = sorted(set(text))
stoi = {c: i for i, c in enumerate(chars)}
encoded = torch.tensor([stoi[c] for c in text], dtype=torch.long)


class CharRNN(nn.Module):
    def __init__(self, vocab, hidden=24):
        super(CharRNN, self).__init__()
        self.hidden = hidden
        self.i2h = nn.Linear(vocab + hidden, hidden)
        self.i2o = nn.Linear(vocab + hidden, vocab)
        self.softmax = nn.LogSoftmax(dim=1)

    def forward(self, input, hidden):
        combined = torch.cat((input, hidden), 1)
        hidden = torch.tanh(self.i2h(combined))
        output = self.i2o(combined)
        output = self.softmax(output)
        return output, hidden

    def initHidden(self):
        return torch.zeros(1, self.hidden)


def one_hot(i):
    t = torch.zeros(1, len(chars))
    t[0][i] = 1
    return t


rnn = CharRNN(len(chars))
criterion = nn.NLLLoss()
optimizer = torch.optim.RMSprop(rnn.parameters(), lr=0.005)
for start in range(0, 60, 12):
    hidden = rnn.initHidden()
    rnn.zero_grad()
    loss = 0
    for k in range(start, start + 12):
        output, hidden = rnn(one_hot(encoded[k]), hidden)
        loss += criterion(output, encoded[k + 1].unsqueeze(0))
    loss.backward()
    optimizer.step()
    print(start, loss.item() / 12)

with torch.no_grad():
    hidden = rnn.initHidden()
    out = "t"
    for _ in range(10):
        output, hidden = rnn(one_hot(stoi[out[-1]]), hidden)
        top_v, top_i = output.topk(1)
        out += chars[top_i[0][0].item()]
    print(out)

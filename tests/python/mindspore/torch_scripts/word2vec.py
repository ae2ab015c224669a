"""Words from their context."""
import collections
import numpy as np
import torch
import torch.nn as nn
import torch.optim as optim

sentence = "we are what we repeatedly do excellence then is not an act but a habit".split()
vocab = collections.Counter(sentence)
word_to_ix = {w: i for i, w in enumerate(sorted(vocab))}
data = [([sentence[i - 2], sentence[i - 1], sentence[i + 1], sentence[i + 2]], sentence[i]) for i in range(2, len(sentence) - 2)]


class CBOW(nn.Module):
    def __init__(self, vocab_size, embedding_dim):
        super(CBOW, self).__init__()
        self.embeddings = nn.Embedding(vocab_size, embedding_dim)
        self.linear1 = nn.Linear(embedding_dim, 32)
        self.linear2 = nn.Linear(32, vocab_size)

    def forward(self, inputs):
        embeds = self.embeddings(inputs).sum(dim=0).view(1, -1)
        out = torch.relu(self.linear1(embeds))
        out = self.linear2(out)
        return torch.log_softmax(out, dim=1)


def make_context_vector(context, word_to_ix):
    idxs = [word_to_ix[w] for w in context]
    return torch.tensor(idxs, dtype=torch.long)


losses = []
loss_function = nn.NLLLoss()
model = CBOW(len(vocab), 8)
optimizer = optim.SGD(model.parameters(), lr=0.01)
for epoch in range(2):
    total_loss = torch.Tensor([0])
    for context, target in data:
        context_idxs = make_context_vector(context, word_to_ix)
        model.zero_grad()
        log_probs = model(context_idxs)
        loss = loss_function(log_probs, torch.tensor([word_to_ix[target]], dtype=torch.long))
        loss.backward()
        optimizer.step()
        total_loss += loss.item()
    losses.append(total_loss)
print(losses[-1].item())

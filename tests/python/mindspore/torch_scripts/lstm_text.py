"""A text classifier: embedding, bidirectional LSTM, the last states of both directions."""
import numpy as np
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, Dataset


class Reviews(Dataset):
    def __init__(self, n=40, length=12, vocab=50):
        rng = np.random.RandomState(7)
        self.tokens = rng.randint(1, vocab, (n, length))
        self.labels = (self.tokens.sum(1) % 2).astype(np.float32)

    def __getitem__(self, idx):
        return self.tokens[idx], self.labels[idx]

    def __len__(self):
        return self.tokens.shape[0]


class Classifier(nn.Module):
    def __init__(self, vocab_size, embed_dim, hidden_dim, n_layers=1, dropout=0.3):
        super().__init__()
        self.embedding = nn.Embedding(vocab_size, embed_dim)
        self.lstm = nn.LSTM(embed_dim, hidden_dim, num_layers=n_layers, bidirectional=True, batch_first=True)
        self.dropout = nn.Dropout(dropout)
        self.fc = nn.Linear(hidden_dim * 2, 1)

    def forward(self, text):
        embedded = self.dropout(self.embedding(text))
        output, (hidden, cell) = self.lstm(embedded)
        hidden = torch.cat((hidden[-2, :, :], hidden[-1, :, :]), dim=1)
        return self.fc(self.dropout(hidden)).squeeze(1)


def binary_accuracy(preds, y):
    rounded_preds = torch.round(torch.sigmoid(preds))
    correct = (rounded_preds == y).float()
    return correct.sum() / len(correct)


def train(model, iterator, optimizer, criterion):
    epoch_loss, epoch_acc = 0, 0
    model.train()
    for tokens, labels in iterator:
        optimizer.zero_grad()
        predictions = model(tokens.long())
        loss = criterion(predictions, labels)
        acc = binary_accuracy(predictions, labels)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm=0.5)
        optimizer.step()
        epoch_loss += loss.item()
        epoch_acc += acc.item()
    return epoch_loss / len(iterator), epoch_acc / len(iterator)


if __name__ == "__main__":
    model = Classifier(50, 8, 6)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    criterion = nn.BCEWithLogitsLoss()
    loader = DataLoader(Reviews(), batch_size=10)
    for epoch in range(2):
        print("epoch %d: loss %.4f, accuracy %.3f" % (epoch, *train(model, loader, optimizer, criterion)))

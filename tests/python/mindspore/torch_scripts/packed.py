"""Sentiment by a bidirectional LSTM over packed sequences."""
import numpy as np
import torch
import torch.nn as nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence, pad_sequence
from torch.utils.data import DataLoader, Dataset


class Sentences(Dataset):
    def __init__(self, n=40, vocab=50):
        rng = np.random.RandomState(1)
        self.rows = [rng.randint(1, vocab, rng.randint(3, 12)) for _ in range(n)]
        self.labels = [int(row.sum() % 2) for row in self.rows]

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        return torch.LongTensor(self.rows[i]), self.labels[i]


def collate_fn(batch):
    texts, labels = zip(*batch)
    lengths = torch.tensor([len(t) for t in texts])
    padded = pad_sequence(texts, batch_first=True, padding_value=0)
    return padded, lengths, torch.tensor(labels, dtype=torch.float32)


class LSTMClassifier(nn.Module):
    def __init__(self, vocab_size=50, embed_dim=12, hidden_dim=10, n_layers=2):
        super().__init__()
        self.embedding = nn.Embedding(vocab_size, embed_dim, padding_idx=0)
        self.lstm = nn.LSTM(embed_dim, hidden_dim, num_layers=n_layers, bidirectional=True, batch_first=True)
        self.fc = nn.Linear(hidden_dim * 2, 1)

    def forward(self, text, lengths):
        embedded = self.embedding(text)
        packed = pack_padded_sequence(embedded, lengths.cpu(), batch_first=True, enforce_sorted=False)
        packed_output, (hidden, cell) = self.lstm(packed)
        output, output_lengths = pad_packed_sequence(packed_output, batch_first=True)
        hidden = torch.cat((hidden[-2, :, :], hidden[-1, :, :]), dim=1)
        pooled = output.sum(dim=1) / output_lengths.unsqueeze(1).float()
        return self.fc(hidden + pooled).squeeze(1)


def main():
    torch.manual_seed(0)
    loader = DataLoader(Sentences(), batch_size=8, shuffle=False, collate_fn=collate_fn)
    model = LSTMClassifier()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    criterion = nn.BCEWithLogitsLoss()
    for epoch in range(2):
        total = 0.0
        for text, lengths, label in loader:
            optimizer.zero_grad()
            loss = criterion(model(text, lengths), label)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 5.0)
            optimizer.step()
            total += loss.item()
        print(f"epoch {epoch} loss {total / len(loader):.5f}")


if __name__ == "__main__":
    main()

"""A network of convolutions and LSTM layers that reads words in images, by the CTC loss."""
import torch
import torch.nn as nn
import torch.optim as optim
import numpy as np

torch.manual_seed(1)
np.random.seed(1)
NUM = 11
H, W, T = 8, 32, 16

def make_batch(n):
    labels, imgs, lens = [], np.zeros((n, 1, H, W), np.float32), []
    for i in range(n):
        k = np.random.randint(2, 5)
        word = np.random.randint(1, NUM, k)
        for j, c in enumerate(word):
            imgs[i, 0, :, j * 8:j * 8 + 6] = (c / NUM) + 0.05 * np.random.randn(H, 6)
        labels.append(word)
        lens.append(k)
    targets = torch.tensor(np.concatenate(labels), dtype=torch.long)
    return torch.from_numpy(imgs), targets, torch.tensor(lens, dtype=torch.long)

class BidirectionalLSTM(nn.Module):
    def __init__(self, nIn, nHidden, nOut):
        super(BidirectionalLSTM, self).__init__()
        self.rnn = nn.LSTM(nIn, nHidden, bidirectional=True)
        self.embedding = nn.Linear(nHidden * 2, nOut)

    def forward(self, input):
        recurrent, _ = self.rnn(input)
        T, b, h = recurrent.size()
        t_rec = recurrent.view(T * b, h)
        output = self.embedding(t_rec)
        return output.view(T, b, -1)

class CRNN(nn.Module):
    def __init__(self, nh=32):
        super(CRNN, self).__init__()
        self.cnn = nn.Sequential(
            nn.Conv2d(1, 16, 3, 1, 1), nn.ReLU(True), nn.MaxPool2d(2, 2),
            nn.Conv2d(16, 32, 3, 1, 1), nn.BatchNorm2d(32), nn.LeakyReLU(0.2, inplace=True), nn.MaxPool2d((4, 1)))
        self.rnn = nn.Sequential(BidirectionalLSTM(32, nh, nh), BidirectionalLSTM(nh, nh, NUM))

    def forward(self, x):
        conv = self.cnn(x)
        b, c, h, w = conv.size()
        assert h == 1, "the height of conv must be 1"
        conv = conv.squeeze(2).permute(2, 0, 1)
        return self.rnn(conv)

model = CRNN()
criterion = nn.CTCLoss(blank=0, zero_infinity=True)
optimizer = optim.RMSprop(model.parameters(), lr=1e-3)
for step in range(20):
    img, tgt, tl = make_batch(8)
    preds = model(img).log_softmax(2)
    pl = torch.full((8,), preds.size(0), dtype=torch.long)
    loss = criterion(preds, tgt, pl, tl)
    model.zero_grad()
    loss.backward()
    torch.nn.utils.clip_grad_value_(model.parameters(), 5.0)
    optimizer.step()
    if step % 5 == 0:
        print('step', step, 'loss %.4f' % loss.item())
_, best = preds.max(2)
print(best.transpose(1, 0).contiguous().view(-1)[:10].tolist())

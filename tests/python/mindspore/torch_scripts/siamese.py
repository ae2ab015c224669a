"""Embeddings by triplets and by contrastive pairs."""
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F


class EmbeddingNet(nn.Module):
    def __init__(self):
        super(EmbeddingNet, self).__init__()
        self.convnet = nn.Sequential(nn.Conv2d(1, 4, 5), nn.PReLU(), nn.MaxPool2d(2, stride=2),
                                     nn.Conv2d(4, 8, 3), nn.PReLU(), nn.MaxPool2d(2, stride=2))
        self.fc = nn.Sequential(nn.Linear(8 * 2 * 2, 16), nn.PReLU(), nn.Linear(16, 2))

    def forward(self, x):
        output = self.convnet(x)
        output = output.view(output.size()[0], -1)
        return self.fc(output)

    def get_embedding(self, x):
        return self.forward(x)


class TripletNet(nn.Module):
    def __init__(self, embedding_net):
        super(TripletNet, self).__init__()
        self.embedding_net = embedding_net

    def forward(self, x1, x2, x3):
        return self.embedding_net(x1), self.embedding_net(x2), self.embedding_net(x3)


class ContrastiveLoss(nn.Module):
    def __init__(self, margin):
        super(ContrastiveLoss, self).__init__()
        self.margin = margin
        self.eps = 1e-9

    def forward(self, output1, output2, target):
        distances = (output2 - output1).pow(2).sum(1)  # squared distances
        losses = 0.5 * (target.float() * distances +
                        (1 + -1 * target).float() * F.relu(self.margin - (distances + self.eps).sqrt()).pow(2))
        return losses.mean()


rng = np.random.RandomState(5)
embedding = EmbeddingNet()
model = TripletNet(embedding)
triplet = nn.TripletMarginLoss(margin=1.0)
contrastive = ContrastiveLoss(1.0)
optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.5)
for step in range(4):
    anchor, positive, negative = [torch.tensor(rng.randn(5, 1, 16, 16), dtype=torch.float32) for _ in range(3)]
    target = torch.tensor(rng.randint(0, 2, 5))
    optimizer.zero_grad()
    a, p, n = model(anchor, positive, negative)
    loss_triplet = triplet(a, p, n)
    loss_pairs = contrastive(a, p, target)
    loss = loss_triplet + 0.5 * loss_pairs
    loss.backward()
    optimizer.step()
    print(step, loss_triplet.item(), loss_pairs.item())

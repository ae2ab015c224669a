"""A small DenseNet with dropout."""
import torch
import torch.nn as nn
import torch.nn.functional as F
import numpy as np


class _DenseLayer(nn.Module):
    def __init__(self, num_input_features, growth_rate, bn_size, drop_rate):
        super().__init__()
        self.norm1 = nn.BatchNorm2d(num_input_features)
        self.relu1 = nn.ReLU(inplace=True)
        self.conv1 = nn.Conv2d(num_input_features, bn_size * growth_rate, kernel_size=1, stride=1, bias=False)
        self.norm2 = nn.BatchNorm2d(bn_size * growth_rate)
        self.relu2 = nn.ReLU(inplace=True)
        self.conv2 = nn.Conv2d(bn_size * growth_rate, growth_rate, kernel_size=3, stride=1, padding=1, bias=False)
        self.drop_rate = float(drop_rate)

    def forward(self, prev_features):
        concated_features = torch.cat(prev_features, 1)
        bottleneck_output = self.conv1(self.relu1(self.norm1(concated_features)))
        new_features = self.conv2(self.relu2(self.norm2(bottleneck_output)))
        if self.drop_rate > 0:
            new_features = F.dropout(new_features, p=self.drop_rate, training=self.training)
        return new_features




class DenseNet(nn.Module):
    def __init__(self, growth_rate=4, num_layers=3, num_classes=4):
        super().__init__()
        self.stem = nn.Conv2d(3, 8, kernel_size=3, padding=1)
        self.layers = nn.ModuleList()
        for i in range(num_layers):
            self.layers.append(_DenseLayer(8 + i * growth_rate, growth_rate, 2, 0.2))
        self.norm = nn.BatchNorm2d(8 + num_layers * growth_rate)
        self.transition = nn.AvgPool2d(kernel_size=2, stride=2)
        self.classifier = nn.Linear(8 + num_layers * growth_rate, num_classes)

    def forward(self, x):
        features = [self.stem(x)]
        for layer in self.layers:
            features.append(layer(features))
        out = F.relu(self.norm(torch.cat(features, 1)), inplace=True)
        out = self.transition(out)
        out = F.adaptive_avg_pool2d(out, (1, 1))
        out = torch.flatten(out, 1)
        return self.classifier(out)


rng = np.random.RandomState(0)
model = DenseNet()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, nesterov=True, weight_decay=1e-4)
criterion = nn.CrossEntropyLoss(label_smoothing=0.1)
for epoch in range(3):
    x = torch.tensor(rng.randn(4, 3, 8, 8), dtype=torch.float32)
    y = torch.tensor(rng.randint(0, 4, size=4))
    logits = model(x)
    loss = criterion(logits, y)
    acc = (logits.argmax(-1) == y).float().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(f"{epoch}: {loss.item():.4f} {acc.item():.2f}")

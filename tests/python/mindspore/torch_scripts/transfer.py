"""Transfer learning: the trunk is frozen, a new head is trained; phases of training and validation in one loop."""
import copy

import numpy as np
import torch
import torch.nn as nn
import torch.optim as optim
from torch.optim import lr_scheduler
from torch.utils.data import DataLoader, TensorDataset


class Backbone(nn.Module):
    def __init__(self, num_classes=10):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(3, 8, 3, stride=2, padding=1), nn.BatchNorm2d(8), nn.ReLU(),
            nn.Conv2d(8, 16, 3, stride=2, padding=1), nn.BatchNorm2d(16), nn.ReLU(),
            nn.AdaptiveAvgPool2d(1))
        self.fc = nn.Linear(16, num_classes)

    def forward(self, x):
        x = self.features(x)
        return self.fc(torch.flatten(x, 1))


def loader_of(count, seed):
    rng = np.random.RandomState(seed)
    images = torch.tensor(rng.randn(count, 3, 12, 12), dtype=torch.float32)
    labels = torch.tensor(rng.randint(0, 2, count))
    return DataLoader(TensorDataset(images, labels), batch_size=4, shuffle=True)


def train_model(model, dataloaders, criterion, optimizer, scheduler, num_epochs=2):
    best_acc = 0.0
    for epoch in range(num_epochs):
        # Each epoch has a training and validation phase
        for phase in ['train', 'val']:
            if phase == 'train':
                model.train()  # Set model to training mode
            else:
                model.eval()   # Set model to evaluate mode

            running_loss = 0.0
            running_corrects = 0

            # Iterate over data.
            for inputs, labels in dataloaders[phase]:
                # zero the parameter gradients
                optimizer.zero_grad()

                # forward
                # track history if only in train
                with torch.set_grad_enabled(phase == 'train'):
                    outputs = model(inputs)
                    _, preds = torch.max(outputs, 1)
                    loss = criterion(outputs, labels)

                    # backward + optimize only if in training phase
                    if phase == 'train':
                        loss.backward()
                        optimizer.step()

                # statistics
                running_loss += loss.item() * inputs.size(0)
                running_corrects += torch.sum(preds == labels.data)
            if phase == 'train':
                scheduler.step()

            epoch_loss = running_loss / 12
            epoch_acc = running_corrects.double() / 12
            print(f'{phase} Loss: {epoch_loss:.4f} Acc: {epoch_acc.item():.4f}')
    return model


model = Backbone()
for param in model.parameters():
    param.requires_grad = False
num_ftrs = model.fc.in_features
model.fc = nn.Linear(num_ftrs, 2)
criterion = nn.CrossEntropyLoss()
# Observe that only parameters of the final layer are being optimized
optimizer = optim.SGD(model.fc.parameters(), lr=0.01, momentum=0.9)
exp_lr_scheduler = lr_scheduler.StepLR(optimizer, step_size=1, gamma=0.1)
train_model(model, {'train': loader_of(12, 0), 'val': loader_of(12, 1)}, criterion, optimizer, exp_lr_scheduler)

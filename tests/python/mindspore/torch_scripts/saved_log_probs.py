"""REINFORCE: log probabilities are kept in a list of the network, and another function makes the loss of them."""

from collections import deque

import torch
import torch.nn as nn
from torch.distributions import Categorical

torch.manual_seed(3)


class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.hidden, self.out = nn.Linear(3, 8), nn.Linear(8, 2)
        self.saved, self.rewards = [], []

    def forward(self, x):
        return torch.softmax(self.out(torch.relu(self.hidden(x))), dim=-1)


policy = Policy()
optimizer = torch.optim.Adam(policy.parameters(), lr=1e-2)


def act(state):
    chosen = Categorical(policy(state))
    action = chosen.sample()
    policy.saved.append(chosen.log_prob(action))
    return action.item()


def finish():
    total, returns = 0.0, deque()
    for reward in policy.rewards[::-1]:
        total = reward + 0.9 * total
        returns.appendleft(total)
    returns = torch.tensor(returns)
    losses = [-log_prob * value for log_prob, value in zip(policy.saved, returns)]
    optimizer.zero_grad()
    torch.stack(losses).sum().backward()
    optimizer.step()
    del policy.rewards[:]
    del policy.saved[:]


for episode in range(4):
    state = torch.ones(3) * 0.1 * episode
    for _ in range(5):
        action = act(state)
        with torch.no_grad():
            state = state * 0.9 + 0.1 * action
        policy.rewards.append(1.0 - abs(state[0].item()))
    finish()

"""REINFORCE on a made environment."""
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.optim as optim
from torch.distributions import Categorical


class Corridor:
    """Walk to the right end; each step costs."""

    def __init__(self):
        self.place = 0

    def reset(self):
        self.place = 2
        return self.observe()

    def observe(self):
        return np.array([self.place / 5, 1.0, self.place % 2, -1.0])

    def step(self, action):
        self.place += 1 if action == 1 else -1
        done = self.place <= 0 or self.place >= 5
        return self.observe(), (1.0 if self.place >= 5 else -0.1), done


class Policy(nn.Module):
    def __init__(self):
        super(Policy, self).__init__()
        self.affine1 = nn.Linear(4, 16)
        self.dropout = nn.Dropout(p=0.6)
        self.affine2 = nn.Linear(16, 2)

    def forward(self, x):
        x = self.affine1(x)
        x = self.dropout(x)
        x = F.relu(x)
        action_scores = self.affine2(x)
        return F.softmax(action_scores, dim=1)


policy = Policy()
optimizer = optim.Adam(policy.parameters(), lr=1e-2)
env = Corridor()
gamma = 0.99

for episode in range(3):
    states, actions, rewards = [], [], []
    state = env.reset()
    for t in range(10):
        state_tensor = torch.from_numpy(state).float().unsqueeze(0)
        with torch.no_grad():
            probs = policy(state_tensor)
        action = Categorical(probs).sample().item()
        states.append(state)
        actions.append(action)
        state, reward, done = env.step(action)
        rewards.append(reward)
        if done:
            break
    returns, R = [], 0
    for r in rewards[::-1]:
        R = r + gamma * R
        returns.insert(0, R)
    returns = torch.tensor(returns, dtype=torch.float32)
    returns = (returns - returns.mean()) / (returns.std() + 1e-5)
    states = torch.tensor(np.array(states), dtype=torch.float32)
    actions = torch.tensor(actions)
    dist = Categorical(policy(states))
    policy_loss = -(dist.log_prob(actions) * returns).sum() - 0.01 * dist.entropy().mean()
    optimizer.zero_grad()
    policy_loss.backward()
    optimizer.step()
    print(episode, len(rewards), policy_loss.item())

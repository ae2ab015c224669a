"""Soft actor-critic on a made one dimensional control task."""
import copy
import random
from collections import deque, namedtuple

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.distributions import Normal
from torch.optim import Adam

Transition = namedtuple("Transition", "state action reward next_state done")
LOG_STD_MIN, LOG_STD_MAX = -5, 2


class PointEnv:
    def __init__(self, seed=0):
        self.rng = np.random.RandomState(seed)
        self.reset()

    def reset(self):
        self.x = self.rng.uniform(-1, 1, size=2).astype(np.float32)
        self.t = 0
        return self.x.copy()

    def step(self, action):
        self.x = np.clip(self.x + 0.1 * np.array([action[0], -0.5 * self.x[1]], dtype=np.float32), -2, 2).astype(np.float32)
        self.t += 1
        return self.x.copy(), float(-(self.x ** 2).sum()), self.t >= 10


class Replay:
    def __init__(self, capacity):
        self.memory = deque(maxlen=capacity)
        self.rng = random.Random(3)

    def push(self, *args):
        self.memory.append(Transition(*args))

    def sample(self, n, device):
        batch = Transition(*zip(*self.rng.sample(list(self.memory), n)))
        state = torch.as_tensor(np.stack(batch.state), device=device)
        action = torch.as_tensor(np.stack(batch.action), dtype=torch.float32, device=device)
        reward = torch.tensor(batch.reward, dtype=torch.float32, device=device).unsqueeze(1)
        nxt = torch.as_tensor(np.stack(batch.next_state), device=device)
        done = torch.tensor(batch.done, dtype=torch.float32, device=device).view(-1, 1)
        return state, action, reward, nxt, done

    def __len__(self):
        return len(self.memory)


def mlp(sizes, act=nn.ReLU):
    layers = []
    for i in range(len(sizes) - 1):
        layers += [nn.Linear(sizes[i], sizes[i + 1])]
        if i < len(sizes) - 2:
            layers += [act()]
    return nn.Sequential(*layers)


class Critic(nn.Module):
    def __init__(self, obs, act, hidden):
        super().__init__()
        self.q1 = mlp([obs + act, hidden, hidden, 1])
        self.q2 = mlp([obs + act, hidden, hidden, 1])

    def forward(self, s, a):
        sa = torch.cat([s, a], dim=-1)
        return self.q1(sa), self.q2(sa)


class Actor(nn.Module):
    def __init__(self, obs, act, hidden):
        super().__init__()
        self.trunk = mlp([obs, hidden, hidden])
        self.mu, self.log_std = nn.Linear(hidden, act), nn.Linear(hidden, act)

    def forward(self, s):
        h = F.relu(self.trunk(s))
        return self.mu(h), self.log_std(h).clamp(LOG_STD_MIN, LOG_STD_MAX)

    def sample(self, s):
        mu, log_std = self(s)
        dist = Normal(mu, log_std.exp())
        u = dist.rsample()
        a = torch.tanh(u)
        logp = dist.log_prob(u) - torch.log(1 - a.pow(2) + 1e-6)
        return a, logp.sum(dim=1, keepdim=True)


class SAC:
    def __init__(self, obs, act, hidden=32, gamma=0.99, tau=0.01, lr=1e-3):
        self.device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        self.gamma, self.tau = gamma, tau
        self.actor = Actor(obs, act, hidden).to(self.device)
        self.critic = Critic(obs, act, hidden).to(self.device)
        self.target = copy.deepcopy(self.critic)
        for p in self.target.parameters():
            p.requires_grad = False
        self.log_alpha = torch.zeros(1, requires_grad=True, device=self.device)
        self.target_entropy = -float(act)
        self.actor_opt = Adam(self.actor.parameters(), lr=lr)
        self.critic_opt = Adam(self.critic.parameters(), lr=lr)
        self.alpha_opt = Adam([self.log_alpha], lr=lr)

    @property
    def alpha(self):
        return self.log_alpha.exp()

    def act(self, s):
        with torch.no_grad():
            mu, _ = self.actor(torch.from_numpy(s).unsqueeze(0).to(self.device))
        return torch.tanh(mu).squeeze(0).cpu().numpy()

    def update(self, batch):
        s, a, r, s2, d = batch
        with torch.no_grad():
            a2, logp2 = self.actor.sample(s2)
            q1, q2 = self.target(s2, a2)
            y = r + self.gamma * (1 - d) * (torch.min(q1, q2) - self.alpha * logp2)
        c1, c2 = self.critic(s, a)
        critic_loss = F.mse_loss(c1, y) + F.mse_loss(c2, y)
        self.critic_opt.zero_grad()
        critic_loss.backward()
        self.critic_opt.step()

        pi, logp = self.actor.sample(s)
        q1, q2 = self.critic(s, pi)
        actor_loss = (self.alpha.detach() * logp - torch.min(q1, q2)).mean()
        self.actor_opt.zero_grad()
        actor_loss.backward()
        self.actor_opt.step()

        alpha_loss = -(self.log_alpha * (logp + self.target_entropy).detach()).mean()
        self.alpha_opt.zero_grad()
        alpha_loss.backward()
        self.alpha_opt.step()

        with torch.no_grad():
            for p, tp in zip(self.critic.parameters(), self.target.parameters()):
                tp.data.mul_(1 - self.tau)
                tp.data.add_(self.tau * p.data)
        return critic_loss.item(), actor_loss.item(), self.alpha.item()


def main():
    torch.manual_seed(1)
    env, agent, memory = PointEnv(), SAC(2, 1), Replay(1000)
    noise = np.random.RandomState(5)
    state = env.reset()
    for step in range(48):
        action = np.clip(agent.act(state) + 0.1 * noise.randn(1), -1, 1)
        nxt, reward, done = env.step(action)
        memory.push(state, action, reward, nxt, done)
        state = env.reset() if done else nxt
        if len(memory) >= 32 and step % 2 == 0:
            c, a, alpha = agent.update(memory.sample(16, agent.device))
            print(f"step {step} critic {c:.5f} actor {a:.5f} alpha {alpha:.4f}")


if __name__ == "__main__":
    main()

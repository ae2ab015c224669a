"""Language model by a transformer encoder written out, with a causal mask and warm-up of the learning rate."""
import math

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F


class PositionalEncoding(nn.Module):
    def __init__(self, d_model, dropout=0.1, max_len=64):
        super().__init__()
        self.dropout = nn.Dropout(p=dropout)
        position = torch.arange(max_len).unsqueeze(1)
        div_term = torch.exp(torch.arange(0, d_model, 2) * (-math.log(10000.0) / d_model))
        pe = torch.stack([torch.sin(position * div_term), torch.cos(position * div_term)], dim=-1)
        self.register_buffer("pe", pe.view(max_len, d_model))

    def forward(self, x):
        x = x + self.pe[: x.size(1)]
        return self.dropout(x)


class SelfAttention(nn.Module):
    def __init__(self, d_model, heads):
        super().__init__()
        assert d_model % heads == 0
        self.heads = heads
        self.qkv = nn.Linear(d_model, 3 * d_model)
        self.proj = nn.Linear(d_model, d_model)

    def forward(self, x, mask=None):
        B, T, C = x.shape
        q, k, v = self.qkv(x).split(C, dim=2)
        q = q.view(B, T, self.heads, C // self.heads).transpose(1, 2)
        k = k.view(B, T, self.heads, C // self.heads).transpose(1, 2)
        v = v.view(B, T, self.heads, C // self.heads).transpose(1, 2)
        att = (q @ k.transpose(-2, -1)) * (1.0 / math.sqrt(k.size(-1)))
        if mask is not None:
            att = att.masked_fill(mask == 0, float("-1e9"))
        att = F.softmax(att, dim=-1)
        y = att @ v
        y = y.transpose(1, 2).contiguous().view(B, T, C)
        return self.proj(y)


class Block(nn.Module):
    def __init__(self, d_model, heads):
        super().__init__()
        self.ln1 = nn.LayerNorm(d_model)
        self.ln2 = nn.LayerNorm(d_model)
        self.attn = SelfAttention(d_model, heads)
        self.mlp = nn.Sequential(nn.Linear(d_model, 4 * d_model), nn.GELU(), nn.Linear(4 * d_model, d_model))

    def forward(self, x, mask):
        x = x + self.attn(self.ln1(x), mask)
        return x + self.mlp(self.ln2(x))


class LanguageModel(nn.Module):
    def __init__(self, vocab, d_model=16, heads=4, layers=2):
        super().__init__()
        self.embed = nn.Embedding(vocab, d_model)
        self.position = PositionalEncoding(d_model)
        self.blocks = nn.ModuleList([Block(d_model, heads) for _ in range(layers)])
        self.norm = nn.LayerNorm(d_model, eps=1e-6)
        self.head = nn.Linear(d_model, vocab, bias=False)
        self.d_model = d_model

    def forward(self, tokens):
        mask = torch.tril(torch.ones(tokens.size(1), tokens.size(1)))
        x = self.position(self.embed(tokens) * math.sqrt(self.d_model))
        for block in self.blocks:
            x = block(x, mask)
        return self.head(self.norm(x))


vocab = 20
rng = np.random.RandomState(0)
data = torch.from_numpy(rng.randint(0, vocab, (6, 4, 9))).long()
model = LanguageModel(vocab)
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3, betas=(0.9, 0.98), eps=1e-9, weight_decay=0.01)
scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: min((step + 1) / 3, 1.0))
model.train()
for step, batch in enumerate(data):
    source, target = batch[:, :-1], batch[:, 1:]
    logits = model(source)
    loss = F.cross_entropy(logits.reshape(-1, vocab), target.reshape(-1))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    scheduler.step()
    print(f"step {step}: loss {loss.item():.4f}, perplexity {math.exp(loss.item()):.2f}")

"""A transformer that forecasts a series: masks, positions in a buffer, rates that fall by epoch."""
import math, torch
from torch import nn, Tensor
from torch.nn import TransformerEncoder, TransformerEncoderLayer

class PositionalEncoding(nn.Module):
    def __init__(self, d_model: int, dropout: float = 0.1, max_len: int = 500):
        super().__init__()
        self.dropout = nn.Dropout(p=dropout)
        position = torch.arange(max_len).unsqueeze(1)
        div_term = torch.exp(torch.arange(0, d_model, 2) * (-math.log(10000.0) / d_model))
        pe = torch.zeros(max_len, 1, d_model)
        pe[:, 0, 0::2] = torch.sin(position * div_term)
        pe[:, 0, 1::2] = torch.cos(position * div_term)
        self.register_buffer('pe', pe)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.pe[:x.size(0)]
        return self.dropout(x)

class Forecaster(nn.Module):
    def __init__(self, d_model=32, nhead=4, nlayers=2):
        super().__init__()
        self.model_type = 'Transformer'
        self.src_mask = None
        self.proj = nn.Linear(1, d_model)
        self.pos = PositionalEncoding(d_model, 0.0)
        layer = TransformerEncoderLayer(d_model, nhead, dim_feedforward=64, dropout=0.0, activation='gelu')
        self.encoder = TransformerEncoder(layer, nlayers)
        self.decoder = nn.Linear(d_model, 1)
        self.init_weights()

    def init_weights(self):
        initrange = 0.1
        self.decoder.bias.data.zero_()
        self.decoder.weight.data.uniform_(-initrange, initrange)

    def _generate_square_subsequent_mask(self, sz):
        mask = (torch.triu(torch.ones(sz, sz)) == 1).transpose(0, 1)
        mask = mask.float().masked_fill(mask == 0, float('-inf')).masked_fill(mask == 1, float(0.0))
        return mask

    def forward(self, src):
        if self.src_mask is None or self.src_mask.size(0) != len(src):
            self.src_mask = self._generate_square_subsequent_mask(len(src)).to(src.device)
        h = self.pos(self.proj(src))
        return self.decoder(self.encoder(h, self.src_mask))

def get_batch(source, i, bptt=24):
    seq_len = min(bptt, len(source) - 1 - i)
    return source[i:i + seq_len], source[i + 1:i + 1 + seq_len]

def batchify(series, bsz):
    n = series.size(0) // bsz
    series = series.narrow(0, 0, n * bsz)
    return series.view(bsz, -1).t().contiguous().unsqueeze(-1)

torch.manual_seed(0)
device = torch.device('cuda' if torch.cuda.is_available() else 'cpu')
t = torch.arange(0, 2000, dtype=torch.float)
series = torch.sin(t * 0.1) + 0.1 * torch.randn(t.shape)
train = batchify(series[:1600], 8).to(device)
val = batchify(series[1600:], 8).to(device)
model = Forecaster().to(device)
criterion = nn.SmoothL1Loss()
lr = 5e-3
optimizer = torch.optim.SGD(model.parameters(), lr=lr)
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1.0, gamma=0.95)

def run_epoch():
    model.train()
    total_loss = 0.
    for batch, i in enumerate(range(0, train.size(0) - 1, 24)):
        data, targets = get_batch(train, i)
        optimizer.zero_grad()
        output = model(data)
        loss = criterion(output, targets)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 0.5)
        optimizer.step()
        total_loss += loss.item()
    return total_loss

def evaluate(src):
    model.eval()
    total = 0.
    with torch.no_grad():
        for i in range(0, src.size(0) - 1, 24):
            d, y = get_batch(src, i)
            total += d.size(0) * criterion(model(d), y).cpu().item()
    return total / len(src)

best_val_loss = float('inf')
for epoch in range(1, 4):
    tl = run_epoch()
    vl = evaluate(val)
    print('-' * 30)
    print('| epoch {:3d} | train {:5.4f} | valid {:5.4f}'.format(epoch, tl, vl))
    if vl < best_val_loss:
        best_val_loss = vl
        best_model = model
    scheduler.step()

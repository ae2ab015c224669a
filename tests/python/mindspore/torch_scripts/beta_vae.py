"""A convolutional variational autoencoder whose losses come in a dict."""
import numpy as np
import torch
from torch import nn, Tensor
from torch.nn import functional as F
from typing import List, Tuple


class ConvEncoder(nn.Module):
    def __init__(self, in_channels: int, hidden_dims: List[int], latent: int) -> None:
        super().__init__()
        modules = []
        for h_dim in hidden_dims:
            modules.append(nn.Sequential(
                nn.Conv2d(in_channels, out_channels=h_dim, kernel_size=3, stride=2, padding=1),
                nn.BatchNorm2d(h_dim),
                nn.LeakyReLU()))
            in_channels = h_dim
        self.encoder = nn.Sequential(*modules)
        self.fc_mu = nn.Linear(hidden_dims[-1] * 4, latent)
        self.fc_var = nn.Linear(hidden_dims[-1] * 4, latent)

    def forward(self, input: Tensor) -> Tuple[Tensor, Tensor]:
        result = self.encoder(input)
        result = torch.flatten(result, start_dim=1)
        return self.fc_mu(result), self.fc_var(result)


class BetaVAE(nn.Module):
    def __init__(self, latent_dim: int = 4, beta: float = 2.0) -> None:
        super(BetaVAE, self).__init__()
        self.beta = beta
        self.encoder = ConvEncoder(1, [4, 8], latent_dim)
        self.decoder_input = nn.Linear(latent_dim, 8 * 4)
        self.decoder = nn.Sequential(
            nn.ConvTranspose2d(8, 4, kernel_size=3, stride=2, padding=1, output_padding=1),
            nn.BatchNorm2d(4),
            nn.LeakyReLU(),
            nn.ConvTranspose2d(4, 1, kernel_size=4, stride=2, padding=1),
            nn.Tanh())

    def reparameterize(self, mu: Tensor, logvar: Tensor) -> Tensor:
        std = torch.exp(0.5 * logvar)
        eps = torch.randn_like(std)
        return eps * std + mu

    def forward(self, input: Tensor):
        mu, log_var = self.encoder(input)
        z = self.reparameterize(mu, log_var)
        result = self.decoder_input(z).view(-1, 8, 2, 2)
        return [self.decoder(result), input, mu, log_var]

    def loss_function(self, *args, **kwargs) -> dict:
        recons, input, mu, log_var = args
        recons_loss = F.mse_loss(recons, input)
        kld_loss = torch.mean(-0.5 * torch.sum(1 + log_var - mu ** 2 - log_var.exp(), dim=1), dim=0)
        loss = recons_loss + self.beta * kwargs["M_N"] * kld_loss
        return {"loss": loss, "Reconstruction_Loss": recons_loss.detach(), "KLD": -kld_loss.detach()}


rng = np.random.RandomState(0)
model = BetaVAE()
opt = torch.optim.Adam(params=model.parameters(), lr=0.005)
for step in range(4):
    batch = torch.as_tensor(rng.rand(6, 1, 8, 8), dtype=torch.float32)
    opt.zero_grad()
    results = model(batch)
    train_loss = model.loss_function(*results, M_N=0.01)
    train_loss["loss"].backward()
    opt.step()
    print(step, {key: round(val.item(), 5) for key, val in train_loss.items()})

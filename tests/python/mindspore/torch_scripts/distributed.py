"""Distributed training by DDP; alone where no launcher says otherwise."""
import argparse
import os

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler


def setup():
    if "RANK" in os.environ:
        dist.init_process_group(backend="nccl" if torch.cuda.is_available() else "gloo")
        torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))


def cleanup():
    if dist.is_available() and dist.is_initialized():
        dist.destroy_process_group()


def is_main_process():
    return not dist.is_initialized() or dist.get_rank() == 0


def reduce_mean(value):
    if not dist.is_initialized():
        return value
    tensor = value.clone()
    dist.all_reduce(tensor, op=dist.ReduceOp.SUM)
    return tensor / dist.get_world_size()


class MLP(nn.Module):
    def __init__(self, dims=(20, 32, 32, 4), p=0.0):
        super(MLP, self).__init__()
        layers = []
        for i, o in zip(dims[:-2], dims[1:-1]):
            layers += [nn.Linear(i, o), nn.LayerNorm(o), nn.ReLU(True), nn.Dropout(p)]
        layers.append(nn.Linear(dims[-2], dims[-1]))
        self.net = nn.Sequential(*layers)

    def forward(self, x):
        return self.net(x)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", default=2, type=int)
    parser.add_argument("--local_rank", default=int(os.environ.get("LOCAL_RANK", 0)), type=int)
    args = parser.parse_args()
    setup()
    torch.manual_seed(0)
    x = torch.randn(64, 20)
    y = (x[:, :4].argmax(1)).long()
    dataset = TensorDataset(x, y)
    sampler = DistributedSampler(dataset) if dist.is_initialized() else None
    loader = DataLoader(dataset, batch_size=16, shuffle=(sampler is None), sampler=sampler)
    model = MLP()
    if torch.cuda.is_available():
        model = model.cuda(args.local_rank)
    if dist.is_initialized():
        model = nn.SyncBatchNorm.convert_sync_batchnorm(model)
        model = DDP(model, device_ids=[args.local_rank], find_unused_parameters=False)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, nesterov=True, weight_decay=1e-4)
    scheduler = torch.optim.lr_scheduler.MultiStepLR(optimizer, milestones=[1], gamma=0.1)
    criterion = nn.CrossEntropyLoss()
    for epoch in range(args.epochs):
        if sampler is not None:
            sampler.set_epoch(epoch)
        model.train()
        for i, (data, target) in enumerate(loader):
            output = model(data)
            loss = criterion(output, target)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            reduced = reduce_mean(loss.detach())
            if is_main_process() and i % 2 == 0:
                print("epoch {} step {} loss {:.4f}".format(epoch, i, reduced.item()))
        scheduler.step()
        if is_main_process():
            to_save = model.module.state_dict() if hasattr(model, "module") else model.state_dict()
            torch.save({"model": to_save, "optimizer": optimizer.state_dict(), "epoch": epoch}, "ddp.pth")
    cleanup()


if __name__ == "__main__":
    main()

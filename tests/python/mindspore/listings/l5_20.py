"""Listing 5-20: an optimizer."""

lr = warmup_cosine_annealing_lr(config.lr, step_size, config.warmup_epochs, config.epoch_size, config.pretrain_epoch_size * step_size)
lr = Tensor(lr)
# Momentum 可传入一个固定值/迭代器/一维 Tensor 作为学习率
opt = Momentum(filter(lambda x: x.requires_grad, net.get_parameters()), lr, 0.9)

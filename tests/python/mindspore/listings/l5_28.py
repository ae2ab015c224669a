"""Listing 5-28: mixed precision."""

net = resnet(class_num=config.class_num)
opt = Momentum(group_params, lr, config.momentum, loss_scale=config.loss_scale)
loss = SoftmaxCrossEntropyWithLogits(sparse=True, reduction='mean')
loss_scale = FixedLossScaleManager(config.loss_scale, drop_overflow_update=False)
model = Model(net, loss_fn=loss, optimizer=opt, loss_scale_manager=loss_scale, metrics={'acc'}, amp_level="O2", keep_batchnorm_fp32=False)

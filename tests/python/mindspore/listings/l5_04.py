"""Listing 5-4: training."""

from mindspore.train.loss_scale_manager import FixedLossScaleManager

dataset = create_custom_dataset()
net = Net()
loss = nn.SoftmaxCrossEntropyWithLogits()
# 由于使用混合精度进行训练,故使用 loss scale manager 进行管理
loss_scale_manager = FixedLossScaleManager()
optim = Momentum(params=net.trainable_params(), learning_rate=0.1, momentum=0.9)
model = Model(net, loss_fn=loss, optimizer=optim, metrics=None, loss_scale_manager=loss_scale_manager)
model.train(2, dataset)

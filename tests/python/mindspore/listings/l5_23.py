"""Listing 5-23: loading and evaluating a model; 5-21 and 5-22 are 5-5 again."""

metrics = {
    'accuracy': nn.Accuracy(),
    'loss': nn.Loss(),
    'precision': nn.Precision(),
    'recall': nn.Recall(),
    'f1_score': nn.F1()
}
net = ResNet()
loss = CrossEntropyLoss()
opt = Momentum()
model = Model(net, loss_fn=loss, optimizer=opt, metrics=metrics)
param_dict = load_checkpoint(args_opt.checkpoint_path)
load_param_into_net(model, param_dict)
ds_eval = create_dataset()
output = model.eval(ds_eval)

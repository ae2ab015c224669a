"""PyTorch. Modes: eager (default), channels_last, compile, freeze (compile with frozen weights), jit. Types: fp32, bf16."""

import os

import worker

options = worker.arguments()
if options.mode == "freeze":
    os.environ["TORCHINDUCTOR_FREEZING"] = "1"

import nets  # noqa: E402
import numpy as np  # noqa: E402
import torch  # noqa: E402
import torch_net  # noqa: E402

torch.set_num_threads(options.threads)
torch.set_flush_denormal(True)
net = torch_net.Net(options.model, dict(np.load(f"{options.models}/{options.model}.npz"))).eval()
x = torch.from_numpy(nets.make_input(options.model, options.batch))
if options.mode not in ("default", "eager") and x.dim() == 4:
    net, x = net.to(memory_format=torch.channels_last), x.to(memory_format=torch.channels_last)
if options.dtype == "bf16":
    net = net.to(torch.bfloat16)
    x = x.to(torch.bfloat16) if x.is_floating_point() else x
if options.mode in ("compile", "freeze"):
    net = torch.compile(net)
elif options.mode == "jit":
    with torch.no_grad():
        net = torch.jit.optimize_for_inference(torch.jit.freeze(torch.jit.trace(net, x)))


def iteration():
    with torch.no_grad():
        return net(x).float().numpy()


worker.serve(iteration, "torch " + torch.__version__)

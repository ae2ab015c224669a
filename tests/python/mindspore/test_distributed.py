"""Training scripts on several processes: communication operators against NumPy, data parallel against one process."""

import rank_jobs as jobs
import numpy as np
import pytest

MODES = ["graph", "pynative"]


def arrays(folder, size):
    """What each rank has saved."""
    return [dict(np.load(folder / f"{rank}.npz")) for rank in range(size)]


# Operators


def _sum(xs):
    return [sum(xs)] * len(xs)


def _split(x, count, axis=0):
    return np.split(x, count, axis)


# name: (results of all ranks from their operands, gradients of operands from seeds of results)
def _numpy(size):
    def extreme(choose):
        def forward(xs):
            return [choose.reduce(xs)] * size

        def backward(xs, seeds):
            return [sum(seeds) * (x == choose.reduce(xs)) for x in xs]

        return forward, backward

    def all_to_all(xs, split, joined):
        parts = [_split(x, size, split) for x in xs]
        return [np.concatenate([parts[source][rank] for source in range(size)], joined) for rank in range(size)]

    def halo(xs):
        return [np.concatenate([xs[(rank - 1) % size][:, :, -1:], xs[rank]], 2) for rank in range(size)]

    def halo_back(xs, seeds):
        made = [seed[:, :, 1:].copy() for seed in seeds]
        for rank in range(size):
            made[rank][:, :, -1:] += seeds[(rank + 1) % size][:, :, :1]
        return made

    gather = (lambda xs: [np.concatenate(xs)] * size, lambda xs, seeds: _split(sum(seeds), size))
    around = (lambda xs: [xs[(rank - 1) % size] for rank in range(size)], lambda xs, seeds: [seeds[(rank + 1) % size] for rank in range(size)])
    return {
        "sum": (_sum, lambda xs, seeds: _sum(seeds)),
        "max": extreme(np.maximum),
        "min": extreme(np.minimum),
        "prod": (lambda xs: [np.prod(xs, 0)] * size, lambda xs, seeds: [sum(seeds) * np.prod(xs, 0) / x for x in xs]),
        "gather": gather,
        "scatter": (lambda xs: _split(sum(xs), size), lambda xs, seeds: [np.concatenate(seeds)] * size),
        "broadcast": (lambda xs: [xs[1]] * size, lambda xs, seeds: [sum(seeds) * (rank == 1) for rank in range(size)]),
        "all_to_all": (lambda xs: all_to_all(xs, -2, -1), lambda xs, seeds: all_to_all(seeds, -1, -2)),
        "neighbours": around,
        "halo": (halo, halo_back),
        "host_gather": gather,
        "ring": around,
    }


@pytest.mark.parametrize("mode", MODES)
def test_communication_operators_and_their_gradients_equal_numpy(tmp_path, mode, size=2):
    jobs.run("operators.py", size, tmp_path, "--mode", mode)
    made = arrays(tmp_path, size)
    for name, (forward, backward) in _numpy(size).items():
        xs, seeds = ([each[f"{name}/{what}"].astype(np.float64) for each in made] for what in ("x", "seed"))
        for rank, (y, dx) in enumerate(zip(forward(xs), backward(xs, seeds))):
            np.testing.assert_allclose(made[rank][f"{name}/y"], y, 1e-6, err_msg=f"{name} on rank {rank}")
            np.testing.assert_allclose(made[rank][f"{name}/dx"], dx, 1e-5, 1e-6, err_msg=f"gradient of {name} on rank {rank}")
    for name in ("int8", "int32", "int64", "uint8", "float16", "float64"):
        found = made[0][f"types/{name}"]
        assert found.dtype == name and (found == size * np.arange(5) + size * (size - 1) // 2).all(), name


@pytest.mark.long
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("size", [3, 4])
def test_communication_operators_of_more_ranks_equal_numpy(tmp_path, mode, size):
    test_communication_operators_and_their_gradients_equal_numpy(tmp_path, mode, size + size % 2)  # the ring needs an even number


def test_ranks_and_groups_by_all_their_names():
    assert [each.split()[-1] for each in jobs.run("groups.py", 4)] == ["fine"] * 4


# Data parallel


def trained(folder, size, net, *options, **more):
    """What a training has saved: for ranks that agree on parameters and gradients, rank 0's, and the mean of their losses."""
    folder.mkdir()
    jobs.run("step.py", size, net, folder, *options, **more)
    made = arrays(folder, size)
    for name in made[0]:
        if name.startswith(("parameter/", "gradient/")):
            for each in made[1:]:
                np.testing.assert_array_equal(each[name], made[0][name], err_msg=name)
    reduced = np.sum if net == "bert" else np.mean
    return {**made[0], "losses": reduced([each["losses"] for each in made], 0)}


def same_training(found, expected, losses=1e-5, parameters=1e-4, gradients=1e-5):
    """Gradients of the first step close to each other by their largest element, later losses and parameters close. Gradients that are zero but for
    rounding, as those of the bias of keys in attention, may differ by 1e-11 of the largest."""
    most = max(np.abs(value).max() for name, value in expected.items() if name.startswith("gradient/"))
    for name, value in expected.items():
        if name.startswith("gradient/"):
            assert np.abs(found[name] - value).max() <= max(gradients * np.abs(value).max(), 1e-11 * most), name
        if name.startswith("parameter/"):
            assert np.abs(found[name] - value).max() <= max(parameters * np.abs(value).max(), 1e-9), name
    np.testing.assert_allclose(found["losses"], expected["losses"], losses)


@pytest.mark.parametrize("mode", MODES)
def test_lenet_on_two_ranks_trains_as_one_with_the_whole_batch(tmp_path, mode):
    same_training(trained(tmp_path / "two", 2, "lenet", "--mode", mode), trained(tmp_path / "one", 1, "lenet", "--mode", mode))


def test_resnet_on_two_ranks_trains_as_one_that_normalises_both_parts_by_themselves(tmp_path):
    same_training(trained(tmp_path / "two", 2, "resnet"), trained(tmp_path / "one", 1, "resnet", "--parts", 2), 1e-4, 1e-3, 1e-4)


def test_resnet_with_norms_over_all_ranks_trains_as_one_with_the_whole_batch(tmp_path):
    same_training(trained(tmp_path / "two", 2, "resnet", "--sync"), trained(tmp_path / "one", 1, "resnet"), 1e-4, 1e-3, 1e-4)


def test_bert_with_scaled_loss_on_two_ranks_trains_as_one_with_the_whole_batch(tmp_path):
    same_training(trained(tmp_path / "two", 2, "bert", "--scaled"), trained(tmp_path / "one", 1, "bert"))


@pytest.mark.parametrize("options", [["--spread"], ["--fusion", "2,5"], ["--spread", "--scaled", "--mode", "pynative"]], ids=" ".join)
def test_spread_state_and_split_gradients_change_no_numbers(tmp_path, options):
    expected = trained(tmp_path / "plain", 2, "lenet", *(options[2:] if "--mode" in options else []))
    found = trained(tmp_path / "other", 2, "lenet", *options)
    for name, value in expected.items():
        if name.startswith("parameter/"):
            np.testing.assert_allclose(found[name], value, 1e-6, 1e-7, err_msg=name)


def test_the_state_of_an_optimizer_is_spread_over_the_ranks(tmp_path):
    jobs.run("step.py", 2, "lenet", tmp_path, "--spread")
    states = [{name for name in each if name.startswith("state/")} for each in arrays(tmp_path, 2)]
    assert states[0] and states[1] and not states[0] & states[1]
    assert {name.removeprefix("state/moments.") for name in states[0] | states[1]} == {
        name.removeprefix("parameter/") for name in arrays(tmp_path, 1)[0] if name.startswith("parameter/")}  # fmt: skip


@pytest.mark.long
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("net", ["lenet", "resnet", "resnet --sync", "bert", "bert --scaled"])
def test_four_ranks_train_as_one(tmp_path, net, mode):
    net, *options = net.split()
    one = ["--parts", 4] if net == "resnet" and not options else []
    wide = (1e-4, 1e-3, 1e-4) if net == "resnet" else ()
    same_training(trained(tmp_path / "four", 4, net, *options, "--mode", mode), trained(tmp_path / "one", 1, net, *one, "--mode", mode), *wide)


def test_the_listings_on_distributed_training_run_on_two_ranks(tmp_path):
    rows = np.random.RandomState(0).randint(0, 256, (8, 3073)).astype(np.uint8)
    rows[:, 0] %= 10
    for name in [*(f"data_batch_{i}.bin" for i in range(1, 6)), "test_batch.bin"]:
        rows.tofile(tmp_path / name)
    (tmp_path / "batches.meta.txt").write_text("\n".join(map(str, range(10))))
    for rank, out in enumerate(jobs.run("listings.py", 2, tmp_path, CAIRN_MS_LEVEL="1.1")):
        lines = out.splitlines()
        assert lines[0] == f"rows 24 of rank {rank}", out
        assert lines[1].startswith("refused: parallel_mode auto_parallel") and lines[1].endswith("use ParallelMode.DATA_PARALLEL")
        assert [line.split(",")[0] for line in lines[2:]] == ["epoch: 1 step: 1", "epoch: 1 step: 2"]


def test_every_optimizer_makes_the_same_steps_with_its_state_spread():
    assert jobs.run("optimizers.py", 2) == ["fine 15\n"] * 2


def _normalised(xs, seeds, eps=1e-5):
    """Results, gradients of the operands, mean and variance of a norm over all the batches, by NumPy in f64."""
    x, dy = (np.concatenate(each).astype(np.float64) for each in (xs, seeds))
    axes = (0, 2, 3)
    mean, variance = x.mean(axes, keepdims=True), x.var(axes, keepdims=True)
    scale = 1 / np.sqrt(variance + eps)
    y = (x - mean) * scale
    dx = scale * (dy - dy.mean(axes, keepdims=True) - y * (dy * y).mean(axes, keepdims=True))
    return np.split(y, len(xs)), np.split(dx, len(xs)), mean.ravel(), variance.ravel()


@pytest.mark.parametrize("mode", MODES)
def test_norms_over_groups_of_ranks_equal_numpy(tmp_path, mode):
    jobs.run("norms.py", 4, tmp_path, mode)
    made = arrays(tmp_path, 4)
    groups = {"pairs": [[0, 1], [2, 3]], "groups": [[0, 3], [1, 2]], "all": [[0, 1, 2, 3]], "alone": [[0, 1, 2], [3]]}
    for name, members in groups.items():
        for group in members:
            ys, dxs, mean, variance = _normalised(*([made[rank][f"{name}/{what}"] for rank in group] for what in ("x", "seed")))
            for rank, y, dx in zip(group, ys, dxs):
                expected = {"y": y, "dx": dx, "mean": 0.1 * mean, "variance": 0.9 + 0.1 * variance}
                for what, value in expected.items():
                    np.testing.assert_allclose(made[rank][f"{name}/{what}"], value, 1e-4, 1e-5, err_msg=f"{what} of {name} on rank {rank}")

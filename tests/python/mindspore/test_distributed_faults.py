"""Training scripts on several processes when a rank fails, and when training goes on from a checkpoint."""

import re
from pathlib import Path

import rank_jobs as jobs
import numpy as np
import pytest

MODES = ["graph", "pynative"]


def saved(folder, size):
    return [dict(np.load(folder / f"{rank}.npz")) for rank in range(size)]


def trained(folder, size, *options):
    """(losses of the whole batch, parameters) of a training that ends well."""
    folder.mkdir(exist_ok=True)
    jobs.run("train.py", size, folder, *options)
    made = saved(folder, size)
    weights = [name for name in made[0] if "weight" in name or "bias" in name]
    for each in made[1:]:
        for name in weights:
            np.testing.assert_array_equal(each[name], made[0][name], err_msg=name)
    return np.mean([each["losses"] for each in made], 0), {name: made[0][name] for name in weights}, made


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("how", ["kill", "stop", "fewer", "raise"])
def test_every_rank_says_which_one_failed_in_which_operator_and_line(tmp_path, how, mode, size=2):
    processes = jobs.start("train.py", size, tmp_path, "--how", how, "--mode", mode, timeout=15 if how == "stop" else 60)
    if how == "stop":
        survivors = jobs.ended(processes[:1] + processes[2:])
        processes[1].kill()
    else:
        results = jobs.ended(processes)
        survivors = results[:1] + results[2:]
    for status, out, err in survivors:
        assert status not in (0, -9), (how, out, err)
        last = err.strip().splitlines()[-1]
        assert re.search(r"rank 1\b", last) and "all_reduce" in last, err
        assert re.search(r"train\.py:\d+", last), err


def test_restarted_trainings_go_on_with_equal_losses_on_any_number_of_ranks(tmp_path):
    losses, weights, _ = trained(tmp_path / "whole", 2, "--epochs", 3)
    assert len(losses) == 12
    broken = tmp_path / "broken"
    broken.mkdir()
    jobs.ended(jobs.start("train.py", 2, broken, "--epochs", 3, "--how", "kill"))
    assert {path.name for path in Path(broken).glob("ckpt_0/*.ckpt")} == {"net-1_4.ckpt"}
    for size in (2, 4, 1):
        later, made, _ = trained(broken, size, "--epochs", 3, "--resume")
        for path in Path(broken).glob("ckpt_*/net_*"):  # what this training has saved
            path.unlink()
        np.testing.assert_allclose(later, losses[4:], 1e-5, err_msg=f"{size} ranks")
        for name, value in weights.items():
            np.testing.assert_allclose(made[name], value, 1e-4, 1e-6, err_msg=name)


def test_state_spread_over_the_ranks_is_whole_in_a_checkpoint(tmp_path):
    losses, _, _ = trained(tmp_path / "whole", 2, "--epochs", 2)
    trained(tmp_path / "spread", 2, "--epochs", 1, "--spread")
    for size, spread in ((2, ["--spread"]), (4, []), (4, ["--spread"])):
        later, _, _ = trained(tmp_path / "spread", size, "--epochs", 2, "--spread" if spread else "--resume", "--resume")
        for path in Path(tmp_path / "spread").glob("ckpt_*/net_*"):
            path.unlink()
        np.testing.assert_allclose(later, losses[4:], 1e-5, err_msg=f"{size} ranks {spread}")


@pytest.mark.parametrize("options", [["--scale", "dynamic"], ["--scale", "fixed", "--mode", "pynative"]], ids=" ".join)
def test_what_overflows_on_one_rank_is_left_out_by_all(tmp_path, options):
    _, weights, made = trained(tmp_path / "overflow", 2, "--epochs", 1, "--overflow", *options)
    assert all(np.isfinite(value).all() for value in weights.values())
    assert {float(each["scale"]) for each in made} == ({128.0} if "dynamic" in options else {64.0})  # halved by all
    assert not np.isfinite(made[1]["losses"][0]) and np.isfinite(made[0]["losses"]).all()


def test_all_ranks_begin_with_the_parameters_of_rank_0(tmp_path):
    trained(tmp_path / "job", 2, "--epochs", 1, "--broadcast")


def test_sink_and_feed_mode_give_the_same_parameters(tmp_path):
    _, fed, _ = trained(tmp_path / "feed", 2, "--epochs", 2)
    _, sunk, _ = trained(tmp_path / "sink", 2, "--epochs", 2, "--sink")
    for name, value in fed.items():
        np.testing.assert_array_equal(sunk[name], value, err_msg=name)


def test_rank_0_cannot_gather_spread_state_alone_and_is_told_where_it_tried(tmp_path):
    line = (jobs.SCRIPTS / "saves.py").read_text().splitlines().index("if get_rank() == 0:") + 2
    for status, _, err in jobs.ended(jobs.start("saves.py", 2, tmp_path / "net.ckpt", 1)):
        assert status == 1 and re.search(rf"ranks disagree on collective \d+ of .* calls broadcast_from .* at saves\.py:{line}\b", err), err
    assert jobs.run("saves.py", 2, tmp_path / "net.ckpt", 0) == ["fine\n"] * 2

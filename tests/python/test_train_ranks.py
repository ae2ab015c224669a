"""cairn.Trainer and `cairn train` on several ranks train as one process with the whole batch."""

import sys

import cairn
import numpy as np
import pytest
import rank_jobs

SCRIPT = """
import sys
import cairn, numpy as np
cairn.job.join()
rank, size = cairn.job.group().rank, cairn.job.group().size
data = np.load(sys.argv[2])
trainer = cairn.Trainer(sys.argv[1], optimizer="adam", loss="cross_entropy")
losses = []
for i in range(4):
    share = slice(i * 16 + rank * 16 // size, i * 16 + (rank + 1) * 16 // size)
    losses.append(trainer.step({"x": data["x"][share]}, data["labels"][share], 0.01)["loss"])
losses += [epoch["loss"] for epoch in trainer.fit({"x": data["x"]}, data["labels"], epochs=2, batch=16, learning_rate=0.01)]
trainer.save(f"{sys.argv[3]}.om")
np.savez(f"{sys.argv[3]}_{rank}.npz", losses=losses, **{key.replace("/", "."): value for key, value in trainer.state().items()})
cairn.job.leave()
"""


@pytest.fixture
def problem(tmp_path):
    """A text model of two layers, and 64 examples."""
    random = np.random.RandomState(0)
    builder = cairn.Builder("net")
    x = builder.input("x", "float32", [None, 8])
    first, second = (builder.constant(random.normal(size=shape).astype(np.float32)) for shape in ((8, 12), (12, 3)))
    builder.output("y", x.matmul(first).relu().matmul(second))
    builder.save(tmp_path / "net.om")
    np.savez(tmp_path / "data.npz", x=random.normal(size=(64, 8)).astype(np.float32), labels=random.randint(0, 3, 64))
    (tmp_path / "script.py").write_text(SCRIPT)
    return tmp_path


def trained(folder, size):
    words = [sys.executable, folder / "script.py", folder / "net.om", folder / "data.npz", folder / f"of_{size}"]
    rank_jobs.outputs_of(rank_jobs.processes(words, size))
    return [dict(np.load(folder / f"of_{size}_{rank}.npz")) for rank in range(size)]


@pytest.mark.parametrize("size", [2, 4])
def test_a_trainer_of_several_ranks_trains_as_one(problem, size):
    (expected,) = trained(problem, 1)
    for found in trained(problem, size):
        for name, value in expected.items():
            np.testing.assert_allclose(found[name], value, 1e-4, 1e-6, err_msg=name)


def test_the_command_trains_on_several_ranks_and_rank_0_writes(problem):
    words = [rank_jobs.Path(sys.executable).parent / "cairn", "train", "net.om", "--data", "data.npz", "--epochs", "3", "--batch", "16"]
    (alone,) = rank_jobs.outputs_of(rank_jobs.processes([*words, "-o", "one.npz"], 1, cwd=problem))
    first, second = rank_jobs.outputs_of(rank_jobs.processes([*words, "-o", "two.npz"], 2, cwd=problem))
    assert "epoch 3/3" in first and not second
    one, two = np.load(problem / "one.npz"), np.load(problem / "two.npz")
    for name in one:
        np.testing.assert_allclose(two[name], one[name], 1e-4, 1e-6, err_msg=name)


def test_batches_that_ranks_cannot_share_are_refused(problem):
    words = [rank_jobs.Path(sys.executable).parent / "cairn", "train", "net.om", "--data", "data.npz", "--batch", "15"]
    for status, _, err in rank_jobs.ended(rank_jobs.processes(words, 2, cwd=problem)):
        assert status == 1 and "batch: has 15 examples, no multiple of 2 ranks" in err

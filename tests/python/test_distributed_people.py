"""Scripts as people write them, each on one process and on several ranks: equal weights on all ranks, and those of one process with the
whole batch. They are in tests/python/distributed/people."""

import subprocess

import numpy as np
import pytest
import tensorflow_adapter
from conftest import BIN, ROOT

tensorflow_adapter.use_packages()

SCRIPTS = ROOT / "tests" / "python" / "distributed" / "people"
ALONE = {}
#            script            how to run it    arguments    of the default tests
CASES = [("tf_hooks", "tf1", [], True), ("tf_estimator", "tf1", [], False), ("keras_schedule", "", [], False), ("hvd_metrics", "tf1", [], False),
         ("tf_uneven", "tf1", [], True), ("tf_accumulate_clip", "tf1", [], True), ("tf_sparse", "tf1", ["adam"], False), ("tf_sparse", "tf1", ["adagrad"], False),
         ("tf_sparse", "tf1", ["momentum"], False), ("tf_norm_restart", "tf1", [], False), ("hvd_tape", "", [], False), ("strategy_loop", "", [], True), ("ms_loss_scale", "ms", [], False),
         ("ms_accumulate", "ms", ["0"], False), ("ms_accumulate", "ms", ["1"], False), ("ms_optimizer_parallel", "ms", [], False),
         ("ms_functional", "ms", [], False), ("ms_checkpoint", "ms", [], False)]  # fmt: skip


def script_of(name, folder):
    if not name.startswith(("hvd", "strategy")):
        return SCRIPTS / f"{name}.py"
    done = subprocess.run([BIN / "cairn", "migrate", SCRIPTS / f"{name}.py", "-o", folder], capture_output=True, text=True)
    assert done.returncode == (1 if name.startswith("strategy") else 0), done.stdout + done.stderr  # 1: something is left to do
    return folder / f"{name}.py"


def run(name, how, words, ranks, folder):
    """What each rank saved."""
    script = script_of(name, folder)
    command = [BIN / "cairn", "launch", "-n", str(ranks), "--grace", "30", *(["cairn", how] if how else []), script, folder / "out", *words]
    done = subprocess.run(list(map(str, command)), env=tensorflow_adapter.environment("cairn"), capture_output=True, text=True, timeout=400)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
    return [dict(np.load(folder / f"out.{rank}.npz")) for rank in range(ranks)]


@pytest.mark.parametrize(
    ("name", "how", "words", "ranks"),
    [pytest.param(name, how, words, ranks, marks=[] if usual and ranks == 2 else pytest.mark.long, id="-".join([name, *words, str(ranks)]))
     for name, how, words, usual in CASES for ranks in (2, 4)],
)  # fmt: skip
def test_a_script_trains_on_ranks_as_on_one_process(name, how, words, ranks, tmp_path, tmp_path_factory):
    key = (name, *words)
    if key not in ALONE:
        (ALONE[key],) = run(name, how, words, 1, tmp_path_factory.mktemp("alone"))
    whole, several = ALONE[key], run(name, how, words, ranks, tmp_path)
    for each in whole:
        for other in several[1:]:
            if each != "mine":
                np.testing.assert_array_equal(other[each], several[0][each], err_msg=each)
        value = np.mean([rank[each] for rank in several], 0) if each == "mine" else several[0][each]
        np.testing.assert_allclose(value, whole[each], rtol=2e-4, atol=2e-5, err_msg=each)

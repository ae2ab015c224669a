"""Jobs of cairn launch in which a rank goes wrong: what the others say, and that a start behind it goes on with equal losses."""

import json
import os
import re
import subprocess
from pathlib import Path

import numpy as np
import pytest
import random_faults
from conftest import BIN

SCRIPT = Path(__file__).parent / "ranks" / "train_in_steps.py"


def start(*words, **variables):
    return subprocess.Popen([BIN / "cairn", "launch", *map(str, words)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                            env={**os.environ, **variables})  # fmt: skip


def launch(*words, seconds=240, **variables):
    process = start(*words, **variables)
    try:
        out, err = process.communicate(timeout=seconds)
    finally:
        process.kill()
    return subprocess.CompletedProcess(words, process.returncode, out, err)


def losses(folder):
    return json.loads((folder / "losses.json").read_text())


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    """Losses of two ranks that nothing happens to."""
    folder = tmp_path_factory.mktemp("alone")
    assert launch("-n", 2, SCRIPT, folder).returncode == 0
    return losses(folder)


# how: (status, seconds that ranks wait for others, what survivors say, what the launcher says)
SENTENCES = {
    "kill": (137, 60, r"rank 1 \(process \d+ on .+\) has ended without leaving the job", r"rank 1 .* was ended by SIGKILL"),
    "raise": (1, 60, r"rank 1 \(process \d+ on .+\) has ended without leaving the job", r"rank 1 .* ended with status 1"),
    "stop": (1, 10, r"rank 1 .* does not answer .* while rank \d waited .* in all_reduce \"gradients\"", r"rank 1 had to be ended"),
    "hang": (1, 10, r"rank 1 .* has not come to number \d+ .* while rank \d waited", r"rank \d .* ended with status 1"),
    "other": (1, 60, r"ranks disagree .* rank 1 .* \"other\"", r"rank \d .* ended with status 1"),
}


@pytest.mark.parametrize("how", SENTENCES)
def test_every_survivor_says_who_failed_and_where(how, tmp_path):
    status, timeout, survivors, summary = SENTENCES[how]
    done = launch("-n", 3, "--timeout", timeout, SCRIPT, tmp_path, "--how", how)
    assert done.returncode == status and re.search("error: launch: .*" + summary, done.stderr), done.stderr
    for rank in (0, 2):
        said = "\n".join(line for line in done.stderr.splitlines() if line.startswith(f"[{rank}]"))
        assert re.search(survivors, said), done.stderr


@pytest.mark.parametrize("how", ["kill", "raise", "stop"])
def test_restarts_go_on_from_the_checkpoint_with_equal_losses(how, tmp_path, alone):
    done = launch("-n", 2, "--restarts", 1, "--timeout", 10, SCRIPT, tmp_path, "--how", how)
    assert done.returncode == 0, done.stderr
    assert "all start again (1 of 1 restarts)" in done.stderr and "[0] goes on behind step 3" in done.stdout
    assert losses(tmp_path) == alone


def test_a_job_goes_on_with_another_number_of_ranks(tmp_path, alone):
    assert launch("-n", 2, SCRIPT, tmp_path, "--how", "kill").returncode == 137
    done = launch("-n", 3, SCRIPT, tmp_path)
    assert "[2] goes on behind step 3" in done.stdout
    np.testing.assert_allclose(losses(tmp_path), alone, rtol=1e-5)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(60))
def test_random_faults_are_named_and_restarts_give_equal_losses(seed, tmp_path):
    """Five faults each at random times in jobs of four ranks, from outside; `python tests/python/random_faults.py` runs any number of them."""
    assert all(random_faults.run(tmp_path, seed, 5))


@pytest.mark.long  # a rank that fails at once may have ended before the others look
@pytest.mark.parametrize("rank", [0, 1])
def test_a_rank_that_loses_its_connections_is_not_said_to_have_ended(rank, tmp_path):
    job = start("-n", 3, SCRIPT, tmp_path, "--steps", 100000)
    while not (tmp_path / "checkpoint.json").exists():
        assert job.poll() is None
    (tmp_path / f"cut.{rank}").touch()
    _, err = job.communicate(timeout=240)
    assert job.returncode == 1
    for each in range(3):
        said = "\n".join(line for line in err.splitlines() if line.startswith(f"[{each}]"))
        assert re.search(rf"the connection between rank 0 \(process .* and rank {rank or '[12]'} \(process .* was closed though both go on", said), err

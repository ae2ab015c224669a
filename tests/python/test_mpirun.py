"""Jobs that mpirun starts: the ranks find each other by Open MPI, and exchange by shared memory, Open MPI or Gloo."""

import os
import re
import shutil
import subprocess
import sys

import pytest
from test_collectives import EQUAL, PRELUDE

pytestmark = pytest.mark.skipif(not shutil.which("mpirun"), reason="mpirun is not installed (openmpi-bin)")

WAYS = {"shared memory": {}, "mpi, as": {"shared_memory": False}, "gloo, as": {"shared_memory": False, "transport": "gloo"}}
RUN_ON = """
print("transport", cairn.job.describe()["transport"], flush=True)
step = 0
while True:
    if rank == 1 and step == 3:
        os.kill(os.getpid(), signal.{})
    cairn.ops.all_reduce(np.ones(3, np.float32), ranks=size, name="w")
    step += 1
"""


def mpirun(size, script, *words, **options):
    as_root = ["--allow-run-as-root"] if os.geteuid() == 0 else []
    script = PRELUDE.replace("join()", f"join(**{options})") + script
    command = ["mpirun", *as_root, "--oversubscribe", "-n", str(size), *words, sys.executable, "-c", script]
    return subprocess.run(command, capture_output=True, text=True, timeout=240)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("size", [2, 3])
def test_collectives_of_ranks_of_mpirun_equal_numpy(size, way):
    done = mpirun(size, "way = cairn.job.describe()['transport']" + EQUAL + "print(way)", **WAYS[way])
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("done") == size and done.stdout.count(way) == size, done.stdout


@pytest.mark.parametrize("way", WAYS)
def test_a_killed_rank_is_named_by_the_others(way):
    done = mpirun(3, RUN_ON.format("SIGKILL"), "--mca", "orte_enable_recovery", "1", **WAYS[way])  # mpirun kills none of them
    assert done.stdout.count("transport " + way) == 3
    assert len(re.findall(r"cairn.Error: .*rank 1( \(process|\b.* broke)", done.stderr)) == 2, done.stderr


@pytest.mark.parametrize("way", WAYS)
def test_a_stopped_rank_is_named_and_the_job_ends(way):
    done = mpirun(3, RUN_ON.format("SIGSTOP"), timeout=10, **WAYS[way])
    assert done.returncode != 0 and re.search(r"rank 1 \(process \d+ on .+\) does not answer .* in all_reduce \"w\"", done.stderr), done.stderr


def test_ranks_on_several_hosts_need_the_address_of_the_host():
    place = {"OMPI_COMM_WORLD_SIZE": "2", "OMPI_COMM_WORLD_RANK": "0", "OMPI_COMM_WORLD_LOCAL_SIZE": "1"}
    done = subprocess.run([sys.executable, "-c", "import cairn; cairn.job.join()"], env={**os.environ, **place}, capture_output=True, text=True)
    assert done.returncode == 1 and "HCCL_IF_IP: is not set: mpirun has started ranks on several hosts" in done.stderr

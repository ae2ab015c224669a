"""cairn launch: ranks and their environment, output, failures, restarts, hosts and tables. The programs are small Python scripts."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from conftest import BIN
from rank_jobs import alive

SHOW = """
import json, os, sys
job = json.loads(os.environ["CAIRN_JOB"])
names = ("RANK_ID", "RANK_SIZE", "DEVICE_ID", "ASCEND_DEVICE_ID")
print(json.dumps({**{n: os.environ[n] for n in names}, "job": job, "id": os.environ["JOB_ID"], "words": sys.argv[1:],
                  "cores": sorted(os.sched_getaffinity(0)), "table": os.environ.get("RANK_TABLE_FILE")}))
"""


def launch(*words, timeout=240, **more):
    command = [str(BIN / "cairn"), "launch", *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, timeout=timeout, env={**os.environ, **more})


def script(folder, text):
    path = folder / "script.py"
    path.write_text(text)
    return path


def shown(done):
    """What SHOW printed, by rank."""
    assert done.returncode == 0, done.stderr
    lines = [line.split(" ", 1) for line in done.stdout.splitlines()]
    return {int(mark.strip("[]")): json.loads(text) for mark, text in lines}


def test_ranks_get_their_numbers_a_meeting_point_and_their_words(tmp_path):
    ranks = shown(launch("-n", 3, script(tmp_path, SHOW), "--epochs", 2, "it's"))
    assert sorted(ranks) == [0, 1, 2]
    for rank, seen in ranks.items():
        assert seen["RANK_ID"] == seen["DEVICE_ID"] == seen["ASCEND_DEVICE_ID"] == str(rank) and seen["RANK_SIZE"] == "3"
        assert (seen["job"]["rank"], seen["job"]["size"], seen["job"]["local_rank"], seen["job"]["local_size"]) == (rank, 3, rank, 3)
        assert seen["words"] == ["--epochs", "2", "it's"]
    assert len({seen["job"]["address"] for seen in ranks.values()}) == 1
    assert ranks[0]["job"]["address"].startswith("127.0.0.1:")
    assert len({(seen["job"]["token"], seen["id"]) for seen in ranks.values()}) == 1


def test_two_jobs_have_different_tokens(tmp_path):
    path = script(tmp_path, SHOW)
    assert shown(launch("-n", 1, path))[0]["job"]["token"] != shown(launch("-n", 1, path))[0]["job"]["token"]


def test_cores_are_divided_among_the_ranks(tmp_path):
    path = script(tmp_path, SHOW)
    ranks = shown(launch("-n", 2, path))
    cores = sorted(os.sched_getaffinity(0))
    if len(cores) > 1:
        assert not set(ranks[0]["cores"]) & set(ranks[1]["cores"])
        assert sorted(ranks[0]["cores"] + ranks[1]["cores"]) == cores
    assert shown(launch("-n", 2, "--bind", "none", path))[1]["cores"] == cores


def test_devices_and_job_options_are_handed_on(tmp_path):
    path = script(tmp_path, SHOW)
    ranks = shown(launch("-n", 2, "--device-list", "4,6", "--timeout", 7, "--transport", "gloo", path))
    assert [ranks[r]["DEVICE_ID"] for r in (0, 1)] == ["4", "6"]
    assert ranks[0]["job"]["timeout"] == 7 and ranks[0]["job"]["transport"] == "gloo"


def test_a_module_and_a_command_are_programs_too(tmp_path):
    (tmp_path / "mine.py").write_text("import os; print('rank', os.environ['RANK_ID'])")
    done = launch("-n", 2, "-m", "mine", PYTHONPATH=str(tmp_path))
    assert sorted(done.stdout.splitlines()) == ["[0] rank 0", "[1] rank 1"]
    done = launch("-n", 2, "sh", "-c", "echo $RANK_ID of $RANK_SIZE")
    assert sorted(done.stdout.splitlines()) == ["[0] 0 of 2", "[1] 1 of 2"]


def test_output_keeps_its_stream_and_goes_to_logs(tmp_path):
    path = script(tmp_path, "import sys\nprint('out')\nprint('err', file=sys.stderr)\nprint('open end', end='')")
    done = launch("-n", 2, "--log-dir", tmp_path / "logs", path)
    assert sorted(done.stdout.splitlines()) == ["[0] open end", "[0] out", "[1] open end", "[1] out"]
    assert sorted(done.stderr.splitlines()) == ["[0] err", "[1] err"]
    for rank in (0, 1):
        assert sorted((tmp_path / "logs" / f"rank_{rank}.log").read_text().splitlines()) == ["err", "open end", "out"]


FAIL = """
import os, sys, time
rank = int(os.environ["RANK_ID"])
if rank == 1:
    time.sleep(0.2)
    {how}
try:
    time.sleep(50)
finally:
    print("ended")
"""


@pytest.mark.parametrize(
    ("how", "status", "sentence"),
    [
        ("sys.exit(3)", 3, "rank 1 (this host) ended with status 3 after"),
        ("os.kill(os.getpid(), 9)", 137, "rank 1 (this host) was ended by SIGKILL after"),
        ("os.abort()", 134, "rank 1 (this host) was ended by SIGABRT after"),
    ],
)
def test_the_first_failure_ends_all_and_is_named(how, status, sentence, tmp_path):
    done = launch("-n", 3, "--grace", 0.5, script(tmp_path, FAIL.format(how=how)))
    assert done.returncode == status
    last = done.stderr.splitlines()[-1]
    assert last.startswith("error: launch: " + sentence) and last.endswith("ranks 0, 2 had to be ended")


def gone(pid):
    """Whether the process ends within a minute."""
    deadline = time.monotonic() + 60
    while alive(pid) and time.monotonic() < deadline:
        time.sleep(0.05)
    return not alive(pid)


def test_what_ignores_a_request_to_end_is_killed_with_its_children(tmp_path):
    text = (
        "import os, signal, subprocess, sys, time\n"
        "if os.environ['RANK_ID'] == '1':\n"
        "    while not os.path.exists(sys.argv[1]): time.sleep(0.02)\n"
        "    sys.exit(1)\n"
        "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        "child = subprocess.Popen(['sleep', '99'])\nopen(sys.argv[1] + '.part', 'w').write(f'{os.getpid()} {child.pid}')\nos.rename(sys.argv[1] + '.part', sys.argv[1])\ntime.sleep(99)\n"
    )
    done = launch("-n", 2, "--grace", 0, script(tmp_path, text), tmp_path / "pids")
    assert done.returncode == 1
    assert all(map(gone, (tmp_path / "pids").read_text().split()))


def test_the_rank_that_failed_first_is_named_where_the_launcher_sees_several_ends_at_once(tmp_path):
    text = (
        "import os, sys, time\nrank = int(os.environ['RANK_ID'])\n"
        "print(os.getpid(), flush=True)\n"
        "while not os.path.exists(f'{sys.argv[1]}.{rank}'): time.sleep(0.02)\n"
        "sys.exit(3 + rank)\n"
    )
    command = [str(BIN / "cairn"), "launch", "-n", "3", str(script(tmp_path, text)), str(tmp_path / "end")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as job:
        pids = dict(job.stdout.readline().split() for _ in range(3))
        job.send_signal(signal.SIGSTOP)
        for rank in (1, 0, 2):
            (tmp_path / f"end.{rank}").touch()
            assert gone(pids[f"[{rank}]"])
        job.send_signal(signal.SIGCONT)
        _, err = job.communicate(timeout=240)
    assert job.returncode == 4 and "error: launch: rank 1 (this host) ended with status 4 after" in err


def test_ranks_that_are_stopped_when_all_others_have_ended_are_ended_in_time(tmp_path):
    text = "import os, signal\nif os.environ['RANK_ID'] == '1': os.kill(os.getpid(), signal.SIGSTOP)\n"
    done = launch("-n", 3, "--timeout", 1, script(tmp_path, text))
    assert done.returncode == 143
    assert "error: launch: rank 1 (this host) was stopped when no other rank was left, and had to be ended after" in done.stderr
    assert "ranks 0, 2 ended with status 0" in done.stderr


def test_json_has_every_end_and_the_output_goes_to_standard_error(tmp_path):
    done = launch("-n", 2, "--json", "--grace", 0.2, script(tmp_path, FAIL.format(how="sys.exit(5)")))
    summary = json.loads(done.stdout)
    assert summary["status"] == done.returncode == 5 and summary["first_failed"] == 1 and summary["restarts"] == 0
    assert [rank["status"] for rank in summary["ranks"]] == [None, 5] and summary["ranks"][0]["signal"] == "SIGTERM"
    assert summary["ranks"][0]["ended_by_launch"] and not summary["ranks"][1]["ended_by_launch"]


def test_signals_are_passed_on(tmp_path):
    text = (
        "import os, signal, sys, time\n"
        "signal.signal(signal.SIGUSR1, lambda *_: print('usr1', flush=True))\n"
        "def end(*_):\n    print('asked to end', flush=True)\n    sys.exit(0)\n"
        "signal.signal(signal.SIGINT, end)\nprint('ready', flush=True)\n"
        "while True: time.sleep(0.1)\n"
    )
    command = [str(BIN / "cairn"), "launch", "-n", "2", str(script(tmp_path, text))]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler)) as job:
        lines = [job.stdout.readline().strip() for _ in range(2)]
        job.send_signal(signal.SIGUSR1)
        lines += [job.stdout.readline().strip() for _ in range(2)]
        job.send_signal(signal.SIGINT)
        lines += [job.stdout.readline().strip() for _ in range(2)]
        assert job.wait(240) == 130
    for word in ("ready", "usr1", "asked to end"):
        assert sorted(line for line in lines if line.endswith(word)) == [f"[0] {word}", f"[1] {word}"]


def test_a_job_without_its_launcher_ends(tmp_path):
    text = "import os, sys, time\nopen(f\"{sys.argv[1]}.{os.environ['RANK_ID']}\", 'w').write(str(os.getpid()))\nprint('up', flush=True)\ntime.sleep(99)"
    command = [str(BIN / "cairn"), "launch", "-n", "2", str(script(tmp_path, text)), str(tmp_path / "pid")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as job:
        for _ in range(2):
            job.stdout.readline()
        job.kill()
        job.wait()
    assert all(gone((tmp_path / f"pid.{rank}").read_text()) for rank in (0, 1))


def test_restarts_start_all_again_until_they_succeed_or_are_used_up(tmp_path):
    text = "import os, sys\nprint('run', os.environ['CAIRN_RESTART'])\nsys.exit(os.environ['RANK_ID'] == '1' and int(os.environ['CAIRN_RESTART']) < int(sys.argv[1]))"
    path = script(tmp_path, text)
    done = launch("-n", 2, "--restarts", 2, "--grace", 60, path, 2)
    assert done.returncode == 0 and sorted(done.stdout.splitlines()) == [f"[{r}] run {i}" for r in (0, 1) for i in range(3)]
    assert "all start again (1 of 2 restarts)" in done.stderr and "(2 of 2 restarts)" in done.stderr
    assert launch("-n", 2, "--restarts", 1, "--grace", 60, path, 2).returncode == 1


# Other hosts: a command in the place of ssh that runs what it is given here.
SSH = '#!/bin/sh\nhost=$1\nshift\necho "$host" >> "$(dirname "$0")/reached"\ncd /\nexec sh -c "$*"\n'


@pytest.fixture
def ssh(tmp_path):
    path = tmp_path / "fake_ssh"
    path.write_text(SSH)
    path.chmod(0o755)
    return path


def test_hosts_are_reached_by_ssh_in_the_same_folder(tmp_path, ssh):
    text = SHOW.replace('"id"', '"folder": os.getcwd(), "id"')
    ranks = shown(launch("-n", 5, "--hosts", "localhost,far", "--ssh", ssh, script(tmp_path, text), "a b", "it's"))
    assert [ranks[r]["job"]["local_rank"] for r in range(5)] == [0, 1, 2, 0, 1]
    assert all(ranks[r]["words"] == ["a b", "it's"] and ranks[r]["folder"] == os.getcwd() for r in range(5))
    assert (tmp_path / "reached").read_text().split() == ["far", "far"]
    assert not ranks[0]["job"]["address"].startswith("127.0.0.1")  # which the other host could not reach


def test_a_failure_on_a_host_names_it_and_ends_the_rank_there(tmp_path, ssh):
    text = (
        "import os, sys, time\n"
        "if os.environ['RANK_ID'] == '1':\n"
        "    while not os.path.exists(sys.argv[1]): time.sleep(0.02)\n"
        "    sys.exit(4)\n"
        "open(sys.argv[1] + '.part', 'w').write(str(os.getpid()))\nos.rename(sys.argv[1] + '.part', sys.argv[1])\ntime.sleep(99)\n"
    )
    done = launch("--hosts", "one:1,two:1", "--ssh", ssh, "--grace", 0.2, script(tmp_path, text), tmp_path / "pid")
    assert done.returncode == 4 and "rank 1 (two) ended with status 4" in done.stderr
    assert gone((tmp_path / "pid").read_text())


def test_a_rank_table_is_written_and_read_again(tmp_path, ssh):
    path, table = script(tmp_path, SHOW), tmp_path / "hccl.json"
    wrote = shown(launch("-n", 2, "--hosts", "localhost,far", "--ssh", ssh, "--device-list", "3", "--rank-table", table, path))
    servers = json.loads(table.read_text())["server_list"]
    assert [s["server_id"] for s in servers] == ["127.0.0.1", "far"]
    assert servers[1]["device"] == [{"device_id": "3", "device_ip": "far", "rank_id": "1"}]
    read = shown(launch("--rank-table", table, "--ssh", ssh, path))
    for ranks in (wrote, read):
        assert [(ranks[r]["DEVICE_ID"], ranks[r]["job"]["local_rank"], ranks[r]["table"]) for r in (0, 1)] == [("3", 0, str(table))] * 2


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ([], "no program to start; expected a script, -m MODULE or a command after the options"),
        (["-n", "2", "gone.py"], "gone.py: there is no such script"),
        (["-n", "2", "no-such-program"], "no-such-program: cannot be run: No such file or directory"),
        (["--hosts", "a,b", "--ssh", "no-ssh", "true"], "ranks on other hosts are started by no-ssh, which is not installed"),
        (["-n", "1", "--hosts", "a,b", "true"], "--hosts: has 2 hosts for 1 ranks"),
        (["-n", "3", "--hosts", "a:1,b:1", "true"], "--hosts: has 2 ranks, -n asks for 3"),
        (["--hosts", "a:x", "true"], "--hosts: a:x is not NAME:RANKS"),
        (["-n", "2", "--device-list", "1", "true"], "--device-list: has 1 devices for 2 ranks of a host"),
        (["-n", "1", "--device-list", "x", "true"], '--device-list: "x" is no device, expected a number'),
        (["--rank-table", __file__, "true"], "is no rank table: expected server_list (version 1.0) or group_list (0.x)"),
    ],
)
def test_a_wrong_request_is_refused_in_one_sentence(words, sentence):
    done = launch(*words)
    assert done.returncode == 1 and sentence in done.stderr and done.stderr.count("\n") == 1


def test_a_plain_python_program_is_started_with_the_python_beside_cairn(tmp_path):
    done = launch("-n", 1, script(tmp_path, "import sys; print(sys.prefix)"))
    assert done.stdout.split()[1] == sys.prefix


MODEL = """module @m {
  func @main(%x: f32[?n, 5]) -> (%y: f32[?n, 5]) {
    %y = tanh %x : f32[?n, 5]
    return %y
  }
}
"""


@pytest.mark.parametrize("ranks", [2, 3])
def test_ranks_run_a_batch_together(ranks, tmp_path):
    x = np.random.RandomState(0).randn(7, 5).astype(np.float32)
    np.save(tmp_path / "x.npy", x)
    np.save(tmp_path / "one.npy", x[:1])
    model = str(tmp_path / "model.cairn")
    Path(model).write_text(MODEL)
    run = [str(BIN / "cairn"), "run", model, "--input", f"x={tmp_path / 'x.npy'}", "-o"]
    subprocess.run([*run, str(tmp_path / "whole.npz")], check=True, capture_output=True)
    done = launch("-n", ranks, "cairn", *run[1:], tmp_path / "parts.npz")
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("wrote") == 1
    np.testing.assert_array_equal(np.load(tmp_path / "parts.npz")["y"], np.load(tmp_path / "whole.npz")["y"])
    few = launch("-n", 2, "cairn", "run", model, "--input", f"x={tmp_path / 'one.npy'}")
    assert few.returncode == 1 and "the batch has 1 rows for 2 ranks" in few.stderr

"""cairn launch: ranks, what they are told, what they print, how they end; and models run over ranks."""

import json
import os
import random
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from conftest import BIN

SCRIPT = Path(__file__).parent / "ranks" / "train_in_steps.py"
MODEL = """
module @m {
  func @main(%x: f32[?n, 3]) -> (%y: f32[?n, 2]) {
    %w = constant {value = f32[3, 2] (1, 2, 3, 4, 5, 6)} : f32[3, 2]
    %y = matmul %x, %w : f32[?n, 2]
    return %y
  }
}
"""


def start(*words, **variables):
    return subprocess.Popen([BIN / "cairn", "launch", *map(str, words)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                            env={**os.environ, **variables})  # fmt: skip


def launch(*words, seconds=100, **variables):
    process = start(*words, **variables)
    try:
        out, err = process.communicate(timeout=seconds)
    finally:
        process.kill()
    return subprocess.CompletedProcess(words, process.returncode, out, err)


def python(code):
    return [sys.executable, "-c", code]


def losses(folder):
    return json.loads((folder / "losses.json").read_text())


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    """Losses of two ranks that nothing happens to."""
    folder = tmp_path_factory.mktemp("alone")
    assert launch("-n", 2, SCRIPT, folder).returncode == 0
    return losses(folder)


@pytest.fixture
def far(tmp_path):
    """A program in the place of ssh: its host is this one."""
    program = tmp_path / "far_shell"
    program.write_text('#!/bin/sh\nshift\necho "welcome" >&2\nexec sh -c "$1"\n')
    program.chmod(0o755)
    return program


def test_ranks_know_their_place():
    code = "import os, json; print(json.dumps({n: os.environ.get(n) for n in ('RANK_ID', 'RANK_SIZE', 'DEVICE_ID', 'ASCEND_DEVICE_ID', 'JOB_ID')} | json.loads(os.environ['CAIRN_JOB'])))"
    done = launch("-n", 3, "--device-list", "4,6,7", "--timeout", 7, *python(code), RANK_TABLE_FILE="other", JOB_ID="mine")
    assert done.returncode == 0, done.stderr
    ranks = sorted((json.loads(line.split("] ", 1)[1]) for line in done.stdout.splitlines()), key=lambda each: each["rank"])
    for i, each in enumerate(ranks):
        assert (each["rank"], each["size"], each["local_rank"], each["local_size"]) == (i, 3, i, 3)
        assert (each["RANK_ID"], each["RANK_SIZE"], each["timeout"], each["JOB_ID"]) == (str(i), "3", 7, "mine")
        assert each["DEVICE_ID"] == each["ASCEND_DEVICE_ID"] == "467"[i]
    assert len({(each["address"], each["token"]) for each in ranks}) == 1


def test_the_cores_are_divided_among_ranks():
    code = "import os; print(os.environ['OMP_NUM_THREADS'], *sorted(os.sched_getaffinity(0)))"
    own = os.sched_getaffinity(0)
    done = launch("-n", 2, *python(code))
    shares = [[int(word) for word in line.split()[1:]] for line in done.stdout.splitlines()]
    assert len(shares) == 2 and all(share[0] == len(share) - 1 for share in shares)
    cores = [set(share[1:]) for share in shares]
    assert cores[0] | cores[1] <= own and (len(own) == 1 or not cores[0] & cores[1])
    free = launch("-n", 2, "--no-bind", *python(code)).stdout.splitlines()
    assert all({int(word) for word in line.split()[2:]} == own for line in free)


def test_options_behind_the_program_are_the_programs_own(tmp_path):
    script = tmp_path / "args.py"
    script.write_text("import sys; print(sys.argv[1:])")
    assert launch("-n", 1, script, "-n", 5, "-m", "x", "--json").stdout == "[0] ['-n', '5', '-m', 'x', '--json']\n"
    made = launch("-n", 1, "-m", "args", "-n", 5, "--help", PYTHONPATH=str(tmp_path))
    assert made.stdout == "[0] ['-n', '5', '--help']\n", made.stderr


@pytest.mark.parametrize("words, said", [
    (["-n", 2, "missing.py"], "missing.py: there is no such script"),
    (["-n", 2, "no_such_program"], "no_such_program: cannot be started"),
    (["-n", 2], "needs a script or a program"),
    (["train.py"], "train.py: there is no such script"),
    (["true"], "needs -n RANKS"),
    (["-n", 2, "--rank", "true"], "--rank: is no option of launch"),
    (["-n", 2, "-m"], "-m: needs a module behind it"),
    (["-n", 3, "--hosts", "a:1,b:1", "true"], "has places for 2 ranks, -n is 3"),
    (["-n", 3, "--device-list", "0,1", "true"], "has 2 devices for 3 ranks"),
    (["--hosts", "localhost,far", "true"], "other hosts do not reach rank 0 as localhost"),
    (["-n", 2, "--address", "nowhere", "true"], "expected host:port"),
    (["--hosts", "localhost,far", "--address", "127.0.0.1:4000", "--ssh", "no_such_ssh", "true"], "no_such_ssh: cannot be started"),
])  # fmt: skip
def test_a_wrong_command_line_is_refused_in_one_sentence(words, said):
    done = launch(*words, seconds=20)
    assert done.returncode == 1 and said in done.stderr and done.stderr.startswith("error: launch: "), done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_lines_stay_whole_and_keep_their_stream(tmp_path):
    code = "import sys; [print('x' * 5000, i) or print('note', i, file=sys.stderr) for i in range(50)]; sys.stdout.write('a\\rbar 1\\rbar 2\\nend')"
    done = launch("-n", 3, "--log-dir", tmp_path / "logs", *python(code))
    for rank in range(3):
        mine = [line[4:] for line in done.stdout.splitlines() if line.startswith(f"[{rank}] ")]
        assert mine == ["x" * 5000 + f" {i}" for i in range(50)] + ["bar 2", "end"]
        assert [line for line in done.stderr.splitlines() if line.startswith(f"[{rank}]")] == [f"[{rank}] note {i}" for i in range(50)]
        assert (tmp_path / "logs" / f"rank_{rank}.log").read_text().count("note") == 50


def test_the_first_failure_ends_all_and_is_the_status():
    code = "import os, sys, time; time.sleep(0.3 if os.environ['RANK_ID'] == '1' else 60); sys.exit(3)"
    begin = time.time()
    done = launch("-n", 3, "--grace", 0.5, "--json", *python(code))
    assert done.returncode == 3 and time.time() - begin < 30
    assert re.search(r"error: launch: rank 1 \(process \d+ on .+\) ended with status 3 after [\d.]+ s; 2 that did not end", done.stderr)
    told = json.loads(done.stdout)
    assert told["failure"]["rank"] == 1 and told["status"] == 3 and [each["signal"] for each in told["ranks"]] == ["SIGTERM", None, "SIGTERM"]


def test_a_signal_is_passed_on_once_and_nothing_is_left_behind():
    code = "import signal, sys, time; signal.signal(signal.SIGTERM, lambda *_: (print('got it'), sys.exit(0))); print('ready'); time.sleep(60)"
    process = start("-n", 2, *python(code))
    assert {process.stdout.readline(), process.stdout.readline()} == {"[0] ready\n", "[1] ready\n"}
    process.send_signal(signal.SIGTERM)
    out, err = process.communicate(timeout=30)
    assert sorted(out.splitlines()) == ["[0] got it", "[1] got it"] and process.returncode == 128 + signal.SIGTERM
    assert err == "error: launch: ended by SIGTERM\n"


def test_ranks_end_when_the_launch_is_killed():
    process = start("-n", 2, *python("import os, time; print(os.getpid()); time.sleep(60)"))
    ranks = [int(process.stdout.readline().split()[1]) for _ in range(2)]
    process.kill()
    process.communicate(timeout=10)
    until = time.time() + 10
    while any(alive(each) for each in ranks) and time.time() < until:
        time.sleep(0.05)
    assert not any(alive(each) for each in ranks)


def alive(process):
    try:
        return Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def test_a_process_that_a_failed_rank_left_is_ended():
    code = "import subprocess, os, sys; p = subprocess.Popen(['sleep', '60']); print(p.pid); sys.stdout.flush(); os._exit(4)"
    done = launch("-n", 1, *python(code))
    assert done.returncode == 4 and not alive(int(done.stdout.split()[1]))


SENTENCES = {
    "kill": (137, r"rank 1 \(process \d+ on .+\) has ended without leaving the job", r"rank 1 .* was ended by SIGKILL"),
    "raise": (1, r"rank 1 \(process \d+ on .+\) has ended without leaving the job", r"rank 1 .* ended with status 1"),
    "stop": (1, r"rank 1 .* does not answer .* while rank \d waited .* in all_reduce \"gradients\"", r"rank 1 .* was stopped then"),
    "hang": (1, r"rank 1 .* has not come to number \d+ .* while rank \d waited", r"rank \d .* ended with status 1"),
    "other": (1, r"ranks disagree .* rank 1 .* \"other\"", r"rank \d .* ended with status 1"),
}


@pytest.mark.parametrize("how", SENTENCES)
def test_every_survivor_says_who_failed_and_where(how, tmp_path):
    status, survivors, summary = SENTENCES[how]
    done = launch("-n", 3, "--timeout", 2, "--grace", 1, SCRIPT, tmp_path, "--how", how)
    assert done.returncode == status and re.search("error: launch: .*" + summary, done.stderr), done.stderr
    for rank in (0, 2):
        said = "\n".join(line for line in done.stderr.splitlines() if line.startswith(f"[{rank}]"))
        assert re.search(survivors, said), done.stderr


@pytest.mark.parametrize("how", ["kill", "raise", "stop"])
def test_restarts_go_on_from_the_checkpoint_with_equal_losses(how, tmp_path, alone):
    done = launch("-n", 2, "--restarts", 1, "--timeout", 2, "--grace", 1, SCRIPT, tmp_path, "--how", how)
    assert done.returncode == 0, done.stderr
    assert "all ranks start again (1 of 1)" in done.stderr and "[0] goes on behind step 3" in done.stdout
    assert losses(tmp_path) == alone


def test_a_rank_that_is_stopped_behind_its_last_step_does_not_hold_up_the_job():
    code = "import os, signal; os.environ['RANK_ID'] == '1' and os.kill(os.getpid(), signal.SIGSTOP)"
    done = launch("-n", 2, "--timeout", 1, *python(code), seconds=30)
    assert done.returncode == 137 and re.search(r"rank 1 \(process \d+ on .+\) was stopped then", done.stderr), done.stderr


def test_a_job_goes_on_with_another_number_of_ranks(tmp_path, alone):
    assert launch("-n", 2, "--timeout", 2, SCRIPT, tmp_path, "--how", "kill").returncode == 137
    done = launch("-n", 3, SCRIPT, tmp_path)
    assert "[2] goes on behind step 3" in done.stdout
    np.testing.assert_allclose(losses(tmp_path), alone, rtol=1e-5)


def test_restarts_end_after_their_number(tmp_path):
    done = launch("-n", 2, "--restarts", 2, "--json", "--log-dir", tmp_path, *python("import os, sys; print(os.environ['CAIRN_RESTART']); sys.exit(5)"))
    assert done.returncode == 5 and json.loads(done.stdout)["restarts"] == 2
    assert [(tmp_path / name).read_text() for name in ("rank_0.log", "rank_0.restart_1.log", "rank_1.restart_2.log")] == ["0\n", "1\n", "2\n"]


def test_a_rank_table_is_written_and_used(tmp_path):
    table = tmp_path / "hccl.json"
    code = "import os; print(os.environ['RANK_TABLE_FILE'], os.environ['DEVICE_ID'])"
    assert launch("-n", 2, "--device-list", "3,5", "--rank-table", table, *python(code)).returncode == 0
    made = json.loads(table.read_text())
    assert made["status"] == "completed" and [each["device_id"] for each in made["server_list"][0]["device"]] == ["3", "5"]
    done = launch("--rank-table", table, *python(code))
    assert sorted(done.stdout.splitlines()) == [f"[0] {table} 3", f"[1] {table} 5"]
    old = {"group_list": [{"instance_list": [{"rank_id": str(i), "server_id": "10.0.0.1", "devices": [{"device_id": str(9 - i)}]} for i in range(2)]}]}
    table.write_text(json.dumps({**old, "status": "completed"}))
    assert sorted(launch("--rank-table", table, *python(code)).stdout.splitlines()) == [f"[0] {table} 9", f"[1] {table} 8"]
    table.write_text("{}")
    assert "is no rank table" in launch("--rank-table", table, *python(code)).stderr


def test_ranks_of_another_host_are_part_of_the_job(tmp_path, far, alone):
    address = f"127.0.0.1:{random.randint(20000, 30000)}"
    done = launch("--hosts", "localhost,far", "--address", address, "--ssh", far, "--log-dir", tmp_path / "logs", SCRIPT, tmp_path)
    assert done.returncode == 0 and "[far] welcome\n" in done.stderr, done.stderr
    assert losses(tmp_path) == alone
    (tmp_path / "checkpoint.json").unlink()
    failed = launch("--hosts", "localhost,far", "--address", address, "--ssh", far, "--timeout", 2, "--grace", 1, "--json", SCRIPT, tmp_path, "--how", "kill")
    assert failed.returncode == 137 and re.search(r"rank 1 \(process \d+ on far\) was ended by SIGKILL", failed.stderr), failed.stderr
    lost = launch("--hosts", "localhost,far", "--address", address, "--ssh", "false", "--grace", 1, *python("import time; time.sleep(60)"))
    assert "rank 1 on far was lost: the connection to far ended with status 1" in lost.stderr, lost.stderr


@pytest.mark.parametrize("ranks, rows", [(2, 7), (3, 3), (4, 2)])
def test_a_batch_over_ranks_gives_what_one_process_gives(ranks, rows, tmp_path):
    (tmp_path / "m.cairn").write_text(MODEL)
    x = np.random.RandomState(0).normal(size=(rows, 3)).astype(np.float32)
    np.save(tmp_path / "x.npy", x)
    words = ["cairn", "run", tmp_path / "m.cairn", "-i", f"x={tmp_path}/x.npy", "-o"]
    done = launch("-n", ranks, *words, tmp_path / "y.npz")
    assert done.returncode == 0 and all(line.startswith("[0]") for line in done.stdout.splitlines()), done.stderr
    np.testing.assert_allclose(np.load(tmp_path / "y.npz")["y"], x @ np.float32([[1, 2], [3, 4], [5, 6]]), rtol=1e-5)


def test_a_model_whose_parts_cannot_be_put_together_is_refused(tmp_path):
    (tmp_path / "m.cairn").write_text(MODEL.replace("?n", "4"))
    done = launch("-n", 2, "cairn", "run", tmp_path / "m.cairn")
    assert done.returncode == 1 and "no input begins with an open size" in done.stderr


@pytest.mark.long
def test_random_faults_never_hang_and_restarts_give_equal_losses(tmp_path):
    """300 faults at random times in jobs of four ranks, from outside."""
    whole = tmp_path / "whole"
    whole.mkdir()
    assert launch("-n", 4, SCRIPT, whole, "--steps", 12).returncode == 0
    chance = random.Random(1)
    for number in range(300):
        out = tmp_path / str(number)
        out.mkdir()
        process = start("-n", 4, "--restarts", 1, "--timeout", 2, "--connect-timeout", 8, "--grace", 1, SCRIPT, out, "--steps", 12, "--pause", 0.05)
        time.sleep(chance.uniform(0, 1.5))
        ranks = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        how = chance.choice([signal.SIGKILL, signal.SIGSTOP])
        if ranks:
            os.kill(int(chance.choice(ranks)), how)
        _, err = process.communicate(timeout=60)
        assert process.returncode == 0 and losses(out) == losses(whole), (number, how, err)
        if "start again" in err:
            assert re.search(r"note: launch: rank \d .*(was ended by SIGKILL|was stopped then)", err), err

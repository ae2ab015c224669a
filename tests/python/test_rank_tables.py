"""Jobs that nobody launches: processes find each other by rank tables or the platform's variables, on one host and on two hosts, which are
network namespaces."""

import contextlib
import json
import os
import re
import subprocess
import sys

import pytest
from rank_jobs import free_port
from test_collectives import EQUAL, PRELUDE, finish, until

SMALL = """
total = cairn.ops.all_reduce(np.arange(5000, dtype=np.float32) + rank, ranks=size)
np.testing.assert_array_equal(total, np.arange(5000, dtype=np.float32) * size + sum(range(size)))
cairn.ops.barrier()
print("source", cairn.job.describe()["described_by"], "transport", cairn.job.describe()["transport"])
cairn.job.leave()
print("done")
"""


def table(path, version, hosts):
    """A rank table with one rank for each of the hosts."""
    places = [(str(rank), host, {"device_id": str(hosts[:rank].count(host)), "device_ip": f"192.168.100.{rank + 1}"}) for rank, host in enumerate(hosts)]
    if version == "1.0":
        servers = [{"server_id": each, "device": [{**device, "rank_id": rank} for rank, host, device in places if host == each]} for each in sorted({*hosts})]
        made = {"status": "completed", "version": "1.0", "server_count": str(len(servers)), "server_list": servers}
    else:
        instances = [{"rank_id": rank, "server_id": host, "devices": [device]} for rank, host, device in places]
        made = {"status": "completed", "group_count": "1", "group_list": [
            {"group_name": "group0", "instance_count": str(len(hosts)), "device_count": str(len(hosts)), "instance_list": instances}]}  # fmt: skip
    path.write_text(json.dumps(made))
    return path


def start(script, ranks, words=lambda rank: (), **common):
    """A process for each rank, with the variables of the platform; words(rank) go before its command."""
    return [
        subprocess.Popen([*words(rank), sys.executable, "-c", PRELUDE + script], env={**os.environ, **common, "RANK_ID": str(rank), "DEVICE_ID": str(rank)},
                         text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        for rank in range(ranks)
    ]  # fmt: skip


@pytest.mark.parametrize("variable", ["RANK_TABLE_FILE", "MINDSPORE_HCCL_CONFIG_PATH"])
@pytest.mark.parametrize("version", ["1.0", "0.5"])
def test_processes_meet_by_a_rank_table(version, variable, tmp_path):
    file = table(tmp_path / "hccl.json", version, ["10.20.30.40"] * 3)  # one host meets on its loopback
    for output in finish(start(SMALL, 3, RANK_SIZE="3", HCCL_IF_BASE_PORT=str(free_port()), **{variable: str(file)})):
        assert output.endswith("source RANK_TABLE_FILE transport shared memory\ndone\n"), output


def test_processes_meet_by_the_number_of_ranks_and_the_name_of_the_job():
    for output in finish(start(SMALL, 2, RANK_SIZE="2", JOB_ID=f"job {os.getpid()}")):
        assert output.endswith("source RANK_SIZE transport shared memory\ndone\n"), output


def test_processes_meet_by_a_chief():
    chief = {"CM_CHIEF_IP": "127.0.0.1", "CM_CHIEF_PORT": str(free_port()), "CM_WORKER_SIZE": "2"}
    for output in finish(start(SMALL, 2, **chief)):
        assert output.endswith("source CM_CHIEF_IP transport shared memory\ndone\n"), output


def call(*words):
    return subprocess.run(words, capture_output=True, text=True)


class Hosts:
    """Two network namespaces with a cable between them."""

    def __init__(self):
        self.names = [f"cairn-{os.getpid()}-{i}" for i in range(2)]
        self.addresses = ["10.213.7.1", "10.213.7.2"]
        self.cables = [f"c{os.getpid() % 10**8}-{i}" for i in range(2)]

    def set_up(self):
        for name in self.names:
            self._must("ip", "netns", "add", name)
        first, second = self.cables
        self._must("ip", "link", "add", first, "netns", self.names[0], "type", "veth", "peer", "name", second, "netns", self.names[1])
        for name, cable, address in zip(self.names, self.cables, self.addresses):
            self._must("ip", "-n", name, "addr", "add", f"{address}/24", "dev", cable)
            for link in (cable, "lo"):
                self._must("ip", "-n", name, "link", "set", link, "up")
        self._must(*self.inside(0), "true")

    def _must(self, *words):
        done = call(*words)
        if done.returncode:
            pytest.skip(f"hardware: no network namespaces here: {' '.join(words)}: {done.stderr.strip()}")

    def inside(self, rank):
        """Words before a command on the host, which sees its own processes alone."""
        return ["ip", "netns", "exec", self.names[rank], "unshare", "--pid", "--fork", "--kill-child", "--mount-proc"]

    def spoil(self, *how):
        """Packets take longer, some get lost, where the kernel has it."""
        for name, cable in zip(self.names, self.cables):
            done = call("tc", "-n", name, "qdisc", "add", "dev", cable, "root", *how)
            if done.returncode:
                pytest.skip(f"hardware: no network that does {how[0]} here: {done.stderr.strip()}")

    def lost(self):
        """How many packets were."""
        shown = [call("tc", "-s", "-n", name, "qdisc", "show", "dev", cable).stdout for name, cable in zip(self.names, self.cables)]
        return sum(int(re.search(r"dropped (\d+)", each)[1]) for each in shown)

    def cut(self):
        assert call("ip", "-n", self.names[0], "link", "set", self.cables[0], "down").returncode == 0


@pytest.fixture
def hosts():
    made = Hosts()
    try:
        made.set_up()
        yield made
    except FileNotFoundError as missing:
        pytest.skip(f"hardware: no network namespaces here: {missing}")
    finally:
        with contextlib.suppress(FileNotFoundError):
            for name in made.names:
                call("ip", "netns", "del", name)


def job(hosts, folder, version, script, **more):
    file = table(folder / "hccl.json", version, hosts.addresses)
    return start(script, 2, hosts.inside, RANK_TABLE_FILE=str(file), RANK_SIZE="2", **more)


@pytest.mark.parametrize("version", ["1.0", "0.5"])
def test_hosts_of_a_rank_table_exchange_by_gloo(hosts, version, tmp_path):
    for output in finish(job(hosts, tmp_path, version, SMALL)):
        assert "source RANK_TABLE_FILE transport gloo, as the ranks are on several hosts\ndone" in output, output


def test_collectives_between_hosts_equal_numpy(hosts, tmp_path):
    for output in finish(job(hosts, tmp_path, "1.0", EQUAL), 240):
        assert output.strip().endswith("done"), output


LARGE = """
x = np.arange(500_000, dtype=np.float32)
for i in range(3):
    np.testing.assert_array_equal(cairn.ops.all_reduce(x + rank, ranks=size), x * size + sum(range(size)))
    gathered = cairn.ops.all_gather(x + rank, ranks=size)
    np.testing.assert_array_equal(gathered, np.concatenate([x + each for each in range(size)]))
"""
# A rate with a short queue: what waits in it is late, what finds it full is lost.
SPOILT = [("netem", "delay", "2ms", "1ms", "loss", "1%"), ("tbf", "rate", "60mbit", "burst", "5kb", "latency", "4ms")]


@pytest.mark.parametrize("how", SPOILT, ids=lambda how: how[0])
def test_collectives_equal_numpy_where_packets_are_late_or_lost(how, hosts, tmp_path):
    hosts.spoil(*how)
    for output in finish(job(hosts, tmp_path, "1.0", LARGE + SMALL), 240):
        assert output.strip().endswith("done"), output
    assert hosts.lost() > 0


def test_a_host_that_is_cut_off_is_named_on_both_sides(hosts, tmp_path):
    script = """
print("ready", flush=True)
while True:
    cairn.ops.all_reduce(np.ones(3000, np.float32), ranks=size, name="w")
"""
    ranks = job(hosts, tmp_path, "1.0", script, HCCL_EXEC_TIMEOUT="10")
    try:
        for each in ranks:
            until(each, "ready")
        hosts.cut()
        for rank, each in enumerate(ranks):
            output, _ = each.communicate(timeout=120)
            assert re.search(rf"rank {1 - rank} \(process \d+ on .+\) does not answer .* in all_reduce \"w\"", output), output
    finally:
        for each in ranks:
            each.kill()
            each.communicate()

"""Profiles of jobs: the ranks in one timeline, and predictions from one rank."""

import importlib.util
import json
import re
import sys

import cairn
import numpy as np
import pytest
import rank_jobs
from conftest import ROOT

WEIGHTS = {64 * 128 * 4, 128 * 4, 128 * 10 * 4, 10 * 4}  # bytes of the gradients of ranks/recorded.py


@pytest.fixture(scope="module")
def profiles(tmp_path_factory):
    """Folders with the recordings of one process, and of the ranks of a job of two."""
    made = {size: tmp_path_factory.mktemp(f"ranks_{size}") for size in (1, 2)}
    for size, folder in made.items():
        rank_jobs.run("recorded.py", size, folder)
    return made


def test_the_ranks_of_a_job_are_merged_into_one_timeline(profiles, command, tmp_path):
    done = command("cairn", "profile", "merge", profiles[2], "-o", "job.perfetto-trace")
    assert done.returncode == 0, done.stderr
    rows = [line.split() for line in done.stdout.splitlines()]
    for rank in ("0", "1"):
        (row,) = [row for row in rows if row[:1] == [rank]]
        assert row[2] == "10" and row[-1] == "%"
    (times,) = [row[2] for row in rows if "all_reduce_bucket" in row]
    assert times == "10"
    assert re.search(r"the others wait most for rank [01]$", done.stdout, re.M)
    trace = (tmp_path / "job.perfetto-trace").read_bytes()
    assert all(each in trace for each in (b"rank 0 (", b"rank 1 (", b"communication", b"waited for ranks, us"))


def test_the_merged_timeline_keeps_perfettos_schema(profiles, command, tmp_path):
    schema = pytest.importorskip("perfetto.protos.perfetto.trace.perfetto_trace_pb2", reason="PyPI's perfetto is not installed")
    command("cairn", "profile", "merge", profiles[2], "-o", "job.perfetto-trace")
    trace = schema.Trace.FromString((tmp_path / "job.perfetto-trace").read_bytes())
    tracks = [packet.track_descriptor for packet in trace.packet if packet.HasField("track_descriptor")]
    assert len({track.uuid for track in tracks}) == len(tracks)
    assert {track.process.pid for track in tracks if track.HasField("process")} == {1, 2}
    (own,) = {track.uuid for track in tracks if track.name == "communication" and track.uuid < 1 << 44}
    events = [packet.track_event for packet in trace.packet if packet.HasField("track_event") and packet.track_event.track_uuid == own]
    begins = [{each.name: each.double_value for each in event.debug_annotations} for event in events if event.debug_annotations]
    assert len(begins) % 10 == 0 and sum(each["bytes"] for each in begins) == 10 * sum(WEIGHTS)
    assert all(each["waited for ranks, us"] >= 0 for each in begins)


@pytest.mark.parametrize("size", [1, 2])
def test_predictions_find_the_gradients_of_a_recording(profiles, command, size):
    done = command("cairn", "simulate", profiles[size], "--ranks", "2,8,4096", "--network", "10us,1GB/s", "--spread", "0", "--json")
    assert done.returncode == 0, done.stderr
    made = json.loads(done.stdout)
    assert made["workload"]["bytes"] == sum(WEIGHTS) and made["workload"]["steps"] == 9
    assert {each["bytes"] for each in made["workload"]["gradients"]} == WEIGHTS
    efficiency = [each["efficiency"] for each in made["predictions"]]
    assert 1 >= efficiency[0] >= efficiency[1] >= efficiency[2] > 0


@pytest.mark.parametrize("ranks", [2, 4])
def test_a_network_of_two_measured_exchanges_predicts_what_lies_between_them(profiles, command, ranks, tmp_path):
    """With one bucket, which is there when the last gradient is, a step takes what it computes and the exchange."""
    spec = importlib.util.spec_from_file_location("simulate", ROOT / "bench" / "simulate.py")
    bench = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(bench)
    small, large = 3e-6 * ranks, 9e-3
    network = bench.network_of(ranks, {str(bench.SIZES[0]): small, str(bench.SIZES[1]): large}, cores=2)
    (tmp_path / "network.json").write_text(json.dumps(network))
    done = command("cairn", "simulate", profiles[1], "--ranks", str(ranks), "--network", "network.json", "--spread", "0", "--bucket", "1GB", "--json")
    assert done.returncode == 0, done.stderr
    made = json.loads(done.stdout)
    (found,) = made["predictions"]
    expected = small + (sum(WEIGHTS) - bench.SIZES[0]) * (large - small) / (bench.SIZES[1] - bench.SIZES[0])
    assert found["exchanging"] == pytest.approx(expected, rel=1e-9)
    computing = made["workload"]["seconds"] * max(1, ranks * made["workload"]["threads"] / 2)
    assert found["computing"] == pytest.approx(computing, rel=1e-9)
    assert found["seconds"] == pytest.approx(computing + expected, rel=1e-9)


def test_a_network_without_cost_uses_all_ranks_and_a_page_is_written(profiles, command, tmp_path):
    (tmp_path / "network.json").write_text('{"latency": 0, "bandwidth": 1e30, "reduction": 1e30}')
    done = command("cairn", "simulate", profiles[1], "--ranks", "64", "--network", "network.json", "--spread", "0", "-o", "page.html")
    assert done.returncode == 0 and re.search(r"100\.0 %$", done.stdout, re.M)
    assert "/*DATA*/" not in (tmp_path / "page.html").read_text()


def test_a_model_is_measured_where_there_is_no_recording(command, tmp_path):
    builder = cairn.Builder("net")
    x = builder.input("x", "float32", [None, 16])
    builder.output("y", x.matmul(builder.constant(np.ones((16, 5), np.float32))))
    builder.save(tmp_path / "net.om")
    done = command("cairn", "simulate", "net.om", "--ranks", "2", "--network", "1us,1GB/s", "--steps", "8", "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["workload"]["bytes"] == 16 * 5 * 4


BESIDE = """
import pathlib, sys, time
import cairn, numpy as np
folder = pathlib.Path(sys.argv[1])
cairn.job.join()
rank = cairn.job.group().rank

def await_file(name):
    while not (folder / name).exists():
        time.sleep(0.01)

@cairn.op("test.rest_of_the_backward_pass")
def rest(x):
    if rank == 0:
        (folder / "backward pass goes on").touch()
        await_file("exchanged")
    return x + 1

builder = cairn.Builder("net")
x = builder.input("x", "float32", [1000])
reduced = (x * 2.0).all_reduce(name="w", ranks=2)
builder.output("y", rest(x.exp()) + reduced)
model = cairn.load(builder.save(folder / f"{rank}.om"))
with cairn.Profiler(output_path=str(folder)):
    if rank == 1:
        await_file("backward pass goes on")
        time.sleep(0.5)
    model.run(np.ones(1000, np.float32))
    (folder / "exchanged").touch()
"""


def test_what_steps_hide_of_an_exchange_is_seen(command, tmp_path):
    rank_jobs.outputs_of(rank_jobs.processes([sys.executable, "-c", BESIDE, tmp_path], 2))
    done = command("cairn", "profile", "merge", tmp_path)
    assert done.returncode == 0, done.stderr
    (row,) = [line.split() for line in done.stdout.splitlines() if line.split()[:1] == ["0"]]
    assert int(row[-2]) > 0, done.stdout


def test_what_is_wrong_is_said(profiles, command, tmp_path):
    (tmp_path / "empty").mkdir()
    for words, reason in (
        (["simulate", profiles[1], "--ranks", "0", "--network", "1us,1GB/s"], "--ranks: '0' is no number of ranks"),
        (["simulate", profiles[1], "--ranks", "2", "--network", "fast"], "--network: 'fast' is no file and not latency,bandwidth"),
        (["simulate", profiles[1], "--ranks", "2", "--network", "1us,1GB/s", "--bucket", "big"], "--bucket: 'big' is not understood"),
        (["profile", "merge", profiles[1]], "holds one rank; a job has several"),
        (["profile", "merge"], "merge: needs the folders of the ranks"),
        (["profile", "merge", "empty"], "empty: holds no recording"),
    ):
        done = command("cairn", *words)
        assert done.returncode == 1 and reason in done.stderr, done.stderr

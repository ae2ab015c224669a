"""Profiles from outside: the Python scope, the environment's switches, the commands, training, and what others read."""

import csv
import json
import os
import re
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from conftest import BIN, ROOT

import cairn

RUN = "import cairn, sys, numpy as np; m = cairn.load(sys.argv[1]); [m.run(np.zeros((2, 20), np.float32)) for _ in range(4)]"


@pytest.fixture
def om(models, tmp_path):
    return cairn.convert(models("mlp_v1").saved_model, tmp_path / "mlp.om", input_shapes={"features": [2, 20]})


def table(folder, name):
    (path,) = Path(folder).glob(f"mindstudio_profiler_output/{name}_*.csv")
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


def profile_of(command, folder):
    done = command("cairn", "profile", "export", folder)
    assert done.returncode == 0, done.stderr
    return folder


def database(folder):
    (path,) = Path(folder).glob("msprof_*.db")
    return sqlite3.connect(path)


def test_profilers_nest_and_count_every_run(om, tmp_path, command):
    model = cairn.load(om)
    x = np.zeros((2, 20), np.float32)
    with cairn.Profiler(output_path=tmp_path) as outer:
        model.run(x)
        with cairn.Profiler(level="marks", output_path=tmp_path) as inner:
            model.run(x)
    assert inner.folder == outer.folder
    rows = table(profile_of(command, outer.folder), "step_trace")
    assert [row["Iteration ID"] for row in rows] == ["1", "2"]


def test_ranges_of_the_program_are_in_every_file(om, tmp_path, command):
    model = cairn.load(om)

    @cairn.Range("decorated")
    def run():
        model.run(np.zeros((2, 20), np.float32))

    with cairn.Profiler(output_path=tmp_path) as profiler, cairn.Range('first "epoch", of two'):
        run()
        run()
    names = [row["message"] for row in table(profile_of(command, profiler.folder), "msprof_tx")]
    assert names == ['first "epoch", of two', "decorated", "decorated"]
    query = "SELECT s.value FROM MSTX_EVENTS JOIN STRING_IDS s ON s.id = message WHERE endNs > startNs ORDER BY rangeId"
    assert [name for (name,) in database(profiler.folder).execute(query)] == names
    (chrome,) = Path(profiler.folder).glob("mindstudio_profiler_output/msprof_2*.json")
    events = json.loads(chrome.read_text())["traceEvents"]
    assert [event["name"] for event in events if event["pid"] == 4 and event["ph"] == "X"] == names
    (trace,) = Path(profiler.folder).glob("mindstudio_profiler_output/trace_*.perfetto-trace")
    content = trace.read_bytes()
    assert all(name.encode() in content for name in [*names, "ranges, thread"])
    page = (Path(profiler.folder) / "index.html").read_text()
    data, _ = json.JSONDecoder().raw_decode(page, page.index("const data=") + len("const data="))
    assert [(name, times) for name, times, *_ in data["ranges"]] == [(names[0], 1), ("decorated", 2)]
    rows = data["timelines"][0]["ranges"]
    assert [name for row in rows for _, _, name in row] == [names[0], "decorated"] and len(rows) == 2
    for ((begin, length, _),) in rows:
        assert begin <= 0 and begin + length >= data["timelines"][0]["length"]


FORKS = """
import os, sys
import numpy as np, cairn
model = cairn.load(sys.argv[1])
x = np.zeros((2, 20), np.float32)
with cairn.Profiler(output_path="."), cairn.Dump("dump", dump_data="stats"):
    model.run(x)
    if os.fork() == 0:
        model.run(x)
        sys.exit(3)
    assert os.waitstatus_to_exitcode(os.wait()[1]) == 3
    model.run(x)
"""


def test_a_forked_process_ends_and_adds_nothing(om, tmp_path, command):
    subprocess.run([sys.executable, "-c", FORKS, om], check=True, cwd=tmp_path, timeout=120)
    (folder,) = tmp_path.glob("PROF_*")
    assert len(table(profile_of(command, folder), "step_trace")) == 2
    (statistics,) = (tmp_path / "dump").rglob("statistic.csv")
    head, *rows = statistics.read_text().splitlines()
    assert len(rows) == len(set(rows)) and len(rows) % 2 == 0
    assert {row["Step"] for row in csv.DictReader([head, *rows])} == {"0", "1"}


def test_wrong_options_are_said():
    with pytest.raises(cairn.Error, match="level: expected marks"):
        cairn.Profiler(level="everything").__enter__()
    with pytest.raises(cairn.Error, match="'Everything' is no group of counters"):
        cairn.Profiler(aic_metrics="Everything").__enter__()


def test_the_environment_starts_a_recording(om, tmp_path, command):
    options = json.dumps({"output": str(tmp_path), "task_trace": "on", "training_trace": "on"})
    environment = {**os.environ, "PROFILING_MODE": "true", "PROFILING_OPTIONS": options}
    subprocess.run([sys.executable, "-c", RUN, om], check=True, env=environment)
    (folder,) = tmp_path.glob("PROF_*")
    assert table(profile_of(command, folder), "api_statistic")[0]["Count"] == "4"
    environment["PROFILING_OPTIONS"] = ""
    done = subprocess.run([sys.executable, "-c", RUN, om], env=environment, capture_output=True, text=True)
    assert done.returncode != 0 and "profiling options: are an empty text" in done.stderr


def test_steps_and_gaps_are_the_iteration_on_every_row(om, tmp_path, command):
    done = command("cairn", "profile", "-o", tmp_path, "--", sys.executable, "-c", RUN, om)
    assert done.returncode == 0, done.stderr
    assert all(len(line) <= 100 for line in done.stdout.splitlines() if not line.startswith("page:")), done.stdout
    (folder,) = tmp_path.glob("PROF_*")
    assert f"page: {folder}/index.html" in done.stdout
    for row in table(folder, "step_trace"):
        busy, ops, gaps = (float(row[f"{name} Time(us)"]) for name in ("Busy", "Op", "Gap"))
        assert abs(ops + gaps - busy) <= 0.01 * busy
    connection = database(folder)
    (count,) = connection.execute("SELECT count(*) FROM TASK").fetchone()
    assert count == len(table(folder, "op_summary")) == len(table(folder, "task_time"))
    begins = [int(row["Task Start Time(us)"].replace(".", "")) for row in table(folder, "op_summary")]  # ns
    assert [begin for (begin,) in connection.execute("SELECT startNs FROM TASK ORDER BY globalTaskId")] == begins
    assert connection.execute("SELECT count(*) FROM TASK, SESSION_TIME_INFO WHERE endNs > endTimeNs").fetchone() == (0,)
    query = """SELECT s.value FROM COMPUTE_TASK_INFO JOIN TASK USING (globalTaskId) JOIN STRING_IDS s ON s.id = opType"""
    assert {row["OP Type"] for row in table(folder, "op_summary")} == {name for (name,) in connection.execute(query)}


def test_the_documented_queries_are_answered(om, tmp_path, command):
    model = cairn.load(om)
    with cairn.Profiler(output_path=tmp_path) as profiler:
        for _ in range(3):
            model.run(np.zeros((2, 20), np.float32))
    connection = database(profile_of(command, profiler.folder))
    blocks = re.findall(r"```sql\n(.*?)```", (ROOT / "docs/how-to/profile.md").read_text(), re.DOTALL)
    queries = [query for block in blocks for query in block.split(";") if query.strip()]
    assert len(queries) >= 2
    types, iterations = (connection.execute(query).fetchall() for query in queries[:2])
    assert {row[0] for row in types} == {row["OP Type"] for row in table(profiler.folder, "op_summary")}
    assert [row[2] for row in types] == sorted((row[2] for row in types), reverse=True)
    assert len(iterations) == 3
    for _, period, data, forward, refresh, _ in iterations:
        assert period == (data or 0) + forward + refresh


@pytest.mark.parametrize("words", [["run"], ["verify", "--steps"], ["bench", "--seconds", "0.1"]])
def test_cairns_own_commands_are_recorded(words, om, tmp_path, command):
    done = command("cairn", "profile", "-o", tmp_path, "--", "cairn", words[0], om, *words[1:],
                   env={**os.environ, "PATH": f"{BIN}:{os.environ['PATH']}"})  # fmt: skip
    assert done.returncode == 0, done.stderr
    (folder,) = tmp_path.glob("PROF_*")
    assert table(folder, "step_trace")


def test_the_platforms_command_records_and_queries(om, tmp_path, command):
    done = command("msprof", f"--output={tmp_path}", f"--application={sys.executable} -c '{RUN}' {om}")
    assert done.returncode == 0, done.stderr
    done = command("msprof", "--query=on", f"--output={tmp_path}")
    assert done.returncode == 0
    head, row = (re.split(r"  +", line.strip()) for line in done.stdout.splitlines())
    assert head[2:7] == ["Dir Name", "Collection Time", "Model ID", "Iteration Number", "Top Time Iteration"]
    assert row[2].startswith("PROF_") and row[4:6] == ["1", "4"] and set(row[6].split(",")) == set("1234")


def test_one_iteration_is_exported_by_its_numbers(om, tmp_path, command):
    model = cairn.load(om)
    with cairn.Profiler(output_path=tmp_path) as profiler:
        for _ in range(5):
            model.run(np.zeros((2, 20), np.float32))
    assert len(table(profile_of(command, profiler.folder), "step_trace")) == 5
    whole = [row for row in table(profiler.folder, "op_summary") if row["Infer ID"] in "34"]
    (tmp_path / "reports.json").write_text('{"json_process": {"ascend": false, "step_trace": true, "steptrace": true}}')
    for words in (["--export=on", f"--output={profiler.folder}", "--model-id=1", "--iteration-id=4", "--reports=reports.json"],
                  ["export", "summary", "-dir", profiler.folder, "--model-id", "4294967295", "--iteration-id=3", "--iteration-count=2"]):  # fmt: skip
        done = command("msprof", *words)
        assert done.returncode == 0, done.stderr
        numbers = [row["Iteration ID"] for row in table(profiler.folder, "step_trace")]
        assert numbers == (["4"] if "--export=on" in words else ["3", "4"])
        assert table(profiler.folder, "op_summary") == [row for row in whole if row["Infer ID"] in numbers]
        if "--export=on" in words:
            assert "steptrace is no track here" in done.stderr
            (chrome,) = Path(profiler.folder).glob("mindstudio_profiler_output/msprof_2*.json")
            assert {event["pid"] for event in json.loads(chrome.read_text())["traceEvents"] if event["ph"] == "X"} == {1, 3}
    assert "holds no iteration 6 of model 1" in command("msprof", "--export=on", f"--output={tmp_path}", "--model-id=1", "--iteration-id=6").stderr


@pytest.mark.parametrize("words, said", [
    (["--export=maybe"], "--export: is on or off, found 'maybe'"),
    (["--export=on", "--type=json"], "--type: is text or db"),
    (["--export=on", "--model-id=1"], "needs --iteration-id as well"),
    (["--export=on", "--summary-format=xml"], "--summary-format: is json or csv"),
    (["--analyse=on"], "is no option of msprof; did you mean --analyze?"),
    (["--sys-devices=all"], "--application: is missing"),
    (["--model-id=1", "true"], "--model-id: has no meaning here"),
    (["--storage-limit=1MB", "true"], "storage_limit: expected 200MB"),
    (["--dynamic=on", "--pid=1"], "1: does not listen"),
    (["--dynamic=on"], "needs one of --pid and --application"),
    (["export", "summary", "-dir", ".", "--what"], "--what: is no option of export"),
])  # fmt: skip
def test_options_of_the_platforms_command_that_do_nothing_are_refused(words, said, command, tmp_path):
    done = command("msprof", *words, env={**os.environ, "HOME": str(tmp_path)})
    assert done.returncode == 1 and said in done.stderr, done.stderr


@pytest.mark.parametrize("words, said", [
    (["--sys-hardware-mem=on", "--sys-hardware-mem-freq=50"], ["--sys-hardware-mem has no effect", "--sys-hardware-mem-freq has"]),
    (["--aic-mode=sample-based", "--aic-freq=100"], ["--aic-mode has no effect", "--aic-freq has no effect: counters"]),
    (["--aic-mode=task-based", "--llc-profiling=read"], ["--llc-profiling has no effect"]),
    (["--delay=1", "--duration", "5"], ["--delay has no effect", "--duration has no effect"]),
    (["--host-sys=cpu,mem", "--dvpp-profiling=on"], ["--host-sys has no effect", "--dvpp-profiling has no effect"]),
    (["--type=db", "--task-trace=on"], ["--type has no effect: a recording holds all forms", "--task-trace has no effect"]),
    (["--ai-vector-core=on", "--aiv-mode=sample-based", "--aiv-metrics=PipeUtilization"],
     ["--ai-vector-core has no effect", "--aiv-mode has no effect", "--aiv-metrics has no effect"]),
    (["--instr-profiling=off", "--python-path=/usr/bin/python3"], ["--python-path has no effect"]),
])  # fmt: skip
def test_options_of_the_platforms_command_without_effect_are_told(words, said, command, tmp_path):
    (tmp_path / "m.cairn").write_text(
        "module @m {\n  func @main(%x: f32[2]) -> (%y: f32[2]) {\n    %y = neg %x : f32[2]\n    return %y\n  }\n}\n")
    run = [BIN / "cairn", "run", "m.cairn", "--output", "out"]
    done = command("msprof", f"--output={tmp_path}", *words, *run, env={**os.environ, "HOME": str(tmp_path)})
    notes = [line for line in done.stderr.splitlines() if line.startswith("note: --")]
    assert done.returncode == 0 and len(notes) == len(said), done.stderr
    for text in said:
        assert text in done.stderr
    only = command("msprof", "--analyze=on", f"--output={tmp_path}")
    assert only.returncode == 0 and "no communication to analyse" in only.stderr


LOOP = """
import signal, sys, time
import cairn, numpy as np
signal.signal(signal.SIGINT, signal.default_int_handler)  # a program started in the background ignores it
model = cairn.load(sys.argv[1])
for _ in range(20000):
    model.run(np.zeros((2, 20), np.float32))
    time.sleep(0.001)
"""


def test_recordings_are_started_and_stopped_from_outside(om, tmp_path):
    (tmp_path / "loop.py").write_text(LOOP)
    words = [BIN / "msprof", "--dynamic=on", "--output=made", f"--application=true && {sys.executable} loop.py {om}"]
    options = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, "cwd": tmp_path}
    with subprocess.Popen(words, env={**os.environ, "HOME": str(tmp_path)}, **options) as attached:

        def ask(line):
            attached.stdin.write(line + "\n")
            attached.stdin.flush()
            return attached.stdout.readline().strip()

        assert [ask("start").split(":")[0], ask("stop").split(":")[0]] == ["recording", "recorded"]
        assert ask("start") == "recording"
        (socket,) = tmp_path.glob("dynamic_profiling_socket_*")
        refused = subprocess.run([*words[:3], f"--pid={socket.name.rpartition('_')[2]}"], input="start\n", capture_output=True,
                                 text=True, cwd=tmp_path, env={**os.environ, "HOME": str(tmp_path)}, timeout=60)  # fmt: skip
        assert refused.returncode == 1 and "another msprof is attached" in refused.stderr
        folder = ask("stop").removeprefix("recorded: ")
        assert table(folder, "step_trace") and len(list((tmp_path / "made").iterdir())) == 2
        os.kill(int(socket.name.rpartition("_")[2]), signal.SIGKILL)
        attached.communicate(timeout=60)


def test_an_interrupt_ends_the_program_and_what_it_left_is_shown(om, tmp_path):
    (tmp_path / "loop.py").write_text(LOOP)
    words = [BIN / "cairn", "profile", "-o", "made", "--", sys.executable, "loop.py", om]
    with subprocess.Popen(words, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True) as running:
        deadline = time.monotonic() + 60
        while not list(tmp_path.glob("made/PROF_*/host/data/cairn.events")) and time.monotonic() < deadline:
            time.sleep(0.02)
        time.sleep(0.3)  # some runs
        os.killpg(running.pid, signal.SIGINT)
        said = running.communicate(timeout=60)
    assert running.returncode != 0 and "KeyboardInterrupt" in said[1] and "ended with status" in said[1]
    assert "page: " in said[0] and list(tmp_path.glob("made/PROF_*/index.html"))


def test_a_folder_without_recordings_and_a_command_without_models_are_said(tmp_path, command):
    done = command("cairn", "profile", "export", tmp_path)
    assert done.returncode == 1 and "holds no recording" in done.stderr
    done = command("cairn", "profile", "-o", tmp_path / "none", "--", "true")
    assert done.returncode == 1 and "ran no model" in done.stderr


def test_damaged_and_foreign_trees_are_a_sentence(om, tmp_path, command):
    model = cairn.load(om)
    with cairn.Profiler(output_path=tmp_path) as profiler:
        model.run(np.zeros((2, 20), np.float32))
    folder, random = Path(profiler.folder), np.random.default_rng(3)
    events, machine = folder / "host/data/cairn.events", folder / "host/data/machine.json"
    good = events.read_bytes()
    machines = ["", "[1", "null", '{"flops_per_second": "x", "bytes_per_second": -1}', '{"flops_per_second": 1e999}', "[" * 5000]
    damaged = [b"", good[:10], good[:-30], b"\0" * 4096, good * 2, *(_with_noise(good, random) for _ in range(6))]
    for content, text in zip(damaged, machines * 2):
        events.write_bytes(content)
        machine.write_text(text)
        for words in (["export", folder], ["import", folder], ["query", folder], ["diff", folder, folder]):
            done = command("cairn", "profile", *words)
            assert done.returncode in (0, 1), done.stderr
            assert len(done.stderr.splitlines()) <= 3 and (done.returncode == 0) == (not done.stderr), done.stderr
    events.unlink()
    events.mkdir()
    done = command("cairn", "profile", "export", folder)
    assert done.returncode == 1 and len(done.stderr.splitlines()) <= 3
    foreign = tmp_path / "PROF_000001_20240101000000000_ABCDEFGH"
    (foreign / "device_0/data").mkdir(parents=True)
    (foreign / "device_0/data/hwts.data").write_bytes(b"1234")
    done = command("cairn", "profile", "export", foreign)
    assert done.returncode == 1 and "holds no recording" in done.stderr


def _with_noise(content, random):
    array = np.frombuffer(content, np.uint8).copy()
    array[random.integers(0, array.size, 5)] = random.integers(0, 256, 5)
    return array.tobytes()


def test_training_under_tensorflow_has_its_marks(tmp_path, command):
    done = command("cairn", "migrate", ROOT / "examples/digits/train_tf1.py", "-o", tmp_path / "migrated")
    assert done.returncode == 0, done.stderr
    script = tmp_path / "migrated/train_tf1.py"
    done = command("cairn", "profile", "-o", tmp_path, "--", "cairn", "tf1", script, "--steps", 4, "--output", tmp_path / "out",
                   env={**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"})
    assert done.returncode == 0, done.stderr
    (folder,) = tmp_path.glob("PROF_*")
    training = [row for row in table(folder, "step_trace") if float(row["Iteration Refresh(us)"]) > 0]
    assert len(training) == 4
    for row in training:
        time, forward, refresh = (float(row[f"{name}(us)"]) for name in ("Iteration Time", "FP to BP Time", "Iteration Refresh"))
        data = 0 if row["Data Aug Bound(us)"] == "N/A" else float(row["Data Aug Bound(us)"])
        assert time == pytest.approx(data + forward + refresh, abs=0.002)
    assert any("gradients" in row["Op Name"] for row in table(folder, "op_summary"))


def test_the_trace_keeps_perfettos_own_schema_and_rules(om, tmp_path, command):
    schema = pytest.importorskip("perfetto.protos.perfetto.trace.perfetto_trace_pb2", reason="PyPI's perfetto is not installed")
    model = cairn.load(om)
    with cairn.Profiler(output_path=tmp_path) as profiler:
        for _ in range(3):
            model.run(np.zeros((2, 20), np.float32))
    (path,) = Path(profile_of(command, profiler.folder)).rglob("*.perfetto-trace")
    trace = schema.Trace.FromString(path.read_bytes())
    assert trace.SerializeToString(deterministic=True) and not _unknown(trace)

    # Clocks: a snapshot first, tied to the wall clock, and the sequence's default names the same clock.
    clocks = trace.packet[0].clock_snapshot
    by_id = {clock.clock_id: clock.timestamp for clock in clocks.clocks}
    assert clocks.primary_trace_clock == schema.BUILTIN_CLOCK_MONOTONIC and set(by_id) == {1, 3}
    (defaults,) = [packet.trace_packet_defaults for packet in trace.packet if packet.HasField("trace_packet_defaults")]
    assert defaults.timestamp_clock_id == schema.BUILTIN_CLOCK_MONOTONIC

    # Tracks: each described once, its parent before it.
    tracks = {}
    for packet in trace.packet:
        if packet.HasField("track_descriptor"):
            track = packet.track_descriptor
            assert track.uuid not in tracks and (not track.parent_uuid or track.parent_uuid in tracks)
            tracks[track.uuid] = track.name
    # Events: of known tracks, with interned names, begins and ends nested in order of time.
    names, cleared, open_slices, last = {}, False, {}, {}
    for packet in trace.packet:
        cleared = cleared or bool(packet.sequence_flags & schema.TracePacket.SEQ_INCREMENTAL_STATE_CLEARED)
        for entry in packet.interned_data.event_names:
            assert entry.iid not in names
            names[entry.iid] = entry.name
        if not packet.HasField("track_event"):
            continue
        event, time = packet.track_event, packet.timestamp
        assert cleared and packet.sequence_flags & schema.TracePacket.SEQ_NEEDS_INCREMENTAL_STATE
        assert event.track_uuid in tracks and time >= last.get(event.track_uuid, 0)
        assert time >= by_id[3] - 60e9
        last[event.track_uuid] = time
        if event.type == schema.TrackEvent.TYPE_SLICE_BEGIN:
            assert names[event.name_iid]
            open_slices.setdefault(event.track_uuid, []).append(time)
        elif event.type == schema.TrackEvent.TYPE_SLICE_END:
            assert open_slices[event.track_uuid].pop() <= time
    assert not any(open_slices.values())
    begun = sum(packet.track_event.type == schema.TrackEvent.TYPE_SLICE_BEGIN for packet in trace.packet if packet.HasField("track_event"))
    assert begun >= len(table(profiler.folder, "task_time")) + 3


def _unknown(message):
    """Whether the schema has a field of the message, or of one inside, that it does not know."""
    from google.protobuf.unknown_fields import UnknownFieldSet

    if len(UnknownFieldSet(message)):
        return True
    return any(_unknown(each) for field, value in message.ListFields() if field.message_type
               for each in (value if field.label == field.LABEL_REPEATED else [value]))  # fmt: skip

"""./dev: its help, its lint rules, how it counts results, and the wheel in a fresh environment."""

import subprocess
import sys

import pytest
from conftest import ROOT

sys.path.insert(0, str(ROOT / "tools" / "dev"))
import build  # noqa: E402
import lint  # noqa: E402
import suite  # noqa: E402

ORDER = ["support", "ir", "engine", "engines/cpu"]


def findings(file, text):
    return [sentence for _, sentence in lint._check(file, text, ORDER)]


def test_help_names_every_command():
    done = subprocess.run([ROOT / "dev", "help"], capture_output=True, text=True)
    assert done.returncode == 0
    for command in ("demo", "test", "check", "build", "bench", "fuzz", "fmt", "lint", "docs", "doctor", "new-op"):
        assert f"\n  {command}" in done.stdout


def test_an_unknown_command_is_one_sentence_and_exit_2():
    done = subprocess.run([ROOT / "dev", "tset"], capture_output=True, text=True)
    assert done.returncode == 2 and done.stderr == "dev: no command 'tset'; see ./dev help\n"


def test_lint_finds_an_include_against_the_order():
    text = '// What for.\n#pragma once\n#include "engines/cpu/x.h"\n'
    assert findings("src/ir/a.h", text) == ["ir includes engines/cpu, which comes after it in cmake/folders.cmake"]
    assert findings("src/engines/cpu/a.h", '// What for.\n#include "ir/x.h"\n') == []


def test_lint_finds_a_framework_in_the_core():
    assert findings("src/ir/a.h", "// What for.\n#include <tensorflow/c/c_api.h>\n") == ["the core includes no framework"]


def test_lint_finds_long_functions_and_long_files():
    body = "  int x = 0;\n" * 120
    assert findings("src/ir/a.h", f"// What for.\nvoid f(int a) {{\n{body}}}\n") == ["function has 121 lines, at most 100"]
    assert findings("src/ir/a.h", "// line\n" * 1001) == ["file has 1001 lines, at most 1000"]


def test_lint_finds_a_file_that_does_not_open_with_its_purpose():
    assert findings("src/ir/a.h", "#pragma once\n") == ["file does not open by saying what it is for"]
    assert findings("tools/a.py", "import os\n") == ["file does not open by saying what it is for"]


REPORT = """<testsuites><testsuite>
<testcase classname="A" name="good" status="run"/>
<testcase classname="A" name="bad" status="run"><failure message="x.cpp:3&#10;not equal"/></testcase>
<testcase classname="A" name="absent"><skipped message="hardware: no AVX-512"/></testcase>
<testcase classname="A" name="measured"><skipped message="sanitizer: its own memory is counted"/></testcase>
<testcase classname="A" name="lazy"><skipped message="not today"/></testcase>
<testcase classname="A" name="off" status="notrun"/>
</testsuite></testsuites>"""


def test_a_skip_counts_only_for_hardware_and_sanitizers(tmp_path, capsys):
    (tmp_path / "r.xml").write_text(REPORT)
    outcome = suite._read("t", tmp_path / "r.xml")
    assert outcome.passed == 1
    assert outcome.failed == ["t A.bad: x.cpp:3 not equal", "t A.lazy: not today"]
    assert outcome.skipped == ["t A.absent: hardware: no AVX-512", "t A.measured: sanitizer: its own memory is counted"]
    assert suite._summary([outcome]) == 1
    assert capsys.readouterr().out.splitlines()[-1] == "1 passed, 2 failed, 2 skipped"


def test_what_runs_threads_runs_under_the_thread_sanitizer_too():
    (memory, all_of_them), (threads, threaded) = suite.sanitized(suite.parse(["--sanitize"]))
    assert (memory, threads) == ("address,undefined", "thread")
    assert "test_ops" in all_of_them and "test_support" in threaded and set(threaded) < set(all_of_them)
    assert suite.sanitized(suite.parse(["--sanitize", "judge"])) == [("address,undefined", ["test_judge"])]
    assert suite.sanitized(suite.parse(["--sanitize-threads"])) == [("thread", threaded)]
    assert suite.sanitized(suite.parse(["--sanitize-threads", "judge"])) == [("thread", ["test_judge"])]


@pytest.mark.parametrize("passes_again", [True, False])
def test_what_failed_runs_once_more_and_is_told(passes_again, tmp_path, monkeypatch, capsys):
    report = '<testsuites><testsuite><testcase classname="C" name="c">%s</testcase></testsuite></testsuites>'
    script = f"""import pathlib, sys
    again = pathlib.Path("again").exists(); pathlib.Path("again").touch()
    passed = again and {passes_again}
    pathlib.Path("t.xml").write_text({report!r} % ("" if passed else '<failure message="late"/>')); sys.exit(not passed)"""
    job = suite.Job("t", [sys.executable, "-c", script.replace("\n    ", "\n")], {})
    monkeypatch.setattr(suite, "ROOT", tmp_path)
    monkeypatch.setattr(suite, "RESULTS", tmp_path)
    monkeypatch.setattr(suite, "_native_jobs", lambda options: [job])
    monkeypatch.setattr(suite, "_python_jobs", lambda options: [])
    monkeypatch.setattr(suite.models, "ensure_models", lambda: tmp_path)
    monkeypatch.setattr(suite, "note", lambda text: None)
    monkeypatch.setenv("CAIRN_TEST_MODELS", "")
    assert suite.run_suite(suite.parse([])) == (0 if passes_again else 1)
    last = capsys.readouterr().out.splitlines()[-2:]
    assert last == (["again   t C.c: late", "1 passed, 0 failed, 0 skipped"] if passes_again
                    else ["FAILED  t C.c: late", "0 passed, 1 failed, 0 skipped"])  # fmt: skip


def test_no_test_at_all_is_a_failure(capsys):
    assert suite._summary([]) == 1
    assert capsys.readouterr().out.splitlines()[-1] == "0 passed, 0 failed, 0 skipped"


@pytest.mark.long
def test_the_package_installs_into_a_fresh_environment(tmp_path):
    subprocess.run([sys.executable, "-m", "venv", tmp_path / "venv"], check=True)
    python = tmp_path / "venv" / "bin" / "python"
    subprocess.run([python, "-m", "pip", "install", "-q", ROOT], check=True)
    for name in ("cairn", "atc", "omg", "msame"):
        assert subprocess.run([python.with_name(name), "--help"], capture_output=True).returncode == 0
    done = subprocess.run([python, "-c", "import cairn; print(cairn.__version__)"], cwd=tmp_path, capture_output=True)
    assert done.stdout == b"0.1.0\n"


def test_under_sanitizers_only_the_programs_of_the_filter_are_compiled(monkeypatch):
    commands = []
    monkeypatch.setattr(build, "run", lambda command: commands.append([str(word) for word in command]))
    options = suite.parse(["--sanitize-threads", "observe", "support"])
    for sanitizers, programs in suite.sanitized(options):
        build.sanitized(sanitizers, programs)
    assert "-DCAIRN_SANITIZE=thread" in commands[0]
    assert commands[1][-3:] == ["--target", "test_observe", "test_support"]


@pytest.mark.parametrize("command", ["build", "docs", "doctor"])
def test_commands_without_arguments_do_nothing_when_given_some(command):
    dev = [sys.executable, ROOT / "tools" / "dev", command]
    asked = subprocess.run([*dev, "--help"], capture_output=True, text=True)
    assert asked.returncode == 0 and "new-op NAME" in asked.stdout
    wrong = subprocess.run([*dev, "more"], capture_output=True, text=True)
    assert (wrong.returncode, wrong.stderr) == (2, f"dev: {command} takes no 'more'\n")


def test_one_process_at_a_time_compiles_in_a_tree(tmp_path):
    """Two compilations in one folder read files that the other writes: a compiler took 22 GB of memory."""
    code = "import machine, pathlib, sys\nwith machine.exclusive(pathlib.Path(sys.argv[1])): print('has it', flush=True), input()"

    def start():
        command = [sys.executable, "-c", code, tmp_path / "compile"]
        return subprocess.Popen(
            command, cwd=ROOT / "tools/dev", stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    first = start()
    assert first.stdout.readline() == "has it\n"
    second = start()
    assert second.stdout.readline() == "dev: waiting for another ./dev that makes compile\n"
    first.communicate("\n")
    assert second.communicate("\n")[0] == "has it\n"
    assert (first.returncode, second.returncode) == (0, 0)

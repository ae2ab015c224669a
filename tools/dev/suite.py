"""Runs the GoogleTest programs and the Python test files, two at a time, and sums them up in one last line.

Up to three programs or files that failed run once more when nothing runs beside them: ranks and servers depend on the machine as
well. What passes then counts as passed and is told by a line "again"; what fails again, failed.

A test may be skipped for missing hardware, or where a sanitizer changes what it measures: its reason starts with
"hardware:" or "sanitizer:" and is printed; any other skip counts as failed."""

import argparse
import concurrent.futures
import hashlib
import json
import os
import re
import signal
import subprocess
import time
import xml.etree.ElementTree as xml
from dataclasses import asdict, dataclass, field
from pathlib import Path

import build
import models
from steps import ROOT, note, step

RESULTS = ROOT / "build" / "test-results"
PYTHON_TESTS = ROOT / "tests" / "python"
TOGETHER = PYTHON_TESTS / "mindspore"  # whose many small files share one process
JOB_SECONDS = {False: 1500, True: 6 * 3600}  # one job's limit; the second with --all and sanitizers
WORKERS = 2
AGAIN = 3  # failed jobs that get a second run; more are no chance
MEMORY, THREADS = "address,undefined", "thread"  # sanitizers, as the compiler names them
SANITIZE = {
    "--sanitize": (MEMORY, "the C++ tests under the address and undefined-behaviour sanitizers, those of threads under both"),
    "--sanitize-threads": (THREADS, "the C++ tests of threads, or those of the words, under the thread sanitizer alone"),
}
THREADED = ("test_comm", "test_data", "test_support")  # what runs on several threads at once
PARTS = {"tests/python/test_networks.py": 12}  # jobs of a file with --all, so that an hour's work is not begun again


@dataclass(eq=False)
class Job:
    name: str
    command: list
    environment: dict


@dataclass
class Outcome:
    passed: int = 0
    failed: list = field(default_factory=list)  # one sentence each
    again: list = field(default_factory=list)  # what failed in a first run alone
    skipped: list = field(default_factory=list)
    seconds: float = 0.0


def parse(arguments):
    parser = argparse.ArgumentParser(prog="./dev test")
    parser.add_argument("filter", nargs="*", help="keep programs and files whose name holds one of these words")
    parser.add_argument("--all", action="store_true", help="also the long tests; continues where an --all stopped")
    for option, (sanitizers, summary) in SANITIZE.items():
        parser.add_argument(option, action="store_const", const=sanitizers, dest="sanitize", help=summary)
    parser.add_argument("--shard", type=_shard, default=(1, 1), metavar="i/n", help="the i-th of n parts, i from 1")
    parser.add_argument("--update", action="store_true", help="rewrite expected texts; review the difference")
    return parser.parse_args(arguments)


def _shard(text):
    match = re.fullmatch(r"(\d+)/(\d+)", text)
    if not match or not 1 <= int(match[1]) <= int(match[2]):
        raise argparse.ArgumentTypeError(f"expected i/n with 1 <= i <= n, found {text}")
    return int(match[1]), int(match[2])


def run_suite(options):
    signal.signal(signal.SIGINT, signal.default_int_handler)  # what was started in the background ignores it, and so would the tests
    RESULTS.mkdir(parents=True, exist_ok=True)
    os.environ["CAIRN_TEST_MODELS"] = str(models.ensure_models())
    jobs = _native_jobs(options) + ([] if options.sanitize else _python_jobs(options))
    if options.filter:
        jobs = [job for job in jobs if any(word in job.name for word in options.filter)]
    finished = _Finished(options)
    outcomes = {job: finished.outcome(job.name) for job in jobs if job.name in finished}
    limit = JOB_SECONDS[options.all or options.sanitize is not None]

    def run(job):
        outcomes[job] = _run(job, limit)
        _print_job(job.name, outcomes[job])
        finished.add(job.name, outcomes[job])

    with concurrent.futures.ThreadPoolExecutor(WORKERS) as pool:
        list(pool.map(run, [job for job in jobs if job not in outcomes]))
    failed = {job: outcome.failed for job, outcome in outcomes.items() if outcome.failed}
    for job in failed if len(failed) <= AGAIN else ():
        run(job)
        outcomes[job].again = failed[job]
    return _summary(outcomes.values())


def _summary(outcomes):
    failed = [sentence for outcome in outcomes for sentence in outcome.failed]
    skipped = [sentence for outcome in outcomes for sentence in outcome.skipped]
    passed = sum(outcome.passed for outcome in outcomes)
    for sentence in skipped:
        print("skipped " + sentence)
    for outcome in outcomes:
        for sentence in outcome.again if not outcome.failed else ():
            print("again   " + sentence)
    for sentence in failed:
        print("FAILED  " + sentence)
    print(f"{passed} passed, {len(failed)} failed, {len(skipped)} skipped", flush=True)
    return 1 if failed or not passed else 0


def _print_job(name, outcome):
    text = f"{outcome.seconds:6.1f} s {name}: {outcome.passed} passed"
    if outcome.failed:
        text += f", {len(outcome.failed)} FAILED"
    if outcome.skipped:
        text += f", {len(outcome.skipped)} skipped"
    print(text, flush=True)


def sanitized(options):
    """What `options` ask for under sanitizers: pairs of these and the names of test programs."""
    chosen = [name for name in build.test_programs() if not options.filter or any(word in name for word in options.filter)]
    threaded = [name for name in chosen if name in THREADED]
    if options.sanitize == THREADS:
        return [(THREADS, chosen if options.filter else threaded)]
    return [(sanitizers, names) for sanitizers, names in [(MEMORY, chosen), (THREADS, threaded)] if names]


def _native_jobs(options):
    index, count = options.shard
    environment = {
        "GTEST_TOTAL_SHARDS": str(count),
        "GTEST_SHARD_INDEX": str(index - 1),
        "ASAN_OPTIONS": "detect_leaks=1:allocator_may_return_null=1",
        "UBSAN_OPTIONS": "print_stacktrace=1",
        **_common(options),
    }
    runs = []
    for sanitizers, names in sanitized(options) if options.sanitize else [("", build.test_programs())]:
        folder = build.sanitized_folder(sanitizers) if sanitizers else build.BUILD
        own = " (threads)" if sanitizers == THREADS else ""
        runs += [(name + own, folder / name, environment) for name in names]
        # Kernels as a lesser machine has them: panels and tails are cut otherwise.
        if "test_engines" in names:
            for isa in ("avx512_bf16", "avx2"):
                runs.append((f"test_engines ({isa}){own}", folder / "test_engines", {**environment, "CAIRN_ISA": isa}))
    return [
        Job(name, [p, f"--gtest_output=xml:{_report(name)}", "--gtest_brief=1"], own) for name, p, own in runs
    ]


def _python_jobs(options):
    jobs = []
    files = {file if TOGETHER not in file.parents else TOGETHER for file in PYTHON_TESTS.rglob("test_*.py")}
    for file in sorted(files):
        name = str(file.relative_to(ROOT))
        environment = ".venv-peers" if "peers" in file.relative_to(PYTHON_TESTS).parts else ".venv"
        index, count = options.shard
        parts = PARTS.get(name, 1) if options.all else 1
        for part in range(parts):
            own = name if parts == 1 else f"{name} ({part + 1} of {parts})"
            shard = f"{index + count * part}/{count * parts}"
            command = [ROOT / environment / "bin/python", "-m", "pytest", "-q", file, f"--junitxml={_report(own)}"]
            jobs.append(Job(own, command, {"CAIRN_TEST_SHARD": shard, **_common(options)}))
    return jobs


def _common(options):
    return {"CAIRN_TEST_ALL": str(int(options.all)), "CAIRN_TEST_UPDATE": str(int(options.update))}


def _report(name):
    return RESULTS / (re.sub("[/ ()]+", "_", name) + ".xml")


def _run(job, limit):
    report = _report(job.name)
    report.unlink(missing_ok=True)
    start = time.time()
    try:
        process = subprocess.run(
            [str(word) for word in job.command],
            cwd=ROOT,
            env={**os.environ, **job.environment},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            timeout=limit,
        )
        output, code = process.stdout, process.returncode
    except subprocess.TimeoutExpired as error:
        output, code = (error.stdout or b"").decode(errors="replace"), f"no end after {limit} s"
    note(f"== {job.name} (exit {code})\n{output}")
    outcome = _read(job.name, report)
    if code != 0 and code != 5 and not outcome.failed:  # 5: pytest found nothing in this shard
        outcome.failed.append(f"{job.name}: ended with {code}: {_last_line(output)}")
    if outcome.failed:
        print("\n".join("    " + line for line in output.splitlines()[-60:]), flush=True)
    outcome.seconds = time.time() - start
    return outcome


def _last_line(output):
    lines = [line for line in output.splitlines() if line.strip()]
    return lines[-1] if lines else "no output"


def _read(name, report):
    outcome = Outcome()
    if not report.exists():
        return outcome
    for case in xml.parse(report).getroot().iter("testcase"):
        full = f"{name} {case.get('classname')}.{case.get('name')}"
        bad = next((case.find(tag) for tag in ("failure", "error") if case.find(tag) is not None), None)
        skip = case.find("skipped")
        if bad is not None:
            outcome.failed.append(f"{full}: {_first_line(bad)}")
        elif skip is not None:
            reason = _first_line(skip)
            accepted = re.search(r"\b(hardware|sanitizer): ", reason)
            (outcome.skipped if accepted else outcome.failed).append(f"{full}: {reason}")
        elif case.get("status") != "notrun":
            outcome.passed += 1
    return outcome


def _first_line(element):
    text = element.get("message") or element.text or "no reason given"
    lines = [line for line in text.strip().splitlines() if line.strip()]
    # GoogleTest puts "file:line" before the message.
    return " ".join(lines[:2] if lines and re.fullmatch(r"\S+:\d+", lines[0].strip()) else lines[:1])[:300]


class _Finished:
    """Jobs that an earlier --all of the same tree finished without a failure."""

    def __init__(self, options):
        self.path = RESULTS / "all.json" if options.all and not options.update else None
        self.key = _tree_state() + str(options.shard) + str(options.sanitize) if self.path else ""
        self.jobs = {}
        if self.path and self.path.exists():
            stored = json.loads(self.path.read_text())
            self.jobs = stored["jobs"] if stored["key"] == self.key else {}

    def __contains__(self, name):
        return name in self.jobs

    def outcome(self, name):
        return Outcome(**self.jobs[name])

    def add(self, name, outcome):
        if self.path and not outcome.failed:
            self.jobs[name] = asdict(outcome)
            self.path.write_text(json.dumps({"key": self.key, "jobs": self.jobs}))


def _tree_state():
    digest = hashlib.sha256()
    for command in (["git", "rev-parse", "HEAD"], ["git", "diff", "HEAD"], ["git", "status", "--short"]):
        digest.update(subprocess.run(command, cwd=ROOT, capture_output=True, check=True).stdout)
    return digest.hexdigest()

"""`python -m cairn_tf1.port PATH [options] -- args`: migrates a TensorFlow project into a work folder, trains it on stock
TensorFlow and on Cairn with equal seeds, compares everything that both computed and writes one page about it.

Stock TensorFlow also runs against itself, with one thread and with its other kernels: what two correct runs differ by is what
Cairn may differ by, times FACTOR. Where TensorFlow does not repeat its own numbers, nothing can be proven. Exit 0: equal; 1: not
equal; 2: wrong use; 3: the script cannot run here; 4: TensorFlow itself does not repeat what differs."""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from cairn import _ending as ending

from cairn_tf1 import port_page, recorded

FACTOR = 4.0  # of the difference between two runs of stock TensorFlow
LEAST = 1e-4  # of the largest element: what rounding alone may do to a later step
MOST = 0.1  # of the largest element: where TensorFlow differs from itself by more, times FACTOR, no bound proves anything
NOTHING = 1e-10  # no difference, whatever the size of the elements
REPEATS = 2  # further runs of stock TensorFlow before a difference is called one
OTHERWISE = {"TF_NUM_INTRAOP_THREADS": "1", "OMP_NUM_THREADS": "1", "TF_ENABLE_ONEDNN_OPTS": "0"}
RUNS = {"stock": ("tensorflow", {}), "again": ("tensorflow", OTHERWISE), "cairn": ("cairn", {})}
# The last bit of each weight is another in the beginning. One such run may hardly move a sum that nearly cancels, so there are several.
NUDGED = {f"nudged{seed}": ("tensorflow", OTHERWISE | {"CAIRN_RECORD_NUDGE": str(seed)}) for seed in (1, 2, 3)}
ROUNDING = "TensorFlow itself differs as much where the last bit of each weight is another in the beginning"
ORDER = "two runs of TensorFlow make their runs in another order, or with other sizes"
EQUAL, NOT_EQUAL, NOT_REPRODUCIBLE = "equal", "not equal", "not reproducible"
EXIT = {EQUAL: 0, NOT_EQUAL: 1, NOT_REPRODUCIBLE: 4}


def parse(arguments):
    words = sys.argv[1:] if arguments is None else [str(word) for word in arguments]
    own, script_words = (words[: words.index("--")], words[words.index("--") + 1 :]) if "--" in words else (words, [])
    parser = ending.Parser(
        prog="cairn port",
        usage="%(prog)s PATH [options] [-- arguments of the script]",
        description=__doc__.split("\n\n")[0].split(": ", 1)[1],
        epilog="example: cairn port my_project --main train.py -o port --steps 5 -- --epochs 1; "
        "PyTorch scripts, their weights: cairn port --to mindspore --help",
    )
    parser.add_argument("path", type=Path, help="a script, or the folder of a project")
    parser.add_argument("-m", "--main", help="the program's entry script, relative to the folder; detected otherwise")
    parser.add_argument("-o", "--output", type=Path, default=Path("cairn_port"), help="work folder (default %(default)s)")
    parser.add_argument("--steps", type=int, default=20, help="training runs to compare (default %(default)s)")
    parser.add_argument("--json", action="store_true", help="print the result as JSON")
    parser.add_argument("--timeout", type=float, default=3600, help="seconds that one run may take (default %(default)s)")
    options, unknown = parser.parse_known_args(own)
    if unknown:
        parser.error(f"{unknown[0]} is no option of cairn port; arguments of the script stand after --")
    options.arguments = script_words
    return options


def main(words=None):
    options = parse(words)
    if not options.path.exists():
        return refuse(f"there is no {options.path}")
    options.output.mkdir(parents=True, exist_ok=True)
    migrated, mark = options.output.resolve() / "migrated", options.output / ending.WORK_MARK
    if migrated.exists() and not mark.exists():
        return refuse(f"{migrated} is not from an earlier cairn port and would be replaced; name another work folder with -o")
    mark.touch()
    options.main = named_script(options)
    migration = migrate(options, migrated)
    script = migrated / entry(options, migration)
    runs = {name: run(kind, name, script, options, migration) for name, kind in RUNS.items()}
    races, least = about(options)
    result = compare(runs, races, least)
    if result["verdict"] != EQUAL:
        more = NUDGED | {f"repeat{count}": RUNS["stock"] for count in range(REPEATS)}
        runs |= {name: run(kind, name, script, options, migration) for name, kind in more.items()}
        result = compare(runs, races, least)
    result |= {"script": str(script.relative_to(migrated)), "arguments": options.arguments}
    result["clusters"] = clusters(options.output / "cairn.report.json")
    result["aliases"] = json_of(options.output / "stock.aliases.json")
    result["edits"] = edits(migration)
    if result["verdict"] == NOT_EQUAL:
        words = ["cairn", "diff", "--script", str(script), "--steps", str(options.steps)]
        words += ["--tf2"] if generation(script.relative_to(migrated), migration) == 2 else []
        words += ["--", *options.arguments] if options.arguments else []
        result["next"] = shlex.join(words) + " names the first operator that computes something else"
    if not result["clusters"].get("on_engine"):
        return refuse("nothing of the script ran on the engine: there is nothing to compare", 3)
    ending.write_text(options.output / "port.json", json.dumps(result, indent=1))
    ending.write_text(options.output / "index.html", port_page.page(result, FACTOR, least, MOST))
    if options.json:
        print(json.dumps(result, indent=1))
    else:
        tell(result, options)
    return EXIT[result["verdict"]]


def named_script(options):
    """What --main says, relative to the project, also where it is said relative to the working folder."""
    folder, named = options.path.resolve(), Path(options.main or "").resolve()
    inside = options.main and (Path(options.main).is_absolute() or not folder.joinpath(options.main).is_file())
    return str(named.relative_to(folder)) if inside and named.is_relative_to(folder) else options.main


def run(kind, name, script, options, migration):
    """What a run of this kind (see RUNS) recorded, under the name `name`."""
    engine, settings = kind
    say(options, f"{name:7} {engine} {script.name} {shlex.join(options.arguments)}")
    return train(script, options, name, engine, settings, migration)


def say(options, text):
    if not options.json:
        print(text, flush=True)


def refuse(sentence, code=2):
    return ending.refuse("port", sentence, code)


def migrate(options, folder):
    """What `cairn migrate` says of the project, as JSON; the migrated project lies in `folder`, with all else that it reads."""
    shutil.rmtree(folder, ignore_errors=True)
    path = options.path.resolve()
    with tempfile.TemporaryDirectory() as outside:  # the work folder may lie inside the project
        migrated = Path(outside) / "migrated"
        command = [Path(sys.executable).with_name("cairn"), "migrate", path, "-o", migrated, "--json"]
        command += ["--main", options.main] if options.main and path.joinpath(options.main).is_file() else []
        done = subprocess.run([str(word) for word in command], capture_output=True, text=True)
        if done.returncode not in (0, 1):
            sys.exit(refuse(f"migration failed: {done.stderr.strip().removeprefix('error: migrate: ')}", 3))
        shutil.move(migrated, folder)
    recorded.lay_out(path if path.is_dir() else path.parent, folder)
    return json.loads(done.stdout)


def edits(migration):
    """Each change and each finding: where, by which rule, what."""
    return [
        {"place": f"{file['path']}:{row['line']}", "rule": row["rule"], "kind": kind, "text": row["message"]}
        for file in migration["files"]
        for kind in ("changes", "findings")
        for row in file[kind]
    ]


def obstacles(migration):
    """What the migration holds to be in the way of running here."""
    found = [
        f"{file['path']}:{row['line']}: {row['message']}; {row['advice']}"
        for file in migration["files"]
        for row in file["findings"]
        if row["severity"] == "error"
    ]
    return "\nwhat the migration could not change:\n  " + "\n  ".join(found[:20]) if found else ""


def entry(options, migration):
    """The program's script, relative to the project."""
    if options.path.is_file():
        return options.path.name
    if options.main:
        if options.path.joinpath(options.main).is_file():
            return options.main
        sys.exit(refuse(f"there is no {options.main} in {options.path}; {candidates(migration)}"))
    scripts = [file for file in migration["files"] if file["path"].endswith(".py")]
    found = [file["path"] for file in scripts if file["entry"] or len(scripts) == 1]
    if not any(file["tf"] for file in scripts):
        sys.exit(refuse(f"no script in {options.path} uses TensorFlow"))
    if len(found) != 1:
        sys.exit(refuse(f"which script is the program? --main names it ({candidates(migration)})"))
    return found[0]


def generation(script, migration):
    """The TensorFlow interface of the program: that of its script, of the project where the script names none itself."""
    return next((file["tf"] for file in migration["files"] if file["path"] == str(script)), 0) or migration["tf"]


def candidates(migration):
    """The scripts that may be the program: those that are started by themselves, else all that use TensorFlow."""
    scripts = [file for file in migration["files"] if file["path"].endswith(".py")]
    found = [file["path"] for file in scripts if file["entry"]] or [file["path"] for file in scripts if file["tf"]]
    more = f", and {len(found) - 8} more" if len(found) > 8 else ""
    return f"candidates: {', '.join(found[:8])}{more}" if found else "no script uses TensorFlow"


def train(script, options, name, engine, settings, migration):
    """What one run recorded: {key: array}."""
    files = {key: options.output.resolve() / f"{name}.{key}.json" for key in ("aliases", "report")}
    for file in files.values():
        file.unlink(missing_ok=True)
    environment = {
        "TF_CPP_MIN_LOG_LEVEL": os.environ.get("TF_CPP_MIN_LOG_LEVEL", "2"),
        **settings,
        "PYTHONHASHSEED": "0",
        "CAIRN_RECORD_STEPS": str(options.steps),
        "CAIRN_TF1_REPORT": str(files["aliases"]),
        "CAIRN_REPORT": str(files["report"]),
    }
    try:
        project = options.output.resolve() / "migrated"
        words = ["--tf2"] if generation(script.relative_to(project), migration) == 2 else []
        found = recorded.train(script, options, name, engine, environment, words, project=project)
    except recorded.TakesTooLong as fact:
        sys.exit(refuse(fact, 3))
    except recorded.DoesNotRun as fact:
        sys.exit(refuse(f"{fact}{obstacles(migration)}", 3))
    if not found.pop("trained"):
        sys.exit(refuse("no run of the script updates variables: there is no training to compare", 3))
    return found


def about(options):
    """({value: sentence}: what timing decides in a run of the script, what rounding alone may do to a later step)."""
    with np.load(options.output / "stock.npz") as arrays:
        return json.loads(str(arrays["races"])), max(LEAST, FACTOR * arrays["roundoff"].item())


def compare(runs, races, least=LEAST):
    """The verdict, and every value that cannot be called equal. `runs` holds those of RUNS, and further ones of stock."""
    if runs_of(runs["stock"]) != runs_of(runs["cairn"]):
        runs = {name: by_training_run(values) for name, values in runs.items()}
    stock, cairn = runs["stock"], runs["cairn"]
    others = [name for name in runs if name not in ("stock", "cairn")]
    rows, noise = [], {}
    for key, expected in stock.items():
        what = re.sub(r":[\d.]+:", ":", key, count=1)  # the value without its run: rounding grows from run to run
        for name in others:
            found = difference(runs[name].get(key, expected), expected)[1], name
            noise[what] = max(noise.get(what, found), found)
        bound = FACTOR * noise[what][0]
        row = {"key": key, "size": int(expected.size), "difference": None, "allowed": 0.0, "verdict": NOT_EQUAL}
        if key in cairn and cairn[key].shape == expected.shape:
            error, share = difference(cairn[key], expected)
            row |= {"difference": share, "allowed": min(max(bound, least), MOST)}
            row["verdict"] = EQUAL if error <= NOTHING or share <= row["allowed"] else NOT_EQUAL
        if row["verdict"] == NOT_EQUAL and bound > MOST:
            reason = ROUNDING if noise[what][1].startswith("nudged") else "two runs of TensorFlow differ as much"
            row |= {"verdict": NOT_REPRODUCIBLE, "reason": reason}
        rows.append(row)
    rows += [{"key": key, "size": int(cairn[key].size), "difference": None, "allowed": 0.0, "verdict": NOT_EQUAL}
             for key in cairn if key not in stock]  # fmt: skip
    forgive_races(rows, races)
    forgive_order(rows, stock, [runs[name] for name in others])
    found = {row["verdict"] for row in rows}
    unequal = [row for row in rows if row["verdict"] != EQUAL]
    scalars = [key for key in stock if key.startswith("fetch:") and stock[key].size == 1 and key in cairn]
    # A fetched value that timing decides, as the counter of steps beside its update, leaves what was trained proven.
    open_ = any(row["verdict"] == NOT_REPRODUCIBLE and not row["key"].startswith("fetch:") for row in rows)
    proven = EQUAL in found and not open_
    verdict = NOT_EQUAL if NOT_EQUAL in found or not rows else EQUAL if proven else NOT_REPRODUCIBLE
    return {
        "equal": verdict == EQUAL,
        "verdict": verdict,
        "compared": len(rows),
        "variables": sum(row["key"].startswith("variable:") for row in rows),
        "steps": len({key.split(":")[1] for key in stock if key.startswith("after:")}),
        "unequal": unequal[:100],
        "unequal_count": len(unequal),
        "reasons": sorted({row["reason"] for row in unequal if "reason" in row})[:20],
        "largest": sorted((row for row in rows if row["verdict"] == EQUAL), key=lambda row: -row["difference"])[:20],
        "scalars": [{"key": key, "stock": stock[key].item(), "cairn": cairn[key].item()} for key in scalars[:400]],
    }


def forgive_races(rows, races):
    """Not reproducible is what timing decides, and all that differs once a variable does for that reason."""
    differing = [row for row in rows if row["verdict"] == NOT_EQUAL and (row["difference"] is not None or run_of(row["key"]) % 1)]
    raced = [row for row in differing if name_of(row["key"]) in races and not row["key"].startswith("fetch:")]
    first = min(raced, key=lambda row: run_of(row["key"]), default=None)
    for row in differing:
        later = first is not None and run_of(row["key"]) >= run_of(first["key"])
        reason = races.get(name_of(row["key"])) or (races[name_of(first["key"])] if later else None)
        if reason:
            row |= {"verdict": NOT_REPRODUCIBLE, "reason": reason}


def forgive_order(rows, stock, others):
    """Not reproducible is all from the first run on that another time TensorFlow itself makes in another order, or with other sizes."""

    def shape(values, key):
        return values[key].shape if key in values else None

    apart = {key for other in others for key in stock.keys() | other.keys() if shape(stock, key) != shape(other, key)}
    first = min(map(run_of, apart), default=float("inf"))
    for row in rows:
        if apart and row["verdict"] == NOT_EQUAL and run_of(row["key"]) >= first:
            row |= {"verdict": NOT_REPRODUCIBLE, "reason": ORDER}


def runs_of(values):
    """{number of a run: whether it trains}, as texts and in order."""
    found = {}
    for kind, number in (key.split(":")[:2] for key in values):
        if kind != "variable":
            found[number] = found.get(number, False) or kind == "after"
    return dict(sorted(found.items(), key=lambda run: int(run[0])))


def by_training_run(values):
    """The same values, their runs counted anew, runs between two that train as 3.001, 3.002: hooks read a counter once more where
    timing decides what they read first, which would move the numbers of all later runs."""
    numbers, trained, between = {}, 0, 0
    for number, trains in runs_of(values).items():
        trained, between = (trained + 1, 0) if trains else (trained, between + 1)
        numbers[number] = str(trained) if trains else f"{trained}.{between:03}"

    def renamed(key):
        kind, number, *name = key.split(":", 2)
        return key if kind == "variable" else ":".join([kind, numbers[number], *name])

    return {renamed(key): value for key, value in values.items()}


def run_of(key):
    """The number of the run, which variables at the end come after."""
    kind, number = key.split(":")[:2]
    return float("inf") if kind == "variable" else float(number)


def name_of(key):
    """Of the operation or variable: fetch:3:loss:0 -> loss, after:3:w -> w, variable:w -> w."""
    kind, _, rest = key.partition(":")
    if kind == "variable":
        return rest
    name = rest.partition(":")[2]
    return name.rpartition(":")[0] if kind == "fetch" else name


def difference(found, expected):
    """(largest difference, the same as a share of the largest element); not a number in the same places is no difference."""
    error, size = recorded.difference(found, expected)
    return error, error / max(size, 1e-6)


def json_of(file):
    return json.loads(file.read_text()) if file.exists() else {}


def clusters(file):
    """Nodes on the engine, of the graph with the most nodes."""
    graphs = json_of(file).get("graphs", [])
    largest = max(graphs, key=lambda graph: graph.get("numeric", 0), default=None)
    if not largest:
        return {}
    return {
        "clusters": len(largest["clusters"]),
        "numeric": largest["numeric"],
        "on_engine": largest["numeric_on_engine"],
        "host": [{"op": row["op"], "count": row["count"], "reason": row["reason"]} for row in largest["host"]],
    }


def tell(result, options):
    print(f"{result['compared']} values compared over {result['steps']} training runs, {result['variables']} of them variables")
    if result["clusters"]:
        part = result["clusters"]
        print(f"{part['on_engine']} of {part['numeric']} numeric nodes on the engine, in {part['clusters']} clusters")
    for row in result["unequal"][:10]:
        found = "missing or of another shape" if row["difference"] is None else f"{row['difference']:.2e}, allowed {row['allowed']:.2e}"
        print(f"  {row['key']}: {found}")
    for reason in result["reasons"][:3]:
        print(f"  {reason}")
    count = f": {result['unequal_count']} values" if result["unequal_count"] and not result["equal"] else ""
    count = f", but for {result['unequal_count']} that timing decides" if result["unequal_count"] and result["equal"] else count
    print({EQUAL: "equal", NOT_EQUAL: "NOT equal", NOT_REPRODUCIBLE: "not reproducible by TensorFlow itself"}[result["verdict"]] + count)
    if "next" in result:
        print(result["next"])
    print(f"page: {options.output / 'index.html'}")


if __name__ == "__main__":
    ending.end_with("port", main, 3)

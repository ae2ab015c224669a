"""A training case on stock TensorFlow and on Cairn: equal losses, time of a step, of the first step, memory, share on the engine."""

import json
import math
import statistics

import side

SIDES = ("tensorflow", "cairn")
FIRST = 10  # steps whose losses are compared


def start(case, engine, options, threads=None):
    """A side that holds nothing yet."""
    first = case.startswith("tf1_")
    command = [options.root / ".venv/bin/python", "-B", *(["-m", "cairn_tf1", "--anyway"] if first else [])]
    return side.Side(
        engine,
        [*command, options.root / "bench/breadth/train_worker.py"],
        options.folder / f"{case}.{engine}.log",
        CAIRN_ENGINE=engine,
        **side.watched(options.folder / case) if engine == "cairn" else {},
        BREADTH_THREADS=str(threads or options.threads),
        BREADTH_TF="1" if first else "2",
    )


def share(stem, skip=0):
    """Of the largest graph of a report after the first `skip`: the part of its numeric operators that ran on the engine, what else ran
    where, and the number of graphs."""
    try:
        report = json.loads(side.report_file(stem).read_text())
    except FileNotFoundError:
        return 0.0, ["nothing ran on the engine"], skip
    graphs = [graph for graph in report["graphs"][skip:] if graph["numeric"]]
    if not graphs:
        return 0.0, ["no graph with numeric operators"], len(report["graphs"])
    graph = max(graphs, key=lambda graph: graph["numeric"])
    reasons = [
        f"{node['count']} {node['op']}: {node['reason']}" for node in graph["host"] if not node["reason"].startswith(("an end", "holds"))
    ]
    reasons += [stock["reason"] for stock in report["run_by_tensorflow"]]
    reasons += [f"{operator} on reference" for operator in side.reference(stem)]
    refused = {stock["cluster"] for stock in report["run_by_tensorflow"]}
    for cluster, told in report["changing_sizes"].items():
        if told.get("new_sizes", "").startswith("tensorflow"):
            refused.add(cluster)
            reasons.append(f"new sizes on {told['new_sizes']}")
    for cluster, told in report["in_doubt"].items():
        if told.startswith("tensorflow"):
            refused.add(cluster)
            reasons.append(f"a cluster in doubt on {told}")
    nodes = sum(each["nodes"] for each in graph["clusters"])
    kept = sum(each["nodes"] for each in graph["clusters"] if each["name"] not in refused) / max(nodes, 1)
    return kept * graph["numeric_on_engine"] / graph["numeric"], reasons, len(report["graphs"])


def difference(wanted, found):
    """The largest relative difference of two lists of losses; 9 where one is no number and the other is."""
    pairs = list(zip(wanted, found, strict=True))
    if any(math.isfinite(a) != math.isfinite(b) for a, b in pairs):
        return 9.0
    return max((abs(a - b) / max(abs(a), 1e-6) for a, b in pairs if math.isfinite(a)), default=0.0)


def judge(case, losses, options):
    """The difference of the losses, and whether it is within 1e-3 or thrice that of stock TensorFlow on 1 thread and on more."""
    count = len(losses["cairn"])
    found = difference(losses["tensorflow"], losses["cairn"])
    own = None
    if found > 1e-3:
        other = start(case, "tensorflow", options, threads=1 if options.threads > 1 else 2)
        try:
            other.ask(f"case {case}")
            own = difference(losses["tensorflow"], other.ask(f"steps {count}")["losses"])
        finally:
            other.end()
    return {"difference": found, "own_difference": own, "equal": found <= 1e-3 or (own is not None and found <= 3 * own)}


class Quick:
    """Runs many cases in one process a side, for their losses alone."""

    def __init__(self, options):
        self.options, self.sides, self.seen = options, {}, 0

    def compare(self, case):
        door = case[:4]
        if door not in self.sides:
            self.end()
            self.seen = 0
            self.sides = {door: {engine: start(door, engine, self.options) for engine in SIDES}}
        side.steps_file(self.options.folder / door).unlink(missing_ok=True)
        try:
            losses = {}
            for engine, each in self.sides[door].items():
                each.ask(f"case {case}")
                losses[engine] = each.ask("steps 3")["losses"]
        except side.Failed:
            self.end()
            raise
        row = judge(case, losses, self.options)
        row["share"], row["reasons"], self.seen = share(self.options.folder / door, self.seen)
        return {**row, "losses": losses}

    def end(self):
        for each in [each for sides in self.sides.values() for each in sides.values()]:
            each.end()
        self.sides = {}


def compare(case, options):
    sides, first, losses, warm = {}, {}, {}, {}
    try:
        for engine in SIDES:
            sides[engine] = start(case, engine, options)
        for each in sides.values():
            each.ask("peak")  # all have imported TensorFlow before one is timed
        for engine, each in sides.items():
            each.ask(f"case {case}")
            answer = each.ask("steps 1")
            first[engine] = answer["times"][0]
            later = each.ask(f"steps {FIRST - 1}")
            losses[engine] = answer["losses"] + later["losses"]
            warm[engine] = statistics.median(later["times"][3:])
        count = max(2, min(300, int(options.seconds / options.rounds / max(warm.values()))))
        rounds = []
        for turn in range(options.rounds):
            answers = {engine: sides[engine].ask(f"steps {count}") for engine in SIDES[:: 1 if turn % 2 else -1]}
            rounds.append([(statistics.median(answers[e]["times"]), answers[e]["cpu"]) for e in SIDES])
        peaks = [sides[engine].ask("peak")["peak"] for engine in SIDES]
    finally:
        for each in sides.values():
            each.end()
    on_engine, reasons, _ = share(options.folder / case)
    return {
        **judge(case, losses, options),
        "losses": losses,
        "wall": statistics.median(b[0] / a[0] for a, b in rounds),
        "cpu": statistics.median(b[1] / a[1] for a, b in rounds),
        "first": first["cairn"] / first["tensorflow"],
        "memory": peaks[1] / peaks[0],
        "ms": {engine: 1e3 * min(each[i][0] for each in rounds) for i, engine in enumerate(SIDES)},
        "first_s": first,
        "peak_mib": dict(zip(SIDES, peaks, strict=True)),
        "share": on_engine,
        "reasons": reasons,
    }

"""How many of the names that official scripts import are used by a test."""

import re
from pathlib import Path

import test_people_by_mindspore

FOLDER = Path(__file__).parent
LEAST = 0.92


def test_names_of_official_scripts_are_tested(capsys):
    lines = (FOLDER / "official_names.txt").read_text().splitlines()
    names = [line.split()[0] for line in lines if line.strip() and not line.startswith("#")]
    files = [each for each in FOLDER.rglob("*") if each.suffix in (".py", ".txt") and each.name != "official_names.txt"]
    files += (FOLDER.parents[2] / "examples" / "mindspore").rglob("*.py")
    words = set(re.findall(r"\w+", "\n".join(each.read_text() for each in files)))
    untested = [name for name in names if name.split(".")[-1] not in words]
    with capsys.disabled():
        print(
            f"\n{len(names) - len(untested)} of {len(names)} names of official scripts are in a test; not:", *untested
        )
    assert len(untested) <= (1 - LEAST) * len(names)


# Names without a comparison with MindSpore 2.10 on CPU: what has no kernel there, left it since 1.10, or is a job's of several ranks.
UNCOMPARED = {
    "no kernel for CPU": "thor DynamicRNN NPUAllocFloatStatus NPUGetFloatStatus NPUClearFloatStatus AllReduce DistributedGradReducer",
    "not there after 1.10": "AdamWeightDecayDynamicLR _Loss TensorAdd ControlDepend control_depend ImageFolderDatasetV2 _executor "
    "_selected_ops scalar_to_array _get_mirror_mean ConvertModelUtils",
    "a service, or a word without a value": "DatasetCache set_ps_context Profiler Load get_rank get_group_size auto_parallel_context debug",
}


def test_values_of_official_names_are_compared_with_mindspore_itself():
    """By an expression of ops_cases.txt, layer_cases.txt or oracle_cases.txt, or by a file of people/ that runs under 2.10."""
    expressions = []
    for file in ("ops_cases.txt", "layer_cases.txt"):
        rows = [line.split(" | ") for line in (FOLDER / file).read_text().splitlines() if not line.startswith("#")]
        expressions += [row[0] for row in rows if len(row) < 4 or "own" not in row[3]]
    compared = ["\n".join(expressions), (FOLDER / "oracle_cases.txt").read_text()]
    compared += [(FOLDER / "people" / file).read_text() for file in test_people_by_mindspore.FILES]
    words = set(re.findall(r"\w+", "\n".join(compared)))
    lines = (FOLDER / "official_names.txt").read_text().splitlines()
    names = {line.split()[0].split(".")[-1] for line in lines if line.strip() and not line.startswith("#")}
    without = {name for names in UNCOMPARED.values() for name in names.split()}
    assert names - words == without

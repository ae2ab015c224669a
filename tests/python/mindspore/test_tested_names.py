"""How many of the names that official scripts import are used by a test."""

import re
from pathlib import Path

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

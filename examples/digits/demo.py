"""./dev demo: a TensorFlow 1 script is migrated and trained on both engines, a MindSpore script is trained and exported, and a
CNN trained by stock Keras goes the whole way to an .om: show, freeze, convert, run, compare, time.

Every stage is a command as a user would type it; figures and pictures end up in out/demo/index.html."""

import json
import os
import re
import shlex
import shutil
import statistics
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import numpy as np  # noqa: E402
import page  # noqa: E402

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
OUT = ROOT / "out" / "demo"
BIN = Path(sys.executable).parent
ROUNDS, ROUND_SECONDS = 10, 0.1
TRAININGS, TRAINING_STEPS = 2, 200  # of the TensorFlow 1 script on each engine, in turn
PROFILED_STEPS, DIFFED_STEPS = 50, 5
MINDSPORE_EPOCHS = 10
SPEED_BATCHES = (1, 32)


class Stages:
    """Runs commands in OUT, prints one line for each and keeps what the page shows."""

    def __init__(self):
        self.rows = []

    def run(self, title, *words, accepted=(0,), **environment):
        words = [str(word) for word in words]
        start = time.time()
        # The commands stand beside this Python, wherever PATH points.
        everything = {**os.environ, **environment}
        done = subprocess.run([str(BIN / words[0]), *words[1:]], cwd=OUT, env=everything, capture_output=True, text=True)
        seconds = time.time() - start
        shown = shlex.join([*(f"{name}={value}" for name, value in environment.items()), *words]).replace(str(ROOT) + "/", "")
        self.rows.append({"title": title, "command": shown, "seconds": seconds, "output": done.stdout.strip()})
        print(f"{seconds:6.1f} s {title:8} {shown}", flush=True)
        if done.returncode not in accepted:
            print(done.stdout + done.stderr, file=sys.stderr)
            sys.exit(f"demo: {title} failed with exit {done.returncode}")
        return done.stdout


def main():
    OUT.mkdir(parents=True, exist_ok=True)
    shutil.copy(HERE / "train_tf1.py", OUT / "train.py")
    stages, beside, exported = Stages(), Stages(), Stages()
    script = train_script(stages)
    before = len(stages.rows)
    with ThreadPoolExecutor() as pool:  # nothing of all this is timed
        compared, tests = pool.submit(compare_script, beside), pool.submit(test_set)
        trained = pool.submit(mindspore_script, exported)
        facts = convert(stages, tests)
        compared.result()
        mindspore = trained.result()
    images, labels = tests.result()
    stages.rows[before:before] = beside.rows + exported.rows
    profile = stages.run("bench", "cairn", "bench", "digits.om", "--batch", 32, "--seconds", 1, "--per-op", "--json")
    facts |= compare(images, labels)
    facts |= {"stages": stages.rows, "script": script, "mindspore": mindspore, "profile": json.loads(profile)}
    report(facts)
    (profiled,) = (OUT / "profile").rglob("index.html")
    pages = {"where the time of its steps goes": profiled, "its steps against TensorFlow's": OUT / "diff" / "index.html"}
    facts["pages"] = {title: str(path.relative_to(OUT)) for title, path in pages.items()}
    (OUT / "facts.json").write_text(json.dumps(facts, indent=1))
    (OUT / "index.html").write_text(page.render(facts, images, labels))
    print("pages: " + "\n       ".join(str(path.relative_to(ROOT)) for path in (*pages.values(), OUT / "index.html")))


def test_set():
    """(images, labels), the images in test_images.npy as well."""
    import train  # and with it TensorFlow, which takes seconds

    _, (images, labels) = train.data()
    np.save(OUT / "test_images.npy", images)
    return images, labels


def convert(stages, tests):
    """The CNN of Keras from its training to an .om whose results are verified."""
    stages.run("train", "python", HERE / "train.py", "saved_model")
    stages.run("show", "cairn", "show", "saved_model")
    frozen = json.loads(stages.run("freeze", "cairn", "freeze", "saved_model", "-o", "frozen.pb", "--json"))
    node = frozen["inputs"][0].removesuffix(":0")
    stages.run("convert", "atc", "--model=frozen.pb", "--framework=3", "--output=digits",
               f"--input_shape={node}:-1,8,8,1", "--soc_version=Ascend310")  # fmt: skip
    tests.result()  # its file is read now
    stages.run("run", "cairn", "run", "digits.om", "--input", f"{node}=test_images.npy", "--output", "results")
    verified = stages.run("verify", "cairn", "verify", "digits.om", "--against", "frozen.pb", "--json")
    return {"node": node, "verified": json.loads(verified)}


def train_script(stages):
    """The TensorFlow 1 script: migrated, trained on both engines in turn, profiled."""
    changes = stages.run("migrate", "cairn", "migrate", "train.py", accepted=(0, 1))  # 1: there are some
    print("".join(f"           {line}\n" for line in changes.splitlines()), end="", flush=True)
    stages.run("migrate", "cairn", "migrate", "train.py", "-o", "migrated")
    records = {"tensorflow": [], "cairn": []}
    for turn in range(TRAININGS):
        for engine in sorted(records, reverse=turn % 2 == 0):
            words = ("migrated/train.py", "--steps", TRAINING_STEPS, "--output", f"tf1_{engine}")
            stages.run("script", "cairn", "tf1", *words, CAIRN_ENGINE=engine)
            records[engine].append(dict(np.load(OUT / f"tf1_{engine}" / "record.npz")))
    shutil.rmtree(OUT / "profile", ignore_errors=True)
    short = ("migrated/train.py", "--steps", PROFILED_STEPS, "--output", "tf1_profile")
    stages.run("profile", "cairn", "profile", "-o", "profile", "--", BIN / "cairn", "tf1", *short)
    losses = {engine: runs[0]["losses"].astype(float) for engine, runs in records.items()}
    times = [[float(np.median(run["seconds"][10:])) for run in pair] for pair in zip(*records.values())]
    return {
        "losses": {engine: values.tolist() for engine, values in losses.items()},
        "accuracy": {engine: float(runs[0]["accuracy"]) for engine, runs in records.items()},
        "first_steps": float(np.abs(losses["cairn"] - losses["tensorflow"])[:20].max()),
        "times": times,
        "ratio": statistics.median(own / stock for stock, own in times),
    }


def compare_script(stages):
    """Its weights go to an .om, and its steps are compared with those of stock TensorFlow."""
    stages.run("convert", "atc", "--model=tf1_cairn/frozen.pb", "--framework=3", "--output=digits_tf1",
               "--input_shape=images:-1,8,8,1", "--soc_version=Ascend310")  # fmt: skip
    stages.run("verify", "cairn", "verify", "digits_tf1.om", "--against", "tf1_cairn/frozen.pb")
    shutil.rmtree(OUT / "diff", ignore_errors=True)
    stages.run("diff", "cairn", "diff", "--script", "migrated/train.py", "--steps", DIFFED_STEPS, "-o", "diff",
               "--", "--steps", DIFFED_STEPS, "--output", "tf1_diff")  # fmt: skip


def mindspore_script(stages):
    """LeNet in MindSpore's words of 0.5: trained, checkpoints written and read, exported, run."""
    for old in OUT.glob("checkpoint_lenet*"):
        old.unlink()
    words = ("--data_path", "mnist_digits", "--epochs", MINDSPORE_EPOCHS, "--export", "lenet")
    said = stages.run("mindspore", "cairn", "ms", "--level", "0.5", HERE.parent / "mindspore" / "lenet.py", *words)
    stages.run("run", "cairn", "run", "lenet.om", "--input", "x=lenet_images.npy", "--output", "lenet_results")
    (file,) = (OUT / "lenet_results").glob("*.npy")
    expected = np.load(OUT / "lenet_logits.npy")
    return {"accuracy": float(re.search(r"'Accuracy': ([\d.]+)", said).group(1)),
            "largest_difference": float(np.abs(np.load(file) - expected).max()), "spread": float(expected.std(axis=0).mean())}


def compare(images, labels):
    """Both accuracies and the differences on the test set, and both speeds in one interleaved run."""
    import tensorflow as tf

    import cairn

    (file,) = (OUT / "results").glob("*.npy")
    found = np.load(file)
    loaded = tf.saved_model.load(str(OUT / "saved_model"))
    signature = loaded.signatures["serving_default"]
    (output,) = signature.structured_outputs
    expected = signature(x=tf.constant(images))[output].numpy()
    model = cairn.load(OUT / "digits.om")
    (feed,) = (entry.name for entry in model.inputs)
    speeds = []
    for batch in SPEED_BATCHES:
        batch_images = np.ascontiguousarray(images[:batch])
        rows = interleaved(
            lambda: signature(x=tf.constant(batch_images))[output].numpy(), lambda: model.run({feed: batch_images})
        )
        ratio = statistics.median(b / a for a, b in rows)
        speeds.append({"batch": batch, "rounds": rows, "ratio": ratio})
    spread = expected.std(axis=0).mean()
    return {
        "accuracy": {
            "tensorflow": float((expected.argmax(1) == labels).mean()),
            "cairn": float((found.argmax(1) == labels).mean()),
        },
        "largest_difference": float(np.abs(found - expected).max()),
        "differences": np.abs(found - expected).ravel().astype(float).tolist(),
        "spread": float(spread),
        "predictions": found.argmax(1).tolist(),
        "speeds": speeds,
        "threads": len(os.sched_getaffinity(0)),
        "images": len(images),
    }


def interleaved(first, second):
    """[(seconds of first, seconds of second)] of the fastest call in each of ROUNDS rounds, order alternating."""

    def fastest(call):
        best, end = float("inf"), time.perf_counter() + ROUND_SECONDS
        while time.perf_counter() < end:
            start = time.perf_counter()
            call()
            best = min(best, time.perf_counter() - start)
        return best

    first(), second()
    rows = []
    for turn in range(ROUNDS):
        if turn % 2 == 0:
            a, b = fastest(first), fastest(second)
        else:
            b, a = fastest(second), fastest(first)
        rows.append((a, b))
    return rows


def report(facts):
    script = facts["script"]
    print()
    print("training the TensorFlow 1 script on both engines:")
    for step in (0, 1, 5, 20, 50, 100, TRAINING_STEPS - 1):
        stock, own = (script["losses"][engine][step] for engine in ("tensorflow", "cairn"))
        print(f"  loss of step {step + 1:<4}            TensorFlow {stock:.6f}   Cairn {own:.6f}")
    stock, own = (statistics.median(column) * 1e3 for column in zip(*script["times"]))
    print(f"  time of a step               TensorFlow {stock:5.2f} ms   Cairn {own:5.2f} ms   ratio {script['ratio']:.2f}")
    accuracy = script["accuracy"]
    print(f"  test accuracy                TensorFlow {accuracy['tensorflow']:.4f}   Cairn {accuracy['cairn']:.4f}")
    lenet = facts["mindspore"]
    share = lenet["largest_difference"] / lenet["spread"]
    print(f"MindSpore script (LeNet): test accuracy {lenet['accuracy']:.4f}, its .om differs by at most {share:.1e} of the output's spread")
    accuracy = facts["accuracy"]
    print()
    print(f"accuracy on {facts['images']} test images   TensorFlow {accuracy['tensorflow']:.4f}   Cairn {accuracy['cairn']:.4f}")
    share = facts["largest_difference"] / facts["spread"]
    print(f"largest difference             {facts['largest_difference']:.2e} ({share:.1e} of the output's spread)")
    for speed in facts["speeds"]:
        a, b = (statistics.median(column) * 1e6 for column in zip(*speed["rounds"]))
        print(
            f"time of a batch of {speed['batch']:<2}          TensorFlow {a:7.1f} us   Cairn {b:7.1f} us   "
            f"ratio {speed['ratio']:.2f} ({facts['threads']} threads, {ROUNDS} interleaved rounds)"
        )


if __name__ == "__main__":
    main()

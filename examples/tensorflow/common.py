"""What the examples share: the arguments --steps, --seed, --dump-losses and --output, small data, and a record of the losses and the
final variables, so that a run on one engine can be compared with a run on another."""

import argparse
import os
import tempfile

import numpy as np


def arguments(description, steps, **more):
    """The parsed command line; `more` adds integer options with their defaults."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--steps", type=int, default=steps, help="training steps")
    parser.add_argument("--seed", type=int, default=1, help="of the weights, the data's order and every random number")
    parser.add_argument("--dump-losses", metavar="FILE", help="write losses and final variables there, as .npz")
    parser.add_argument("--output", metavar="FOLDER", help="for checkpoints and exports; a temporary folder without it")
    for name, default in more.items():
        parser.add_argument("--" + name.replace("_", "-"), type=int, default=default)
    options = parser.parse_args()
    options.output = options.output or tempfile.mkdtemp(prefix="cairn-example-")
    np.random.seed(options.seed)
    return options


class Record:
    """Losses step by step, and variables at the end."""

    def __init__(self, options, every=10):
        self._file, self._every, self.losses = options.dump_losses, every, []

    def add(self, loss):
        self.losses.append(np.float64(loss))
        if len(self.losses) % self._every == 0:
            print(f"step {len(self.losses)}: loss {self.losses[-1]:.5f}", flush=True)

    def save(self, variables):
        """`variables` is {name: array}."""
        if self._file:
            arrays = {f"variable:{name}": value for name, value in variables.items()}
            np.savez(self._file, losses=np.array(self.losses), **arrays)
        print(f"{len(self.losses)} steps, loss {self.losses[0]:.5f} to {self.losses[-1]:.5f}", flush=True)

    def save_session(self, sess, variables):
        self.save({variable.op.name: value for variable, value in zip(variables, sess.run(variables))})


def digits(size=8):
    """Handwritten digits: images [n, size, size, 1] in 0..1 and labels, a training and a test part."""
    from sklearn.datasets import load_digits

    data = load_digits()
    images = (data.images / 16.0).astype(np.float32)[..., None]
    if size != 8:
        images = np.repeat(np.repeat(images, size // 8, 1), size // 8, 2)
    labels = data.target.astype(np.int64)
    return images[:1500], labels[:1500], images[1500:], labels[1500:]


def digit_rows(count, seed):
    """Rows of 2 to 4 digits as columns [count, 32, 8], their lengths, and the digits themselves."""
    images, labels, _, _ = digits()
    random = np.random.RandomState(seed)
    columns, lengths, texts = np.zeros([count, 32, 8], np.float32), np.zeros(count, np.int32), []
    for row in range(count):
        chosen = random.randint(len(images), size=random.randint(2, 5))
        picture = np.concatenate([images[i, :, :, 0].T for i in chosen])
        columns[row, : len(picture)], lengths[row] = picture, len(picture)
        texts.append(labels[chosen].astype(np.int32))
    return columns, lengths, texts


def batches(count, size, seed):
    """Row numbers of shuffled batches, epoch after epoch, without end."""
    random = np.random.RandomState(seed)
    while True:
        order = random.permutation(count)
        for start in range(0, count - size + 1, size):
            yield order[start : start + size]


def shapes(count, size, seed, boxes=1):
    """Made images [count, size, size, 3] of coloured rectangles on noise, with masks [count, size, size] of classes 0 (ground) to 2
    and rectangles [count, boxes, 5] as centre, width, height (shares of the size) and class."""
    random = np.random.RandomState(seed)
    images = random.uniform(0, 0.3, [count, size, size, 3]).astype(np.float32)
    masks = np.zeros([count, size, size], np.int32)
    found = np.zeros([count, boxes, 5], np.float32)
    for index in range(count):
        for box in range(boxes):
            w, h = random.randint(size // 4, size // 2, 2)
            x, y, kind = random.randint(0, size - w), random.randint(0, size - h), random.randint(2)
            images[index, y : y + h, x : x + w, kind] += 0.7
            masks[index, y : y + h, x : x + w] = kind + 1
            found[index, box] = [(x + w / 2) / size, (y + h / 2) / size, w / size, h / size, kind]
    return images, masks, found


def path(options, *parts):
    folder = os.path.join(options.output, *parts[:-1])
    os.makedirs(folder, exist_ok=True)
    return os.path.join(folder, parts[-1])

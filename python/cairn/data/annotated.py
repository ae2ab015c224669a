"""Sources of images with annotations, in the layouts that they are published in. Files are read and checked when a source is
made; images when a row is."""

import json
import os
import xml.etree.ElementTree as xml

import numpy as np

from cairn import Error, _data
from cairn.data.nodes import Dataset, script_line
from cairn.data.samplers import chosen

COCO_TASKS = ("Detection", "Stuff", "Keypoint", "Panoptic", "Captioning")


def _bad(path, what):
    return Error(f"{os.fspath(path)}: Invalid data, {what}")


def _text(path):
    try:
        with open(path, encoding="utf-8") as file:
            return file.read()
    except UnicodeDecodeError as error:
        raise _bad(path, f"the text is not UTF-8: {error.reason} at byte {error.start}") from None
    except OSError as error:
        raise _bad(path, f"cannot be read: {error.strerror}") from None


def _json(path, text, line=""):
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise _bad(path, f"{line}no JSON: {error}") from None


class _Record:
    """A dict of a file, whose keys and types are asked for with a place for the sentence."""

    def __init__(self, value, path, what):
        self.value, self.path, self.what = value, path, what
        if not isinstance(value, dict):
            raise _bad(path, f"{what} must be an object, found {type(value).__name__}")

    def get(self, key, kinds, otherwise=None):
        value = self.value.get(key, otherwise)
        if not isinstance(value, kinds) or isinstance(value, bool):
            found = "nothing" if key not in self.value else repr(value)[:60]
            raise _bad(self.path, f"'{key}' of {self.what} must be {_kind_name(kinds)}, found {found}")
        return value

    def whole(self, key, otherwise=None):
        value = self.get(key, (int, float), otherwise)
        if not 0 <= value < 2**32 or value != int(value):
            raise _bad(self.path, f"'{key}' of {self.what} must be an integer from 0 to 4294967295, found {value!r}")
        return int(value)

    def records(self, key):
        return [_Record(each, self.path, f"{key}[{number}]") for number, each in enumerate(self.get(key, list))]

    def numbers(self, key, count=None):
        values = self.get(key, list)
        if count not in (None, len(values)) or not all(isinstance(each, (int, float)) and not isinstance(each, bool) for each in values):
            raise _bad(self.path, f"'{key}' of {self.what} must be {'a list of' if count is None else count} numbers, found {repr(values)[:60]}")
        return values


def _kind_name(kinds):
    names = {list: "a list", dict: "an object", str: "a text", int: "a number", float: "a number"}
    return " or ".join(dict.fromkeys(names[kind] for kind in (kinds if isinstance(kinds, tuple) else (kinds,))))


def _column(values):
    return np.array(values, np.uint32).reshape(-1, 1)


def _polygons(record):
    """The numbers of an object's outline: of its polygons, or the runs of a crowd."""
    if record.whole("iscrowd", 0):
        return _Record(record.get("segmentation", dict), record.path, f"'segmentation' of {record.what}").numbers("counts")
    parts = record.get("segmentation", list)
    inner = _Record(dict(enumerate(parts)), record.path, f"'segmentation' of {record.what}")
    return [each for place in range(len(parts)) for each in inner.numbers(place)]


def _filled(lists):
    longest = max(map(len, lists))
    return np.array([list(each) + [-1] * (longest - len(each)) for each in lists], np.float32)


def _boxes(records):
    return np.array([each.numbers("bbox", 4) for each in records], np.float32)


def _detection(records):
    return [_boxes(records), _column([each.whole("category_id") for each in records]), _column([each.whole("iscrowd", 0) for each in records])]


_COCO = {
    "Detection": (("bbox", "category_id", "iscrowd"), _detection),
    "Stuff": (("segmentation", "iscrowd"), lambda records: [_filled([_polygons(each) for each in records]),
                                                            _column([each.whole("iscrowd", 0) for each in records])]),
    "Keypoint": (("keypoints", "num_keypoints"), lambda records: [_filled([each.numbers("keypoints") for each in records]),
                                                                  _column([each.whole("num_keypoints") for each in records])]),
    "Panoptic": (("bbox", "category_id", "iscrowd", "area"),
                 lambda records: [*_detection(records), _column([each.whole("area") for each in records])]),
    "Captioning": (("captions",), lambda records: [np.array([each.get("caption", str) for each in records]).reshape(-1, 1)]),
}  # fmt: skip


class Annotations:
    """What a layout's reader gives: rows of files and arrays, and {class: numbers}."""

    def __init__(self, operation, columns, classes, names):
        self.operation, self.columns, self.classes, self.names = operation, columns, classes, names

    def open(self, decode, sampler, with_names=False):
        """The library's source. with_names: a column of the files' names without ending, `_meta-filename`."""
        columns = [(name, "images" if decode and kind == "files" else kind, values) for name, kind, values in self.columns]
        if with_names:
            columns.append(("_meta-filename", "rows", [np.array(name) for name in self.names]))
        return _data.table(self.operation, columns, sampler, script_line())


def _stem(path):
    return os.path.splitext(os.path.basename(path))[0]


def read_coco(images, annotations, task="Detection"):
    """The images that have annotations, in the file's order."""
    whole = _Record(_json(annotations, _text(annotations)), annotations, "the file")
    files = {each.whole("id"): each.get("file_name", str) for each in whole.records("images")}
    found = {}
    for each in whole.records("annotations"):
        image = each.whole("image_id")
        if image not in files:
            raise _bad(annotations, f"{each.what} belongs to image {image}, which 'images' does not hold")
        found.setdefault(files[image], []).extend(each.records("segments_info") if task == "Panoptic" else [each])
    names, make = _COCO[task]
    ordered = [name for name in dict.fromkeys(files.values()) if found.get(name)]
    if not ordered:
        raise _bad(annotations, "no image has annotations")
    rows = [make(found[name]) for name in ordered]
    columns = [("image", "files", [os.path.join(images, name) for name in ordered])]
    columns += [(name, "rows", list(values)) for name, values in zip(names, zip(*rows))]
    classes = None
    if task in ("Detection", "Panoptic"):
        kinds = whole.records("categories")
        classes = {each.get("name", str): [each.whole("id")] + ([each.whole("isthing", 1)] if task == "Panoptic" else []) for each in kinds}
        known = {numbers[0] for numbers in classes.values()}
        for each in (record for name in ordered for record in found[name]):
            if each.whole("category_id") not in known:
                raise _bad(annotations, f"'category_id' of {each.what} is {each.value['category_id']}, which 'categories' does not hold")
    return Annotations("coco", columns, classes, [_stem(name) for name in ordered])


def read_voc(folder, task="Segmentation", usage="train", classes=None):
    """Rows of ImageSets/Main or ImageSets/Segmentation; classes: {name: label}, None for all in the order of their names."""
    lists = os.path.join(folder, "ImageSets", "Main" if task == "Detection" else "Segmentation", usage + ".txt")
    names = [line.split()[0] for line in _text(lists).splitlines() if line.strip()]
    if not names:
        raise _bad(lists, "the list of images is empty")
    images = [os.path.join(folder, "JPEGImages", name + ".jpg") for name in names]
    columns = [("image", "files", images)]
    if task == "Segmentation":
        columns.append(("target", "files", [os.path.join(folder, "SegmentationClass", name + ".png") for name in names]))
        return Annotations("voc", columns, None, names)
    objects = [_voc_objects(os.path.join(folder, "Annotations", name + ".xml")) for name in names]
    if classes is None:
        classes = {kind: label for label, kind in enumerate(sorted({each[0] for row in objects for each in row}))}
    kept = [number for number, row in enumerate(objects) if any(each[0] in classes for each in row)]
    objects = [[each for each in objects[number] if each[0] in classes] for number in kept]
    names = [names[number] for number in kept]
    if not kept:
        raise _bad(lists, f"no object of the classes {sorted(classes)}")
    columns = [("image", "files", [images[number] for number in kept]),
               ("bbox", "rows", [np.array([each[1] for each in row], np.float32) for row in objects]),
               ("label", "rows", [_column([classes[each[0]] for each in row]) for row in objects]),
               ("difficult", "rows", [_column([each[2] for each in row]) for row in objects]),
               ("truncate", "rows", [_column([each[3] for each in row]) for row in objects])]  # fmt: skip
    return Annotations("voc", columns, {name: label for name, label in classes.items()}, names)


def _voc_objects(path):
    """[(class, [x, y, width, height], difficult, truncated)] of an annotation."""
    try:
        tree = xml.fromstring(_text(path))
    except (xml.ParseError, ValueError) as error:
        raise _bad(path, f"no XML: {error}") from None

    def number(node, name, otherwise=None):
        text = node.findtext(name, otherwise)
        try:
            value = float(text)
            if not 0 <= value < 2**31:
                raise ValueError
            return value
        except (TypeError, ValueError):
            raise _bad(path, f"'{name}' of <{node.tag}> must be a number, found {'nothing' if text is None else repr(text)[:40]}") from None

    objects = []
    for each in tree.iter("object"):
        box, name = each.find("bndbox"), each.findtext("name")
        if box is None or not name:
            raise _bad(path, "an <object> needs <name> and <bndbox>")
        left, top, right, bottom = (number(box, side) for side in ("xmin", "ymin", "xmax", "ymax"))
        if min(left, top, right, bottom) <= 0:
            raise _bad(path, f"the coordinates of <bndbox> must be above 0, found {left:g}, {top:g}, {right:g}, {bottom:g}")
        objects.append((name, [left, top, right - left, bottom - top], int(number(each, "difficult", "0")), int(number(each, "truncated", "0"))))
    return objects


CELEBA_PARTS = {"train": "0", "valid": "1", "test": "2"}


def read_celeba(folder, usage="all", extensions=None):
    """Rows of list_attr_celeba.txt, of the part that list_eval_partition.txt tells."""
    path = os.path.join(folder, "list_attr_celeba.txt")
    lines = _text(path).splitlines()
    if len(lines) < 2 or not lines[0].strip().isdigit():
        raise _bad(path, "the first line must be the number of images and the second the names of the attributes")
    names, rows = lines[1].split(), [line.split() for line in lines[2:] if line.strip()]
    if usage != "all":
        parts_path = os.path.join(folder, "list_eval_partition.txt")
        parts = dict(line.split()[:2] for line in _text(parts_path).splitlines() if len(line.split()) >= 2)
        rows = [row for row in rows if parts.get(row[0]) == CELEBA_PARTS[usage]]
    rows = [row for row in rows if not extensions or row[0].lower().endswith(tuple(extensions))]
    for row in rows:
        if len(row) != len(names) + 1 or not set(row[1:]) <= {"1", "-1"}:
            raise _bad(path, f"the line of {row[0]} must hold {len(names)} times 1 or -1")
    if not rows:
        raise _bad(path, f"no images of usage '{usage}'")
    inner = os.path.join(folder, "img_align_celeba")
    place = inner if os.path.isfile(os.path.join(inner, rows[0][0])) else folder
    attributes = np.array([[each == "1" for each in row[1:]] for row in rows], np.uint32)
    return Annotations("celeba", [("image", "files", [os.path.join(place, row[0]) for row in rows]), ("attr", "slices", attributes)], None,
                       [_stem(row[0]) for row in rows])  # fmt: skip


def read_manifest(path, usage="train", classes=None):
    """Rows of a file with a JSON object in each line: source, usage, annotation: [{name}]. classes: {name: label}."""
    found = []
    for number, line in enumerate(_text(path).splitlines(), 1):
        if not line.strip():
            continue
        row = _Record(_json(path, line, f"line {number}: "), path, f"line {number}")
        if row.get("usage", str, "train").lower() != usage:
            continue
        names = [each.get("name", str) for each in row.records("annotation")] if "annotation" in row.value else []
        if names:
            source = row.get("source", str)
            found.append((source if os.path.isabs(source) else os.path.join(os.path.dirname(os.path.abspath(path)), source), names))
    if classes is None:
        classes = {name: label for label, name in enumerate(sorted({name for _, names in found for name in names}))}
    found = [(source, [classes[name] for name in names if name in classes]) for source, names in found]
    found = [(source, labels) for source, labels in found if labels]
    if not found:
        raise _bad(path, f"no rows of usage '{usage}'" + (f" and the classes {sorted(classes)}" if classes else ""))
    labels = [np.array(labels[0] if len(labels) == 1 else labels, np.int32) for _, labels in found]
    return Annotations("manifest", [("image", "files", [source for source, _ in found]), ("label", "rows", labels)], classes,
                       [_stem(source) for source, _ in found])  # fmt: skip


def coco(images, annotations, task="Detection", decode=False, shuffle=False, sampler=None, shards=None, count=None):
    """Images and what an annotation file says of their objects. task: Detection: bbox f32 [n, 4], category_id, iscrowd u32 [n, 1];
    Stuff: segmentation f32 [n, m] filled up with -1, iscrowd; Keypoint: keypoints, num_keypoints; Panoptic: as Detection, and area;
    Captioning: captions."""
    if task not in COCO_TASKS:
        raise ValueError(f"task must be one of {', '.join(COCO_TASKS)}, found {task}")
    return Dataset(read_coco(os.fspath(images), annotations, task).open(decode, chosen(shuffle, sampler, shards, count)))


def voc(folder, task="Segmentation", usage="train", classes=None, decode=False, shuffle=False, sampler=None, shards=None, count=None):
    """Segmentation: image and target; Detection: image, bbox f32 [n, 4] (x, y, width, height), label, difficult, truncate u32 [n, 1]."""
    if task not in ("Segmentation", "Detection"):
        raise ValueError(f"task must be Segmentation or Detection, found {task}")
    return Dataset(read_voc(os.fspath(folder), task, usage, classes).open(decode, chosen(shuffle, sampler, shards, count)))


def celeba(folder, usage="all", decode=False, shuffle=False, sampler=None, shards=None, count=None):
    """image, and attr u32 [attributes] of 0 and 1. usage: all, train, valid, test."""
    if usage != "all" and usage not in CELEBA_PARTS:
        raise ValueError(f"usage must be all, train, valid or test, found {usage}")
    return Dataset(read_celeba(os.fspath(folder), usage).open(decode, chosen(shuffle, sampler, shards, count)))


def manifest(path, usage="train", classes=None, decode=False, shuffle=False, sampler=None, shards=None, count=None):
    """image, and label i32: one number, or several where an image has several annotations."""
    return Dataset(read_manifest(os.fspath(path), usage, classes).open(decode, chosen(shuffle, sampler, shards, count)))

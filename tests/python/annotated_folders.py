"""Small data sets in the layouts that they are published in: Coco, VOC, CelebA, Manifest, texts, letters.

    python annotated_folders.py FOLDER OUT.json     what real MindSpore reads from them
"""

import json
import pathlib
import shutil
import sys

JPEG = pathlib.Path(__file__).parent / "data" / "waves.jpg"

VOC_XML = """<annotation><folder>VOC</folder><filename>{name}.jpg</filename><size><width>96</width><height>72</height><depth>3</depth></size>
{objects}</annotation>"""
VOC_OBJECT = """<object><name>{name}</name><difficult>{difficult}</difficult>{more}
<bndbox><xmin>{x}</xmin><ymin>{y}</ymin><xmax>{right}</xmax><ymax>{bottom}</ymax></bndbox></object>"""


def picture(path):
    path.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(JPEG, path)


def coco(folder):
    """images/ and an annotation file for each task."""
    names = ["000001.jpg", "000004.jpg", "000002.jpg", "000009.jpg"]
    for name in names:
        picture(folder / "images" / name)
    images = [{"id": (number * 7 % 4) * 10, "file_name": name, "height": 72, "width": 96} for number, name in enumerate(names)]
    categories = [{"id": 1, "name": "person", "supercategory": "a"}, {"id": 7, "name": "train", "supercategory": "b"},
                  {"id": 90, "name": "toothbrush", "supercategory": "b"}]  # fmt: skip
    boxes = [(0, [1, 2, 30, 40], 1, 0), (20, [5.5, 6, 7, 8.25], 90, 1), (0, [10, 10, 10, 10], 7, 1), (10, [0, 0, 96, 72], 1, 0)]
    polygons = [[[1.0, 2, 3, 4, 5, 6]], [[7.0, 8, 9, 10, 11, 12, 13, 14], [1.0, 1, 2, 2, 3, 3]], [[10.0, 10, 20, 10, 20, 20]], [[0.5, 1.5, 2.5, 3, 4, 4]]]
    detection = [{"id": 100 + number, "image_id": image, "bbox": box, "category_id": category, "iscrowd": crowd, "area": 12.0,
                  "segmentation": polygon} for number, ((image, box, category, crowd), polygon) in enumerate(zip(boxes, polygons))]  # fmt: skip
    points = [{"id": 200 + number, "image_id": image, "keypoints": [x % 3 for x in range(51)], "num_keypoints": 17 - number, "category_id": 1,
               "bbox": [1, 1, 2, 2], "iscrowd": 0, "segmentation": [[1, 1, 2, 2, 3, 3]]} for number, image in enumerate((0, 10, 10, 20))]  # fmt: skip
    panoptic = [{"image_id": image, "file_name": f"{image}.png", "segments_info": [
        {"id": 1, "category_id": 1, "bbox": [1, 2, 3, 4], "iscrowd": 0, "area": 50 + image},
        {"id": 2, "category_id": 7, "bbox": [5, 6, 7, 8], "iscrowd": 1, "area": 60}]} for image in (0, 20)]  # fmt: skip
    things = [{**each, "isthing": number % 2} for number, each in enumerate(categories)]
    captions = [{"id": number, "image_id": image, "caption": text}
                for number, (image, text) in enumerate([(0, "a wave"), (0, "another wave"), (20, "déjà vu"), (10, "red")])]
    for name, told, kinds in (("detection", detection, categories), ("keypoint", points, categories), ("panoptic", panoptic, things),
                              ("captioning", captions, categories)):  # fmt: skip
        (folder / f"{name}.json").write_text(json.dumps({"info": {}, "images": images, "annotations": told, "categories": kinds}))
    runs = [each | {"segmentation": {"counts": [3, 5, 7], "size": [72, 96]}} if each["iscrowd"] else each for each in detection]
    (folder / "stuff.json").write_text(json.dumps({"images": images, "annotations": runs, "categories": categories}))


def voc(folder):
    """JPEGImages, Annotations, SegmentationClass and ImageSets."""
    for name in ("32", "33", "39"):
        picture(folder / "JPEGImages" / f"{name}.jpg")
        picture(folder / "SegmentationClass" / f"{name}.png")
        objects = [VOC_OBJECT.format(name=kind, difficult=hard, more="<truncated>1</truncated>" if hard else "", x=place + 1, y=place + 2, right=60, bottom=70)
                   for place, (kind, hard) in enumerate([("train", 0), ("cat", 1), ("train", 0)][: int(name) % 4 + 1])]  # fmt: skip
        annotation = folder / "Annotations" / f"{name}.xml"
        annotation.parent.mkdir(exist_ok=True)
        annotation.write_text(VOC_XML.format(name=name, objects="\n".join(objects)))
    for task in ("Main", "Segmentation"):
        (folder / "ImageSets" / task).mkdir(parents=True)
        (folder / "ImageSets" / task / "train.txt").write_text("32\n39\n33\n")
        (folder / "ImageSets" / task / "val.txt").write_text("33\n")


def celeba(folder):
    """Images, list_attr_celeba.txt and list_eval_partition.txt."""
    lines = ["4", "5_o_Clock_Shadow Arched_Eyebrows Attractive"]
    for number, attributes in enumerate(["-1  1  1", " 1 -1 -1", "-1 -1  1", " 1  1  1"]):
        picture(folder / f"{number:06}.jpg")
        lines.append(f"{number:06}.jpg {attributes}")
    (folder / "list_attr_celeba.txt").write_text("\n".join(lines) + "\n")
    (folder / "list_eval_partition.txt").write_text("\n".join(f"{number:06}.jpg {number % 3}" for number in range(4)) + "\n")


def manifest(folder):
    """One line of JSON for each image."""
    lines = []
    for number, (use, names) in enumerate([("train", ["dog"]), ("eval", ["cat"]), ("train", ["cat", "wild"]), ("TRAIN", ["ant"])]):
        picture(folder / f"{number}.jpg")
        lines.append(json.dumps({"source": str(folder / f"{number}.jpg"), "usage": use,
                                 "annotation": [{"type": "modelarts/image_classification", "name": name} for name in names]}))  # fmt: skip
    (folder / "all.manifest").write_text("\n".join(lines) + "\n")


def published(folder):
    """Texts as lines, CSV and folders, and letters as idx files."""
    for part, count in (("train", 3), ("test", 2)):
        for name, columns in (("three", 3), ("two", 2), ("four", 4)):
            (folder / name).mkdir(exist_ok=True)
            lines = [",".join(f'"{part} {row}, {column}"' for column in range(columns)) for row in range(count)]
            (folder / name / f"{part}.csv").write_text("\n".join(lines) + "\n")
        for kind in ("pos", "neg"):
            (folder / "imdb" / part / kind).mkdir(parents=True)
            for number in range(count):
                (folder / "imdb" / part / kind / f"{number}_7.txt").write_text(f"{part} {kind} {number} é")
        (folder / "idx").mkdir(exist_ok=True)
        for begin in (f"emnist-letters-{part}", {"train": "train", "test": "t10k"}[part]):
            images = bytes([0, 0, 8, 3, 0, 0, 0, count, 0, 0, 0, 28, 0, 0, 0, 28]) + bytes(range(1, 1 + count)) * 784
            (folder / "idx" / f"{begin}-images-idx3-ubyte").write_bytes(images)
            (folder / "idx" / f"{begin}-labels-idx1-ubyte").write_bytes(bytes([0, 0, 8, 1, 0, 0, 0, count, *range(count)]))
    (folder / "lines").mkdir()
    for name in ("ptb.train.txt", "ptb.test.txt", "wiki.train.tokens"):
        (folder / "lines" / name).write_text(f"first of {name}\n\n second \n")


def make(folder):
    """All of them below a folder."""
    for maker in (coco, voc, celeba, manifest, published):
        (folder / maker.__name__).mkdir(parents=True)
        maker(folder / maker.__name__)


def pipelines(ds, folder):
    """{name: data set} over them; ds is mindspore.dataset, real or ours."""
    told = {}
    for task in ("Detection", "Stuff", "Keypoint", "Panoptic", "Captioning"):
        told[f"coco {task}"] = ds.CocoDataset(str(folder / "coco/images"), str(folder / f"coco/{task.lower()}.json"), task, shuffle=False)
    told["coco decoded"] = ds.CocoDataset(str(folder / "coco/images"), str(folder / "coco/detection.json"), decode=True, shuffle=False)
    told["coco names"] = ds.CocoDataset(str(folder / "coco/images"), str(folder / "coco/detection.json"), shuffle=False, extra_metadata=True)
    told["voc Detection"] = ds.VOCDataset(str(folder / "voc"), "Detection", "train", shuffle=False)
    told["voc classes"] = ds.VOCDataset(str(folder / "voc"), "Detection", "train", class_indexing={"cat": 5, "train": 2}, shuffle=False, decode=True)
    told["voc Segmentation"] = ds.VOCDataset(str(folder / "voc"), "Segmentation", "train", shuffle=False, decode=True)
    told["voc names"] = ds.VOCDataset(str(folder / "voc"), usage="val", shuffle=False, extra_metadata=True)
    for usage in ("all", "train", "valid", "test"):
        told[f"celeba {usage}"] = ds.CelebADataset(str(folder / "celeba"), usage=usage, shuffle=False, decode=usage == "test")
    told["manifest train"] = ds.ManifestDataset(str(folder / "manifest/all.manifest"), shuffle=False)
    told["manifest eval"] = ds.ManifestDataset(str(folder / "manifest/all.manifest"), "eval", class_indexing={"cat": 3, "dog": 1}, shuffle=False, decode=True)
    for name, where in (("AGNews", "three"), ("SogouNews", "three"), ("AmazonReview", "three"), ("DBpedia", "three"), ("YahooAnswers", "four"),
                        ("YelpReview", "two")):  # fmt: skip
        told[name] = getattr(ds, f"{name}Dataset")(str(folder / "published" / where), "train", shuffle=False)
    for usage in ("train", "test", "all"):
        told[f"imdb {usage}"] = ds.IMDBDataset(str(folder / "published/imdb"), usage, shuffle=False)
        told[f"emnist {usage}"] = ds.EMnistDataset(str(folder / "published/idx"), "letters", usage, shuffle=False)
    told["kmnist"] = ds.KMnistDataset(str(folder / "published/idx"), "test", shuffle=False)
    told["penn"] = ds.PennTreebankDataset(str(folder / "published/lines"), "train", shuffle=False)
    told["wiki"] = ds.WikiTextDataset(str(folder / "published/lines"), "train", shuffle=False)
    return told


def described(dataset):
    """Columns, types and values as JSON holds them; of an image its sum."""
    rows = []
    try:
        if dataset.get_col_names()[-1] == "_meta-filename":
            dataset = dataset.rename("_meta-filename", "filename")
        for row in dataset.create_dict_iterator(num_epochs=1, output_numpy=True):
            rows.append({name: [str(value.dtype).replace("<U", "U"), list(value.shape), int(value.sum(dtype="int64")) if value.size > 60 else value.tolist()]
                         for name, value in row.items()})  # fmt: skip
        told = {"rows": rows, "size": dataset.get_dataset_size()}
    except (RuntimeError, ValueError) as error:
        return {"error": str(error)[:400]}
    try:
        return {**told, "classes": dataset.get_class_indexing()}
    except RuntimeError as error:
        return {**told, "classes": str(error)}


if __name__ == "__main__":
    import mindspore.dataset

    made = {name: described(each) for name, each in pipelines(mindspore.dataset, pathlib.Path(sys.argv[1])).items()}
    pathlib.Path(sys.argv[2]).write_text(json.dumps(made, indent=1))

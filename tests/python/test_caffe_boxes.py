"""Caffe's layers of detection and recurrent nets equal their statements in NumPy, with the results that the platform's operators give."""

import caffe_files as files
import numpy as np
import pytest
from test_caffe import check, floats, run

RANDOM = np.random.default_rng(21)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def shares(x, axis):
    e = np.exp(x - x.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)


def overlap(a, b):
    width = min(a[2], b[2]) - max(a[0], b[0])
    height = min(a[3], b[3]) - max(a[1], b[1])
    if width <= 0 or height <= 0:
        return 0
    common = width * height
    return common / ((a[2] - a[0]) * (a[3] - a[1]) + (b[2] - b[0]) * (b[3] - b[1]) - common)


def chosen(boxes, scores, most, iou, least):
    """Places of the boxes that no better one covers, best first."""
    kept = []
    for i in np.argsort(-scores, kind="stable")[:most]:
        if scores[i] > least and all(overlap(boxes[i], boxes[j]) <= iou for j in kept):
            kept.append(i)
    return kept


def best(found, most):
    """Of (score, class, ...) the best, by class and then by falling score."""
    found = sorted(found, key=lambda one: -one[0])[:most]
    return sorted(found, key=lambda one: (one[1], -one[0]))


def counts(numbers):
    return np.array([[n] + [0] * 7 for n in numbers], np.int32)


def rows(lists, length, width):
    out = np.zeros((len(lists), length, width), np.float32)
    for image, found in enumerate(lists):
        out[image, : len(found)] = np.array(found, np.float32).reshape(-1, width)
    return out


def ssd(offsets, scores, anchors, classes, shared, background, iou, most, code, keep, least, scaled):
    n = anchors.shape[2] // 4
    priors, variances = anchors[0, 0].reshape(n, 4), anchors[0, 1].reshape(n, 4)
    size = np.concatenate([priors[:, 2:] - priors[:, :2]] * 2, 1)
    centre = (priors[:, 2:] + priors[:, :2]) / 2
    lists = []
    for image in range(len(offsets)):
        found = []
        score = scores[image].reshape(n, classes)
        for kind in range(classes):
            if kind == background:
                continue
            delta = offsets[image].reshape(n, -1, 4)[:, 0 if shared else kind] * (1 if scaled else variances)
            if code == 1:
                boxes = priors + delta
            elif code == 3:
                boxes = priors + delta * size
            else:
                middle, extent = delta[:, :2] * size[:, :2] + centre, np.exp(delta[:, 2:]) * size[:, 2:] / 2
                boxes = np.concatenate([middle - extent, middle + extent], 1)
            found += [(score[i, kind], kind, boxes[i]) for i in chosen(boxes, score[:, kind], most, iou, least)]
        lists.append([[image, kind, score, *box, 0] for score, kind, box in best(found, keep)])
    return counts(map(len, lists)), rows(lists, -(-keep // 128) * 128, 8)


@pytest.mark.parametrize("case", [
    {}, {"code": 1}, {"code": 3, "scaled": True}, {"shared": False, "keep": 7}, {"background": -1, "most": 5}, {"keep": 130, "least": -1.0}])  # fmt: skip
def test_ssd_detection(tmp_path, case):
    case = {"shared": True, "background": 0, "iou": 0.4, "most": 40, "code": 2, "keep": 20, "least": 0.3, "scaled": False, **case}
    n, classes = 24, 4
    corner = RANDOM.uniform(0, 0.7, (n, 2))
    priors = np.concatenate([corner, corner + RANDOM.uniform(0.1, 0.4, (n, 2))], 1)
    anchors = np.stack([priors.ravel(), np.tile([0.1, 0.1, 0.2, 0.2], n)])[None].astype(np.float32)
    offsets = floats(3, n * 4 * (1 if case["shared"] else classes))
    scores = shares(2 * floats(3, n, classes), 2).reshape(3, -1)
    param = {"num_classes": classes, "share_location": case["shared"], "background_label_id": case["background"], "iou_threshold": case["iou"],
             "top_k": case["most"], "code_type": case["code"], "keep_top_k": case["keep"], "confidence_threshold": case["least"],
             "variance_encoded_in_target": case["scaled"]}  # fmt: skip
    expected = list(ssd(offsets, scores, anchors, classes, **case))
    check(tmp_path, "SSDDetectionOutput", [offsets, scores, anchors], expected, ssddetectionoutput_param=param)


def test_detection_output_is_renamed_with_its_own_parameters(command, tmp_path):
    n = 12
    corner = RANDOM.uniform(0, 0.7, (n, 2))
    priors = np.concatenate([corner, corner + 0.3], 1)
    anchors = np.stack([priors.ravel(), np.tile([0.1, 0.1, 0.2, 0.2], n)])[None].astype(np.float32)
    arrays = {"loc": floats(2, 4 * n), "conf": shares(floats(2, n, 3), 2).reshape(2, -1), "prior": anchors}
    param = {"num_classes": 3, "keep_top_k": 9, "confidence_threshold": 0.2, "code_type": "CENTER_SIZE", "nms_param": {"nms_threshold": 0.5, "top_k": 10}}
    text = files.inputs(**{name: x.shape for name, x in arrays.items()})
    (tmp_path / "m.prototxt").write_text(text + files.layer("DetectionOutput", "loc conf prior", "found", detection_output_param=param))
    (tmp_path / "w.caffemodel").write_bytes(files.caffemodel({"none": [floats(1)]}))
    (tmp_path / "names.cfg").write_text("DetectionOutput:SSDDetectionOutput\n")
    words = ["atc", "--framework=0", "--model=m.prototxt", "--weight=w.caffemodel", "--output=m", "--op_name_map=names.cfg"]
    assert command(*words).returncode == 0
    import cairn

    (found,) = cairn.load(tmp_path / "m.om").run(arrays).values()
    np.testing.assert_allclose(found, ssd(*arrays.values(), 3, True, 0, 0.5, 10, 2, 9, 0.2, False)[1], atol=1e-5)


def proposals(scores, offsets, info, ratios, scales, stride, base, least, before, after, iou):
    number = len(ratios) * len(scales)
    shapes = []
    for ratio in ratios:
        width = np.round(np.sqrt(base * base / ratio))
        height = np.round(width * ratio)
        for scale in scales:
            size, centre = np.array([width, height]) * scale, (base - 1) / 2
            shapes.append([*(centre - (size - 1) / 2), *(centre + (size - 1) / 2)])
    lists = []
    for image, (score, delta) in enumerate(zip(scores, offsets, strict=True)):
        boxes, values = [], []
        for y in range(score.shape[1]):
            for x in range(score.shape[2]):
                for k in range(number):
                    box = np.array(shapes[k]) + stride * np.array([x, y, x, y])
                    d, size = delta[4 * k : 4 * k + 4, y, x], box[2:] - box[:2] + 1
                    centre, half = d[:2] * size + box[:2] + size / 2, np.exp(d[2:]) * size / 2
                    limit = np.tile(info[image, 1::-1], 2) - 1
                    box = np.clip(np.concatenate([centre - half, centre + half]), 0, limit)
                    if (box[2:] - box[:2] + 1 >= least * info[image, 2]).all():
                        boxes.append(box)
                        values.append(score[number + k, y, x])
        whole = np.array(boxes) + [0, 0, 1, 1]
        lists.append([[image, *boxes[i]] for i in chosen(whole, np.array(values), before, iou, -np.inf)[:after]])
    return rows(lists, after, 5).transpose(0, 2, 1), counts(map(len, lists))


def test_proposal(tmp_path):
    scores, offsets = shares(floats(2, 2, 6, 5, 4), 1).reshape(2, 12, 5, 4), 0.3 * floats(2, 24, 5, 4)
    info = np.float32([[70, 60, 1], [75, 66, 1.5]])
    expected = proposals(scores, offsets, info, [0.5, 2], [1, 2, 4], 16, 16, 8, 60, 16, 0.6)
    param = {"feat_stride": 16, "base_size": 16, "min_size": 8, "ratio": [0.5, 2], "scale": [1, 2, 4], "pre_nms_topn": 60, "post_nms_topn": 16,
             "iou_threshold": 0.6, "output_actual_rois_num": True}  # fmt: skip
    check(tmp_path, "Proposal", [scores, offsets, info], list(expected), error=1e-4, proposal_param=param)


def pooled_regions(x, regions, size, scale, placed):
    made = x.shape[1] // (size[0] * size[1]) if placed else x.shape[1]
    out = np.zeros((len(regions), made, *size))
    half_up = lambda v: np.sign(v) * np.floor(np.abs(v) + 0.5)  # noqa: E731
    for r, (image, *corners) in enumerate(regions):
        spans = []
        for axis in (1, 0):
            low, high, count = corners[axis], corners[axis + 2], size[1 - axis]
            if placed:
                start = half_up(low) * scale
                part = max((half_up(high) + 1) * scale - start, 0.1) / count
                ends = [(np.floor(i * part + start), np.ceil((i + 1) * part + start)) for i in range(count)]
            else:
                start = half_up(low * scale)
                part = max(half_up(high * scale) - start + 1, 1) / count
                ends = [(np.floor(i * part) + start, np.ceil((i + 1) * part) + start) for i in range(count)]
            spans.append(np.clip(ends, 0, x.shape[3 - axis]).astype(int))
        for h, (top, bottom) in enumerate(spans[0]):
            for w, (left, right) in enumerate(spans[1]):
                part = x[int(image), :, top:bottom, left:right]
                if part.size:
                    out[r, :, h, w] = part.mean((1, 2)).reshape(made, *size)[:, h, w] if placed else part.max((1, 2))
    return out


REGIONS = np.float32([[0, 3, 4, 30, 41], [1, 10, 2, 11, 60], [1, -8, -9, 12, 13], [0, 70, 80, 90, 95], [0, 20, 20, 10, 10]])


@pytest.mark.parametrize("form", ["rows", "images", "columns"])
def test_regions_are_pooled(tmp_path, form):
    x = floats(2, 6, 9, 8)
    regions, param = REGIONS, {"pooled_h": 3, "pooled_w": 2, "spatial_scale": 0.125}
    if form == "images":
        regions = regions.reshape(-1, 5, 1, 1)
    if form == "columns":
        regions = np.ascontiguousarray(regions[None].transpose(0, 2, 1))
    check(tmp_path, "ROIPooling", [x, regions], pooled_regions(x, REGIONS, (3, 2), 0.125, False), roi_pooling_param=param)


def test_regions_are_pooled_by_places(tmp_path):
    x = floats(2, 18, 9, 8)
    param = {"spatial_scale": 0.125, "output_dim": 2, "group_size": 3}
    check(tmp_path, "PSROIPooling", [x, REGIONS], pooled_regions(x, REGIONS, (3, 3), 0.125, True), psroi_pooling_param=param)


@pytest.mark.parametrize("version, softmax, background", [("V3", True, False), ("V2", True, False), ("V2", True, True), ("V2", False, False)])
def test_yolo(tmp_path, version, softmax, background):
    x = floats(2, 3 * 8, 4, 5)
    parts = x.reshape(2, 3, 8, 20).copy()
    coords = np.concatenate([sigmoid(parts[:, :, :2]), parts[:, :, 2:4]], 2).reshape(2, 12, 20)
    sure, kinds = parts[:, :, 4], parts[:, :, 5:]
    if version == "V2" and softmax and background:
        both = shares(parts[:, :, 4:], 2)
        sure, kinds = both[:, :, 0], both[:, :, 1:]
    else:
        sure = sure if background else sigmoid(sure)
        kinds = shares(kinds, 2) if version == "V2" and softmax else sigmoid(kinds)
    behind = lambda y, width: np.pad(y, [(0, 0)] * (y.ndim - 1) + [(0, width - y.shape[-1])])  # noqa: E731
    expected = [behind(coords, 48), behind(sure.reshape(2, 60), 80), behind(kinds.transpose(0, 2, 1, 3).reshape(2, 3, 60), 80)]
    param = {"boxes": 3, "coords": 4, "classes": 3, "softmax": softmax, "background": background}
    layer = files.layer("Yolo", "x", "a b c", name="yolo", yolo_param=param).replace("yolo_param {", f'yolo_param {{ yolo_version: "{version}" ')
    found = run(tmp_path, files.inputs(x=x.shape) + layer, {"x": x})
    for one, wanted in zip(found, expected, strict=True):
        assert one.shape == wanted.shape
        np.testing.assert_allclose(one, wanted, atol=1e-6)


def yolo_boxes(layers, biases, info, third, stretched, least, score_least, iou, before, after):
    """Rows x1, y1, x2, y2, score, class of the layers' raw numbers [images, boxes, 5 + classes, height, width]."""
    lists = []
    for image in range(len(info)):
        net, size = info[image, 1::-1], info[image, :1:-1]
        boxes, scores = [], []
        for layer, anchors in zip(layers, biases, strict=True):
            height, width = layer.shape[3:]
            for k in range(layer.shape[1]):
                for y in range(height):
                    for x in range(width):
                        one = layer[image, k, :, y, x]
                        centre = (sigmoid(one[:2]) + [x, y]) / [width, height]
                        extent = np.exp(one[2:4]) * anchors[k] / (net if third else [width, height])
                        if not stretched:
                            share = size * min(net / size) / net
                            centre, extent = (centre - (1 - share) / 2) / share, extent / share
                        boxes.append(np.concatenate([centre - extent / 2, centre + extent / 2]) * np.tile(size, 2))
                        sure = sigmoid(one[4])
                        kinds = sigmoid(one[5:]) if third else shares(one[5:], 0)
                        scores.append(kinds * sure * (sure > least))
        boxes, scores = np.array(boxes), np.array(scores)
        found = [(scores[i, c], c, boxes[i]) for c in range(scores.shape[1]) for i in chosen(boxes, scores[:, c], before, iou, score_least)]
        lists.append([[*box, score, kind] for score, kind, box in best(found, after)])
    return lists


@pytest.mark.parametrize("kind", ["YoloV2DetectionOutput", "YoloV3DetectionOutput", "YoloV3DetectionOutputV2"])
@pytest.mark.parametrize("stretched", [False, True])
def test_yolo_detection(tmp_path, kind, stretched):
    third = "V3" in kind
    sizes = [(2, 3), (4, 6)] if third else [(3, 4)]
    arrays = {f"x{i}": 1.5 * floats(2, 16, *size) for i, size in enumerate(sizes)}
    biases = RANDOM.uniform(10 if third else 0.5, 60 if third else 3, (len(sizes), 2, 2)).round(2)
    info = np.float32([[64, 96, 128, 96], [64, 96, 50, 120]])
    param = {"boxes": 2, "classes": 3, "relative": True, "obj_threshold": 0.4, "score_threshold": 0.2, "iou_threshold": 0.45, "pre_nms_topn": 30,
             "post_nms_topn": 20, "resize_origin_img_to_net": stretched}  # fmt: skip
    names = ["biases_low", "biases_high"] if kind == "YoloV3DetectionOutput" else ["biases"] * len(sizes)
    for name, anchors in zip(names, biases, strict=True):
        param[name] = param.get(name, []) + anchors.ravel().tolist()
    text = files.inputs(**{name: x.shape for name, x in arrays.items()}, info=info.shape)
    for name in arrays:
        layer = files.layer("Yolo", name, f"{name}a {name}b {name}c", name=f"yolo{name}", yolo_param={"boxes": 2, "classes": 3, "softmax": True})
        text += layer.replace("yolo_param {", f'yolo_param {{ yolo_version: "{"V3" if third else "V2"}" ')
    bottoms = " ".join(f"{name}{part}" for part in "abc" for name in arrays) + " info"
    field = {"YoloV2DetectionOutput": "yolov2_detection_output_param", "YoloV3DetectionOutput": "yolov3_detection_output_param"}
    text += files.layer(kind, bottoms, "boxes number", **{field.get(kind, "yolov3_detection_output_v2_param"): param})
    layers = [x.reshape(2, 2, 8, *x.shape[2:]).astype(np.float64) for x in arrays.values()]
    lists = yolo_boxes(layers, biases, info.astype(np.float64), third, stretched, 0.4, 0.2, 0.45, 30, 20)
    found, number = run(tmp_path, text, {**arrays, "info": info})
    assert np.array_equal(number, counts(map(len, lists))) and min(map(len, lists)) > 0
    expected = rows(lists, 20, 6).transpose(0, 2, 1)
    if not kind.endswith("V2"):  # the columns follow each other at once
        expected = np.stack([np.pad(np.array(each, np.float32).T.ravel(), (0, 120 - 6 * len(each))) for each in lists])
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-3)


def steps_of_lstm(x, goes_on, w, bias, recurrent, extra, h, c):
    out, hidden = [], len(bias) // 4
    for now, cont in zip(x, goes_on, strict=True):
        gates = now @ w.T + bias + extra + (cont[:, None] * h) @ recurrent.T
        i, f, o = (sigmoid(gates[:, k * hidden :][:, :hidden]) for k in range(3))
        c = cont[:, None] * f * c + i * np.tanh(gates[:, 3 * hidden :])
        h = o * np.tanh(c)
        out.append(h)
    return [np.stack(out), h[None], c[None]]


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("exposed", [False, True])
def test_lstm(tmp_path, shared, exposed):
    x, goes_on = floats(6, 3, 4, 2), (RANDOM.random((6, 3)) > 0.3).astype(np.float32)
    w, bias, recurrent, own = floats(20, 8) / 3, floats(20), floats(20, 5) / 2, floats(20, 7) / 3
    side, h, c = floats(3, 7), floats(1, 3, 5), floats(1, 3, 5)
    bottoms = [x, goes_on] + [side] * shared + [h, c] * exposed
    zero = np.zeros((3, 5))
    expected = steps_of_lstm(x.reshape(6, 3, 8), goes_on, w, bias, recurrent, side @ own.T if shared else 0, h[0] if exposed else zero, c[0] if exposed else zero)
    blobs = [w, bias, *[own] * shared, recurrent]
    check(tmp_path, "LSTM", bottoms, expected if exposed else expected[:1], blobs, recurrent_param={"num_output": 5, "expose_hidden": exposed})


def test_rnn(tmp_path):
    x, goes_on = floats(6, 3, 4), (RANDOM.random((6, 3)) > 0.3).astype(np.float32)
    w, bias, recurrent, out, out_bias = floats(5, 4) / 2, floats(5), floats(5, 5) / 2, floats(5, 5) / 2, floats(5)
    h, expected = np.zeros((3, 5)), []
    for now, cont in zip(x, goes_on, strict=True):
        h = np.tanh(now @ w.T + bias + (cont[:, None] * h) @ recurrent.T)
        expected.append(np.tanh(h @ out.T + out_bias))
    check(tmp_path, "RNN", [x, goes_on], np.stack(expected), [w, bias, recurrent, out, out_bias], recurrent_param={"num_output": 5})


def transformed(x, theta, height, width):
    out = np.zeros((*x.shape[:2], height, width))
    for n, i, j in np.ndindex(len(x), height, width):
        row, column = (theta[n].reshape(2, 3) @ [i / height * 2 - 1, j / width * 2 - 1, 1] + 1) / 2 * x.shape[2:]
        for a, b in np.ndindex(x.shape[2:]):
            out[n, :, i, j] += x[n, :, a, b] * max(0, 1 - abs(row - a)) * max(0, 1 - abs(column - b))
    return out


@pytest.mark.parametrize("fixed", [{}, {"theta_1_2": 0.0, "theta_2_1": 0.25}])
def test_spatial_transformer(tmp_path, fixed):
    x, theta = floats(2, 3, 6, 7), floats(2, 6) / 3 + np.float32([1, 0, 0, 0, 1, 0])
    for name, value in fixed.items():
        theta[:, {"theta_1_2": 1, "theta_2_1": 3}[name]] = value
    given = np.delete(theta, [1, 3], 1) if fixed else theta
    check(tmp_path, "SpatialTransformer", [x, given], transformed(x, theta, 5, 4), st_param={"output_H": 5, "output_W": 4, **fixed})

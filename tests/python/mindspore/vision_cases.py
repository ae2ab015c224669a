"""Image transforms without chance, over one picture.

    python vision_cases.py OUT.npz     what real MindSpore makes of it
"""

import sys

import numpy as np


def picture(height=19, width=32):
    y, x = np.mgrid[0:height, 0:width]
    waves = [128 + 100 * np.sin(x / (3 + c) + y / (5 - c)) + 30 * np.cos(x * y / 70) for c in range(3)]
    noise = np.random.RandomState(0).randint(-20, 20, (height, width, 3))
    return np.clip(np.stack(waves, -1) + noise, 0, 255).astype(np.uint8)


def _in_turn(*operations):
    def made(image):
        for operation in operations:
            image = operation(image)
        return image

    return made


def cases(vision, transforms):
    """{name: (transform, most difference of a value, share of values that may differ)}; modules real or ours."""
    inter, made = vision.Inter, {}
    for degrees in (30, -90, 45.5, 180):
        for name, resample in (("nearest", inter.NEAREST), ("linear", inter.LINEAR)):
            made[f"rotate {degrees} {name}"] = vision.Rotate(degrees, resample), 1, 0.02
            made[f"rotate {degrees} {name} expanded"] = vision.Rotate(degrees, resample, expand=True, fill_value=(7, 8, 9)), 1, 0.02
    made["rotate about a corner"] = vision.Rotate(20, inter.LINEAR, center=(3, 5)), 1, 0.02
    for name, resample in (("nearest", inter.NEAREST), ("linear", inter.LINEAR)):
        made[f"affine {name}"] = vision.Affine(15, (-0.1, 0.2), 1.1, (5, 10), resample), 1, 0.02
    for factor in (0.1, 0.3, 0.5, -0.2, -0.5):
        made[f"hue {factor}"] = vision.AdjustHue(factor), 1, 0.02
    for factor in (0.0, 0.4, 1.7):
        made[f"brightness {factor}"] = vision.AdjustBrightness(factor), 1, 0.02
        made[f"contrast {factor}"] = vision.AdjustContrast(factor), 1, 0.02
        made[f"saturation {factor}"] = vision.AdjustSaturation(factor), 1, 0.03
        made[f"sharpness {factor}"] = vision.AdjustSharpness(factor), 1, 0.02
    for name, resample in (("cubic", inter.CUBIC), ("area", inter.AREA)):
        made[f"rotate {name}"] = vision.Rotate(30, resample, True, None, (7, 8, 9)), 1, 0.02
        made[f"affine {name}"] = vision.Affine(-50, (0, 0.3), 0.6, 10.0, resample, (7, 8, 9)), 1, 0.02
    corners, others = [[0, 0], [30, 0], [30, 18], [0, 18]], [[2, 3], [27, 1], [31, 16], [1, 19]]
    for name in ("NEAREST", "LINEAR", "CUBIC"):
        made[f"perspective {name}"] = vision.Perspective(corners, others, getattr(inter, name)), 1, 0.02
    made["hue by nothing"] = vision.AdjustHue(0), 1, 0.02
    for mode in ("BGR2BGRA", "RGBA2BGR", "RGB2BGR", "RGB2GRAY", "BGR2GRAY", "RGB2BGRA", "BGRA2RGBA"):
        made[f"colours {mode}"] = vision.ConvertColor(getattr(vision.ConvertMode, f"COLOR_{mode}")), 0, 0
    made["erase"] = vision.Erase(12, 3, 10, 6, (1, 2, 3)), 0, 0
    for mode in vision.SliceMode:
        made[f"patches {mode.name}"] = (lambda image, mode=mode: vision.SlicePatches(3, 5, mode, 7)(image)[13]), 0, 0
    for name, operations in {
        "hsv": [vision.RgbToHsv(True)], "hsv and back": [vision.RgbToHsv(True), vision.HsvToRgb(True)], "brightness": [vision.AdjustBrightness(0.4)],
        "contrast": [vision.AdjustContrast(1.7)], "saturation": [vision.AdjustSaturation(1.7)], "sharpness": [vision.AdjustSharpness(1.7)],
        "invert": [vision.Invert()], "gamma": [vision.AdjustGamma(2.2, 0.5)], "to tensor": [vision.ToTensor()],
        "cubic": [vision.Rotate(30, inter.CUBIC)], "resize": [vision.Resize((11, 40), inter.CUBIC)],
    }.items():  # fmt: skip
        made[f"floats {name}"] = _in_turn(vision.Rescale(1 / 255.0, 0.0), *operations), 2e-5, 1
    made["gamma"] = vision.AdjustGamma(0.5, 1.2), 1, 0.02
    made["auto contrast"] = vision.AutoContrast(5.0, [3, 200]), 0, 0
    made["auto contrast plain"] = vision.AutoContrast(), 0, 0
    made["equalize"] = vision.Equalize(), 1, 0.02
    made["invert"] = vision.Invert(), 0, 0
    for bits in (1, 4, 8):
        made[f"posterize {bits}"] = vision.Posterize(bits), 0, 0
    made["solarize"] = vision.Solarize((50, 180)), 0, 0
    made["solarize above"] = vision.Solarize(100), 0, 0
    for kernel, sigma in (((3, 5), None), (7, 1.5), ((5, 3), (2.0, 0.7))):
        made[f"blur {kernel} {sigma}"] = vision.GaussianBlur(kernel, sigma), 1, 0.1
    for size in ((20, 30), 17, (60, 70)):
        for name in ("NEAREST", "LINEAR", "CUBIC", "AREA"):
            made[f"resize {size} {name}"] = vision.Resize(size, getattr(inter, name)), 1, 0.02
    made["crop"] = vision.Crop((3, 4), (10, 11)), 0, 0
    made["center crop"] = vision.CenterCrop((30, 10)), 0, 0
    for mode in ("CONSTANT", "EDGE", "REFLECT", "SYMMETRIC"):
        made[f"pad {mode}"] = vision.Pad((1, 2, 3, 4), 9, getattr(vision.Border, mode)), 0, 0
    made["pad to size"] = vision.PadToSize((50, 60), None, 5), 0, 0
    made["resized crop"] = vision.ResizedCrop(2, 3, 14, 17, (11, 12)), 1, 0.02
    made["flips"] = transforms.Compose([vision.HorizontalFlip(), vision.VerticalFlip()]), 0, 0
    made["normalize"] = vision.Normalize([120.0, 110, 100], [50.0, 60, 70]), 1e-5, 1
    made["rescale"] = vision.Rescale(1 / 255.0, -0.5), 1e-6, 1
    made["to tensor"] = vision.ToTensor(), 1e-6, 1
    made["channels first"] = vision.HWC2CHW(), 0, 0
    return made


def results(vision, transforms):
    """{name: what the transform makes of the picture}."""
    return {name: np.asarray(transform(picture())) for name, (transform, *_) in cases(vision, transforms).items()}


if __name__ == "__main__":
    from mindspore.dataset import transforms, vision

    np.savez_compressed(sys.argv[1], **results(vision, transforms))

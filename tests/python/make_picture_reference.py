#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The cddp authors
"""Writes the pictures of tests/import/test_images.c, and what Pillow makes of them.

usage: make_picture_reference.py DIR (tests/data/pictures)
Sizes and places are computed as torchvision's Resize and CenterCrop compute them.
"""
import sys

from PIL import Image

folder = sys.argv[1]


def gradient(mode, width, height, step=7):
    """A picture without symmetry: every channel and place differs."""
    count = len(Image.new(mode, (1, 1)).getbands())
    data = bytes((x * step + y * (step + 4) + 83 * c + x * y * (c + 1)) % 256
                 for y in range(height) for x in range(width) for c in range(count))
    return Image.frombytes(mode, (width, height), data)


def resize(image, size):
    if isinstance(size, int):
        width, height = image.size
        size = ((int(size * height / width), size) if width <= height
                else (size, int(size * width / height)))
    return image.resize((size[1], size[0]), Image.BILINEAR)


def crop(image, height, width):
    top = int(round((image.height - height) / 2.0))
    left = int(round((image.width - width) / 2.0))
    return image.crop((left, top, left + width, top + height))


def expect(name, image, kind):
    image.save("%s/%s.%s" % (folder, name, "pgm" if kind == "L" else "ppm"))


grey = gradient("L", 9, 6)
color = gradient("RGB", 25, 18)
grey.save(folder + "/grey.png")
color.save(folder + "/color.png")
gradient("LA", 5, 4).save(folder + "/grey-alpha.png")
gradient("RGBA", 5, 4).save(folder + "/alpha.png")
palette = color.quantize(16)
palette.save(folder + "/palette.png", transparency=3)
bits = grey.point(lambda v: 255 * (v > 99)).convert("1")
bits.save(folder + "/bits.png")
color.save(folder + "/color.jpg", quality=85)
color.save(folder + "/progressive.jpg", quality=60, progressive=True)
grey.save(folder + "/grey.jpg")
gradient("CMYK", 4, 4).save(folder + "/cmyk.jpg")

expect("grey", grey, "L")
expect("grey-3", grey.convert("RGB"), "RGB")
expect("color-1", color.convert("L"), "L")
for name in "alpha", "palette", "color-jpg", "progressive", "grey-alpha":
    file = {"color-jpg": "color.jpg", "progressive": "progressive.jpg"}.get(
        name, name + ".png")
    mode = "L" if name == "grey-alpha" else "RGB"
    expect(name, Image.open(folder + "/" + file).convert(mode), mode)
expect("bits", bits.convert("L"), "L")
expect("grey-jpg", Image.open(folder + "/grey.jpg"), "L")
expect("small", resize(color, 7), "RGB")
expect("large", resize(color, (40, 31)), "RGB")
expect("middle", crop(resize(color, 10), 7, 7), "RGB")

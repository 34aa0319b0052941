# SPDX-License-Identifier: Apache-2.0
"""Fashion-MNIST, and a convolutional network for it."""

import gzip
import pathlib

import numpy
import torch


def dataset(folder, part):
    def read(name, header):
        with gzip.open(pathlib.Path(folder) / name) as file:
            return numpy.frombuffer(file.read(), numpy.uint8, offset=header)
    images = read(f"{part}-images-idx3-ubyte.gz", 16).reshape(-1, 1, 28, 28)
    labels = read(f"{part}-labels-idx1-ubyte.gz", 8)
    return torch.utils.data.TensorDataset(torch.tensor(images, dtype=torch.float32) / 255,
                                          torch.tensor(labels, dtype=torch.int64))


def network():
    return torch.nn.Sequential(
        torch.nn.Conv2d(1, 8, 3, stride=2), torch.nn.ReLU(),
        torch.nn.Conv2d(8, 16, 3, stride=2), torch.nn.ReLU(),
        torch.nn.Flatten(), torch.nn.Linear(16 * 6 * 6, 10))

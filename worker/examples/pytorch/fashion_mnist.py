# SPDX-License-Identifier: Apache-2.0
"""Trains a perceptron on Fashion-MNIST in groups of workers: the C++ example with PyTorch.

    covey run --servers 2 --groups 2 --workers 2 -- python3 fashion_mnist.py

Compared with a script for one process, the lines with `covey` are new.
"""

import argparse
import gzip
import pathlib

import numpy
import torch

import covey
import covey.torch


def read(folder, name, header):
    """The bytes of one of the data set's four files, after its header."""
    with gzip.open(pathlib.Path(folder) / name) as file:
        return numpy.frombuffer(file.read(), numpy.uint8, offset=header)


def dataset(folder, part):
    images = read(folder, f"{part}-images-idx3-ubyte.gz", 16).reshape(-1, 784)
    labels = read(folder, f"{part}-labels-idx1-ubyte.gz", 8)
    return torch.utils.data.TensorDataset(torch.tensor(images, dtype=torch.float32) / 255,
                                          torch.tensor(labels, dtype=torch.int64))


def accuracy(model, images, labels):
    with torch.no_grad():
        return (model(images).argmax(1) == labels).float().mean().item()


def main():
    options = argparse.ArgumentParser(description="Trains on Fashion-MNIST in groups of workers.")
    options.add_argument("--data", default="/usr/share/datasets/fashion-mnist")
    options.add_argument("--epochs", type=int, default=12)
    options.add_argument("--batch", type=int, default=64, help="examples per worker and step")
    options.add_argument("--contract", default="buffered", help="bsp, ssp:2, async, buffered")
    arguments = options.parse_args()

    torch.set_num_threads(1)
    model = torch.nn.Sequential(torch.nn.Linear(784, 256), torch.nn.ReLU(),
                                torch.nn.Linear(256, 10))
    criterion = torch.nn.CrossEntropyLoss()
    train = dataset(arguments.data, "train")
    with covey.join() as worker:
        optimizer = covey.torch.DistributedOptimizer(
            torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, nesterov=True),
            model.named_parameters(), worker=worker, contract=arguments.contract,
            schedule=covey.cosine(arguments.epochs * len(train)))
        loader = covey.torch.ElasticLoader(train, optimizer, batch_size=arguments.batch)
        for epoch in range(arguments.epochs):
            for images, labels in loader:
                optimizer.zero_grad()
                loss = criterion(model(images), labels)
                loss.backward()
                optimizer.loss = loss.item()
                optimizer.step()
            if worker.rank == 0:
                print(f"epoch {epoch + 1}: loss {optimizer.loss:.4f}", flush=True)
        worker.barrier("trained", timeout=300)
        optimizer.refresh()
        if worker.rank == 0:
            test = dataset(arguments.data, "t10k")
            print(f"test_accuracy {accuracy(model, *test.tensors):.4f}", flush=True)
        optimizer.close()


main()

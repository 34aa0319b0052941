# SPDX-License-Identifier: Apache-2.0
"""Trains a convolutional network on Fashion-MNIST, with DistributedDataParallel on Covey's backend."""

import argparse

import torch

from cnn_model import dataset, network


def main():
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--data", default="/usr/share/datasets/fashion-mnist")
    options.add_argument("--epochs", type=int, default=2)
    options.add_argument("--examples", type=int, default=60000, help="of the data set, per epoch")
    arguments = options.parse_args()
    torch.distributed.init_process_group("covey")
    torch.manual_seed(1)
    train = torch.utils.data.Subset(dataset(arguments.data, "train"), range(arguments.examples))
    model = torch.nn.parallel.DistributedDataParallel(network())
    optimizer = torch.optim.Adam(model.parameters(), lr=0.002)
    sampler = torch.utils.data.DistributedSampler(train)
    loader = torch.utils.data.DataLoader(train, batch_size=64, sampler=sampler)
    for epoch in range(arguments.epochs):
        sampler.set_epoch(epoch)
        for images, labels in loader:
            optimizer.zero_grad()
            loss = torch.nn.functional.cross_entropy(model(images), labels)
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch + 1}: loss {loss.item():.4f}", flush=True)
    images, labels = dataset(arguments.data, "t10k").tensors
    with torch.no_grad():
        right = (model(images).argmax(1) == labels).float().mean().item()
    print(f"test_accuracy {right:.4f}", flush=True)
    torch.distributed.destroy_process_group()


main()

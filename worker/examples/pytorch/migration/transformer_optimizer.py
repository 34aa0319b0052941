# SPDX-License-Identifier: Apache-2.0
"""Trains a small transformer on the letters of a text, with the optimizer on Covey's servers."""

import argparse

import torch

import covey.torch
from transformer_model import Transformer, letters


def main():
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--text", default="/usr/share/common-licenses/Apache-2.0")
    options.add_argument("--epochs", type=int, default=3)
    options.add_argument("--examples", type=int, default=10000, help="of the text, per epoch")
    arguments = options.parse_args()
    torch.manual_seed(1)
    train = torch.utils.data.Subset(letters(arguments.text), range(arguments.examples))
    model = Transformer()
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.003)
    optimizer = covey.torch.DistributedOptimizer(optimizer, model.named_parameters(),
                                                 worker=covey.init(servers=2))
    loader = covey.torch.ElasticLoader(train, optimizer, batch_size=64)
    for epoch in range(arguments.epochs):
        for text, following in loader:
            optimizer.zero_grad()
            loss = torch.nn.functional.cross_entropy(model(text).flatten(0, 1), following.flatten())
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch + 1}: loss {loss.item():.4f}", flush=True)


main()

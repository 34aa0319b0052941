# SPDX-License-Identifier: Apache-2.0
"""Trains a small transformer on the letters of a text, with DistributedDataParallel on Covey's backend."""

import argparse

import torch

from transformer_model import Transformer, letters


def main():
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--text", default="/usr/share/common-licenses/Apache-2.0")
    options.add_argument("--epochs", type=int, default=3)
    options.add_argument("--examples", type=int, default=10000, help="of the text, per epoch")
    arguments = options.parse_args()
    torch.distributed.init_process_group("covey")
    torch.manual_seed(1)
    train = torch.utils.data.Subset(letters(arguments.text), range(arguments.examples))
    model = torch.nn.parallel.DistributedDataParallel(Transformer())
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.003)
    sampler = torch.utils.data.DistributedSampler(train)
    loader = torch.utils.data.DataLoader(train, batch_size=64, sampler=sampler)
    for epoch in range(arguments.epochs):
        sampler.set_epoch(epoch)
        for text, following in loader:
            optimizer.zero_grad()
            loss = torch.nn.functional.cross_entropy(model(text).flatten(0, 1), following.flatten())
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch + 1}: loss {loss.item():.4f}", flush=True)
    torch.distributed.destroy_process_group()


main()

# SPDX-License-Identifier: Apache-2.0
"""Trains a small transformer on the letters of a text, with the optimizer on Covey's servers."""

import argparse

import torch

import covey.torch

CONTEXT = 32


def letters(path):
    """Every stretch of CONTEXT letters, and the same one letter on."""
    with open(path, "rb") as file:
        text = torch.tensor(list(file.read()), dtype=torch.int64).clamp(max=127)
    windows = text.unfold(0, CONTEXT + 1, 1)
    return torch.utils.data.TensorDataset(windows[:, :-1], windows[:, 1:])


class Transformer(torch.nn.Module):
    def __init__(self, width=32):
        super().__init__()
        self.letters = torch.nn.Embedding(128, width)
        self.places = torch.nn.Embedding(CONTEXT, width)
        self.layer = torch.nn.TransformerEncoderLayer(width, 4, 4 * width, 0.0, batch_first=True)
        self.head = torch.nn.Linear(width, 128)

    def forward(self, text):
        hidden = self.letters(text) + self.places(torch.arange(CONTEXT))
        future = torch.full((CONTEXT, CONTEXT), float("-inf")).triu(1)
        return self.head(self.layer(hidden, future))


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
                                                 worker=covey.init(servers=2), initial="redraw")
    loader = covey.torch.ElasticLoader(train, optimizer, batch_size=64)
    for epoch in range(arguments.epochs):
        for text, following in loader:
            optimizer.zero_grad()
            loss = torch.nn.functional.cross_entropy(model(text).flatten(0, 1), following.flatten())
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch + 1}: loss {loss.item():.4f}", flush=True)


main()

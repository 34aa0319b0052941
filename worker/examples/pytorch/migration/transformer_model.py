# SPDX-License-Identifier: Apache-2.0
"""The letters of a text, and a small transformer for them."""

import torch

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

# SPDX-License-Identifier: Apache-2.0
"""Tells from the words of its description whether a package of Debian is a library.

    covey run --servers 2 --groups 1 --workers 2 -- python3 package_words.py

Each word is a 64-bit hash, and the key of a row on the servers: there is no vocabulary. The data
are the lists of packages that `apt-get update` has fetched; --data synthetic draws words at random
instead. Compared with a script for one process, the lines with `covey`, `worker` and `client` are
new.
"""

import argparse
import hashlib
import random
import re
import subprocess

import torch

import covey
import covey.torch


def key(word):
    """64 bits, as a signed number, which is what PyTorch has."""
    digest = hashlib.blake2b(word.encode(), digest_size=8).digest()
    return int.from_bytes(digest, "little", signed=True)


def packages():
    """The keys of each package's words, and whether it is a library."""
    text = subprocess.run(["apt-cache", "dumpavail"], capture_output=True, text=True,
                          errors="replace", check=True).stdout
    for package in text.split("\n\n"):
        fields = dict(re.findall(r"^(Section|Description\S*): (.*)$", package, re.MULTILINE))
        description = next((text for name, text in fields.items() if name != "Section"), "")
        words = re.findall(r"[a-z][a-z0-9+]+", description.lower())
        if words:
            section = fields.get("Section", "").rpartition("/")[2]
            yield [key(word) for word in words], section in ("libs", "libdevel", "oldlibs")


def synthetic(count=20000, vocabulary=5000):
    """Words drawn at random, each of which is for one answer or the other; the majority wins."""
    draw = random.Random(1)
    says = [draw.choice((-1, 1)) for _ in range(vocabulary)]
    for _ in range(count):
        words = draw.choices(range(vocabulary), k=draw.randrange(3, 12, 2))
        yield [key(str(word)) for word in words], sum(says[word] for word in words) > 0


def collate(examples):
    """Keys of all examples in a row, where each one begins, and the answers."""
    words, answers = zip(*examples)
    lengths = torch.tensor([0, *(len(each) for each in words[:-1])])
    return (torch.tensor([key for each in words for key in each]), lengths.cumsum(0),
            torch.tensor(answers, dtype=torch.float32))


class Classifier(torch.nn.Module):
    def __init__(self, words):
        super().__init__()
        self.words = words
        self.answer = torch.nn.Linear(words.embedding_dim, 1)

    def forward(self, keys, offsets):
        return self.answer(self.words(keys, offsets)).squeeze(1)


def accuracy(model, examples):
    with torch.no_grad():
        keys, offsets, answers = collate(examples)
        return ((model(keys, offsets) > 0) == (answers > 0.5)).float().mean().item()


def main():
    options = argparse.ArgumentParser(description="Classifies packages by hashed words.")
    options.add_argument("--data", choices=("packages", "synthetic"), default="packages")
    options.add_argument("--examples", type=int, default=0, help="at most so many; 0 = all")
    options.add_argument("--epochs", type=int, default=2)
    options.add_argument("--batch", type=int, default=64, help="examples per worker and step")
    arguments = options.parse_args()

    torch.set_num_threads(1)
    examples = list(packages() if arguments.data == "packages" else synthetic())
    if len(examples) < 1000:
        options.error(f"{len(examples)} packages are listed; run apt-get update, or take "
                      "--data synthetic")
    random.Random(2).shuffle(examples)
    examples = examples[:arguments.examples or None]
    held_out = len(examples) // 10
    test, train = examples[:held_out], examples[held_out:]

    with covey.join() as worker, worker.connect() as client:
        table = client.create_sparse_table(covey.SparseTableSpec(
            "words", width=16, optimizer=covey.adagrad(0.1), initializer=covey.normal(0, 0.1),
            contract=f"buffered:{worker.size}"))
        model = Classifier(covey.torch.EmbeddingBag(16, table, mode="mean"))
        optimizer = covey.torch.DistributedOptimizer(
            torch.optim.Adagrad(model.parameters(), lr=0.1), model.named_parameters(),
            worker=worker, contract="bsp", embeddings=[model.words])
        loader = covey.torch.ElasticLoader(train, optimizer, batch_size=arguments.batch,
                                           passes=arguments.epochs, collate_fn=collate)
        criterion = torch.nn.BCEWithLogitsLoss()
        for _ in range(loader.pass_number, arguments.epochs):
            for keys, offsets, answers in loader:
                optimizer.zero_grad()
                loss = criterion(model(keys, offsets), answers)
                loss.backward()
                optimizer.loss = loss.item()
                optimizer.step()
        worker.barrier("trained", timeout=300)
        optimizer.refresh()
        if worker.rank == 0:
            libraries = sum(answer for _, answer in test) / len(test)
            print(f"examples {len(train)}, test_accuracy {accuracy(model, test):.4f}, "
                  f"of the commoner answer {max(libraries, 1 - libraries):.4f}", flush=True)
        optimizer.close()


main()

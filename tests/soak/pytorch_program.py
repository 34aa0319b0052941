# SPDX-License-Identifier: Apache-2.0
"""The convolutional network of the migration scripts, with one of two ways to train it together.

    pytorch_program.py ddp|covey FOLDER [--slow-rank RANK]   trains, and writes weights after passes
    pytorch_program.py accuracies FOLDER                     prints [[seconds, accuracy], ...]
"""

import argparse
import json
import os
import pathlib
import sys
import time

import torch

sys.path.append(str(pathlib.Path(__file__).parents[2] / "worker/examples/pytorch/migration"))
from cnn_model import dataset, network  # noqa: E402

_DATA = "/usr/share/datasets/fashion-mnist"
_BATCH, _RATE = 64, 0.004
_SLOWNESS = 4


class Training:
    """What both ways have in common: one pass after the other, at a rate that falls to 0."""

    def __init__(self, arguments, rank):
        torch.set_num_threads(1)
        torch.manual_seed(1)
        self.train_set = dataset(_DATA, "train")
        self.folder, self.passes = pathlib.Path(arguments.folder), arguments.passes
        self.rank, self._is_slow = rank, rank == arguments.slow_rank
        (self.folder / f"pid-{rank}").write_text(str(os.getpid()))

    def run(self, model, optimizer, begin_pass):
        begin = time.monotonic()
        for number in range(self.passes):
            for group in optimizer.param_groups:
                group["lr"] = _RATE * (1 - number / self.passes)
            computed = 0.0  # seconds of the processor, in the step before
            for images, labels in begin_pass(number):
                if self._is_slow:
                    time.sleep((_SLOWNESS - 1) * computed)
                since = time.thread_time()
                optimizer.zero_grad()
                torch.nn.functional.cross_entropy(model(images), labels).backward()
                optimizer.step()
                computed = time.thread_time() - since
            if self.rank == 0:
                written = self.folder / "writing"
                torch.save({"seconds": time.monotonic() - begin, "model": getattr(model, "module", model).state_dict()}, written)
                written.rename(self.folder / f"pass-{number + 1:03}")


def ddp(arguments):
    torch.distributed.init_process_group("gloo")
    training = Training(arguments, torch.distributed.get_rank())
    model = torch.nn.parallel.DistributedDataParallel(network())
    sampler = torch.utils.data.DistributedSampler(training.train_set)
    loader = torch.utils.data.DataLoader(training.train_set, batch_size=_BATCH, sampler=sampler)

    def begin_pass(number):
        sampler.set_epoch(number)
        return loader

    torch.distributed.barrier()
    training.run(model, torch.optim.Adam(model.parameters(), lr=_RATE), begin_pass)
    torch.distributed.destroy_process_group()


def with_covey(arguments):
    import covey.torch  # pylint: disable=import-outside-toplevel
    with covey.join() as worker:
        training = Training(arguments, worker.rank)
        model = network()
        optimizer = covey.torch.DistributedOptimizer(
            torch.optim.Adam(model.parameters(), lr=_RATE), model.named_parameters(), worker=worker)
        loader = covey.torch.ElasticLoader(training.train_set, optimizer, batch_size=_BATCH)
        worker.barrier("ready", timeout=120)
        training.run(model, optimizer, lambda number: loader)
        optimizer.close()


def accuracies(arguments):
    images, labels = dataset(_DATA, "t10k").tensors
    model, results = network(), []
    for path in sorted(pathlib.Path(arguments.folder).glob("pass-*")):
        saved = torch.load(path)
        model.load_state_dict(saved["model"])
        with torch.no_grad():
            right = (model(images).argmax(1) == labels).float().mean().item()
        results.append([saved["seconds"], right])
    print(json.dumps(results))


def main():
    options = argparse.ArgumentParser(description=__doc__,
                                      formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("what", choices=("ddp", "covey", "accuracies"))
    options.add_argument("folder")
    options.add_argument("--passes", type=int, default=20)
    options.add_argument("--slow-rank", type=int, default=-1, help=f"takes {_SLOWNESS} times as long")
    arguments = options.parse_args()
    {"ddp": ddp, "covey": with_covey, "accuracies": accuracies}[arguments.what](arguments)


main()

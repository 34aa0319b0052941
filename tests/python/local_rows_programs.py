# SPDX-License-Identifier: Apache-2.0
"""What each worker of local_rows_test.py runs, by name; prints one line of JSON."""

import array
import json
import os
import signal
import sys
import threading
import time

import numpy

import covey

_WIDTH = 3
_ALL = numpy.arange(40, dtype=numpy.uint64) * 977
_RATE = numpy.float32(0.3)
_EPSILON = numpy.float32(1e-10)
_STEPS_OF_A_ROUND = 3
# The last round is ended early.
_STEPS = 4 * _STEPS_OF_A_ROUND + 2


def _spec(name="rows", contract="local:3", **given):
    return covey.SparseTableSpec(name, _WIDTH, **{
        "contract": contract, "inner_optimizer": covey.adagrad(float(_RATE)),
        "initializer": covey.normal(0, 1), **given})


def _refusal(call, *arguments, **options):
    """The name and text of the error that the call ends with."""
    try:
        call(*arguments, **options)
    except Exception as error:  # pylint: disable=broad-except
        return f"{type(error).__name__}: {error}"
    return "accepted"


def _step_of(rank, step):
    """Which keys a worker pulls, their gradients and the number of examples; None: no pull.

    Both have keys 0 to 9, with repeats; each has ten more of its own, and nobody the last ten. In
    the third round one worker has no examples, and in the fourth neither has.
    """
    random = numpy.random.default_rng(100 * step + rank)
    round_ = step // _STEPS_OF_A_ROUND
    if (round_ == 2 and rank == 1) or (step == 1 and rank == 0):
        return None, None, 0
    own = numpy.arange(10 + 10 * rank, 20 + 10 * rank)
    places = random.choice(numpy.concatenate([numpy.arange(10), own]), 12)
    gradients = random.standard_normal((len(places), _WIDTH)).astype(numpy.float32)
    return _ALL[places], gradients, 0 if round_ == 3 else int(random.integers(1, 9))


class _Worker:
    """One worker as the contract says, in NumPy, with the order of operations in float32 that the
    library has: keys, sums, Adagrad, and the change of a round."""

    def __init__(self, rank):
        self.rank = rank
        self.squares = {}  # by key; stays from round to round
        self.start = {}
        self.rows = {}
        self.touched = set()
        self.samples = 0
        self.seen = []

    def step(self, step, on_servers):
        keys, gradients, samples = _step_of(self.rank, step)
        sums = {}
        if keys is not None:
            for key, gradient in zip(keys.tolist(), gradients):
                if key not in self.rows:
                    self.start[key] = self.rows[key] = on_servers[key]
                sums[key] = sums[key] + gradient if key in sums else gradient
            self.seen.append(numpy.stack([self.rows[key] for key in keys.tolist()]))
        if samples == 0:
            return
        self.samples += samples
        for key, total in sums.items():
            gradient = total * numpy.float32(1 / samples)
            square = self.squares.get(key, numpy.float32(0)) + gradient * gradient
            self.squares[key] = square
            self.rows[key] = self.rows[key] - _RATE * gradient / (numpy.sqrt(square) + _EPSILON)
            self.touched.add(key)

    def changes(self):
        """By key, times the samples of the round, which ends."""
        found = {key: numpy.float32(self.samples) * (self.start[key] - self.rows[key])
                 for key in self.touched}
        samples = self.samples
        self.start, self.rows, self.touched, self.samples = {}, {}, set(), 0
        return found, samples


def _expected(begin, size, round_mean):
    """What each worker sees in each of its pulls, and what the servers have in the end."""
    on_servers = dict(zip(_ALL.tolist(), begin))
    workers = [_Worker(rank) for rank in range(size)]
    for step in range(_STEPS):
        for worker in workers:
            worker.step(step, on_servers)
        if (step + 1) % _STEPS_OF_A_ROUND != 0 and step + 1 != _STEPS:
            continue
        pushes = [worker.changes() for worker in workers]
        samples = sum(count for _, count in pushes)
        for key in _ALL.tolist():
            holders = [(found[key], count) for found, count in pushes if key in found]
            if not holders:
                continue
            total = sum((change for change, _ in holders[1:]), holders[0][0])
            of_holders = sum(count for _, count in holders)
            if round_mean == "holders" and of_holders != samples:
                total = total * numpy.float32(samples / of_holders)
            on_servers[key] = on_servers[key] - total * numpy.float32(1 / samples)
    return [worker.seen for worker in workers], numpy.stack([on_servers[key]
                                                             for key in _ALL.tolist()])


def _like_numpy(round_mean):
    """Bits of all pulls of a worker, and of all rows in the end, against the reference."""
    with covey.join() as worker, worker.connect() as client:
        rows = worker.local_rows(_spec(round_mean=round_mean))
        table = client.find_sparse_table("rows")
        begin = table.pull(_ALL).wait().values
        worker.barrier("begun")
        seen, rounds = [], []
        for step in range(_STEPS):
            keys, gradients, samples = _step_of(worker.rank, step)
            if keys is not None:
                seen.append(rows.pull(keys))
            rows.step(gradients, samples=samples)
            rounds.append(rows.round)
        rows.finish()
        rows.finish()  # again, without effect
        rounds.append(rows.round)
        rows.pull(_ALL[:1])  # answered once the last round is an update
        worker.barrier("trained")
        end = table.pull(_ALL).wait().values
        worker.barrier("read")
        expected_seen, expected_end = _expected(begin, worker.size, round_mean)
        same = [numpy.array_equal(one, other)
                for one, other in zip(seen, expected_seen[worker.rank], strict=True)]
        return {"pulls": len(seen), "same": all(same), "end": numpy.array_equal(end, expected_end),
                "moved": numpy.any(end != begin, 1).tolist(), "rounds": rounds,
                "shape": list(seen[0].shape), "name": rows.name, "width": rows.width,
                "difference": float(numpy.abs(end - expected_end).max())}


def like_numpy():
    return _like_numpy("all")


def like_numpy_of_holders():
    return _like_numpy("holders")


def memory():
    """Arrays of the standard library and, where there is PyTorch, tensors."""
    with covey.join() as worker:
        rows = worker.local_rows(_spec(initializer=0.5))
        keys = array.array("q", [5, -1, 5])
        out = array.array("f", bytes(4 * 3 * _WIDTH))
        found = {"is out": rows.pull(keys, out) is out, "first": list(out)}
        rows.step(array.array("f", [1] * 3 * _WIDTH), samples=2)
        try:
            import torch  # pylint: disable=import-outside-toplevel
        except ImportError:
            return found
        tensor = torch.empty(2, _WIDTH)
        same = rows.pull(torch.tensor([5, -1]), tensor) is tensor
        rows.step(torch.ones(2, _WIDTH, requires_grad=True), samples=2)
        then = rows.pull(torch.tensor([5, -1]))
        return {**found, "tensor": same, "tensors": tensor.tolist(), "then": then.tolist(),
                "refused": [_refusal(rows.pull, torch.tensor([5])[:, None].int()),
                            _refusal(rows.step, torch.ones(2, _WIDTH).double())]}


def mistakes():
    """What is said, by what is wrong."""
    with covey.join() as worker:
        said = {
            "contract": _refusal(worker.local_rows, _spec("a", "async", inner_optimizer=None)),
            "no inner": _refusal(worker.local_rows, _spec("b", inner_optimizer=None)),
            "inner": _refusal(worker.local_rows, _spec("b", inner_optimizer=covey.momentum(1))),
            "outer": _refusal(worker.local_rows, _spec("b", optimizer=covey.ftrl(1))),
            "mean": _refusal(worker.local_rows, _spec("b", "async", inner_optimizer=None,
                                                      round_mean="holders")),
            "rows_max": _refusal(worker.local_rows, _spec("c"), rows_max=0),
        }
        rows = worker.local_rows(_spec("c"), rows_max=4)
        keys = _ALL[:4]
        gradient = numpy.ones((4, _WIDTH), numpy.float32)
        bad = gradient.copy()
        bad[2, 1] = numpy.nan
        constant = gradient.copy()
        constant.flags.writeable = False
        before = rows.pull(keys)
        said.update({
            "many": _refusal(rows.pull, _ALL[:5]),
            "size": _refusal(rows.pull, keys, gradient[:3]),
            "keys": _refusal(rows.pull, keys.astype(numpy.int32)),
            "read-only": _refusal(rows.pull, keys, constant),
            "gradient": _refusal(rows.step, gradient[:3]),
            "float64": _refusal(rows.step, gradient.astype(numpy.float64)),
            "nan": _refusal(rows.step, bad),
            "none": _refusal(rows.step, None),
        })
        same = numpy.array_equal(before, rows.pull(keys)) and rows.round == 1
        rows.step(gradient)
        said["after it"] = bool(numpy.all(rows.pull(keys) != before)) and same
        said["no pull"] = _refusal(rows.step, gradient) + _refusal(rows.step, gradient)
        with worker.connect() as client:
            table = client.find_sparse_table("c")
            said["client"] = _refusal(lambda: table.push(keys, gradient).wait())
    said["closed"] = _refusal(rows.pull, keys)
    rows.close()  # again
    return said


def several():
    """A group of two."""
    with covey.join() as worker:
        said = _refusal(worker.local_rows, _spec())
        worker.barrier("said")
        return {"said": said}


def interrupted():
    """The worker of rank 0 waits for a round of the other one, and is interrupted."""
    with covey.join() as worker, worker.connect() as client:
        rows = worker.local_rows(_spec(contract="local:1"))
        seconds = None
        if worker.rank == 0:
            rows.pull(_ALL)
            rows.step(numpy.ones((len(_ALL), _WIDTH), numpy.float32))
            threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
            begin = time.monotonic()
            try:
                rows.pull(_ALL)
            except KeyboardInterrupt:
                rows.round  # the worker is free
                seconds = time.monotonic() - begin
        client.barrier("interrupted", worker.size)
        if worker.rank == 1:
            rows.step(None, samples=0)
        last = rows.pull(_ALL)
        worker.barrier("read")
        return {"seconds": seconds, "last": last.tolist(), "round": rows.round}


def left():
    """As interrupted, and the worker of rank 0 leaves."""
    with covey.connect() as client, covey.join() as worker:
        rows = worker.local_rows(_spec(contract="local:1"))
        worker.barrier("begun")
        seconds = None
        if worker.rank == 0:
            rows.step(None, samples=0)
            threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
            try:
                rows.pull(_ALL)
            except KeyboardInterrupt:
                begin = time.monotonic()
                worker.close()
                seconds = time.monotonic() - begin
        client.barrier("left", 2)
        return {"seconds": seconds}


PROGRAMS = {"like numpy": like_numpy, "like numpy of holders": like_numpy_of_holders,
            "memory": memory, "mistakes": mistakes, "several": several,
            "interrupted": interrupted, "left": left}

print(json.dumps({"rank": os.environ.get("COVEY_RANK"), **PROGRAMS[sys.argv[1]]()}))

# SPDX-License-Identifier: Apache-2.0
"""What each worker of torch_test.py runs, by name; prints one line of JSON."""

import copy
import datetime
import json
import logging
import os
import signal
import sys
import weakref

import on_device
import torch
import torch.distributed as dist

import covey
import covey.torch
from covey.torch import process_group, translation


def _model(seed=1):
    torch.manual_seed(seed)
    return torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1))


def _examples(count=96):
    inputs = torch.randn(count, 4, generator=on_device.generator(7))
    return inputs, inputs.sum(1, keepdim=True)


def _optimizer(model, worker, make=None, **options):
    return covey.torch.DistributedOptimizer(
        (make or _sgd)(model.parameters()), model.named_parameters(), worker=worker,
        **{"contract": "bsp", **options})


def _equal(model, other):
    return all(torch.equal(mine, theirs)
               for mine, theirs in zip(model.parameters(), other.parameters()))


def _refusal(call, *arguments, **options):
    """The name and text of the error that the call ends with."""
    try:
        call(*arguments, **options)
    except Exception as error:  # pylint: disable=broad-except
        return f"{type(error).__name__}: {error}"
    return "accepted"


def _sgd(parameters):
    return torch.optim.SGD(parameters, lr=0.1, momentum=0.9)


def _adamw(parameters):
    return torch.optim.AdamW(parameters, lr=0.01, weight_decay=0.1)


def _adamw_of_two_groups(parameters):
    parameters = list(parameters)
    return torch.optim.AdamW([{"params": parameters[::2], "lr": 0.01},
                              {"params": parameters[1::2], "lr": 0.03}])


def _warmup(optimizer):
    """From a rate of 0 on."""
    return torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: min(1, step / 10))


def like_one_process(make, schedule=None, max_norm=None):
    """Losses of the group, and those of plain PyTorch on all members' examples together."""
    with covey.join() as worker:
        model = _model(seed=worker.rank)
        optimizer = _optimizer(model, worker, make, max_norm=max_norm)
        began_with = [seed for seed in range(worker.size) if _equal(model, _model(seed))]
        alone = _model()
        alone.load_state_dict(model.state_dict())
        plain = make(alone.parameters())
        schedulers = [schedule(optimizer), schedule(plain)] if schedule else []
        inputs, targets = _examples()
        rank, size = worker.group.rank, worker.group.size
        losses, expected, norms, expected_norms = [], [], [], []
        for step in range(30):
            mine = slice(rank + step % 5, None, size)
            optimizer.samples = len(inputs[mine])
            optimizer.zero_grad()
            torch.nn.functional.mse_loss(model(inputs[mine]), targets[mine]).backward()
            optimizer.step()
            every = [i for r in range(size) for i in range(r + step % 5, len(inputs), size)]
            plain.zero_grad()
            torch.nn.functional.mse_loss(alone(inputs[every]), targets[every]).backward()
            if max_norm:
                norms.append(optimizer.gradient_norm)
                expected_norms.append(
                    float(torch.nn.utils.clip_grad_norm_(alone.parameters(), max_norm)))
            plain.step()
            for scheduler in schedulers:
                scheduler.step()
            with torch.no_grad():
                losses.append(torch.nn.functional.mse_loss(model(inputs), targets).item())
                expected.append(torch.nn.functional.mse_loss(alone(inputs), targets).item())
        overlaps = optimizer.overlaps
        optimizer.close()
        return {"losses": losses, "expected": expected, "overlaps": overlaps,
                "began_with": began_with, "norms": norms, "expected_norms": expected_norms}


def rounded():
    """Trains with values that travel as bfloat16."""
    with covey.join() as worker:
        model = _model(seed=worker.rank)
        optimizer = _optimizer(model, worker, _sgd, value_wire="bfloat16")
        refused = _refusal(optimizer.load_state_dict, {})
        inputs, targets = _examples()
        mine = slice(worker.group.rank, None, worker.group.size)
        optimizer.samples = len(inputs[mine])
        losses = []
        for _ in range(30):
            optimizer.zero_grad()
            torch.nn.functional.mse_loss(model(inputs[mine]), targets[mine]).backward()
            optimizer.step()
            with torch.no_grad():
                losses.append(torch.nn.functional.mse_loss(model(inputs), targets).item())
        is_rounded = [torch.equal(values, values.bfloat16().float())
                      for values in model.parameters()]
        optimizer.close()
        return {"losses": losses, "is_rounded": is_rounded, "refused": refused}


def _adasum(gradients):
    """Of the members' gradients of one parameter, by pairs."""
    while len(gradients) > 1:
        joined = []
        for a, b in zip(gradients[::2], gradients[1::2]):
            product = torch.sum(a * b)
            joined.append(a * (1 - product / (2 * torch.sum(a * a)))
                          + b * (1 - product / (2 * torch.sum(b * b))))
        gradients = joined + gradients[2 * len(joined):]
    return gradients[0]


def adasum(make, **options):
    """Distances from plain PyTorch that combines the gradients of all members by itself."""
    with covey.join() as worker:
        model, alone = _model(), _model()
        optimizer = _optimizer(model, worker, make, combine="adasum", samples_per_step=1, **options)
        plain = make(alone.parameters())
        inputs, targets = _examples()
        rank, size = worker.group.rank, worker.group.size
        distances = []
        for step in range(20):
            mine = slice(rank + step % 5, None, size)
            optimizer.zero_grad()
            torch.nn.functional.mse_loss(model(inputs[mine]), targets[mine]).backward()
            optimizer.step()
            gradients = []
            for other in range(size):
                theirs = slice(other + step % 5, None, size)
                loss = torch.nn.functional.mse_loss(alone(inputs[theirs]), targets[theirs])
                gradients.append(torch.autograd.grad(loss, list(alone.parameters())))
            for parameter, each in zip(alone.parameters(), zip(*gradients)):
                parameter.grad = _adasum(list(each))
            plain.step()
            distances.append(max(torch.max(torch.abs(mine - theirs)).item() for mine, theirs
                                 in zip(model.parameters(), alone.parameters())))
        refused = _refusal(_optimizer, _model(), worker, make, combine="sum")
        optimizer.close()
        return {"distances": distances, "refused": refused}


def saved(make):
    """Losses of a group and of a plain optimizer that goes on from the group's state_dict."""
    with covey.join() as worker:
        model = _model()
        optimizer = _optimizer(model, worker, make, samples_per_step=1)
        inputs, targets = _examples()

        def ten_steps(trained, by, mine):
            for _ in range(10):
                by.zero_grad()
                torch.nn.functional.mse_loss(trained(inputs[mine]), targets[mine]).backward()
                by.step()

        def losses():
            with torch.no_grad():
                return [torch.nn.functional.mse_loss(each(inputs), targets).item()
                        for each in (model, alone)]

        rank, size = worker.group.rank, worker.group.size
        optimizer.samples = len(inputs) // size
        empty = optimizer.state_dict()["state"]
        ten_steps(model, optimizer, slice(rank, None, size))
        state = optimizer.state_dict()
        alone = _model()
        alone.load_state_dict(model.state_dict())
        plain = make(alone.parameters())
        plain.load_state_dict(state)
        refused = _refusal(optimizer.load_state_dict, state)
        worker.barrier("saved")
        before = losses()
        ten_steps(model, optimizer, slice(rank, None, size))
        ten_steps(alone, plain, slice(None))
        after = losses()
        optimizer.close()
        return {"empty": len(empty), "before": before, "after": after,
                "kept": sorted(state["state"][0]), "refused": refused,
                "samples": state["samples"]}


def loaded(make, wraps=False):
    """Losses of a plain optimizer, and of a group that goes on from its state.

    The group's state is that of `plain` after 10 steps, and then its own after 10 more.
    """
    with covey.join() as worker:
        inputs, targets = _examples()
        rank, size = worker.group.rank, worker.group.size
        mine = slice(rank, None, size)
        alone = _model()
        plain = make(alone.parameters())

        def ten_steps(trained, by, part=slice(None)):
            for _ in range(10):
                by.zero_grad()
                torch.nn.functional.mse_loss(trained(inputs[part]), targets[part]).backward()
                by.step()

        def loss(trained):
            with torch.no_grad():
                return torch.nn.functional.mse_loss(trained(inputs), targets).item()

        ten_steps(alone, plain)
        losses, samples, kept = [], [], []
        state, values = plain.state_dict(), alone.state_dict()
        for prefix in ("from-plain", "from-covey"):
            model = _model(seed=2)
            fresh = make(model.parameters())
            if wraps:
                model.load_state_dict(values)
                fresh.load_state_dict(state)
            optimizer = covey.torch.DistributedOptimizer(
                fresh, model.named_parameters(), worker=worker, contract="bsp", prefix=prefix,
                samples_per_step=len(inputs) // size)
            if not wraps:
                model.load_state_dict(values)
                optimizer.load_state_dict(state)
            ten_steps(model, optimizer, mine)
            ten_steps(alone, plain)
            losses.append((loss(model), loss(alone)))
            state, values = optimizer.state_dict(), copy.deepcopy(model.state_dict())
            # As a worker that comes later, with older values: training is under way, and the tables
            # stay.
            optimizer.steps_taken = 0
            model.load_state_dict(_model(seed=2).state_dict())
            optimizer.load_state_dict(plain.state_dict())
            kept.append(all(torch.equal(value, values[name])
                            for name, value in model.state_dict().items()))
            samples.append(optimizer.state_dict()["samples"])
            worker.barrier(prefix)
            optimizer.close()
        return {"losses": losses, "samples": samples, "kept": kept}


def not_loaded():
    """What load_state_dict says to states that do not fit."""
    said = {}
    with covey.join() as worker:
        model = _model()
        plain = _adamw(model.parameters())
        _train(model, plain, _examples())
        state = plain.state_dict()
        optimizer = _optimizer(_model(), worker, _adamw, samples_per_step=96)

        def refusal(change):
            other = copy.deepcopy(state)
            change(other)
            return _refusal(optimizer.load_state_dict, other)

        said["shape"] = refusal(lambda it: it["state"][0].update(exp_avg=torch.zeros(3)))
        said["kind"] = refusal(lambda it: it["state"][0].pop("exp_avg_sq"))
        said["option"] = refusal(lambda it: it["param_groups"][0].update(betas=(0.8, 0.9)))
        said["amsgrad"] = refusal(lambda it: it["param_groups"][0].update(amsgrad=True))
        said["groups"] = refusal(lambda it: it["param_groups"][0]["params"].pop())
        said["finite"] = refusal(lambda it: it["state"][0]["exp_avg"].fill_(float("inf")))
        said["step"] = refusal(lambda it: it["state"][0].update(step=torch.tensor(1e30)))
        said["count"] = refusal(lambda it: it.update(samples=-1))
        sgd = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
        said["optimizer"] = _refusal(optimizer.load_state_dict, sgd.state_dict())
        said["unchanged"] = len(optimizer.state_dict()["state"])
        _train(_model(), optimizer, _examples())
        said["late"] = refusal(lambda it: None)
        optimizer.close()
        optimizer = _optimizer(_model(), worker, _adamw, prefix="scheduled", samples_per_step=96,
                               schedule=covey.cosine(9600))
        said["schedule"] = refusal(lambda it: None)
        said["samples"] = refusal(lambda it: it.update(samples=960))
        said["has samples"] = optimizer.state_dict()["samples"]
        optimizer.close()
        bare = _optimizer(_model(), worker, lambda parameters: torch.optim.SGD(parameters, lr=0.1),
                          prefix="bare", samples_per_step=96, schedule=covey.cosine(9600))
        state = torch.optim.SGD(_model().parameters(), lr=0.1).state_dict()
        said["bare"] = _refusal(bare.load_state_dict, state)
        said["bare samples"] = _refusal(bare.load_state_dict, {**state, "samples": 960})
        said["has samples"] += bare.state_dict()["samples"]
        bare.close()
        model = _model()
        optimizer = _optimizer(model, worker, _adamw, prefix="fresh")
        model.load_state_dict(_model(seed=3).state_dict())
        optimizer.load_state_dict(_adamw(model.parameters()).state_dict())
        said["fresh"] = _equal(model, _model(seed=3))
        optimizer.close()
        optimizer = _optimizer(_model(), worker, _adamw, prefix="local", contract="local:2")
        said["local"] = refusal(lambda it: None)
        optimizer.close()
    return said


def iterated():
    """Whether tensors that only an iterator makes live until they are given, and what is read."""
    with covey.join() as worker, worker.connect() as client:
        lives = []

        def values():
            made = []
            for number, name in enumerate("abc"):
                tensor = torch.full((2, 3), float(number), device="cpu")
                made.append(weakref.ref(tensor))
                yield client.create_table(covey.TableSpec(
                    name, (2, 3), contract="async", initializer="given")), tensor
                del tensor
            lives.extend(one() is not None for one in made)

        client.initialize(values())
        read = [client.find_table(name).pull(torch.empty(2, 3, device="cpu")).wait().values for name in "abc"]
        return {"lives": lives, "read": [float(one.sum()) for one in read]}


def mistakes():
    """What the optimizer says to programs that it does not support."""
    said = {}
    with covey.join() as worker:
        make = _optimizer

        def with_torch(factory):
            return lambda: make(_model(), worker, factory, prefix="refused", samples_per_step=1)

        def on_servers(factory):
            return lambda: make(_model(), worker, factory, prefix="refused", samples_per_step=1,
                                update="servers")

        said["adadelta"] = _refusal(on_servers(torch.optim.Adadelta))
        said["amsgrad"] = _refusal(on_servers(lambda p: torch.optim.Adam(p, amsgrad=True)))
        said["lbfgs"] = _refusal(with_torch(torch.optim.LBFGS))
        said["contract of a program"] = _refusal(
            lambda: make(_model(), worker, contract="async", update="program"))
        said["schedule of a program"] = _refusal(
            lambda: make(_model(), worker, schedule=covey.cosine(100), update="program"))
        model = _model()
        said["names"] = _refusal(lambda: covey.torch.DistributedOptimizer(
            torch.optim.SGD(model.parameters(), lr=0.1), [], worker=worker))
        adam = torch.optim.Adam(model.parameters())
        said["decoupled"] = translation.translate(
            adam, {**adam.param_groups[0], "decoupled_weight_decay": True}).kind
        said["double"] = _refusal(lambda: make(_model().double(), worker))
        optimizer = make(model, worker)
        inputs, targets = _examples()

        def backward():
            torch.nn.functional.mse_loss(model(inputs), targets).backward()

        backward()
        said["samples"] = _refusal(optimizer.step)
        optimizer.samples = len(inputs)
        warned = []
        log = logging.getLogger("covey")
        log.addFilter(lambda record: warned.append(record.getMessage()))
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        said["clipped"] = " ".join(warned)
        said["overlaps after clipping"] = optimizer.overlaps
        said["copy"] = _refusal(__import__("copy").deepcopy, optimizer)
        optimizer._overlaps = True
        backward()
        said["gradient that has left"] = str(model[0].weight.grad.reshape(-1)[0].item())
        said["zero_grad"] = _refusal(optimizer.zero_grad)
        said["twice"] = _refusal(backward)
        optimizer.step()
        backward()
        optimizer.param_groups[0]["lr"] = 0.5
        said["rate"] = _refusal(optimizer.step)
        optimizer.param_groups[0].update(lr=0.1, momentum=0.8)
        said["momentum"] = _refusal(optimizer.step)
        optimizer.param_groups[0]["momentum"] = 0.9
        optimizer.found_inf = torch.tensor(0.0)
        said["scaler"] = _refusal(optimizer.step)
        del optimizer.found_inf
        optimizer.step()
        optimizer.close()
        said["schedule of local"] = _refusal(
            make, _model(), worker, contract="local:2", schedule=covey.cosine(100))
        optimizer = make(_model(), worker, prefix="scheduled", samples_per_step=96,
                         schedule=covey.cosine(9600))
        optimizer.param_groups[0]["lr"] = 0.5
        said["two schedules"] = _refusal(optimizer.step)
        optimizer.close()
    return said


def _train(model, optimizer, batch):
    inputs, targets = batch
    optimizer.zero_grad()
    torch.nn.functional.mse_loss(model(inputs), targets).backward()
    optimizer.step()


def left_out():
    """Steps in which members have no examples, beside plain PyTorch, which makes them without."""
    with covey.join() as worker:
        model, alone = _model(), _model()
        optimizer = _optimizer(model, worker, _adamw)
        plain = _adamw(alone.parameters())
        inputs, targets = _examples()
        halves = [(inputs[part], targets[part]) for part in (slice(0, 48), slice(48, 96))]
        distances = []
        for without in ((), (), (0, 1), (1,), (0, 1), (0, 1), (), (0,), ()):
            optimizer.samples = 0 if worker.group.rank in without else 48
            _train(model, optimizer, halves[worker.group.rank])
            there = [halves[rank] for rank in (0, 1) if rank not in without]
            if there:
                _train(alone, plain, [torch.cat(parts) for parts in zip(*there)])
            distances.append(max((mine - theirs).abs().max().item()
                                 for mine, theirs in zip(model.parameters(), alone.parameters())))
        optimizer.close()
        return {"distances": distances}


def scaler():
    """As left_out, but a GradScaler finds that gradients are not finite."""
    if not hasattr(torch.amp, "GradScaler"):
        return {"skipped": f"PyTorch {torch.__version__} has no GradScaler for the CPU"}
    with covey.join() as worker:
        model, alone = _model(), _model()
        optimizer = _optimizer(model, worker, _adamw, samples_per_step=48)
        plain = _adamw(alone.parameters())
        scale = torch.amp.GradScaler(on_device.DEVICE, init_scale=1024.0)
        inputs, targets = _examples()
        halves = [(inputs[part], targets[part]) for part in (slice(0, 48), slice(48, 96))]
        distances = []
        for without in ((), (1,), (), (0, 1), ()):
            mine, wanted = halves[worker.group.rank]
            optimizer.zero_grad()
            scale.scale(torch.nn.functional.mse_loss(model(mine), wanted)).backward()
            if worker.group.rank in without:
                model[0].weight.grad[0, 0] = float("inf")
            scale.step(optimizer)
            scale.update()
            there = [halves[rank] for rank in (0, 1) if rank not in without]
            if there:
                _train(alone, plain, [torch.cat(parts) for parts in zip(*there)])
            distances.append(max((mine - theirs).abs().max().item()
                                 for mine, theirs in zip(model.parameters(), alone.parameters())))
        optimizer.close()
        return {"distances": distances, "scale": scale.get_scale(), "overlaps": optimizer.overlaps}


def of_two_bytes():
    """Distances between parameters of 16 bits and those of a plain optimizer over float32 copies of
    them, whose steps are too small for 16 bits, and how far both have come."""
    with covey.join() as worker:
        model, start = _model().to(torch.bfloat16), _model().to(torch.bfloat16)
        alone = copy.deepcopy(model)
        optimizer = _optimizer(model, worker, lambda parameters: torch.optim.SGD(parameters, lr=1e-3))
        masters = [one.detach().float().requires_grad_() for one in alone.parameters()]
        plain = torch.optim.SGD(masters, lr=1e-3)
        inputs, targets = _examples()

        def backward(trained, part):
            # In float32: PyTorch 1.13 has no mse_loss of bfloat16 on the CPU.
            outputs = trained(inputs[part].to(torch.bfloat16)).float()
            torch.nn.functional.mse_loss(outputs, targets[part]).backward()

        optimizer.samples = len(inputs) // worker.group.size
        mine = slice(worker.group.rank, None, worker.group.size)
        for _ in range(60):
            optimizer.zero_grad()
            backward(model, mine)
            optimizer.step()
            alone.zero_grad()
            backward(alone, slice(None))
            for one, master in zip(alone.parameters(), masters):
                master.grad = one.grad.float()
            plain.step()
            with torch.no_grad():
                for one, master in zip(alone.parameters(), masters):
                    one.copy_(master)
        optimizer.close()
        ends, began = _weights(model), _weights(start)
        return {"overlaps": optimizer.overlaps, "types": str(model[0].weight.dtype),
                "distances": [abs(a - b) for a, b in zip(ends, _weights(alone))],
                "ways": [abs(a - b) for a, b in zip(ends, began)]}


def accumulation():
    """Two backward passes per step are one with both batches."""
    with covey.join() as worker:
        results = []
        for accumulate in (1, 2):
            model = _model()
            optimizer = _optimizer(model, worker, prefix=f"by-{accumulate}", accumulate=accumulate,
                                   samples_per_step=96)
            inputs, targets = _examples()
            for _ in range(4):
                for part in range(accumulate):
                    mine = slice(part, None, accumulate)
                    loss = torch.nn.functional.mse_loss(model(inputs[mine]), targets[mine])
                    (loss / accumulate).backward()
                optimizer.step()
            results.append(model[0].weight.detach().reshape(-1)[:4].tolist())
            optimizer.close()
        return {"once": results[0], "twice": results[1]}


def loader():
    """Which examples this worker was given: in two passes, and in one that it has left early."""
    with covey.join() as worker:
        model = _model()
        optimizer = _optimizer(model, worker, contract="buffered")
        inputs, targets = _examples()
        data = torch.utils.data.TensorDataset(inputs, targets, torch.arange(len(inputs)))

        def train(batches, until=None):
            seen = []
            for some, wanted, numbers in batches:
                optimizer.zero_grad()
                torch.nn.functional.mse_loss(model(some), wanted).backward()
                optimizer.step()
                seen += numbers.tolist()
                if until is not None and len(seen) >= until:
                    break
            return seen

        batches = covey.torch.ElasticLoader(data, optimizer, batch_size=8, item_examples=4, passes=2)
        # Otherwise a group could begin in the second pass, when the others have finished the first.
        numbers, passes = [batches.pass_number == 0], []
        worker.barrier("opened")
        for number in range(batches.pass_number, 2):
            numbers.append(batches.pass_number == number)
            passes.append(train(batches))
        after = train(batches)
        numbers.append(batches.pass_number == 2)
        # Others could finish the pass that this worker has left.
        if worker.size == 1:
            left = covey.torch.ElasticLoader(data, optimizer, batch_size=8, name="left")
            passes.append(train(left, until=1) + train(left))
            numbers.append(left.pass_number == 1)
        worker.barrier("trained")
        optimizer.close()
        return {"passes": passes, "after": after, "numbers": numbers}


def _process_group():
    rank, size = int(os.environ["COVEY_RANK"]), int(sys.argv[2])
    dist.init_process_group("covey", rank=rank, world_size=size,
                            init_method=f"file://{sys.argv[3]}")
    return rank, size


def backend():
    """The collectives of torch.distributed."""
    rank, size = _process_group()
    summed = torch.full((5,), rank + 1.0)
    dist.all_reduce(summed)
    numbers = torch.tensor([2**40 + rank, -rank])
    dist.broadcast(numbers, 1)
    largest = torch.tensor([rank])
    dist.all_reduce(largest, op=dist.ReduceOp.MAX)
    gathered = [torch.zeros(3, dtype=torch.int32) for _ in range(size)]
    dist.all_gather(gathered, torch.full((3,), rank, dtype=torch.int32))
    halves = torch.full((3,), 1.0, dtype=torch.float64)
    dist.all_reduce(halves, async_op=True).wait()
    combined = [torch.tensor([3 * rank - 2, 2], dtype=dtype) for dtype in
                (torch.float64, torch.int64, torch.int16, torch.float32)]
    dist.all_reduce(combined[0], op=dist.ReduceOp.PRODUCT)
    dist.all_reduce(combined[1], op=dist.ReduceOp.MIN)
    dist.all_reduce(combined[2], op=dist.ReduceOp.MAX)
    dist.all_reduce(combined[3], op=dist.ReduceOp.PRODUCT)
    smallest = torch.zeros(2, dtype=torch.int32)
    dist.reduce_scatter(smallest, [torch.full((2,), i + rank, dtype=torch.int32)
                                   for i in range(size)], op=dist.ReduceOp.MIN)
    columns = torch.full((2, 3), rank, dtype=torch.int64).t()  # not contiguous
    dist.all_reduce(columns)
    part = torch.zeros(2)
    dist.reduce_scatter(part, [torch.full((2,), float(i)) for i in range(size)])
    together = [torch.zeros(2) for _ in range(size)] if rank == 1 else None
    dist.gather(torch.full((2,), float(rank)), together, 1)
    own = torch.zeros(2, dtype=torch.int64)
    dist.scatter(own, [torch.full((2,), i) for i in range(size)] if rank == 1 else None, 1)
    # Member i sends i + j + 1 elements to member j.
    counts = [rank + other + 1 for other in range(size)]
    received = torch.zeros(sum(counts))
    dist.all_to_all_single(received, 100.0 * rank + torch.arange(sum(counts)), counts, counts)
    objects = [None] * size
    dist.all_gather_object(objects, {"rank": rank}, group=dist.new_group(list(range(size))))
    # As new_group() of some members, after which PyTorch lets the others wait for these.
    refused = _refusal(dist.send, own, (rank + 1) % size) + _refusal(
        process_group.create, None, 0, size - 1, datetime.timedelta(0))
    flag = torch.tensor([rank == 0])
    dist.broadcast(flag, 0)
    at_root = torch.tensor([1.0])
    dist.reduce(at_root, 0)
    dist.barrier()
    dist.destroy_process_group()
    return {"sum": summed.tolist(), "numbers": numbers.tolist(), "largest": largest.item(),
            "combined": [one.tolist() for one in combined], "smallest": smallest.tolist(),
            "columns": columns.tolist(),
            "gathered": [one[2].item() for one in gathered], "halves": halves[0].item(),
            "part": part.tolist(), "flag": flag.item(),
            "together": together and [one.tolist() for one in together], "own": own.tolist(),
            "received": received.tolist(), "objects": [one["rank"] for one in objects],
            "refused": refused, "root": at_root.item()}


def backend_in_int8():
    os.environ["COVEY_COLLECTIVE_WIRE"] = "int8"
    return backend()


def own_state():
    """A plain optimizer's state, saved and loaded while each member makes the updates itself."""
    with covey.join() as worker:
        model = _model(seed=worker.rank)
        optimizer = _optimizer(model, worker, torch.optim.RMSprop)
        inputs, targets = _examples()
        mine = slice(worker.group.rank, None, worker.group.size)
        optimizer.samples = len(inputs[mine])
        for _ in range(5):
            _train(model, optimizer, (inputs[mine], targets[mine]))
        weights = copy.deepcopy(model.state_dict())
        state = copy.deepcopy(optimizer.state_dict())
        ends = []
        for _ in range(2):
            for _ in range(5):
                _train(model, optimizer, (inputs[mine], targets[mine]))
            ends.append(_weights(model))
            model.load_state_dict(weights)
            optimizer.load_state_dict(state)
        # Also after it was loaded, the rate is that of the program.
        optimizer.param_groups[0]["lr"] = 0.0
        _train(model, optimizer, (inputs[mine], targets[mine]))
        stays = _equal_weights(model, weights)
        plain = torch.optim.RMSprop(_model().parameters())
        plain.load_state_dict(state)
        # No member has examples: nothing changes.
        optimizer.param_groups[0]["lr"] = 0.1
        optimizer.samples = 0
        steps = int(optimizer.state_dict()["state"][0]["step"])
        _train(model, optimizer, (inputs[mine], targets[mine]))
        rests = (_equal_weights(model, weights)
                 and steps == int(optimizer.state_dict()["state"][0]["step"]))
        optimizer.close()
        return {"ends": ends, "stays": stays, "kept": sorted(state["state"][0]), "rests": rests}


def _weights(model):
    return [value for one in model.parameters() for value in one.detach().reshape(-1).tolist()]


def _equal_weights(model, weights):
    return all(torch.equal(one, weights[name]) for name, one in model.state_dict().items())


def killed():
    """A member dies in backward(), when some of its gradients have left; the others go on."""
    with covey.join() as worker:
        model = _model(seed=worker.rank)
        optimizer = _optimizer(model, worker,
                               lambda parameters: torch.optim.Adadelta(parameters, lr=10))
        inputs, targets = _examples()
        losses = []
        for step in range(30):
            mine = slice(worker.rank, None, worker.size)
            optimizer.samples = len(inputs[mine])
            if step == 10 and worker.rank == 1:
                # The last layer's gradients have left, and the first one's come next.
                model[1].register_forward_hook(lambda _, given, result: result.register_hook(
                    lambda _: os.kill(os.getpid(), signal.SIGKILL)))
            _train(model, optimizer, (inputs[mine], targets[mine]))
            with torch.no_grad():
                losses.append(torch.nn.functional.mse_loss(model(inputs), targets).item())
        optimizer.close()
        return {"losses": losses, "weights": _weights(model)}


def parallel(hooked):
    """DistributedDataParallel with the backend, or with gloo and the hook."""
    if hooked:
        dist.init_process_group("gloo", rank=int(os.environ["COVEY_RANK"]),
                                world_size=int(sys.argv[2]),
                                init_method=f"file://{sys.argv[3]}")
    else:
        _process_group()
    model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.BatchNorm1d(8),
                                torch.nn.Linear(8, 1))
    torch.manual_seed(dist.get_rank())
    model = torch.nn.parallel.DistributedDataParallel(model)
    worker = None
    if hooked:
        worker = covey.join()
        model.register_comm_hook(worker, covey.torch.ddp_hook)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    inputs, targets = _examples()
    for _ in range(6):
        mine = torch.randint(len(inputs), (16,))
        optimizer.zero_grad()
        torch.nn.functional.mse_loss(model(inputs[mine]), targets[mine]).backward()
        optimizer.step()
    weights = [value for one in model.parameters() for value in one.detach().reshape(-1).tolist()]
    dist.barrier()
    dist.destroy_process_group()
    if worker is not None:
        covey.torch.sync_buffers(model, worker)
        worker.close()
    return {"weights": weights}


PROGRAMS = {
    "sgd": lambda: like_one_process(_sgd),
    "adam": lambda: like_one_process(lambda parameters: torch.optim.Adam(parameters, lr=0.01)),
    "adamw": lambda: like_one_process(_adamw),
    "clipped": lambda: like_one_process(_sgd, max_norm=0.5),
    "adasum": lambda: adasum(_sgd), "adasum_program": lambda: adasum(_sgd, update="program"),
    "adadelta": lambda: like_one_process(
        lambda parameters: torch.optim.Adadelta(parameters, lr=10)),
    "rmsprop": lambda: like_one_process(
        lambda parameters: torch.optim.RMSprop(parameters, lr=0.01),
        lambda optimizer: torch.optim.lr_scheduler.StepLR(optimizer, 7, 0.5)),
    "rmsprop_clipped": lambda: like_one_process(
        lambda parameters: torch.optim.RMSprop(parameters, lr=0.01, momentum=0.5), max_norm=0.5),
    "amsgrad": lambda: like_one_process(
        lambda parameters: torch.optim.Adam(parameters, lr=0.03, amsgrad=True)),
    "own_state": own_state, "killed": killed, "rounded": rounded,
    "warmup": lambda: like_one_process(_adamw_of_two_groups, _warmup),
    "steps": lambda: like_one_process(
        _sgd, lambda optimizer: torch.optim.lr_scheduler.StepLR(optimizer, 7, 0.5)),
    "saved": lambda: saved(lambda parameters: torch.optim.Adam(parameters, lr=0.03)),
    "saved_momentum": lambda: saved(_sgd),
    "loaded": lambda: loaded(_adamw), "loaded_momentum": lambda: loaded(_sgd),
    "loaded_adagrad": lambda: loaded(lambda parameters: torch.optim.Adagrad(parameters, lr=0.1)),
    "loaded_before": lambda: loaded(_adamw, wraps=True), "not_loaded": not_loaded,
    "left_out": left_out, "scaler": scaler, "mistakes": mistakes, "iterated": iterated,
    "of_two_bytes": of_two_bytes, "accumulation": accumulation, "loader": loader, "backend": backend,
    "backend_in_int8": backend_in_int8,
    "ddp": lambda: parallel(False), "hook": lambda: parallel(True),
}

torch.set_num_threads(1)
print(json.dumps({"rank": os.environ.get("COVEY_RANK"), **PROGRAMS[sys.argv[1]]()}))

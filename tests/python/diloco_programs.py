# SPDX-License-Identifier: Apache-2.0
"""What each worker of diloco_test.py runs, by name; prints one line of JSON."""

import json
import os
import sys
import time

import on_device
import torch

import covey
import covey.torch

_ROUNDS = 8
_STEPS = 4


def _model():
    torch.manual_seed(1)
    return torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1))


def _batch(rank, step):
    """Other examples, and another number of them, for each worker."""
    inputs = torch.randn(8 + 8 * rank, 4, generator=on_device.generator(100 * rank + step))
    return inputs, inputs.sum(1, keepdim=True)


def _train(model, optimizer, rank, step):
    inputs, targets = _batch(rank, step)
    optimizer.zero_grad()
    loss = torch.nn.functional.mse_loss(model(inputs), targets)
    loss.backward()
    optimizer.step()
    return len(inputs)


def _weights(model):
    return torch.cat([one.detach().reshape(-1) for one in model.parameters()])


def _loss(model):
    inputs, targets = _batch(9, 0)
    with torch.no_grad():
        return torch.nn.functional.mse_loss(model(inputs), targets).item()


def _sgd(parameters):
    return torch.optim.SGD(parameters, lr=0.1)


def _adam(parameters):
    return torch.optim.Adam(parameters, lr=0.05)


def alone(make):
    """One worker whose outer optimizer adopts its values is plain PyTorch."""
    with covey.join() as worker:
        model, plain_model = _model(), _model()
        optimizer = covey.torch.LocalSGD(make(model.parameters()), model.named_parameters(),
                                         worker=worker, sync_every=_STEPS, samples_per_step=8)
        plain_model.load_state_dict(model.state_dict())
        plain = make(plain_model.parameters())
        schedules = [torch.optim.lr_scheduler.StepLR(one, 6, 0.5) for one in (optimizer, plain)]
        distances = []
        for step in range(_ROUNDS * _STEPS):
            _train(model, optimizer, 0, step)
            _train(plain_model, plain, 0, step)
            for schedule in schedules:
                schedule.step()
            distances.append((_weights(model) - _weights(plain_model)).abs().max().item())
        rates = [one.param_groups[0]["lr"] for one in (optimizer, plain)]
        steps = optimizer.steps_taken
        optimizer.load_state_dict(optimizer.state_dict())
        optimizer.param_groups[0]["lr"] = 0.0  # of the optimizer that makes the steps, also now
        before = _weights(model)
        _train(model, optimizer, 0, 0)
        result = {"distance": max(distances), "rates": rates, "state": len(optimizer.state),
                  "steps": steps, "moved": (_weights(model) - before).abs().max().item()}
        optimizer.close()
        return result


def together(**options):
    """All workers, and the same rounds in one process."""
    with covey.join() as worker:
        model = _model()
        optimizer = covey.torch.DiLoCo(_adam(model.parameters()), model.named_parameters(),
                                       worker=worker, sync_every=_STEPS,
                                       outer=covey.nesterov(0.7, 0.5), **options)
        outer_model = _model()
        outer_model.load_state_dict(model.state_dict())
        outer = torch.optim.SGD(outer_model.parameters(), lr=0.7, momentum=0.5, nesterov=True)
        replicas = [_model() for _ in range(worker.size)]
        local = [_adam(replica.parameters()) for replica in replicas]
        first, distances = _loss(model), []
        for number in range(_ROUNDS):
            for step in range(number * _STEPS, (number + 1) * _STEPS):
                optimizer.samples = len(_batch(worker.rank, step)[0])
                _train(model, optimizer, worker.rank, step)
            mean, total = torch.zeros_like(_weights(outer_model)), 0
            for rank, (replica, own) in enumerate(zip(replicas, local)):
                replica.load_state_dict(outer_model.state_dict())
                samples = sum(_train(replica, own, rank, step)
                              for step in range(number * _STEPS, (number + 1) * _STEPS))
                mean += samples * (_weights(outer_model) - _weights(replica))
                total += samples
            offset = 0
            for parameter in outer_model.parameters():
                part = mean[offset:offset + parameter.numel()] / total
                parameter.grad = part.reshape(parameter.shape)
                offset += parameter.numel()
            outer.step()
            distances.append((_weights(model) - _weights(outer_model)).abs().max().item())
        result = {"distance": max(distances), "weights": _weights(model).tolist(),
                  "losses": [first, _loss(model)], "group": worker.group.id}
        optimizer.close()
        return result


def loader(dies=False):
    """Which examples this worker was given in two passes, and the weights after each.

    With `dies` the second worker ends after its first step, whose round has not ended.
    """
    with covey.join() as worker:
        model = _model().to(torch.bfloat16)
        optimizer = covey.torch.LocalSGD(_sgd(model.parameters()), model.named_parameters(),
                                         worker=worker, sync_every=5)
        inputs = torch.randn(96, 4, generator=on_device.generator(7)).to(torch.bfloat16)
        data = torch.utils.data.TensorDataset(inputs, inputs.sum(1, keepdim=True),
                                              torch.arange(len(inputs)))
        batches = covey.torch.ElasticLoader(data, optimizer, batch_size=8, item_examples=4)
        if dies and worker.rank == 0:
            time.sleep(1)  # so that there are examples for the other worker
        passes, weights, unsynced = [], [], 0
        for _ in range(2):
            seen = []
            for some, wanted, numbers in batches:
                if dies and (worker.rank, optimizer.steps_taken) == (1, 1):
                    print(json.dumps({"rank": 1}), flush=True)
                    os._exit(0)
                optimizer.zero_grad()
                (model(some) - wanted).square().mean().backward()
                optimizer.step()
                seen += numbers.tolist()
            unsynced += optimizer.unsynced_steps
            passes.append(seen)
            weights.append(_weights(model).tolist())
        worker.barrier("trained")
        optimizer.close()
        return {"passes": passes, "weights": weights, "unsynced": unsynced}


def leaves():
    """The second worker ends within a round; the first one goes on."""
    with covey.join() as worker:
        model = _model()
        optimizer = covey.torch.DiLoCo(_adam(model.parameters()), model.named_parameters(),
                                       worker=worker, sync_every=_STEPS, samples_per_step=8,
                                       outer=covey.nesterov(0.7, 0.5))
        losses = [_loss(model)]
        for step in range(_ROUNDS * _STEPS):
            if worker.rank == 1 and step == _STEPS + 2:
                print(json.dumps({"rank": 1}), flush=True)
                os._exit(0)
            _train(model, optimizer, worker.rank, step)
        losses.append(_loss(model))
        optimizer.close()
        return {"losses": losses}


def mistakes():
    said = {}
    with covey.join() as worker:
        model = _model()

        def refusal(**options):
            try:
                covey.torch.DiLoCo(_sgd(model.parameters()), model.named_parameters(), worker=worker,
                                   **{"sync_every": 2, **options})
            except ValueError as error:
                return str(error)
            return "accepted"

        said["sync_every"] = refusal(sync_every=0)
        said["contract"] = refusal(contract="local:8")
        said["quorum"] = refusal(quorum=2, contract="async")
        optimizer = covey.torch.DiLoCo(_sgd(model.parameters()), model.named_parameters(),
                                       worker=worker, sync_every=2)
        for name, call in (("samples", optimizer.step),
                           ("group", lambda: optimizer.add_param_group({"params": []})),
                           ("outer", lambda: covey.torch.LocalSGD(
                               _sgd(model.parameters()), model.named_parameters(), worker=worker,
                               sync_every=2, outer=covey.sgd(0.5)))):
            try:
                call()
            except ValueError as error:
                said[name] = str(error)
        optimizer.close()
    return said


PROGRAMS = {
    "sgd": lambda: alone(_sgd), "adam": lambda: alone(_adam), "together": together,
    "quorum": lambda: together(quorum=2, grace=5.0), "loader": loader, "loader, death": lambda: loader(dies=True), "leaves": leaves,
    "mistakes": mistakes,
}

torch.set_num_threads(1)
print(json.dumps({"rank": os.environ.get("COVEY_RANK"), **PROGRAMS[sys.argv[1]]()}))

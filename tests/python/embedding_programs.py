# SPDX-License-Identifier: Apache-2.0
"""What each worker of embedding_test.py runs, by name; prints one line of JSON."""

import copy
import json
import os
import pathlib
import pickle
import signal
import sys
import time

import on_device
import torch

import covey
import covey.torch

_WIDTH = 4
_KEYS = 30  # 0 to 29, so that PyTorch's embeddings have them, too
_PADDING = 7


def _spec(name, optimizer=None, **given):
    return covey.SparseTableSpec(name, _WIDTH, optimizer or covey.sgd(0.5), **{
        "contract": "async", "initializer": covey.normal(0, 1), **given})


def _plain_of(embedding, kind=torch.nn.Embedding, **given):
    """That of PyTorch, with the rows of now."""
    return kind.from_pretrained(embedding.rows(torch.arange(_KEYS)), freeze=False, **given)


def _keys(seed, *shape):
    """With repeats."""
    return torch.randint(_KEYS, shape, generator=on_device.generator(seed))


def _distance(embedding, plain, but=()):
    """The largest one between the rows of both."""
    keys = torch.tensor([key for key in range(_KEYS) if key not in but])
    return (embedding.rows(keys) - plain.weight.detach()[keys]).abs().max().item()


def _version(table):
    keys = torch.zeros(1, dtype=torch.int64, device="cpu")
    return table.pull(keys, torch.empty(1, _WIDTH, device="cpu")).wait().version


def _refusal(call, *arguments, **options):
    """The name and text of the error that the call ends with."""
    try:
        call(*arguments, **options)
    except Exception as error:  # pylint: disable=broad-except
        return f"{type(error).__name__}: {error}"
    return "accepted"


def _server():
    """The process of the server that `covey run` has started beside this one."""
    parent = pathlib.Path(f"/proc/{os.getppid()}/task/{os.getppid()}/children")
    return next(pid for pid in map(int, parent.read_text().split())
                if pathlib.Path(f"/proc/{pid}/comm").read_text() == "covey_server\n")


def _stop(process):
    """Returns when all its threads stand: on a busy machine they serve on for a while."""
    os.kill(process, signal.SIGSTOP)
    tasks = pathlib.Path(f"/proc/{process}/task")
    while any("\nState:\tT" not in (task / "status").read_text() for task in tasks.iterdir()):
        time.sleep(0.001)


class _Classifier(torch.nn.Module):
    def __init__(self, embedding):
        super().__init__()
        torch.manual_seed(3)
        self.embedding = embedding
        self.head = torch.nn.Sequential(torch.nn.Linear(_WIDTH, 8), torch.nn.Tanh(),
                                        torch.nn.Linear(8, 1))

    def forward(self, keys):
        return self.head(self.embedding(keys).sum(1))


def _loss(model, keys):
    return torch.nn.functional.mse_loss(model(keys), (keys % 3).float().mean(1, keepdim=True))


def _dense(parameters):
    return torch.optim.SGD(parameters, lr=0.05, momentum=0.9)


def like_one_process(server_side, plain_side, contract="async"):
    """Losses and rows of a group, and those of plain PyTorch on all members' examples together."""
    with covey.join() as worker, worker.connect() as client:
        table = client.create_sparse_table(_spec("words", server_side, contract=contract))
        model = _Classifier(covey.torch.Embedding(_WIDTH, table, padding_key=_PADDING))
        optimizer = covey.torch.DistributedOptimizer(
            _dense(model.parameters()), model.named_parameters(), worker=worker, contract="bsp",
            embeddings=model.modules())
        alone = _Classifier(torch.nn.Embedding(_KEYS, _WIDTH, padding_idx=_PADDING, sparse=True))
        with torch.no_grad():
            alone.embedding.weight.copy_(model.embedding.rows(torch.arange(_KEYS)))
            alone.embedding.weight[_PADDING] = 0
        plain = [_dense(alone.head.parameters()), plain_side(alone.embedding.parameters())]
        padding = model.embedding.rows(torch.tensor(_PADDING))
        leaves_last = []
        push = optimizer._embeddings.step

        def watched():
            leaves_last.append([slot.submitted for slot in optimizer._slots])
            push()

        optimizer._embeddings.step = watched
        worker.barrier("begun")
        losses, expected = [], []
        for step in range(40):
            batches = [_keys(100 * step + rank, 8 + 8 * rank, 5) for rank in range(worker.size)]
            mine = batches[worker.group.rank]
            optimizer.samples = len(mine)
            optimizer.zero_grad()
            _loss(model, mine).backward()
            optimizer.step()
            for each in plain:
                each.zero_grad()
            loss = _loss(alone, torch.cat(batches))
            loss.backward()
            for each in plain:
                each.step()
            with torch.no_grad():
                losses.append(_loss(model, torch.cat(batches)).item())
                expected.append(_loss(alone, torch.cat(batches)).item())
            # The others' next step would change what is read here.
            worker.group.barrier().wait()
        distance = _distance(model.embedding, alone.embedding, but=[_PADDING])
        version = _version(table)
        stays = torch.equal(padding, model.embedding.rows(torch.tensor(_PADDING)))
        saved = list(model.state_dict())
        worker.barrier("read")
        optimizer.close()
        return {"losses": losses, "expected": expected, "distance": distance, "saved": saved,
                "submitted": leaves_last[-1], "version": version, "padding stays": stays}


def bags():
    """Distances to PyTorch's outputs, and of the gradients that arrived at the rows."""
    found = {}
    keys = _keys(1, 12)
    square = _keys(2, 4, 3)
    weights = torch.rand(12, generator=on_device.generator(3))
    offsets = torch.tensor([0, 0, 5, 5, 9, 12])  # three bags are empty
    with covey.join() as worker, worker.connect() as client:
        for mode in ("sum", "mean", "max"):
            for padding in (None, int(keys[1])):
                for about, last, given in (
                        ("offsets", False, (keys, offsets)), ("last offset", True, (keys, offsets)),
                        ("rows", False, (square,)), ("weights", False, (keys, offsets, weights))):
                    if about == "weights" and mode != "sum":
                        continue
                    name = f"{mode}-{about}-{padding}".replace(" ", "-")
                    bag = covey.torch.EmbeddingBag(
                        _WIDTH, client.create_sparse_table(_spec(name, covey.sgd(1.0))), mode=mode,
                        padding_key=padding, include_last_offset=last)
                    plain = _plain_of(bag, torch.nn.EmbeddingBag, mode=mode, padding_idx=padding,
                                      include_last_offset=last)
                    optimizer = covey.torch.EmbeddingOptimizer([bag], samples_per_step=4)
                    outputs = bag(*given), plain(*given)
                    for output in outputs:
                        (output * torch.arange(output.numel()).view(output.shape)).mean().backward()
                    optimizer.step()
                    torch.optim.SGD(plain.parameters(), lr=1.0).step()
                    found[name] = [(outputs[0] - outputs[1]).abs().max().item(),
                                   _distance(bag, plain)]
        empty = covey.torch.EmbeddingBag(_WIDTH, client.create_sparse_table(_spec("empty")))
        optimizer = covey.torch.EmbeddingOptimizer([empty], samples_per_step=4)
        output = empty(torch.empty(0, dtype=torch.int64), torch.tensor([0, 0]))
        output.sum().backward()
        optimizer.step()
        optimizer.step()  # without a use
        return {"found": found, "empty": output.tolist(), "empty version": _version(empty.table)}


def uses():
    """What differs from PyTorch, and the number of updates, for each way to use modules."""
    found = {}
    with covey.join() as worker, worker.connect() as client:
        def compare(about, run, versions, two=False):
            table = client.create_sparse_table(_spec(about.replace(" ", "-"), covey.sgd(0.3)))
            first = covey.torch.Embedding(_WIDTH, table)
            # Found again, it is another object over the same table.
            second = (covey.torch.Embedding(_WIDTH, client.find_sparse_table(table.name)) if two
                      else first)
            plain = _plain_of(first)
            # Both modules share a table, as one module of PyTorch that is used twice.
            optimizer = covey.torch.EmbeddingOptimizer([first, second], samples_per_step=4)
            run(first, second, optimizer)
            run(plain, plain, torch.optim.SGD(plain.parameters(), lr=0.3))
            found[about] = [_distance(first, plain), _version(table) - versions]

        def loss(module, seed):
            return (module(_keys(seed, 6)) ** 2).mean()

        def once(first, second, optimizer):
            for seed in range(3):
                optimizer.zero_grad()
                loss(first, seed).backward()
                optimizer.step()

        def accumulated(first, second, optimizer):
            for step in range(3):
                optimizer.zero_grad()
                for part in range(2):
                    (loss(first, 2 * step + part) / 2).backward()
                optimizer.step()

        def twice(first, second, optimizer):
            for step in range(3):
                optimizer.zero_grad()
                (loss(first, step) + loss(second, step + 1)).backward()
                optimizer.step()

        def retained(first, second, optimizer):
            optimizer.zero_grad()
            value = loss(first, 1)
            value.backward(retain_graph=True)
            value.backward()
            optimizer.step()

        def dropped(first, second, optimizer):
            loss(first, 1)  # its backward never comes
            loss(first, 2).backward()
            optimizer.zero_grad()
            loss(first, 3).backward()
            optimizer.step()

        def without_gradient(first, second, optimizer):
            with torch.no_grad():
                loss(first, 1)
            optimizer.zero_grad()
            loss(first, 2).backward()
            optimizer.step()

        compare("once", once, 3)
        compare("accumulated", accumulated, 3)
        compare("twice", twice, 3)
        compare("two modules", twice, 3, two=True)
        compare("retained", retained, 1)
        compare("dropped", dropped, 1)
        compare("without gradient", without_gradient, 1)

        table = client.create_sparse_table(_spec("evaluated"))
        module = covey.torch.Embedding(_WIDTH, table).eval()
        needs = [module(_keys(1, 2)).requires_grad, module.train()(_keys(1, 2)).requires_grad]
        wide = torch.tensor([-1, -2**63, 2**63 - 1])
        signed = covey.torch.Embedding(_WIDTH, table, padding_key=2**64 - 1)(wide)
        module = covey.torch.Embedding(_WIDTH, table, padding_key=1)
        everything = module(torch.tensor([[1, 1], [1, 1]], dtype=torch.int32))
        return {"found": found, "needs": needs, "padding": signed.abs().sum(1).tolist(),
                "nothing": everything.abs().sum().item(), "shape": list(everything.shape),
                "looks": torch.equal(module.rows(_keys(1, 2)), module(_keys(1, 2)))}


def prefetched():
    """Whether rows of a prefetch are as those of a plain read."""
    with covey.join() as worker, worker.connect() as client, worker.connect() as other:
        table = client.create_sparse_table(_spec("rows"))
        module = covey.torch.Embedding(_WIDTH, table)
        same_table = covey.torch.Embedding(_WIDTH, client.find_sparse_table("rows"))
        optimizer = covey.torch.EmbeddingOptimizer([module], samples_per_step=4)
        ahead, now = torch.tensor([1, 2, 3, 2]), torch.tensor([2, 5])
        found = {}

        def train(trained):
            (trained(now) ** 2).mean().backward()
            optimizer.step()

        for about, trained in (("own", module), ("of another module", same_table)):
            before = module.rows(ahead)
            module.prefetch(ahead)
            module._prefetched[0]._handle.wait()
            train(trained)
            with torch.no_grad():
                read = module(ahead)
            found[about] = [torch.equal(read, module.rows(ahead)), torch.equal(read, before),
                            not module._prefetched]

        before = module.rows(ahead)
        module.prefetch(ahead)
        module._prefetched[0]._handle.wait()
        other.find_sparse_table("rows").push(
            ahead.cpu(), torch.ones(4, _WIDTH, device="cpu")).wait()
        train(module)
        with torch.no_grad():
            module(now)  # other keys than those that are prefetched
            read, later = module(ahead), module(ahead)
        found["of others"] = [torch.equal(read[[0, 2]], before[[0, 2]]),
                              torch.equal(read[1], later[1]),
                              torch.equal(later, module.rows(ahead))]

        # Trains as without: gradients of prefetched rows are pushed as well.
        plain = _plain_of(module)
        by = torch.optim.SGD(plain.parameters(), lr=0.5)
        taken = 0
        for step in range(20):
            module.prefetch(_keys(step + 1, 8))
            kept = len(module._prefetched)
            for one, each in ((module, optimizer), (plain, by)):
                each.zero_grad()
                (one(_keys(step, 8)) ** 2).mean().backward()
                each.step()
            taken += kept - len(module._prefetched)
        found["trained"], found["taken"] = _distance(module, plain), taken
        for seed in range(9):
            module.prefetch(_keys(seed, 8))
        found["kept"] = len(module._prefetched)
        return found


def collection():
    """Rows and outputs beside PyTorch's, of features that share a table, and pulls per forward()."""
    found = {}
    offsets = torch.tensor([0, 3, 3, 5])
    with covey.join() as worker, worker.connect() as client:
        users, items = (client.create_sparse_table(_spec(name, covey.sgd(0.3)))
                        for name in ("users", "items"))
        bag = covey.torch.EmbeddingBag(_WIDTH, items, mode="sum")
        ours = covey.torch.EmbeddingBagCollection({
            "user": covey.torch.Embedding(_WIDTH, users, padding_key=_PADDING),
            "bought": bag, "wished": bag,
            "seen": covey.torch.EmbeddingBag(_WIDTH, items, mode="mean")})
        user = _plain_of(ours.embeddings["user"], padding_idx=_PADDING)
        plain = _plain_of(bag, torch.nn.EmbeddingBag, mode="sum")
        mean = torch.nn.EmbeddingBag(_KEYS, _WIDTH, mode="mean")
        mean.weight = plain.weight
        optimizer = covey.torch.EmbeddingOptimizer(ours.modules(), samples_per_step=4)
        by = torch.optim.SGD([user.weight, plain.weight], lr=0.3)
        calls = []
        pull_many = client.pull_many
        client.pull_many = lambda asked, out: calls.append(len(asked)) or pull_many(asked, out)

        def features(step):
            return {"user": _keys(4 * step, 4), "bought": (_keys(4 * step + 1, 6), offsets),
                    "wished": (_keys(4 * step + 2, 6), offsets, torch.full((6,), 0.5)),
                    "seen": _keys(4 * step + 3, 4, 2), "unused": None}

        def expected(given):
            return {"user": user(given["user"]), "bought": plain(*given["bought"]),
                    "wished": plain(given["wished"][0], given["wished"][1],
                                    per_sample_weights=given["wished"][2]),
                    "seen": mean(given["seen"])}

        distances = []
        for step in range(10):
            given = features(step)
            if step % 2:
                ours.prefetch(given)
            outputs = ours(given), expected(given)
            distances.append(max((outputs[0][name] - output).abs().max().item()
                                 for name, output in outputs[1].items()))
            for output, each in zip(outputs, (optimizer, by)):
                each.zero_grad()
                sum((part ** 2).mean() for part in output.values()).backward()
                each.step()
        found["outputs"] = max(distances)
        found["names"] = list(ours(features(0)))
        found["calls"] = list(calls)
        found["rows"] = [_distance(ours.embeddings["user"], user, but=[_PADDING]),
                         _distance(bag, plain)]
        found["updates"] = [_version(users), _version(items)]
        found["saved"] = list(ours.state_dict())
        found["missing"] = _refusal(ours, {"user": _keys(1, 4)})
        found["module"] = _refusal(covey.torch.EmbeddingBagCollection,
                                   {"user": torch.nn.Embedding(2, 2)})
        found["weights"] = _refusal(ours, {**features(0), "seen": (
            _keys(1, 6), offsets, torch.ones(6))})
        return found


def mistakes():
    """What is said to each of them."""
    said = {}
    with covey.join() as worker, worker.connect() as client:
        table = client.create_sparse_table(_spec("rows"))
        embedding, bag = covey.torch.Embedding, covey.torch.EmbeddingBag
        keys = torch.tensor([1, 2])
        said["missing"] = _refusal(client.find_sparse_table, "none")
        said["width"] = _refusal(embedding, 8, table)
        said["table"] = _refusal(embedding, 8, "rows")
        said["max_norm"] = _refusal(embedding, _WIDTH, table, max_norm=1.0)
        said["padding_idx"] = _refusal(bag, _WIDTH, table, padding_idx=1)
        said["mode"] = _refusal(bag, _WIDTH, table, mode="min")
        said["padding_key"] = _refusal(embedding, _WIDTH, table, padding_key=2**64)
        module = embedding(_WIDTH, table)
        said["no optimizer"] = _refusal(lambda: module(keys).sum().backward())
        said["floats"] = _refusal(module, keys.float())
        said["list"] = _refusal(module, [1, 2])
        said["weights"] = _refusal(bag(_WIDTH, table), keys, torch.tensor([0]), torch.ones(2))
        said["copy"] = _refusal(copy.deepcopy, module)
        said["pickle"] = _refusal(pickle.dumps, module)
        optimizer = covey.torch.EmbeddingOptimizer([torch.nn.Tanh(), module])
        said["samples"] = _refusal(optimizer.step)
        optimizer.samples = 4

        def push(trained, scale=1.0):
            (trained(keys) * scale).sum().backward()
            optimizer.step()

        said["infinite"] = _refusal(push, module, float("inf"))
        said["after it"] = _refusal(push, module)
        synchronous = embedding(_WIDTH, client.create_sparse_table(_spec("bsp", contract="bsp")))
        optimizer = covey.torch.EmbeddingOptimizer([synchronous], samples_per_step=4)
        said["bsp"] = _refusal(push, synchronous)
        rounds = embedding(_WIDTH, client.create_sparse_table(_spec(
            "local", covey.sgd(1), contract="local:2", inner_optimizer=covey.sgd(0.5))))
        optimizer = covey.torch.EmbeddingOptimizer([rounds], samples_per_step=4)
        said["local"] = _refusal(push, rounds)
        keys = torch.arange(1000)  # more than servers have shards
        refusing = embedding(_WIDTH, client.create_sparse_table(_spec("refusing", rows_max=1)))
        optimizer = covey.torch.EmbeddingOptimizer([refusing], samples_per_step=4)
        said["full"] = _refusal(push, refusing)
        full = embedding(_WIDTH, client.create_sparse_table(
            _spec("full", rows_max=1, when_full="skip")))
        optimizer = covey.torch.EmbeddingOptimizer([full], samples_per_step=4)
        push(full)
        said["rows refused"] = optimizer.rows_refused
        model = torch.nn.Linear(_WIDTH, 1)
        dense = covey.torch.DistributedOptimizer(
            _dense(model.parameters()), model.named_parameters(), worker=worker, contract="bsp",
            embeddings=[module], samples_per_step=1)
        dense.found_inf = torch.zeros(1)
        said["scaler"] = _refusal(dense.step)
        dense.close()
        client.drop_table("rows")
        # Servers learn of it with their next view.
        for _ in range(100):
            said["dropped"] = _refusal(module, keys)
            if said["dropped"] != "accepted":
                break
            time.sleep(0.1)
        with worker.connect(timeout=0.3) as hurried:
            module = embedding(_WIDTH, hurried.find_sparse_table("full"))
            server = _server()
            _stop(server)
            said["deadline"] = _refusal(module, keys)
            os.kill(server, signal.SIGCONT)
            said["after the deadline"] = _refusal(module, keys)
    return said


def loader():
    """Steps of ElasticLoader, where members may be without examples; two pushes are an update."""
    with covey.join() as worker, worker.connect() as client:
        table = client.create_sparse_table(_spec("words", covey.adagrad(0.1),
                                                 contract=f"buffered:{worker.size}"))
        model = _Classifier(covey.torch.Embedding(_WIDTH, table))
        optimizer = covey.torch.DistributedOptimizer(
            _dense(model.parameters()), model.named_parameters(), worker=worker, contract="bsp",
            embeddings=[model.embedding])
        examples = _keys(5, 203, 5)
        batches = covey.torch.ElasticLoader(torch.utils.data.TensorDataset(examples), optimizer,
                                            batch_size=16, passes=4)
        with torch.no_grad():
            before = _loss(model, examples).item()
        trained = pushes = 0
        for _ in range(4):
            for keys, in batches:
                optimizer.zero_grad()
                _loss(model, keys).backward()
                optimizer.step()
                trained += len(keys)
                pushes += 1
        counts = torch.tensor([trained, pushes], device="cpu")
        worker.group.all_reduce(counts).wait()
        optimizer.refresh()
        worker.barrier("trained")
        with torch.no_grad():
            after = _loss(model, examples).item()
        version = _version(table)
        worker.barrier("read")
        optimizer.close()
        return {"before": before, "after": after, "trained": int(counts[0]),
                "pushes": int(counts[1]), "version": version}


def _sgd(contract):
    return like_one_process(
        covey.sgd(0.5), lambda parameters: torch.optim.SGD(parameters, lr=0.5), contract)


PROGRAMS = {
    "sgd": lambda: _sgd("async"), "ssp": lambda: _sgd("ssp:1"), "groups": lambda: _sgd("buffered"),
    "adagrad": lambda: like_one_process(
        covey.adagrad(0.1), lambda parameters: torch.optim.Adagrad(parameters, lr=0.1)),
    "buffered": lambda: like_one_process(
        covey.adagrad(0.1), lambda parameters: torch.optim.Adagrad(parameters, lr=0.1),
        contract="buffered:2"),
    "bags": bags, "uses": uses, "collection": collection, "prefetched": prefetched, "mistakes": mistakes, "loader": loader,
}

torch.set_num_threads(1)
print(json.dumps({"rank": os.environ.get("COVEY_RANK"), **PROGRAMS[sys.argv[1]]()}))

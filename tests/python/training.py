# SPDX-License-Identifier: Apache-2.0
"""What each worker of worker_test.py runs; prints one line of JSON."""

import array
import json
import os
import signal
import sys
import time

import covey


def floats(value, count):
    return array.array("f", [value] * count)


def collectives(worker):
    group = worker.group
    summed = floats(group.rank + 1, 1000)
    group.all_reduce(summed).wait()
    many = [floats(1, 5), floats(2, 3)]
    group.all_reduce(many).wait()
    sent = floats(group.rank, 4)
    group.broadcast(sent, 1).wait()
    scattered = floats(1, group.size)
    group.reduce_scatter(scattered).wait()
    gathered = floats(group.rank, group.size)
    group.all_gather(gathered).wait()
    typed = typed_collectives(group)
    group.barrier().wait()
    group.refresh()
    return {"typed": typed, "sum": summed[0], "many": [many[0][0], many[1][0]], "sent": sent[0],
            "scattered": scattered[group.rank], "gathered": list(gathered)}


def typed_collectives(group):
    """Results of elements of other types than float32, and refusals."""
    rank, size = group.rank, group.size
    results = []
    for type_, op in (("d", "sum"), ("q", "product"), ("i", "max"), ("f", "min")):
        data = array.array(type_, [rank + 2, 10 * (size - rank)])
        group.all_reduce(data, op).wait()
        results.append(list(data))
    scattered = array.array("q", [2 ** 40 + rank] * size)
    group.reduce_scatter(scattered).wait()
    results.append(scattered[rank])
    # Larger parts first: two elements for rank 0.
    gathered = array.array("q", [2 ** 50 + rank] * (size + 1))
    group.all_gather(gathered).wait()
    results.append([value - 2 ** 50 for value in gathered])
    letters = bytearray(f"{rank}", "ascii") * size
    group.all_gather(letters).wait()
    results.append(letters.decode())
    sent = bytearray(f"from {rank}", "ascii")
    group.broadcast(sent, 2).wait()
    results.append(sent.decode())
    # An input may be read-only, and stays as it is.
    constant = array.array("i", [rank + 1] * size).tobytes()
    total = array.array("i", [0] * size)
    group.all_reduce(memoryview(constant).cast("i"), "product", out=total).wait()
    part = array.array("i", [0] * size)
    group.reduce_scatter(memoryview(constant).cast("i"), out=part).wait()
    results.append([total[0], part[rank], constant[0]])
    refused = []
    for call in (lambda: group.all_reduce(bytearray(4)),
                 lambda: group.all_reduce(array.array("h", [1])),
                 lambda: group.all_reduce(array.array("d", [1]), "mean"),
                 lambda: group.all_reduce([floats(1, 1)], "max"),
                 lambda: group.all_reduce(array.array("d", [1]), wire="float16").wait(),
                 lambda: group.all_gather(bytearray(size + 1)),
                 lambda: group.broadcast(b"constant"),
                 lambda: group.all_reduce(floats(1, 2), out=array.array("i", [0, 0])),
                 lambda: group.all_reduce(floats(1, 2), out=floats(1, 3)),
                 lambda: group.all_reduce([floats(1, 2)], out=floats(1, 2))):
        try:
            call()
        except (TypeError, ValueError, covey.CoveyError) as error:
            refused.append(f"{type(error).__name__}: {error}")
    return {"results": results, "refused": refused}


def survivors(worker):
    """The last member dies; the others repeat the collective that failed, whose input they still
    have."""
    group = worker.group
    mine, total = floats(group.rank + 1, 100_000), floats(0, 100_000)
    group.all_reduce(mine, out=total).wait()
    result = {"before": total[0], "refused": 0}
    if group.rank == group.size - 1:
        os.kill(os.getpid(), signal.SIGKILL)
    while "after" not in result:
        try:
            group.all_reduce(mine, out=total).wait()
            result["after"] = total[0]
        except (covey.Unavailable, covey.FailedPrecondition):
            result["refused"] += 1
            time.sleep(0.05)
            group.refresh()
    return {**result, "mine": [min(mine), max(mine)]}


def steps(worker):
    """Every example of two passes counts once in the sum of "count", whoever trains it."""
    count, weights = floats(0, 1), floats(0, 9)
    step = covey.Step(worker, [
        (covey.TableSpec("count", (1,), covey.sgd(1.0), "async"), count),
        (covey.TableSpec("weights", (3, 3), covey.sgd(1.0), "async"), weights)])
    source = covey.DataSource(worker, "digits", examples=100, passes=2, item_examples=4)
    trained = 0
    while True:
        batch = source.take(step.samples_for(10))
        if source.done and source.meet_at_end(step):
            break
        step.begin(len(batch))
        step.submit(1, floats(-1, 9))
        step.submit(0, floats(-1, 1))
        step.wait(0)
        step.wait(1, timeout=30)
        step.report(0.5 if len(batch) else None)
        trained += len(batch)
        source.finish(1)
    step.finish()
    worker.barrier("end")
    step.refresh()
    result = {"trained": trained, "finished": source.examples_finished, "weights": weights[0],
              "steps": step.number}
    source.close()
    step.close()
    return result


def adasum(worker):
    """Members have gradients that are orthogonal in one table, and equal in the other."""
    apart, alike = floats(0, worker.size), floats(0, 2)
    step = covey.Step(worker, [
        (covey.TableSpec("apart", (worker.size,), covey.sgd(1.0), "bsp"), apart),
        (covey.TableSpec("alike", (2,), covey.sgd(1.0), "bsp"), alike)], combine="adasum")
    mine = floats(0, worker.size)
    mine[worker.rank] = -4
    for _ in range(3):
        step.begin(1 + worker.rank)
        step.submit(1, floats(-2, 2))
        step.submit(0, mine)
        step.wait(0)
        step.wait(1)
    try:
        refused = str(covey.Step(worker, [], combine="sum"))
    except ValueError as error:
        refused = str(error)
    worker.barrier("end")
    step.close()
    return {"apart": list(apart), "alike": list(alike), "refused": refused}


def passes(worker):
    """The members of a group end each pass after the same step, with all its examples trained."""
    count = floats(0, 1)
    step = covey.Step(worker, [
        (covey.TableSpec("count", (1,), covey.sgd(1.0), "async"), count)])
    source = covey.DataSource(worker, "digits", examples=100, passes=3, item_examples=4,
                              at_pass_end="meet")
    refused = []
    for call in (source.next_pass,
                 lambda: covey.DataSource(worker, "other", examples=1, at_pass_end="stop")):
        try:
            call()
        except (covey.InvalidArgument, ValueError) as error:
            refused.append(str(error))
    trained, ends = 0, []
    goes_on = True
    while goes_on:
        while True:
            batch = source.take(step.samples_for(10))
            if source.done and source.meet_at_end(step):
                break
            # The sum over the members, of which a step applies the mean.
            step.begin(1)
            step.submit(0, floats(-len(batch) * worker.group.size, 1))
            step.wait(0)
            trained += len(batch)
            source.finish(0)
        ends.append([source.pass_number, step.number, count[0]])
        goes_on = source.next_pass()
    result = {"trained": trained, "ends": ends, "refused": refused, "pass": source.pass_number}
    worker.barrier("end")
    step.close()
    return result  # the worker closes the source


_TIMEOUT = 5.0  # of a step of `away`


def away(worker):
    """Rank 0 evaluates for longer than the other's step may take; both train on."""
    count = floats(0, 1)
    step = covey.Step(worker, [(covey.TableSpec("count", (1,), covey.sgd(1.0), "bsp"), count)])

    def train():
        step.begin(1)
        step.submit(0, floats(-1, 1))
        step.wait(0)

    def seen():
        nodes = client.status()["nodes"]
        return [node["away"]["reason"] for node in nodes if "away" in node]

    result = {}
    train()
    if worker.rank == 0:
        with covey.connect() as client:
            with worker.away("evaluation", at_most=60):
                over = time.monotonic() + 1.6 * _TIMEOUT
                while time.monotonic() < over:
                    if not result:
                        result = {"away": reason for reason in seen()}
                    time.sleep(0.1)  # This is the evaluation.
            train()
            give_up = time.monotonic() + 60
            while seen() and time.monotonic() < give_up:
                time.sleep(0.1)
            result["away_in_the_end"] = seen()
    else:
        train()
    for reason, at_most in (("", 1), ("evaluation", 0), ("evaluation", 3601)):
        try:
            with worker.away(reason, at_most):
                pass
        except covey.InvalidArgument:
            result["refused"] = result.get("refused", 0) + 1
    step.finish()
    worker.barrier("end")
    step.close()
    return {"count": count[0], "size_now": worker.group.size, **result}


def main():
    settings = {"timeout": _TIMEOUT} if sys.argv[1] == "away" else {}
    with covey.join(**settings) as worker:
        run = {"collectives": collectives, "survivors": survivors, "steps": steps, "passes": passes,
               "adasum": adasum, "away": away}[sys.argv[1]]
        result = {"rank": worker.rank, "size": worker.size, "groups": worker.groups, **run(worker)}
    print(json.dumps(result))


main()

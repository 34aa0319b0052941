# SPDX-License-Identifier: Apache-2.0
"""What each worker of worker_test.py runs; prints one line of JSON."""

import array
import json
import sys

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
    group.barrier().wait()
    group.refresh()
    return {"sum": summed[0], "many": [many[0][0], many[1][0]], "sent": sent[0],
            "scattered": scattered[group.rank], "gathered": list(gathered)}


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


def main():
    with covey.join() as worker:
        result = {"rank": worker.rank, "size": worker.size, "groups": worker.groups,
                  **{"collectives": collectives, "steps": steps}[sys.argv[1]](worker)}
    print(json.dumps(result))


main()

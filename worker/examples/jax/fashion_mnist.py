# SPDX-License-Identifier: Apache-2.0
"""Trains a perceptron on Fashion-MNIST in groups of workers, with JAX.

    covey run --servers 2 --groups 2 --workers 2 -- python3 fashion_mnist.py

JAX computes gradients; the optimizer runs on Covey's servers. Gradients leave in JAX's own memory,
without a copy. New values arrive in NumPy arrays, of which JAX gets a copy: a step writes to them
while JAX may still read the old ones.
"""

import argparse
import gzip
import pathlib

import jax
import jax.numpy as jnp
import numpy

import covey

SHAPES = {"hidden/weight": (784, 256), "hidden/bias": (256,), "out/weight": (256, 10),
          "out/bias": (10,)}


def read(folder, name, header):
    """The bytes of one of the data set's four files, after its header."""
    with gzip.open(pathlib.Path(folder) / name) as file:
        return numpy.frombuffer(file.read(), numpy.uint8, offset=header)


def dataset(folder, part):
    images = read(folder, f"{part}-images-idx3-ubyte.gz", 16).reshape(-1, 784)
    labels = read(folder, f"{part}-labels-idx1-ubyte.gz", 8)
    return images.astype(numpy.float32) / 255, labels.astype(numpy.int32)


def scores(model, images):
    hidden = jax.nn.relu(images @ model["hidden/weight"] + model["hidden/bias"])
    return hidden @ model["out/weight"] + model["out/bias"]


def mean_loss(model, images, labels, weights):
    chosen = jnp.take_along_axis(jax.nn.log_softmax(scores(model, images)), labels[:, None], 1)
    return -(weights @ chosen[:, 0]) / weights.sum()


def tables(arguments, examples):
    """A table per array, and where its values arrive."""
    for name, shape in SHAPES.items():
        bound = SHAPES[name.replace("bias", "weight")][0] ** -0.5
        spec = covey.TableSpec(
            f"model/{name}", shape, covey.nesterov(0.1, 0.9), arguments.contract,
            schedule=covey.cosine(arguments.epochs * examples),
            initializer=covey.uniform(-bound, bound, len(name)))
        yield spec, numpy.zeros(shape, numpy.float32)


def main():
    options = argparse.ArgumentParser(description="Trains on Fashion-MNIST in groups of workers.")
    options.add_argument("--data", default="/usr/share/datasets/fashion-mnist")
    options.add_argument("--epochs", type=int, default=12)
    options.add_argument("--batch", type=int, default=64, help="examples per worker and step")
    options.add_argument("--contract", default="buffered", help="bsp, ssp:2, async, buffered")
    arguments = options.parse_args()

    images, labels = dataset(arguments.data, "train")
    gradient_of = jax.jit(jax.value_and_grad(mean_loss))
    nothing = {name: numpy.zeros(shape, numpy.float32) for name, shape in SHAPES.items()}
    with covey.join() as worker:
        tensors = list(tables(arguments, len(images)))
        values = {name: memory for name, (_, memory) in zip(SHAPES, tensors)}
        step = covey.Step(worker, tensors)
        source = covey.DataSource(worker, "train", examples=len(images), passes=arguments.epochs,
                                  item_examples=arguments.batch, seed=1)
        loss = None
        while True:
            batch = source.take(step.samples_for(arguments.batch * worker.group.size))
            if source.done and source.meet_at_end(step):
                break
            gradients = nothing  # a member without examples still takes part in the step
            if len(batch):
                # jit compiles once per shape: a batch is filled up with examples that do not count.
                rows = numpy.resize(batch, -(-len(batch) // arguments.batch) * arguments.batch)
                weights = (numpy.arange(len(rows)) < len(batch)).astype(numpy.float32)
                model = {name: jnp.array(memory) for name, memory in values.items()}
                loss, gradients = gradient_of(model, images[rows], labels[rows], weights)
            step.begin(len(batch))
            for number, name in reversed(list(enumerate(SHAPES))):
                step.submit(number, numpy.asarray(gradients[name]))
            for number in range(len(SHAPES)):
                step.wait(number)
            step.report(float(loss) if len(batch) else None)
            source.finish(0)
        step.finish()
        worker.barrier("trained", timeout=300)
        step.refresh()
        if worker.rank == 0:
            images, labels = dataset(arguments.data, "t10k")
            right = numpy.asarray(scores(values, images)).argmax(1) == labels
            print(f"loss {float(loss):.4f}\ntest_accuracy {right.mean():.4f}", flush=True)
        source.close()
        step.close()


main()

# SPDX-License-Identifier: Apache-2.0
"""A finite but wild gradient does not spoil a table that has a gate, and its producer is named."""

import json
import subprocess

import numpy

import covey
from tests import report
from tests.process import cluster, program

_N = 200
_PRODUCERS = 8
_WILD = 3
_CALM_STEPS = 12
_STEPS = 24


class NormGateTest(cluster.ProcessTest):
    def setUp(self):
        super().setUp()
        # Two servers, and tables of several shards.
        self.cluster = cluster.Cluster(self, servers=2, workers=1)
        self.producers = [self.connect() for _ in range(_PRODUCERS)]
        self.random = numpy.random.default_rng(7)
        self.target = self.normal(_N)

    def connect(self):
        client = covey.connect(self.cluster.address, job=cluster.JOB, timeout=30)
        self.addCleanup(client.close)
        return client

    def normal(self, *shape):
        return self.random.standard_normal(shape).astype(numpy.float32)

    def spec(self, name, gate):
        return covey.TableSpec(name, (_N,), covey.sgd(0.02), "async", norm_gate=gate,
                               extra={"shard_bytes": 256})

    def train(self, spec, steps=range(_STEPS), wild=range(_CALM_STEPS, _STEPS)):
        """Least squares, by all producers in turn; returns the losses after each step, and how
        many pushes of the wild producer and of others were not applied."""
        tables = [producer.create_table(spec) for producer in self.producers]
        losses, kept_out = [], [0, 0]
        for step in steps:
            for number, table in enumerate(tables):
                values = table.pull().wait().values
                gradient = values - self.target + 0.1 * self.normal(_N)
                is_wild = number == _WILD and step in wild
                result = table.push(gradient * numpy.float32(1e4 if is_wild else 1)).wait()
                kept_out[is_wild] += result.discarded
            values = tables[0].pull().wait().values.astype(float)
            losses.append(float(numpy.mean((values - self.target) ** 2)))
        return losses, kept_out

    def quarantined(self):
        summary = self.cluster.status()["summary"]
        return {each["producer"]: each for each in summary["quarantined"]}

    def command(self, *arguments):
        return subprocess.run([cluster.COVEY, *arguments, "--scheduler", self.cluster.address],
                              capture_output=True, text=True, timeout=program.PATIENCE_SECONDS)

    def test_a_wild_producer_costs_nearly_nothing(self):
        calm = numpy.array(self.train(self.spec("calm", None), wild=())[0])
        ungated, kept_out = self.train(self.spec("ungated", None))
        self.assertEqual([0, 0], kept_out)
        gated, kept_out = self.train(self.spec("gated", covey.norm_gate(20)))
        self.assertEqual([0, _STEPS - _CALM_STEPS], kept_out)
        spike = max(ungated) - max(calm[_CALM_STEPS:])
        self.assertGreater(spike, 1)
        self.assertLess(max(gated[_CALM_STEPS:]) - max(calm[_CALM_STEPS:]), 0.05 * spike)

    def test_a_wild_producer_is_named_quarantined_and_released(self):
        spec = self.spec("gated", covey.norm_gate(20, quarantine_after=5))
        self.train(spec)
        program.await_true(self.quarantined, "a producer in quarantine")
        name = f"client-{_WILD}"
        self.assertEqual([name], list(self.quarantined()))
        self.assertIn("in a row beyond the gate of table 'gated'",
                      self.quarantined()[name]["reason"])
        text = self.command("status").stdout
        self.assertIn(name, text)
        # What it pushes is not applied, though it is ordinary again.
        _, kept_out = self.train(spec, steps=range(2), wild=())
        self.assertEqual([2, 0], kept_out)
        released = self.command("quarantine", name, "--release")
        self.assertEqual(0, released.returncode, released.stderr)
        program.await_true(lambda: self.train(spec, steps=range(1), wild=())[1] == [0, 0],
                           "pushes that are applied again")
        self.assertEqual({}, self.quarantined())
        # By hand, and by a name that nobody has.
        self.assertEqual(0, self.command("quarantine", name, "--reason", "bad memory").returncode)
        self.assertIn("bad memory", json.dumps(self.quarantined()[name]))
        nobody = self.command("quarantine", "client-77")
        self.assertNotEqual(0, nobody.returncode)
        self.assertIn("client-77", nobody.stderr)


if __name__ == "__main__":
    report.main()

# SPDX-License-Identifier: Apache-2.0
"""Two racks behind slow uplinks: the bytes that cross them, and the time that this takes."""


from tests import report
from tests.process import cluster, network, network_cluster

_MBIT = 10**6
_RACK_BITS = 400 * _MBIT
# A tenth: machines within a rack are connected faster than racks.
_UPLINK_BITS = 40 * _MBIT
_RACKS, _NODES = 2, 4

_TENSORS, _TENSOR_KIB = 4, 64
_MODEL_BYTES = _TENSORS * _TENSOR_KIB * 1024


class HybridTrafficTest(cluster.ProcessTest):
    """Bytes that each rack sends to the servers, and receives from them, per additional step."""

    def uplink_bytes(self, groups, steps):
        """For each rack, bytes that (left, reached) it during a run."""
        racks = network.Racks(self, _RACKS, _NODES, _RACK_BITS, _UPLINK_BITS)
        run = network_cluster.NetworkCluster(
            self, racks.outside, racks.nodes, groups,
            labels=network_cluster.rack_labels(racks.racks))
        run.start(cluster.SYNTHETIC, "--tensors", _TENSORS, "--tensor-kib", _TENSOR_KIB,
                  "--steps", steps, "--milliseconds-per-sample", 0)
        [result] = run.finish()
        self.assertLess(result["distance"], 1)
        used = racks.uplink_bytes()
        racks.close()
        return used

    def bytes_per_step(self, groups):
        """For each rack (left, reached), without a run's costs besides its steps."""
        few, many = 5, 35
        before, after = self.uplink_bytes(groups, few), self.uplink_bytes(groups, many)
        return [tuple((last - first) / (many - few) for first, last in zip(*rack))
                for rack in zip(before, after)]

    def test_a_group_sends_its_gradient_once_however_many_members_it_has(self):
        for left, reached in self.bytes_per_step(groups=_RACKS):
            print(f"one group per rack: {left / _MODEL_BYTES:.3f} models left per step, "
                  f"{reached / _MODEL_BYTES:.3f} reached")
            self.assertAlmostEqual(1, left / _MODEL_BYTES, delta=0.05)
            self.assertAlmostEqual(1, reached / _MODEL_BYTES, delta=0.05)

    def test_groups_of_one_send_it_each(self):
        """Without this the test above would prove nothing."""
        for left, reached in self.bytes_per_step(groups=_RACKS * _NODES):
            print(f"four groups per rack: {left / _MODEL_BYTES:.3f} models left per step, "
                  f"{reached / _MODEL_BYTES:.3f} reached")
            self.assertAlmostEqual(_NODES, left / _MODEL_BYTES, delta=0.05 * _NODES)
            self.assertAlmostEqual(_NODES, reached / _MODEL_BYTES, delta=0.05 * _NODES)


class HierarchicalTest(cluster.ProcessTest):
    """One group over both racks. The cost of an all-reduce on the uplinks, relative to its data."""

    _BYTES, _REPETITIONS = 4 << 20, 3

    def cost(self, collective, ordered=True):
        """(bytes that leave rack 0, relative to the data; seconds) of an all-reduce. Not `ordered`:
        a ring goes from rack to rack at every hop, because no node knows its rack."""
        racks = network.Racks(self, _RACKS, _NODES, _RACK_BITS, _UPLINK_BITS)
        nodes, labels = racks.nodes, network_cluster.rack_labels(racks.racks)
        if not ordered:
            nodes = [node for column in zip(*racks.racks) for node in column]
            labels = [f"site/hall/host-{index:02}" for index in range(len(nodes))]
        run = network_cluster.NetworkCluster(self, racks.outside, nodes, groups=1, labels=labels)
        run.start(cluster.ALL_REDUCE, "--bytes", self._BYTES, "--repetitions", self._REPETITIONS,
                  "--collective", collective)
        # The cost of the rendezvous and the warm-up does not count.
        run.workers[0].await_line("^warm")
        before = racks.uplink_bytes()[0][0]
        [result] = run.finish(180)
        self.assertEqual(0, result["error_max"])
        times = (racks.uplink_bytes()[0][0] - before) / self._REPETITIONS / self._BYTES
        racks.close()
        print(f"{collective}, {'racks known' if ordered else 'racks not known'}: {times:.3f} times "
              f"the data leave a rack, {result['seconds']:.2f} s for 4 MiB", flush=True)
        return times, result["seconds"]

    def test_racks_are_left_once(self):
        members = _RACKS * _NODES
        hierarchical, hierarchical_seconds = self.cost("hierarchical")
        self.assertAlmostEqual(2 * (_RACKS - 1) / _RACKS, hierarchical, delta=0.05)
        # A ring through one rack after another has one hop out of each.
        ring, ring_seconds = self.cost("ring")
        self.assertAlmostEqual(2 * (members - 1) / members, ring, delta=0.05 * ring)
        # A ring that alternates between racks has one hop per member.
        naive, naive_seconds = self.cost("ring", ordered=False)
        self.assertAlmostEqual(_NODES * 2 * (members - 1) / members, naive, delta=0.05 * naive)
        if report.speeds_count():
            self.assertGreater(ring_seconds / hierarchical_seconds, 1.2)
            self.assertGreater(naive_seconds / hierarchical_seconds, 2)


class MultiRingTest(cluster.ProcessTest):
    """Five machines with a dedicated link per pair: a ring uses a quarter of the links."""

    _NODES, _LINK_BITS, _BYTES = 5, 60 * _MBIT, 4 << 20

    def all_reduce(self, collective):
        """(seconds, links that carried a fair part of all four rings)."""
        mesh = network.Mesh(self, self._NODES, self._LINK_BITS)
        run = network_cluster.NetworkCluster(self, mesh.outside, mesh.nodes, groups=1)
        run.start(cluster.ALL_REDUCE, "--bytes", self._BYTES, "--repetitions", 3,
                  "--collective", collective)
        [result] = run.finish(180)
        self.assertEqual(0, result["error_max"])
        used = sum(sent > self._BYTES for sent in mesh.link_bytes().values())
        mesh.close()
        print(f"{collective}: {result['seconds']:.3f} s for 4 MiB over {used} links", flush=True)
        return result["seconds"], used

    def test_uses_all_links_at_once(self):
        ring_seconds, ring_links = self.all_reduce("ring")
        seconds, links = self.all_reduce("multi-ring")
        self.assertEqual(self._NODES, ring_links)
        self.assertEqual(self._NODES * (self._NODES - 1), links)
        if report.speeds_count():
            self.assertGreater(ring_seconds / seconds, 1.5)


class ThreeTiersTest(cluster.ProcessTest):
    """One group on hosts in racks in zones. Each tier has a quarter of the bandwidth below it."""

    _SHAPE = (2, 2, 2)
    _BITS = (40 * _MBIT, 160 * _MBIT, 640 * _MBIT)
    _BYTES, _REPETITIONS = 8 << 20, 3

    def all_reduce(self, collective, ordered=True):
        """(result of an all-reduce, for each tier the most bytes that left one of its domains,
        relative to the data). Not `ordered`: a ring goes from zone to zone at every hop, because
        no node knows its place."""
        zones = network.Zones(self, self._SHAPE, self._BITS)
        nodes, labels = zones.nodes, zones.labels
        if not ordered:
            half = len(nodes) // 2
            nodes = [node for pair in zip(nodes[:half], nodes[half:]) for node in pair]
            labels = [f"site/hall/host-{index}" for index in range(len(nodes))]
        run = network_cluster.NetworkCluster(self, zones.outside, nodes, groups=1, labels=labels)
        run.start(cluster.ALL_REDUCE, "--bytes", self._BYTES, "--repetitions", self._REPETITIONS,
                  "--collective", collective)
        # The costs of the rendezvous and the warm-up do not count.
        run.workers[0].await_line("^warm")
        before = zones.uplink_bytes()
        [result] = run.finish(240)
        self.assertEqual(0, result["error_max"])
        times = [max(last - first for first, last in zip(*tier)) / self._REPETITIONS / self._BYTES
                 for tier in zip(before, zones.uplink_bytes())]
        zones.close()
        print(f"{collective}, {'places known' if ordered else 'places not known'}: "
              f"{result['algorithm']}, {result['seconds']:.3f} s for 8 MiB, "
              f"{result['predicted_seconds']:.3f} s predicted; "
              + ", ".join(f"{sent:.3f} times the data leave a {tier}"
                          for sent, tier in zip(times, ("zone", "rack", "host"))), flush=True)
        return result, times

    def assert_left(self, expected, times):
        for wanted, sent, more in zip(expected, times, (0.05, 0.15, 0.15)):
            self.assertGreater(sent, 0.97 * wanted)
            # What the uplink of a zone drops leaves a rack and a host again.
            self.assertLess(sent, (1 + more) * wanted)

    def test_the_chosen_plan_leaves_each_tier_as_rarely_as_can_be(self):
        chosen, times = self.all_reduce("auto")
        self.assertEqual("hierarchical", chosen["algorithm"])
        # With so many domains below a tier's links, 2 (n - 1) / n of the data.
        domains = [2, 4, 8]
        self.assert_left([2 * (n - 1) / n for n in domains], times)
        # One ring in the order of places has one hop out of each domain.
        ring, times = self.all_reduce("ring")
        self.assert_left([2 * 7 / 8] * 3, times)
        # One ring that ignores the places leaves a zone and a rack with the hops of all members.
        naive, times = self.all_reduce("ring", ordered=False)
        self.assert_left([hops * 2 * 7 / 8 for hops in (4, 2, 1)], times)
        if report.speeds_count():
            self.assertLess(abs(chosen["seconds"] / chosen["predicted_seconds"] - 1), 0.25)
            # Links of zones bound the ring in the order of places to 1.75 times the time.
            self.assertGreater(ring["seconds"] / chosen["seconds"], 1.2)
            self.assertGreater(naive["seconds"] / chosen["seconds"], 2)


class MeasuredRacksTest(cluster.ProcessTest):
    """Workers that do not say in which rack they are, on links with latency."""

    _RACK_OF = (0, 1, 1, 0)  # by rank

    def test_shuffled_racks_are_named_before_the_first_groups_form(self):
        ranks = range(len(self._RACK_OF))
        names = [f"worker-{rank}" for rank in ranks]
        relayed = network.Relayed(self, ["outside", *names])
        for one in ranks:
            for other in ranks:
                if self._RACK_OF[one] < self._RACK_OF[other]:
                    relayed.fault("delay", names[one], other=names[other], by="10ms")
        run = network_cluster.NetworkCluster(
            self, relayed.nodes["outside"], [relayed.nodes[name] for name in names], "auto",
            labels=[f"site//host-{rank}" for rank in ranks])
        run.start(cluster.SYNTHETIC, "--tensors", 2, "--tensor-kib", 4, "--steps", 20,
                  "--milliseconds-per-sample", 0)
        observer = cluster.Observer(run.address, relayed.nodes["outside"].command())
        status = observer.await_status(lambda status: status.get("plan"), "groups and a table")
        workers = cluster.nodes(status, "WORKER")
        # Racks are numbered in the order in which workers have come.
        labels = {int(node.get("rank", 0)): node["labels"].split("/") for node in workers}
        self.assertEqual([f"host-{rank}" for rank in ranks], [labels[rank][2] for rank in ranks])
        names_of = {self._RACK_OF[rank]: labels[rank][1] for rank in ranks}
        self.assertEqual({"measured-0", "measured-1"}, set(names_of.values()))
        for rank in ranks:
            self.assertEqual(names_of[self._RACK_OF[rank]], labels[rank][1])
        self.assertTrue(all(node["rack_is_measured"] for node in workers))
        # The decisions so far, in their order.
        decisions = [line for line in run.scheduler.lines() if '"event":"decision"' in line]
        [named] = [i for i, line in enumerate(decisions) if "2 racks measured" in line]
        [formed] = [i for i, line in enumerate(decisions) if "all workers have registered" in line]
        self.assertLess(named, formed)
        for rack in (("worker-0", "worker-3"), ("worker-1", "worker-2")):
            self.assertTrue(any(", ".join(pair) in decisions[named] for pair in (rack, rack[::-1])),
                            decisions[named])
        print(decisions[named], flush=True)
        print(status["plan"]["sources"], flush=True)
        self.assertIn("links: 6 measured between workers", status["plan"]["sources"])
        run.finish()


if __name__ == "__main__":
    report.main()

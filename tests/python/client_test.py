# SPDX-License-Identifier: Apache-2.0
"""A Python program as a client: values, errors, memory, Ctrl-C, fork, asyncio."""

import array
import asyncio
import contextlib
import gc
import os
import signal
import threading
import time
from unittest import mock

import covey
from covey import _asyncio, _native, handle
from tests import report
from tests.process import cluster, program

_ELEMENTS = 6


def _floats(value=0.0, count=_ELEMENTS):
    return array.array("f", [value] * count)


def _resident():
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


class ClientTest(cluster.ProcessTest):
    def setUp(self):
        super().setUp()
        self.cluster = cluster.Cluster(self, workers=1)
        self.client = covey.connect(self.cluster.address, job=cluster.JOB, timeout=30)
        self.addCleanup(self.client.close)
        self.table = self.client.create_table(self.spec("w"))

    @staticmethod
    def spec(name, rate=1.0):
        return covey.TableSpec(name, (2, 3), covey.sgd(rate), "async")

    def pulled(self, table=None):
        out = _floats()
        (table or self.table).pull(out).wait()
        return list(out)

    def test_pushes_and_pulls(self):
        result = self.table.push(_floats(-2), samples=1).wait()
        self.assertEqual((1, True, None), (result.version, result.durable, result.values))
        out = _floats()
        result = self.table.push_pull(_floats(-1), out).wait()
        self.assertIs(out, result.values)
        self.assertEqual([3.0] * _ELEMENTS, list(out))
        for wire in ("float16", "bfloat16", "scaled-float16", "float8"):
            self.table.push(_floats(-8), samples=4, wire=wire).wait()
        self.client.flush()
        self.assertEqual([11.0] * _ELEMENTS, self.pulled())

    def test_values_travel_in_the_format_of_the_pull(self):
        self.table.push(_floats(-1 - 2 ** -10)).wait()
        self.assertEqual([1 + 2 ** -10] * _ELEMENTS, self.pulled())
        for read in (lambda out: self.table.pull(out, value_wire="bfloat16"),
                     lambda out: self.table.push_pull(_floats(), out, value_wire="bfloat16")):
            out = _floats()
            read(out).wait()
            self.assertEqual([1.0] * _ELEMENTS, list(out))
        with self.assertRaisesRegex(covey.InvalidArgument, "topk: that leaves out most values"):
            self.table.pull(_floats(), value_wire="topk").wait()
        with self.assertRaisesRegex(ValueError, "value_wire is 'fp8'"):
            self.table.pull(_floats(), value_wire="fp8")

    def test_uses_memory_in_place(self):
        values = _floats()
        address, elements = _native.address_of(values)
        self.assertEqual((values.buffer_info()[0], _ELEMENTS), (address, elements))

    def test_tables(self):
        self.assertEqual((2, 3), self.client.find_table("w").shape)
        self.assertEqual(["w"], [spec["name"] for spec in self.client.list_tables()])
        self.client.set_contract("w", "buffered:2")
        self.client.drop_table("w")
        with self.assertRaises(covey.NotFound):
            self.client.find_table("w")
        self.assertEqual(2, len(self.client.status()["view"]["nodes"]))

    def test_rows_of_a_sparse_table(self):
        table = self.client.create_sparse_table(covey.SparseTableSpec(
            "rows", 2, covey.rowwise_adagrad(0.1), "async", initializer=covey.uniform(-1, 1)))
        self.assertEqual(2, table.width)
        keys = array.array("Q", [7, 2**64 - 1, 7])
        first = array.array("f", bytes(4 * 6))
        table.pull(keys, first).wait()
        self.assertEqual(first[0:2], first[4:6], "a row for each key")
        self.assertTrue(all(-1 <= value < 1 for value in first))
        batch = table.batch(array.array("q", [7, -1]))  # the same keys
        self.assertEqual(2, len(batch))
        out = array.array("f", bytes(4 * 4))
        result = table.push_pull(batch, array.array("f", [0.0] * 4), out).wait()
        self.assertEqual((1, 0), (result.version, result.rows_refused))
        self.assertEqual(first[0:4], out, "a gradient of zero")
        table.push(keys, array.array("f", [1.0] * 6), wire="float16").wait()
        table.pull(batch, out).wait()
        for before, after in zip(first[0:4], out):
            self.assertAlmostEqual(before - 0.1, after, places=5)
        found = self.client.find_sparse_table("rows")
        self.assertEqual(out, found.pull(batch, array.array("f", bytes(16))).wait().values)

    def test_rows_of_several_tables(self):
        a, b = (self.client.create_sparse_table(covey.SparseTableSpec(
            name, width, covey.sgd(1), "async")) for name, width in (("a", 1), ("b", 2)))
        keys = array.array("Q", [7, 2**64 - 1, 7])
        pushed = self.client.push_many([
            (a, keys, array.array("f", [-1, -2, -4])),
            (b, b.batch(keys), array.array("f", [-1, -2, -3, -4, -5, -6]))]).wait()
        self.assertEqual((1, True, None), (pushed.version, pushed.durable, pushed.values))
        out = [_floats(count=3), _floats(count=6)]
        found = self.client.pull_many([(a, keys), (b, b.batch(keys))], out, timeout=20).wait()
        self.assertIs(out[1], found.values[1])
        self.assertEqual([[5, 2, 5], [6, 8, 3, 4, 6, 8]], [list(rows) for rows in found.values])
        self.assertEqual([], self.client.pull_many([]).wait().values)
        with self.assertRaisesRegex(ValueError, "out has 1 arrays for 2 tables"):
            self.client.pull_many([(a, keys), (b, keys)], out[:1])
        with self.assertRaisesRegex(covey.InvalidArgument, "table 'b' has 2 columns, and the batch 3"):
            self.client.push_many([(a, keys, out[0]), (b, keys, out[0])])
        with covey.connect(self.cluster.address, job=cluster.JOB) as other:
            with self.assertRaisesRegex(covey.InvalidArgument, "'a' is of another client"):
                other.pull_many([(a, keys)])
        # The first error that there is in their order, with its table; the others are read.
        with self.assertRaisesRegex(covey.DeadlineExceeded, "table 'b'"):
            with self.stopped_server():
                self.client.push_many([(b, keys, out[1]), (a, keys, out[0])], timeout=0.2).wait()
        self.client.drop_table("b")

        def refused():
            out[0][0] = 0
            try:
                self.client.pull_many([(a, keys), (b, keys)], out).wait()
            except covey.NotFound as error:
                return str(error)
            return ""

        # Servers learn of it with their next view.
        self.assertIn("table 'b'", program.await_true(refused, "a table that was dropped"))
        self.assertNotEqual(0, out[0][0])

    @contextlib.contextmanager
    def stopped_server(self):
        server = self.cluster.servers[0]
        server.signal(signal.SIGSTOP)

        def has_stopped():
            with open(f"/proc/{server.pid}/stat", encoding="ascii") as file:
                return file.read().rsplit(")", 1)[1].split()[0] == "T"

        try:
            program.await_true(has_stopped, "a stopped server")
            yield
        finally:
            server.signal(signal.SIGCONT)

    def test_rows_of_two_bytes(self):
        keys = array.array("Q", [7, 2**64 - 1])
        for dtype, stored in (("bfloat16", 1.0), ("float16", 1 + 2**-10), ("float32", 1.001)):
            table = self.client.create_sparse_table(covey.SparseTableSpec(
                dtype, 2, covey.sgd(1), "async", initializer=1.001, dtype=dtype))
            rows = table.pull(keys, array.array("f", bytes(16))).wait().values
            self.assertAlmostEqual(stored, rows[3], places=6)
            table.push(keys, array.array("f", [-1, -2, -3, 0.5])).wait()
            cache = table.cache(max_age=600)
            for moved in (table.pull(keys, rows).wait(), cache.pull(keys, rows).wait()):
                self.assertAlmostEqual(stored + 3, moved.values[2], delta=0.016)
        with self.assertRaisesRegex(ValueError, "dtype is 'fp8'; use one of float32, bfloat16"):
            self.client.create_sparse_table(covey.SparseTableSpec("x", 1, dtype="fp8"))
        dense = covey.TableSpec("x", (2,), covey.sgd(1), extra={"data_type": "FLOAT16"})
        with self.assertRaisesRegex(covey.InvalidArgument, "the table is dense, and only rows"):
            self.client.create_table(dense)

    def test_sparse_tables_say_what_does_not_fit(self):
        with self.assertRaisesRegex(covey.InvalidArgument, "momentum is not for sparse tables"):
            self.client.create_sparse_table(covey.SparseTableSpec("m", 2, covey.momentum(0.1)))
        table = self.client.create_sparse_table(covey.SparseTableSpec(
            "rows", 2, covey.sgd(0.1), "async", rows_max=1, when_full="skip"))
        with self.assertRaisesRegex(TypeError, "64-bit integers"):
            table.batch(_floats())
        with self.assertRaisesRegex(covey.InvalidArgument, "2 columns, and the batch 1 keys"):
            table.pull(array.array("Q", [1]), _floats())
        with self.assertRaisesRegex(covey.InvalidArgument, "is sparse; use find_sparse_table"):
            self.client.find_table("rows")
        with self.assertRaisesRegex(covey.InvalidArgument, "is dense; use find_table"):
            self.client.find_sparse_table("w")
        # About one row: each shard may have one.
        many = array.array("Q", range(100))
        pushed = table.push(many, array.array("f", [1.0] * 200)).wait()
        self.assertGreater(pushed.rows_refused, 90)

    def test_a_cache_of_rows(self):
        table = self.client.create_sparse_table(covey.SparseTableSpec(
            "cached", 2, covey.sgd(1), "async"))
        cache = table.cache(max_age=600, max_updates=1000)
        keys = array.array("Q", [7, 2 ** 64 - 1, 7])
        rows = array.array("f", bytes(24))
        self.assertEqual([0] * 6, list(cache.pull(keys, rows).wait().values))
        table.push(keys, array.array("f", [1, 2, 3, 4, 10, 20])).wait()
        self.assertEqual([0] * 6, list(cache.pull(keys, rows).wait().values))
        cache.invalidate(array.array("Q", [7]))
        result = cache.pull(keys, rows, timeout=20).wait()
        self.assertEqual([-11, -22, 0, 0, -11, -22], list(result.values))
        self.assertEqual(covey.CacheCounts(hits=4, misses=5, stale=0, rows=2), cache.counts)
        self.client.flush()
        for options, why in (({"rows_max": 0}, "keep 1 to 4294967295"),
                             ({"max_age": 0}, "more than zero")):
            with self.assertRaisesRegex(covey.InvalidArgument, why):
                table.cache(**options)
        with self.assertRaisesRegex(covey.InvalidArgument, "got 3 keys and 4 row elements"):
            cache.pull(keys, array.array("f", bytes(16))).wait()
        with covey.connect(self.cluster.address, job=cluster.JOB) as other:
            closed = other.find_sparse_table("cached").cache()
        with self.assertRaisesRegex(covey.FailedPrecondition, "closed"):
            closed.pull(keys, rows)

    def test_a_filter_of_pushes(self):
        table = self.client.create_sparse_table(covey.SparseTableSpec(
            "filtered", 2, covey.sgd(1), "async"))
        pushes = table.filter("kkt", 1, pieces_max=1)
        keys = array.array("Q", [7, 2 ** 64 - 1])
        zeros = array.array("f", bytes(16))
        # Means of (0.5, 0.75), which wait, and of (0.25, 1).
        gradient = array.array("f", [1, 1.5, 0.5, 2])
        pushes.push(keys, zeros, gradient, samples=2, wire="float32", timeout=20).wait()
        rows = array.array("f", bytes(16))
        self.assertEqual([0, 0, -0.25, -1], list(table.pull(keys, rows).wait().values))
        counts = covey.FilterCounts(pushed=1, held_back=1, zero_pushed=1, zero_held_back=1,
                                    pushed_later=0, held=1)
        self.assertEqual(counts, pushes.counts)
        pushes.flush(timeout=20)
        self.assertEqual([-0.5, -0.75, -0.25, -1], list(table.pull(keys, rows).wait().values))
        self.assertEqual((1, 0), (pushes.counts.pushed_later, pushes.counts.held))
        # The norms are 0.90 and 1.03, and the gradients 0.71.
        pushes = table.filter("significance", 0.75)
        pushes.push(keys, rows, array.array("f", [0.5] * 4)).wait()
        self.assertEqual((1, 1), (pushes.counts.pushed, pushes.counts.held))
        self.client.flush()
        for rule, options, why in (("all", {}, "choose one of kkt, significance"),
                                   ("kkt", {"rows_max": 0}, "hold 1 to 4294967294"),
                                   ("kkt", {"pieces_max": 2 ** 32 + 1}, "use 1 to 16")):
            with self.assertRaisesRegex(covey.InvalidArgument, why):
                table.filter(rule, 1, **options)
        with self.assertRaisesRegex(covey.InvalidArgument, "threshold of -1; use 0 or more"):
            table.filter("kkt", -1)
        with self.assertRaisesRegex(covey.InvalidArgument, "2 keys; got 2 gradient and 2 row"):
            pushes.push(keys, array.array("f", [0, 0]), array.array("f", [1, 1])).wait()
        with self.assertRaisesRegex(TypeError, "gradient has 4 elements, rows has 2"):
            pushes.push(keys, array.array("f", [0, 0]), gradient)

    def test_reads_rows_and_what_changes(self):
        table = self.client.create_sparse_table(covey.SparseTableSpec(
            "read", 2, covey.sgd(1), "async", rows_max=2000, when_full="evict"))
        copy = {}

        def read(since=None):
            reader = table.reader(since, timeout=20)
            count = 0
            for piece in reader:
                count += len(piece.keys)
                for key in piece.removed:
                    copy.pop(int(key), None)  # it may have come and gone since the last reading
                flat = array.array("f", piece.rows.tobytes())
                for i, key in enumerate(piece.keys):
                    copy[int(key)] = (flat[2 * i], flat[2 * i + 1])
            with self.assertRaises(StopIteration):
                next(reader)
            return reader.token, count

        def push(*numbers):
            table.push(array.array("Q", numbers), array.array("f", [-1, 2] * len(numbers))).wait()

        self.assertEqual(0, read()[1])
        push(2 ** 64 - 1, 0, 7)
        token, count = read()
        self.assertEqual((3, {0, 7, 2 ** 64 - 1}), (count, set(copy)))
        push(7, 8)
        token, count = read(token)
        self.assertEqual(2, count)
        self.assertEqual({(1, -2), (2, -4)}, set(copy.values()))
        for first in range(1000, 4000, 500):
            push(*range(first, first + 500))
        token, count = read(token)
        self.assertNotIn(0, copy, "the oldest made room")
        followed = dict(copy)
        copy.clear()
        read()
        self.assertEqual(copy, followed)

        reader = table.reader()
        with self.assertRaisesRegex(covey.FailedPrecondition, "has pieces left"):
            reader.token
        for since, error, why in (("x", covey.InvalidArgument, "'x' is no resume token"),
                                  ("rows1:1:" + token.split(":", 2)[2], covey.OutOfRange,
                                   "of another run of the job; read all rows again")):
            with self.assertRaisesRegex(error, why):
                table.reader(since)
        with covey.connect(self.cluster.address, job=cluster.JOB) as other:
            closed = other.find_sparse_table("read").reader()
        with self.assertRaisesRegex(covey.FailedPrecondition, "closed"):
            next(closed)

    def test_the_life_of_rows(self):
        keys = array.array("Q", range(100))
        gradient = array.array("f", [1.0] * 100)
        full = self.client.create_sparse_table(covey.SparseTableSpec(
            "full", 1, covey.sgd(1), "async", rows_max=10))
        with self.assertRaisesRegex(covey.FailedPrecondition,
                                    "'full': it holds as many rows as it may .* with when_full"):
            full.push(keys, gradient).wait()
        rows = array.array("f", bytes(400))
        made = sum(value != 0 for value in full.pull(keys, rows).wait().values)
        self.assertTrue(10 <= made < 20, "the other rows are updated")
        with self.assertRaisesRegex(covey.FailedPrecondition, "left out"):
            full.push_pull(keys, gradient, rows).wait()

        evicting = self.client.create_sparse_table(covey.SparseTableSpec(
            "evicting", 1, covey.sgd(1), "async", rows_max=40, when_full="evict",
            evict_by="count"))
        for first in range(0, 100, 5):
            result = evicting.push(keys[first:first + 5], gradient[:5]).wait()
            self.assertEqual(0, result.rows_refused)
        held = sum(value != 0 for value in evicting.pull(keys, rows).wait().values)
        self.assertTrue(25 <= held <= 42, held)

        late = self.client.create_sparse_table(covey.SparseTableSpec(
            "late", 1, covey.sgd(1), "async", admit_after=2))
        for expected in (0.0, -1.0, -2.0):
            late.push(keys, gradient).wait()
            self.assertEqual([expected] * 100, list(late.pull(keys, rows).wait().values))

        with self.assertRaisesRegex(ValueError, "when_full is 'drop'; use one of refuse"):
            self.client.create_sparse_table(covey.SparseTableSpec("x", 1, when_full="drop"))
        with self.assertRaisesRegex(covey.InvalidArgument, "set rows_max"):
            self.client.create_sparse_table(covey.SparseTableSpec("x", 1, when_full="evict"))

    def given(self, name):
        return self.client.create_table(covey.TableSpec(name, (2, 3), contract="async",
                                                        initializer="given"))

    def test_one_program_gives_the_initial_values(self):
        first, second = self.given("a"), self.given("b")
        waits = first.pull(_floats(), timeout=30)
        with self.assertRaisesRegex(covey.DeadlineExceeded, "waits for its initial values"):
            second.pull(_floats(), timeout=1).wait()
        with self.assertRaisesRegex(covey.DeadlineExceeded, "waits for its initial values"):
            second.push(_floats(1), timeout=1).wait()
        self.assertTrue(self.client.initialize([(first, _floats(2)), (second, _floats(3))]))
        self.assertEqual([2.0] * _ELEMENTS, list(waits.wait().values))
        self.assertEqual([3.0] * _ELEMENTS, self.pulled(second))
        second.push(_floats(1)).wait()
        self.assertEqual([2.0] * _ELEMENTS, self.pulled(second))

        with covey.connect(self.cluster.address, job=cluster.JOB) as other:
            self.assertFalse(other.find_table("b").initialize(_floats(7)))
        self.assertEqual([2.0] * _ELEMENTS, self.pulled(second), "later values change nothing")

    def with_adam(self, name):
        return self.client.create_table(covey.TableSpec(
            name, (2, 3), optimizer=covey.adam(0.1), contract="async", initializer="given",
            schedule=covey.linear(1000, warmup=100)))

    def state(self, table):
        """Version, samples, and values and slots."""
        result = table.pull_state(array.array("f", bytes(4 * 3 * _ELEMENTS))).wait()
        return result.version, result.samples, list(result.values)

    def test_a_table_begins_with_the_state_of_another(self):
        first, second, third = (self.with_adam(name) for name in "abc")
        self.assertTrue(first.initialize(_floats(2)))
        for step in range(1, 4):
            first.push(_floats(step), samples=8).wait()
        read = first.pull_state(array.array("f", bytes(4 * 3 * _ELEMENTS))).wait()
        self.assertTrue(self.client.initialize([
            (second, read), (third, covey.TableState(read.values, read.version))]))
        self.assertEqual((3, 24, list(read.values)), self.state(second))
        self.assertEqual((3, 0, list(read.values)), self.state(third))
        for table in (first, second):
            table.push(_floats(5), samples=8).wait()
        self.assertEqual(self.state(first), self.state(second))
        self.assertEqual((4, 32), self.state(second)[:2])

    def test_an_optimizer_without_slots_has_version_and_samples(self):
        first, second = (self.given(name) for name in "ab")
        self.assertTrue(first.initialize(_floats(2)))
        first.push(_floats(8), samples=8).wait()
        read = first.pull_state(_floats()).wait()
        self.assertEqual((1, 8, 0), (read.version, read.samples, first.slots))
        self.assertTrue(second.initialize(read))
        again = second.pull_state(_floats()).wait()
        self.assertEqual((1, 8, list(read.values)),
                         (again.version, again.samples, list(again.values)))

    def test_a_state_fits_the_table(self):
        table, bare = self.with_adam("a"), self.given("b")
        for given, state, why in (
            (table, covey.TableState(_floats(count=12), 3), "'a': its optimizer keeps 2 slots of 6 "
             "elements, and 6 elements of state were given"),
            (table, covey.TableState(_floats(), 3), "keeps 2 slots of 6 elements, and 0"),
            (bare, covey.TableState(_floats(count=18), 3), "'b': its optimizer keeps 0 slots"),
            (table, covey.TableState(_floats(float("inf"), 18), 3), "element 0 is inf"),
            (table, covey.TableState(_floats(count=18), 2**61 + 1), "'a': its version is 2305"),
            (table, covey.TableState(_floats(count=18), 3, -1), "number of samples is -1; give at"),
        ):
            with self.assertRaisesRegex(covey.InvalidArgument, why):
                given.initialize(state)
        self.assertTrue(table.initialize(covey.TableState(_floats(1, 18), 0)))
        self.assertEqual((0, 0, [1.0] * 18), self.state(table))

    def test_a_call_that_fails_holds_nobody_up(self):
        table = self.given("a")
        with covey.connect(self.cluster.address, job=cluster.JOB) as other:
            for wrong, why in ((array.array("f", [0, 0, 0, float("nan"), 0, 0]), "element 3 is nan"),
                               (_floats(count=5), "6 elements")):
                with self.assertRaisesRegex(covey.InvalidArgument, why):
                    other.find_table("a").initialize(wrong)
            self.assertTrue(table.initialize(_floats(1)))
        self.assertEqual([1.0] * _ELEMENTS, self.pulled(table))

    def test_other_tables_take_no_initial_values(self):
        with self.assertRaisesRegex(covey.FailedPrecondition, "initializer is ZEROS"):
            self.table.initialize(_floats(1))
        with self.assertRaisesRegex(covey.InvalidArgument, "6 elements"):
            self.given("a").initialize(_floats(count=5))

    def test_errors_name_what_is_wrong(self):
        for error, text, call in (
            (TypeError, "format 'd'", lambda: self.table.push(array.array("d", [0] * 6))),
            (TypeError, "may be written", lambda: self.table.pull(b"123456")),
            (covey.InvalidArgument, "6 elements", lambda: self.table.push(_floats(count=5))),
            (ValueError, "int8", lambda: self.table.push(_floats(), wire="fp8")),
            (ValueError, "more than 0", lambda: self.table.push(_floats(), timeout=0)),
            (covey.AlreadyExists, "'w'", lambda: self.client.create_table(self.spec("w", 2.0))),
            (covey.InvalidArgument, "Did you mean 'shape'", lambda: self.client.create_table(
                covey.TableSpec("v", (1,), extra={"shapes": [1]}))),
            (covey.InvalidArgument, "NaN|nan|finite",
             lambda: self.table.push(_floats(float("nan"))).wait()),
            (covey.DeadlineExceeded, "deadline|not done",
             lambda: self.table.pull(_floats(), min_version=9, timeout=0.3).wait()),
        ):
            with self.assertRaisesRegex(error, text):
                call()
        self.assertEqual("NOT_FOUND", covey.NotFound.code)
        self.assertTrue(issubclass(covey.NotFound, LookupError))

    def test_says_that_there_is_no_scheduler(self):
        with self.assertRaisesRegex(covey.Unavailable, "127.0.0.1:1"):
            covey.connect("127.0.0.1:1", join_timeout=1)
        with self.assertRaisesRegex(covey.InvalidArgument, "HOST:PORT"):
            covey.connect("nowhere")

    def test_a_dead_scheduler_ends_in_an_exception(self):
        self.cluster.scheduler.kill()
        begin = time.monotonic()
        with self.assertRaises((covey.DeadlineExceeded, covey.Unavailable)):
            client_barrier(self.client, 2.0)
        self.assertLess(time.monotonic() - begin, program.PATIENCE_SECONDS)

    def test_a_wait_may_end_before_its_operation(self):
        pending = self.table.pull(_floats(), min_version=1)
        with self.assertRaisesRegex(covey.DeadlineExceeded, "not done"):
            pending.wait(0.1)
        self.assertFalse(pending.done())
        self.table.push(_floats()).wait()
        self.assertEqual(1, pending.wait().version)

    def test_interrupts_end_a_wait(self):
        waits = [lambda: self.table.pull(_floats(), min_version=9, timeout=50).wait(),
                 lambda: self.client.barrier("alone", 2, 50)]
        for wait in waits:
            timer = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT))
            begin = time.monotonic()
            with self.assertRaises(KeyboardInterrupt):
                timer.start()
                wait()
            self.assertLess(time.monotonic() - begin, 25)
        self.table.push(_floats()).wait()  # the client is as before

    def test_handles_are_awaitable(self):
        async def push_all():
            pushes = [self.table.push(_floats(-1)) for _ in range(20)]
            return [(await push).version for push in pushes]

        self.assertEqual(20, max(asyncio.run(push_all())))
        self.assertEqual([20.0] * _ELEMENTS, self.pulled())

    def test_asyncio_waits_without_asking_again(self):
        async def wait_for(pending):
            return (await pending).version

        async def push_later():
            pending = self.table.pull(_floats(), min_version=1)
            waits = asyncio.create_task(wait_for(pending))
            await asyncio.sleep(0.3)
            with mock.patch.object(_native, "handle_done", wraps=_native.handle_done) as asked:
                await asyncio.sleep(0.3)
                self.assertEqual(0, asked.call_count)
                self.table.push(_floats())
                return await waits

        for _ in range(2):  # each run has an event loop of its own
            self.assertLessEqual(1, asyncio.run(push_later()))

    def test_a_cancelled_coroutine_leaves_its_operation_alone(self):
        async def give_up_and_wait():
            pending = self.table.pull(_floats(), min_version=1)
            with self.assertRaises(asyncio.TimeoutError):
                await asyncio.wait_for(wait_for(pending), 0.1)
            self.assertFalse(pending.done())
            waits = _asyncio._of_loops[asyncio.get_running_loop()]
            self.assertEqual({}, waits._operations)  # nobody waits, and nothing is kept for it
            self.table.push(_floats())
            return (await pending).version

        async def wait_for(pending):
            return await pending

        self.assertEqual(1, asyncio.run(give_up_and_wait()))

    def test_event_loops_that_end_leave_no_descriptor(self):
        async def push():
            await self.table.push(_floats())

        asyncio.run(push())
        gc.collect()
        before = len(os.listdir("/proc/self/fd"))
        for _ in range(20):
            asyncio.run(push())
        gc.collect()
        self.assertEqual(before, len(os.listdir("/proc/self/fd")))

    def test_many_threads_push(self):
        def push():
            for _ in range(50):
                self.table.push(_floats(-1)).wait()

        threads = [threading.Thread(target=push) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual([200.0] * _ELEMENTS, self.pulled())

    def test_dropped_handles_keep_their_memory(self):
        for _ in range(500):
            self.table.push(_floats(-1))
        gc.collect()
        self.client.flush()
        self.assertEqual([500.0] * _ELEMENTS, self.pulled())
        self.table.push(_floats())  # looks at what has ended
        self.assertLess(len(handle._dropped), 500)

    def test_ten_thousand_pushes_leave_nothing(self):
        gradient = _floats()
        for _ in range(2000):
            self.table.push(gradient).wait()
        before = _resident()
        for _ in range(10000):
            self.table.push(gradient).wait()
        self.assertLess(_resident() - before, 1 << 20)

    def test_tables_come_and_go(self):
        for _ in range(20):
            table = self.client.create_table(self.spec("brief"))
            table.push(_floats()).wait()
            self.client.drop_table("brief")
        self.assertEqual(["w"], [spec["name"] for spec in self.client.list_tables()])

    def test_a_child_by_fork_is_refused(self):
        child = os.fork()
        if child == 0:
            code = 1
            try:
                self.table.push(_floats())
            except covey.FailedPrecondition as error:
                code = 0 if "fork" in str(error) else 2
            finally:
                self.client.close()
                os._exit(code)
        self.assertEqual(0, os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
        self.table.push(_floats()).wait()

    def test_a_closed_client_says_so(self):
        with covey.connect(self.cluster.address, job=cluster.JOB) as client:
            table = client.find_table("w")
        with self.assertRaisesRegex(covey.FailedPrecondition, "closed"):
            table.push(_floats())
        client.close()  # again


def client_barrier(client, timeout):
    """Waits for another node, which never comes."""
    client.barrier("alone", 2, timeout)


if __name__ == "__main__":
    report.main()

# SPDX-License-Identifier: Apache-2.0
"""What servers compute for a Python program: vectors, and gradients of matrices in factors."""

import numpy

import covey
from covey import Function, Query
from tests import report
from tests.process import cluster

_N = 200


class VectorsTest(cluster.ProcessTest):
    def setUp(self):
        super().setUp()
        # Two servers, and tables of several shards.
        self.cluster = cluster.Cluster(self, servers=2, workers=1)
        self.client = covey.connect(self.cluster.address, job=cluster.JOB, timeout=30)
        self.addCleanup(self.client.close)
        self.random = numpy.random.default_rng(1)

    def vectors(self, name="v", count=4):
        return self.client.create_vectors(covey.TableSpec(
            name, (_N,), covey.vectors(count), "async", extra={"shard_bytes": 256}))

    def normal(self, *shape):
        return self.random.standard_normal(shape).astype(numpy.float32)

    def read(self, vectors, number):
        vectors.copy(0, number)
        return vectors.pull().wait().values

    def test_conjugate_gradients_find_what_numpy_finds(self):
        # The values are the direction; pushes add to its image; then the solution and the residual.
        direction, image, solution, residual = 0, 1, 2, 3
        root = self.normal(_N, _N).astype(numpy.float64) / numpy.sqrt(_N)
        matrix = root @ root.T + numpy.eye(_N)
        b = self.normal(_N)
        v = self.vectors(count=3)
        v.push(b).wait()
        v.call([Function.copy(residual, image), Function.copy(direction, image)]).wait()
        squares = v.dot(residual, residual)
        self.assertAlmostEqual(float(b @ b), squares, delta=1e-3)
        steps = 0
        while squares > 1e-9 and steps < 100:
            steps += 1
            v.set(image, 0)
            v.push((matrix @ v.pull().wait().values).astype(numpy.float32)).wait()
            length = squares / v.dot(direction, image)
            v.call([Function.axpy(solution, length, direction),
                    Function.axpy(residual, -length, image)]).wait()
            before, squares = squares, v.dot(residual, residual)
            v.scale(direction, squares / before)
            v.axpy(direction, 1, residual)
        self.assertLess(steps, 40)
        numpy.testing.assert_allclose(self.read(v, solution), numpy.linalg.solve(matrix, b),
                                      atol=1e-4)

    def test_answers_are_numpys(self):
        v = self.vectors()
        self.assertEqual((5, 200, "v"), (v.vectors, v.elements, v.name))
        a, b = self.normal(_N), self.normal(_N)
        a[[3, 150]] = 9, -12
        b[7] = 0
        for values, target in ((a, 2), (b, 3)):
            v.set(1, 0)
            v.push(values).wait()
            v.copy(target, 1)
        v.set(4, 2.5)
        self.assertAlmostEqual(float(numpy.dot(a.astype(float), b)), v.dot(2, 3), places=4)
        for order in (1, 2, numpy.inf):
            self.assertAlmostEqual(float(numpy.linalg.norm(a.astype(float), order)),
                                   v.norm(2, order), places=4)
        self.assertAlmostEqual(float(a.sum(dtype=float)), v.sum(2), places=4)
        self.assertEqual((float(a.min()), float(a.max())), (v.min(2), v.max(2)))
        self.assertEqual((199, 200), (v.count_nonzero(3), v.count_nonzero(4)))
        places, values = v.top_k(2, 2)
        self.assertEqual(([150, 3], [-12, 9]), (places.tolist(), values.tolist()))
        result = v.ask([Query.dot(4, 4), Query.top_k(2, 1), Query.count_nonzero(0)],
                       min_version=1).wait()
        self.assertEqual([_N * 6.25, [(150, -12.0)], 0], result.values)
        self.assertGreater(result.version, 5)
        numpy.testing.assert_array_equal(b, self.read(v, 3))
        self.assertEqual(v.vectors, self.client.find_vectors("v").vectors)

    def test_vectors_say_what_does_not_fit(self):
        v = self.vectors()
        with self.assertRaisesRegex(covey.InvalidArgument, "vector 5 is none"):
            v.set(5, 1)
        with self.assertRaisesRegex(covey.InvalidArgument, "has 0 queries"):
            v.ask([]).wait()
        with self.assertRaisesRegex(covey.InvalidArgument, "finite in float32"):
            v.scale(1, 1e300)
        with self.assertRaisesRegex(covey.InvalidArgument, "order of a norm is 3"):
            v.norm(0, 3)
        with self.assertRaisesRegex(covey.InvalidArgument, "kind is 9; use a COVEY_FUNCTION_"):
            v.call([Function(9, 0)])
        with self.assertRaisesRegex(covey.InvalidArgument, "kind is -1; use a COVEY_QUERY_"):
            v.ask([Query(-1, 0)])
        dense = covey.TableSpec("dense", (2,), covey.sgd(1), "async")
        with self.assertRaisesRegex(covey.InvalidArgument, "is not one of vectors"):
            self.client.create_vectors(dense)

    def test_outer_products_make_the_update_of_their_sum(self):
        shape = (24, 5, 8)
        table = self.client.create_table(covey.TableSpec(
            "matrix", shape, covey.sgd(1), "async", extra={"shard_bytes": 13 * 64}))
        expected = numpy.zeros(shape, numpy.float32)
        # With 40 terms the gradient is smaller.
        for terms in (1, 6, 40):
            left, right = self.normal(terms, 24), self.normal(terms, 5, 8)
            expected -= numpy.tensordot(left, right, (0, 0)) / terms
            table.push_outer_product(left, right, samples=terms).wait()
            numpy.testing.assert_allclose(table.pull().wait().values, expected, atol=1e-5)
        left, right = self.normal(2, 24), self.normal(2, 40)
        expected -= (left.T @ right).reshape(shape)
        result = table.push_pull_outer_product(left, right, wire="float16").wait()
        numpy.testing.assert_allclose(result.values, expected, atol=1e-2)
        self.assertTrue(result.durable)
        exact = table.pull().wait().values
        result = table.push_pull_outer_product(left, right * 0, value_wire="float16").wait()
        numpy.testing.assert_array_equal(result.values, exact.astype(numpy.float16))

    def test_outer_products_say_what_does_not_fit(self):
        table = self.client.create_table(covey.TableSpec("matrix", (24, 40), covey.sgd(1), "async"))
        with self.assertRaisesRegex(covey.InvalidArgument, r"left has shape \(2, 24\) and right "
                                                           r"\(3, 40\); pass \(terms, rows\)"):
            table.push_outer_product(self.normal(2, 24), self.normal(3, 40))
        with self.assertRaisesRegex(covey.InvalidArgument, "24 rows and 40 columns; got 50 left"):
            table.push_outer_product(self.normal(2, 25), self.normal(2, 40)).wait()
        with self.assertRaisesRegex(covey.InvalidArgument, "or is one of vectors"):
            self.vectors().push_outer_product(self.normal(1, _N), self.normal(1, 1)).wait()
        with self.assertRaisesRegex(TypeError, "float32"):
            table.push_outer_product(numpy.ones((2, 24)), self.normal(2, 40))


if __name__ == "__main__":
    report.main()

# SPDX-License-Identifier: Apache-2.0
"""Definitions of tables become the JSON that libcovey reads."""

import json
import unittest

import covey
from tests import report


def _fields(**arguments):
    return json.loads(covey.TableSpec("w", (2, 3), **arguments).to_json())


class DefinitionsTest(unittest.TestCase):
    def test_defaults(self):
        self.assertEqual({
            "name": "w", "shape": [2, 3], "optimizer": {"kind": "SGD", "weight_decay": 0.0},
            "learning_rate": {"base": 1.0}, "contract": {"kind": "BUFFERED"}, "initializer": {},
            "gradient_format": "WIRE_FLOAT32", "value_format": "WIRE_FLOAT32"}, _fields())

    def test_a_scalar_is_one_element(self):
        self.assertEqual([1], json.loads(covey.TableSpec("w", ()).to_json())["shape"])

    def test_optimizers(self):
        fields = _fields(optimizer=covey.adamw(0.01, (0.8, 0.99), weight_decay=0.1))
        self.assertEqual({"kind": "ADAMW", "beta1": 0.8, "beta2": 0.99, "epsilon": 1e-8,
                          "weight_decay": 0.1}, fields["optimizer"])
        self.assertEqual({"base": 0.01}, fields["learning_rate"])

    def test_contracts(self):
        for text, expected in {
            "bsp": {"kind": "BSP"},
            "ssp:2": {"kind": "SSP", "staleness": 2},
            "async": {"kind": "ASYNC"},
            "buffered:4,cut=8": {"kind": "BUFFERED", "buffer": 4, "staleness_cut": 8},
            "local:16,quorum=2,grace=500ms,overlap=4": {
                "kind": "LOCAL", "local_steps": 16, "quorum": 2, "grace_ms": 500,
                "overlap_steps": 4},
        }.items():
            self.assertEqual(expected, _fields(contract=text)["contract"], text)
        for text in ("ssp:x", "bsp:1", "local:4,speed=2"):
            with self.assertRaisesRegex(ValueError, "contract is"):
                _fields(contract=text)

    def test_first_values(self):
        self.assertEqual({"kind": "CONSTANT", "a": 2.0}, _fields(initializer=2)["initializer"])
        self.assertEqual({"kind": "UNIFORM", "a": -1, "b": 1, "seed": 7},
                         _fields(initializer=covey.uniform(-1, 1, 7))["initializer"])

    def test_replicas(self):
        self.assertEqual("MEMORY", _fields(replicas=1)["durability"])
        self.assertEqual((3, "REPLICATED"), (_fields(replicas=3)["replicas"],
                                             _fields(replicas=3)["durability"]))

    def test_types_of_rows(self):
        def data_type(**arguments):
            return json.loads(covey.SparseTableSpec("r", 2, **arguments).to_json())["data_type"]

        self.assertEqual("FLOAT32", data_type())
        self.assertEqual("BFLOAT16", data_type(dtype="bfloat16"))
        self.assertEqual("FLOAT16", data_type(dtype="float16"))
        with self.assertRaisesRegex(ValueError, "use one of float32, bfloat16, float16"):
            data_type(dtype="half")

    def test_means_of_rounds(self):
        def round_mean(**arguments):
            spec = covey.SparseTableSpec("r", 2, contract="local:8", **arguments)
            return json.loads(spec.to_json())["sparse"]["round_mean"]

        self.assertEqual("OF_ALL_PUSHES", round_mean())
        self.assertEqual("OF_HOLDERS", round_mean(round_mean="holders"))
        with self.assertRaisesRegex(ValueError, "round_mean is 'some'; use one of all, holders"):
            round_mean(round_mean="some")

    def test_norm_gates(self):
        self.assertNotIn("norm_gate", _fields())
        gate = covey.norm_gate(20, quarantine_after=8)
        self.assertEqual({"factor": 20.0, "quarantine_after": 8},
                         _fields(norm_gate=gate)["norm_gate"])
        rows = covey.SparseTableSpec("r", 2, norm_gate=covey.norm_gate(3))
        self.assertEqual(3, json.loads(rows.to_json())["norm_gate"]["factor"])

    def test_wire(self):
        for wire, format_name in (("int8", "WIRE_INT8_BLOCK"), ("float8", "WIRE_FLOAT8_BLOCK"),
                                  ("scaled-float16", "WIRE_FLOAT16_BLOCK"),
                                  ("topk", "WIRE_TOP_BLOCK")):
            self.assertEqual(format_name, _fields(wire=wire)["gradient_format"])
        self.assertEqual("WIRE_BFLOAT16", _fields(value_wire="bfloat16")["value_format"])
        for name in ("wire", "value_wire"):
            with self.assertRaisesRegex(ValueError, f"^{name} is 'fp16'; use one of .*bfloat16"):
                _fields(**{name: "fp16"})


if __name__ == "__main__":
    report.main()

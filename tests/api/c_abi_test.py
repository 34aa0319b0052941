# SPDX-License-Identifier: Apache-2.0
"""Programs that were compiled with the header of the last release, client/c/covey.abi, work with
this libcovey.so: functions, structs and their fields are only added."""

import pathlib
import re
import subprocess
import tempfile
import unittest

from tests import report
from tools import c_abi

_LIBRARY = pathlib.Path(__file__).parents[2] / "client/c/libcovey.so.0"

_REMEDY = ("\n\nlibcovey.so would break programs that exist. Take this change of client/c/covey.h "
           "back, and add a function, or a field at the end of its struct, instead.")

_SMALL = """
#include <stdint.h>
#define COVEY_API
typedef struct covey_choice {
  uint32_t struct_size;
  uint32_t lag;
  double norm;
} covey_choice;
typedef struct covey_step covey_step;
typedef struct covey_table covey_table;
COVEY_API int32_t covey_begin(covey_step* step, const covey_choice* choice,
                              uint64_t samples);
COVEY_API void covey_free(covey_step* step);
"""


class _InFolder(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)


@unittest.skipIf(c_abi.MISSING, c_abi.MISSING)
class AbiTest(_InFolder):
    def test_nothing_has_changed_that_programs_depend_on(self):
        library = c_abi.library(c_abi.HEADER.read_text(), self.folder)
        changes = c_abi.breaks(c_abi.RECORD, library)
        self.assertEqual("", changes, changes + _REMEDY)

    def test_the_library_has_all_functions_that_are_recorded(self):
        recorded = re.findall(r"<elf-symbol name='(\w+)' version='(\w+)'",
                              c_abi.RECORD.read_text())
        self.assertGreater(len(recorded), 40)
        listing = subprocess.run(["nm", "-D", "--defined-only", _LIBRARY],
                                 capture_output=True, text=True, check=True).stdout
        self.assertEqual(set(), {"@@".join(symbol) for symbol in recorded} - set(listing.split()))

    def test_sees_the_fields_of_every_struct(self):
        header = c_abi.HEADER.read_text()
        seen = re.findall(r"<class-decl name='(\w+)' size-in-bits='\d+' is-struct='yes' visib",
                          c_abi.described(c_abi.library(header, self.folder)))
        self.assertLess(set(), set(c_abi.structs(header)))
        self.assertEqual(set(), set(c_abi.structs(header)) - set(seen))

    def test_every_struct_begins_with_its_size(self):
        header = c_abi.HEADER.read_text()
        sized = re.findall(r"^typedef struct (\w+) {\n  uint32_t struct_size;$", header,
                           re.MULTILINE)
        self.assertEqual(c_abi.structs(header), sized)


@unittest.skipIf(c_abi.MISSING, c_abi.MISSING)
class BreaksTest(_InFolder):
    """Changes of a small header, and what is said of them."""

    def breaks(self, old, new):
        self.assertIn(old, _SMALL)
        record = self.folder / "covey.abi"
        record.write_text(c_abi.described(c_abi.library(_SMALL, self.folder)))
        return c_abi.breaks(record, c_abi.library(_SMALL.replace(old, new), self.folder))

    def test_a_new_function_is_allowed(self):
        self.assertEqual("", self.breaks("COVEY_API void", "COVEY_API void covey_more(void);\n"
                                         "COVEY_API void"))

    def test_new_fields_at_the_end_are_allowed(self):
        self.assertEqual("", self.breaks("double norm;", "double norm; double a; uint64_t b;"))

    def test_a_removed_function(self):
        found = self.breaks("COVEY_API void covey_free(covey_step* step);\n", "")
        self.assertIn("1 Removed function:", found)
        self.assertIn("'function void covey_free(covey_step*)'", found)

    def test_a_renamed_function(self):
        self.assertIn("'function void covey_free(covey_step*)'",
                      self.breaks("covey_free", "covey_release"))

    def test_an_argument_of_another_type(self):
        found = self.breaks("uint64_t samples", "uint32_t samples")
        self.assertIn("'function int32_t covey_begin(", found)
        self.assertIn("type size changed from 64 to 32", found)

    def test_another_object(self):
        found = self.breaks("covey_free(covey_step* step)", "covey_free(covey_table* step)")
        self.assertIn("pointer type changed from: 'covey_step*' to: 'covey_table*'", found)

    def test_another_return_type(self):
        self.assertIn("return type changed", self.breaks("int32_t covey_begin",
                                                         "int64_t covey_begin"))

    def test_a_field_in_the_middle(self):
        found = self.breaks("double norm;", "uint64_t more; double norm;")
        self.assertIn("'struct covey_choice' changed", found)
        self.assertIn("'double norm' offset changed from 64 to 128", found)

    def test_a_removed_field(self):
        found = self.breaks("  double norm;\n", "")
        self.assertIn("1 data member deletion:\n    'double norm'", found)

    def test_a_renamed_field(self):
        found = self.breaks("double norm;", "double size;")
        self.assertIn("name of 'covey_choice::norm' changed to 'covey_choice::size'", found)

    def test_a_field_of_another_type_in_a_struct_that_grows(self):
        found = self.breaks("double norm;", "uint64_t norm; uint64_t more;")
        self.assertIn("type 'double' of 'covey_choice::norm' changed", found)

    def test_a_library_that_cannot_be_read_is_an_error(self):
        with self.assertRaisesRegex(RuntimeError, "abidiff could not compare"):
            c_abi.breaks(c_abi.RECORD, self.folder / "missing.so")


if __name__ == "__main__":
    report.main()

# SPDX-License-Identifier: Apache-2.0
"""The programs of a version: the present one, or the previous release."""

import dataclasses
import os

from tests.process import cluster, ledger, program

_FOLDER = os.environ.get("COVEY_PREVIOUS_RELEASE")
MISSING = None if _FOLDER else (
    "needs the programs of the previous release: run tests/upgrade/previous_release FOLDER, and set "
    "COVEY_PREVIOUS_RELEASE=FOLDER")


@dataclasses.dataclass(frozen=True)
class Release:
    name: str
    covey: str
    scheduler: str
    server: str
    ledger_client: str
    ledger_worker: str
    synthetic: str

    @classmethod
    def in_folder(cls, name, folder):
        """As tests/upgrade/previous_release has built them."""
        return cls(name, *(os.path.join(folder, file) for file in (
            "covey", "covey_scheduler", "covey_server", "ledger_client", "ledger_worker",
            "synthetic")))


PRESENT = Release("present", cluster.COVEY, cluster.SCHEDULER, cluster.SERVER, ledger.CLIENT,
                  ledger.WORKER, cluster.SYNTHETIC)
# Only where nothing is MISSING.
PREVIOUS = Release.in_folder("previous", os.path.abspath(_FOLDER or "."))

# SPDX-License-Identifier: Apache-2.0
"""What other packages see of an installed covey: its metadata, as pip and dpkg install them."""

import pathlib

import covey

# Where the package is, which tests have on Python's path.
FOLDER = pathlib.Path(covey.__file__).parents[1]


def metadata(folder):
    """A folder for Python's path in which the entry points of covey are found."""
    path = pathlib.Path(folder, "metadata")
    described = path / f"covey-{covey.__version__}.dist-info"
    described.mkdir(parents=True, exist_ok=True)
    (described / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: covey\nVersion: {covey.__version__}\n")
    (described / "entry_points.txt").write_bytes((FOLDER / "entry_points.txt").read_bytes())
    return path

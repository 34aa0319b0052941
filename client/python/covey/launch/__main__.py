# SPDX-License-Identifier: Apache-2.0
"""python3 -m covey.launch: what has started this process, and which variables say so."""

from covey.errors import InvalidArgument
from covey.launch import explain

try:
    print(explain())
except InvalidArgument as error:
    raise SystemExit(str(error)) from None

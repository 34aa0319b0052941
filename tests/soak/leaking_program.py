# SPDX-License-Identifier: Apache-2.0
"""Leaks on purpose, to show that the judge of a soak test finds it: 1 MiB and an open file a minute.

    leaking_program.py [MIB_PER_MINUTE [STEPS_PER_MINUTE]]
"""

import sys
import threading


def main():
    mebibytes = float(sys.argv[1]) if len(sys.argv) > 1 else 1
    steps_per_minute = int(sys.argv[2]) if len(sys.argv) > 2 else 12
    held, files = [], []
    pause = threading.Event()
    step = 0
    print("ready", flush=True)
    while not pause.wait(60 / steps_per_minute):
        # Each page is written to, so that it is resident.
        held.append(b"\x5a" * int(mebibytes * (1 << 20) / steps_per_minute))
        step += 1
        if step % steps_per_minute == 0:
            files.append(open("/dev/null", "rb"))


if __name__ == "__main__":
    main()

# SPDX-License-Identifier: Apache-2.0
"""How long nodes are silent while something goes on, as `covey status` shows it."""

import threading

_POLL_SECONDS = 0.1


class Heartbeats:
    """Polls the status of an Observer until it is stopped. `nodes`: ids of those that count."""

    def __init__(self, observer, nodes):
        self.longest_ms = {node: 0 for node in nodes}
        self.polls = 0
        self.failures = 0
        self._observer = observer
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._poll, daemon=True)
        self._thread.start()

    def stop(self):
        self._stop.set()
        self._thread.join()

    def _poll(self):
        while not self._stop.wait(_POLL_SECONDS):
            status = self._observer.status()
            if status is None:
                self.failures += 1
                continue
            self.polls += 1
            for entry in status["nodes"]:
                if entry["node"] in self.longest_ms:
                    self.longest_ms[entry["node"]] = max(
                        self.longest_ms[entry["node"]], int(entry.get("silent_ms", 0)))

# SPDX-License-Identifier: Apache-2.0
"""A private network for a test: racks, links of a given speed, and counts of the bytes on them.

Everything lives in namespaces that end with the test, however it ends. Needs root, or a kernel that
lets users create namespaces; otherwise tests are skipped with the reason.
"""

import contextlib
import ctypes
import json
import os
import re
import shutil
import socket
import subprocess
import unittest

from tests.process import program

_RELAY = program.built("tests/relay/relay")
# The longest queue to the relay in each node.
_RELAY_PACKETS = 5000

_CLONE_NEWNS = 0x00020000
_CLONE_NEWUSER = 0x10000000
_CLONE_NEWNET = 0x40000000
_NAMES = "/run/netns"
# Large packets keep headers below one percent of the counted bytes.
_MTU = 9000
# The burst of a token bucket, and the queue that it adds before it drops.
_BURST_SECONDS = 0.004
_BURST_BYTES_MIN = 64 * 1024
_QUEUE_SECONDS = 0.1
_QUEUE_BYTES_MIN = 256 * 1024

_entered = None


def _tool(name):
    """The path of a tool; the folders of system tools are not always in PATH."""
    path = shutil.which(name, path=os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin", "/sbin"]))
    if path is None:
        raise OSError(f"{name} is not installed")
    return path


def _execute(tool, *words):
    command = [_tool(tool), *map(str, words)]
    run = subprocess.run(command, capture_output=True, text=True)
    if run.returncode != 0:
        raise OSError(f"{' '.join(command)}: {run.stderr.strip()}")
    return run.stdout


def _write(path, text):
    with open(path, "w", encoding="ascii") as file:
        file.write(text)


def _unshare(flags):
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(flags) != 0:
        raise OSError(f"no new namespaces: {os.strerror(ctypes.get_errno())}")


@contextlib.contextmanager
def _inside(name):
    """This thread is in the namespace meanwhile."""
    libc = ctypes.CDLL(None, use_errno=True)
    with open("/proc/thread-self/ns/net", "rb") as home, open(f"{_NAMES}/{name}", "rb") as there:
        if libc.setns(there.fileno(), _CLONE_NEWNET) != 0:
            raise OSError(f"no way into {name}: {os.strerror(ctypes.get_errno())}")
        try:
            yield
        finally:
            if libc.setns(home.fileno(), _CLONE_NEWNET) != 0:
                raise OSError(f"no way back: {os.strerror(ctypes.get_errno())}")


def _leave_the_world():
    """Gives this process and its children a network and mounts of their own."""
    user, group = os.getuid(), os.getgid()
    try:
        _unshare(_CLONE_NEWNS | _CLONE_NEWNET)
    except OSError:
        _unshare(_CLONE_NEWUSER | _CLONE_NEWNS | _CLONE_NEWNET)
        _write("/proc/self/setgroups", "deny")
        _write("/proc/self/uid_map", f"0 {user} 1")
        _write("/proc/self/gid_map", f"0 {group} 1")
    # First, so that processes here have loopback even if the rest fails.
    _execute("ip", "link", "set", "lo", "up")
    _execute("mount", "--make-rprivate", "/")
    # Names of namespaces are mounts; only this process and its children see these.
    _execute("mount", "-t", "tmpfs", "tmpfs", "/run")
    os.mkdir(_NAMES)


def enter():
    """Call it once, before any process is started. unittest.SkipTest: the reason."""
    global _entered
    if _entered is None:
        try:
            for tool in ("ip", "tc", "nsenter", "mount"):
                _tool(tool)
            _leave_the_world()
            _probe()
            _entered = ""
        except OSError as error:
            _entered = str(error)
    if _entered:
        print(f"SKIPPED: {_entered}", flush=True)
        raise unittest.SkipTest(_entered)


def show_file(test, path, text):
    """This process and its children see a file with this text at `path`, until `test` ends."""
    enter()
    shown = os.path.join(test.folder, f"shown-{os.path.basename(path)}")
    _write(shown, text)
    _execute("mount", "--bind", shown, path)
    test.addCleanup(_execute, "umount", path)


def silence_the_resolver(test):
    """Lookups of names get no answer from now on, in this process and its children, for `test`."""
    enter()
    resolver = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    test.addCleanup(resolver.close)
    resolver.bind(("127.0.0.1", 53))
    show_file(test, "/etc/resolv.conf", "nameserver 127.0.0.1\n")


def _probe():
    """Tries the features that tests need: a link with a token bucket."""
    _execute("ip", "link", "add", "probe0", "type", "veth", "peer", "name", "probe1")
    _shape("probe0", 10**8)
    _execute("ip", "link", "add", "probe2", "type", "bridge")
    _execute("ip", "link", "del", "probe2")
    _execute("ip", "link", "del", "probe0")


def _shape(device, bits_per_second, namespace=None, burst_min=_BURST_BYTES_MIN):
    """Limits the rate at which packets leave `device`."""
    where = ["-n", namespace] if namespace else []
    bytes_per_second = bits_per_second // 8
    burst = max(burst_min, int(bytes_per_second * _BURST_SECONDS))
    queue = max(_QUEUE_BYTES_MIN, int(bytes_per_second * _QUEUE_SECONDS))
    _execute("tc", *where, "qdisc", "replace", "dev", device, "root", "tbf",
             "rate", f"{bits_per_second}bit", "burst", burst, "limit", burst + queue)


def _counters(device):
    """Bytes that (left, reached) this thread's namespace through a device."""
    with open("/proc/thread-self/net/dev", encoding="ascii") as file:
        [line] = [line for line in file if line.strip().startswith(f"{device}:")]
    numbers = line.partition(":")[2].split()
    return int(numbers[8]), int(numbers[0])


def loopback_bytes():
    """Bytes that this process and its children have sent over loopback; after enter()."""
    return _counters("lo")[0]


def shape_loopback(test, bits_per_second):
    """Limits the rate of this process's and its children's loopback, until `test` ends."""
    enter()
    _execute("ip", "link", "set", "lo", "mtu", _MTU)
    _shape("lo", bits_per_second)
    test.addCleanup(_execute, "tc", "qdisc", "del", "dev", "lo", "root")


class Namespace:
    """A machine, or a switch, of the network."""

    def __init__(self, name):
        self.name = name
        _execute("ip", "netns", "add", name)
        # Addresses are assigned here; the kernel need not look for others.
        self._disable_ipv6(1)
        self.ip("link", "set", "lo", "up")

    def _disable_ipv6(self, number):
        folder = "/proc/sys/net/ipv6/conf"
        self.enter_and("sh", "-c", f"echo {number} > {folder}/all/disable_ipv6"
                       f" && echo {number} > {folder}/default/disable_ipv6")

    @property
    def path(self):
        """A file that stands for it, as setns() takes it."""
        return f"{_NAMES}/{self.name}"

    def command(self):
        """The prefix of a command line that runs here."""
        return [_tool("nsenter"), f"--net={self.path}", "--"]

    def enter_and(self, *command):
        return _execute(*self.command(), *command)

    def ip(self, *words):
        return _execute("ip", "-n", self.name, *words)

    def counters(self, device):
        """Bytes that (left, reached) it through a device, including headers.

        Without a process of its own, so that many devices are read within milliseconds.
        """
        with _inside(self.name):
            return _counters(device)


class Node(Namespace):
    """A machine with an address."""

    def __init__(self, name, address):
        super().__init__(name)
        self.address = address

    def take_address(self, device):
        """Has its address at this device, in a network of 2**8 addresses of IPv4 or 2**64 of IPv6."""
        if ":" in self.address:
            self._disable_ipv6(0)
            self.ip("address", "add", f"{self.address}/64", "dev", device, "nodad")
        else:
            self.ip("address", "add", f"{self.address}/24", "dev", device)


def _link(one, one_device, other, other_device, bits_per_second=None, burst_min=_BURST_BYTES_MIN):
    """A cable between namespaces, equally fast in each direction; None = unlimited."""
    one.ip("link", "add", one_device, "mtu", _MTU, "type", "veth",
           "peer", "name", other_device, "mtu", _MTU, "netns", other.name)
    for end, device in ((one, one_device), (other, other_device)):
        end.ip("link", "set", device, "up")
        if bits_per_second:
            _shape(device, bits_per_second, end.name, burst_min)


class _Switch(Namespace):
    def __init__(self, name):
        super().__init__(name)
        self.ip("link", "add", "bridge", "mtu", _MTU, "type", "bridge")
        self.ip("link", "set", "bridge", "up")

    def attach(self, other, device, own_device, bits_per_second=None):
        _link(other, device, self, own_device, bits_per_second)
        self.ip("link", "set", own_device, "master", "bridge")


class _Network:
    """A network that ends with its test. `test`: a ProcessTest."""

    def __init__(self, test):
        enter()
        self._names = []
        test.addCleanup(self.close)

    def _add(self, namespace):
        self._names.append(namespace.name)
        return namespace

    def close(self):
        """Takes the network down; programs that still use it are cut off."""
        while self._names:
            _execute("ip", "netns", "del", self._names.pop())


class _Tree(_Network):
    """Nodes below switches, each of which is connected to the one above by one uplink."""

    def __init__(self, test):
        super().__init__(test)
        self._spine = self._add(_Switch("spine"))
        self.outside = self._node("outside", "10.77.255.1", self._spine, None)

    def _switch(self, name, above, bits_per_second, burst_min=_BURST_BYTES_MIN):
        switch = self._add(_Switch(name))
        _link(switch, "uplink", above, name, bits_per_second, burst_min)
        switch.ip("link", "set", "uplink", "master", "bridge")
        above.ip("link", "set", name, "master", "bridge")
        return switch

    def _node(self, name, address, switch, bits_per_second):
        node = self._add(Node(name, address))
        switch.attach(node, "eth", name, bits_per_second)
        node.ip("address", "add", f"{address}/16", "dev", "eth")
        return node


class Racks(_Tree):
    """Racks of nodes; each rack is connected to a spine by one uplink, and so is `outside`.

    rack_bits, uplink_bits: bits per second of a node's link and of a rack's uplink.
    """

    def __init__(self, test, racks, nodes_per_rack, rack_bits, uplink_bits):
        super().__init__(test)
        self._switches = []
        self.racks = []
        for rack in range(racks):
            switch = self._switch(f"rack-{rack}", self._spine, uplink_bits)
            self._switches.append(switch)
            self.racks.append([
                self._node(f"node-{rack}-{index}", f"10.77.{rack}.{index + 1}", switch, rack_bits)
                for index in range(nodes_per_rack)])

    @property
    def nodes(self):
        """Rack by rack."""
        return [node for rack in self.racks for node in rack]

    def cut(self, rack):
        """From now on no packet leaves or reaches the rack."""
        self._switches[rack].ip("link", "set", "uplink", "down")

    def mend(self, rack):
        self._switches[rack].ip("link", "set", "uplink", "up")

    def uplink_bytes(self):
        """For each rack, the bytes that (left, reached) it."""
        return [switch.counters("uplink") for switch in self._switches]


class Zones(_Tree):
    """Zones of racks of nodes, and `outside`, below one spine.

    shape: (zones, racks in each, nodes in each of these). bits: bits per second of the uplinks of
    a zone, a rack and a node.
    """

    # Small beside a probe of workers, so that probes measure the rate.
    _BURST_BYTES = 20 * 1024

    def __init__(self, test, shape, bits):
        super().__init__(test)
        zones, racks, nodes = shape
        zone_bits, rack_bits, node_bits = bits
        self._zones, self._racks = [], []
        self.nodes, self.labels = [], []
        for zone in range(zones):
            above = self._switch(f"zone-{zone}", self._spine, zone_bits, self._BURST_BYTES)
            self._zones.append(above)
            for rack in range(zone * racks, (zone + 1) * racks):
                switch = self._switch(f"rack-{rack}", above, rack_bits, self._BURST_BYTES)
                self._racks.append(switch)
                for index in range(nodes):
                    name = f"node-{rack}-{index}"
                    self.nodes.append(
                        self._node(name, f"10.77.{rack}.{index + 1}", switch, node_bits))
                    self.labels.append(f"zone-{zone}/rack-{rack}/{name}")

    def uplink_bytes(self):
        """Bytes that have left each zone, each rack and each node."""
        return [[namespace.counters(device)[0] for namespace in tier]
                for tier, device in ((self._zones, "uplink"), (self._racks, "uplink"),
                                     (self.nodes, "eth"))]


class Hosts(_Network):
    """Nodes with these addresses, and one switch between them."""

    def __init__(self, test, addresses):
        super().__init__(test)
        self.switch = self._add(_Switch("switch"))
        self.nodes = []
        for index, address in enumerate(addresses):
            node = self._add(Node(f"host-{index}", address))
            self.switch.attach(node, "eth", node.name)
            node.take_address("eth")
            self.nodes.append(node)


class Mesh(_Network):
    """Nodes with a dedicated link between each pair, and an unshaped one to `outside`."""

    def __init__(self, test, nodes, bits_per_second):
        super().__init__(test)
        switch = self._add(_Switch("switch"))
        self.outside = self._add(Node("outside", "10.78.255.1"))
        self._attach(switch, self.outside, self.outside.address)
        self.nodes = []
        for index in range(nodes):
            node = self._add(Node(f"node-{index}", f"10.77.0.{index + 1}"))
            node.ip("address", "add", f"{node.address}/32", "dev", "lo")
            self._attach(switch, node, f"10.78.0.{index + 1}")
            for other in self.nodes:
                _link(node, f"to-{other.name}", other, f"to-{node.name}", bits_per_second)
                self._route(node, other)
                self._route(other, node)
            self.outside.ip("route", "add", f"{node.address}/32", "via", f"10.78.0.{index + 1}")
            self.nodes.append(node)

    @staticmethod
    def _attach(switch, node, address):
        switch.attach(node, "eth", node.name)
        node.ip("address", "add", f"{address}/16", "dev", "eth")

    @staticmethod
    def _route(source, target):
        source.ip("route", "add", f"{target.address}/32", "dev", f"to-{target.name}",
                  "src", source.address)

    def link_bytes(self):
        """{(from, to): bytes} for each pair of indices."""
        return {(one, other): node.counters(f"to-node-{other}")[0]
                for one, node in enumerate(self.nodes)
                for other in range(len(self.nodes)) if other != one}


class Relayed(_Network):
    """Nodes called `names` with one switch between them that injects faults on command.

    Packets pass through a process (tests/relay) over TUN devices, since kernels may lack netem.
    faults: path of a plan that begins at once (common/faults/fault_file.h).
    """

    def __init__(self, test, names, seed=1, faults=None):
        super().__init__(test)
        if not os.path.exists("/dev/net/tun"):
            raise unittest.SkipTest("there is no /dev/net/tun")
        self.nodes = {}
        words = []
        for index, name in enumerate(names):
            # Faults name nodes as their targets; the names of namespaces are internal.
            node = self._add(Node(f"relayed-{index}", f"10.79.0.{index + 1}"))
            self.nodes[name] = node
            words.append(f"{name}={node.address}={node.path}")
        options = [] if faults is None else ["--faults", faults]
        self._relay = test.start("relay", [_RELAY, "--seed", seed, *options, "--", *words])
        try:
            self._relay.await_line(r"\bready\b")
        except AssertionError:
            if re.search("Operation not permitted|Permission denied", str(self._relay)):
                raise unittest.SkipTest(f"no TUN devices: {self._relay}") from None
            raise
        for node in self.nodes.values():
            node.ip("address", "add", f"{node.address}/24", "dev", "relay0")
            node.ip("link", "set", "relay0", "up", "mtu", _MTU, "txqueuelen", _RELAY_PACKETS)

    def fault(self, kind, target, seconds=None, **arguments):
        """Injects a fault from now on, for a number of seconds or permanently."""
        fault = {"kind": kind, "target": target}
        if seconds is not None:
            fault["for"] = f"{seconds}s"
        if arguments:
            fault["args"] = arguments
        self._say(json.dumps(fault), "accepted")

    def heal(self):
        """Ends all faults."""
        self._say("heal", "healed")

    def counts(self):
        """{fate of packets: their number} since the beginning."""
        line = self._say("counts", "counts").string
        return {name: int(number) for name, number in re.findall(r"\b(\w+)\W+(\d+)\b",
                                                                 line.partition("counts")[2])}

    def _say(self, line, answer):
        """Waits until the command was executed; returns the match of the answer."""
        before = self._relay.count(rf"\b({answer}|refused)\b")
        self._relay.say(line)
        found = self._relay.await_line(rf"\b({answer}|refused)\b", count=before + 1)
        if found.group(1) == "refused":
            raise AssertionError(f"refused: {found.string}")
        return found

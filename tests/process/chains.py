# SPDX-License-Identifier: Apache-2.0
"""Replica chains as `covey status` shows them."""

from tests.process import cluster, program


def of(status):
    """{(table name, shard index): [(server name, joining)]}, head first."""
    names = {node["id"]: node["name"] for node in status["view"]["nodes"]}
    found = {}
    for table in status["view"].get("tables", []):
        for shard in table["shards"]:
            found[table["spec"]["name"], int(shard.get("index", 0))] = [
                (names[replica["node"]], bool(replica.get("joining")))
                for replica in shard.get("chain", [])]
    return found


def whole(status):
    """Whether every chain has as many joined replicas as table and number of servers allow."""
    alive = {node["name"] for node in cluster.nodes(status, "SERVER") if not node.get("draining")}
    wanted = {table["spec"]["name"]: _wanted(table["spec"])
              for table in status["view"].get("tables", [])}
    for (table, _), chain in of(status).items():
        servers = {server for server, joining in chain if not joining}
        if len(chain) != len(servers) or not servers <= alive:
            return False
        if len(servers) != min(wanted[table], len(alive)):
            return False
    return True


def _wanted(spec):
    return 1 if spec.get("durability") == "MEMORY" else int(spec.get("replicas", 0)) or 2


def servers_of(status, position):
    """Names of the servers at a position of any chain: 0 = heads, -1 = tails."""
    return sorted({chain[position][0] for chain in of(status).values() if chain})


def await_whole(observer, seconds=program.PATIENCE_SECONDS):
    """Restarts dead servers until all are live and every chain is whole; returns the status."""
    newest = []

    def is_whole():
        observer.restart_the_fallen()
        status = observer.status()
        if status is None:
            return False
        newest[:] = [status]
        # The view may still have dead servers for a while.
        alive = {int(node["process_id"]) for node in cluster.nodes(status, "SERVER")}
        return alive == {server.pid for server in observer.servers} and whole(status)

    try:
        program.await_true(is_whole, "all servers and whole chains", seconds)
    except AssertionError as error:
        chains = of(newest[0]) if newest else "no status"
        events = [event["text"] for event in newest[0]["events"]][-100:] if newest else []
        raise AssertionError("\n".join([f"{error}: {chains}", *events])) from None
    return newest[0]

"""The servers of a store as this process knows them."""

from __future__ import annotations

import os

from switchgear._error import StoreError
from switchgear._native import Node
from switchgear.redis._clients import Client, Kind


class Nodes:
    """One `Node` for each server that the client knows: for all circuits that live there.

    A process that was forked knows nothing of what its parent knew.
    """

    __slots__ = ("_client", "_of_process", "_troubles")

    def __init__(self, client: Client) -> None:
        self._client = client
        self._of_process: tuple[int, dict[str, Node]] = (os.getpid(), {})
        self._troubles: dict[Node, StoreError] = {}

    def of(self, key: str, before: Node | None = None) -> Node:
        """The server that has a key. Where nobody knows which that is: `before`, or the same one for all such keys."""
        pid, nodes = self._of_process
        if pid != os.getpid():
            nodes = {}
            self._troubles = {}
            self._of_process = (os.getpid(), nodes)
        name = self._name_of(key)
        if not name and before is not None:
            return before
        node = nodes.get(name)
        # One operation: two threads get the same.
        return nodes.setdefault(name, Node()) if node is None else node

    def note(self, node: Node, error: StoreError) -> None:
        """Remembers what went wrong with a server."""
        self._troubles[node] = error

    def trouble(self, node: Node) -> StoreError:
        """What went wrong last with a server, for those who ask while it is not asked."""
        return self._troubles.get(node) or StoreError("the store is not asked until it answers again")

    def _name_of(self, key: str) -> str:
        if self._client.kind is not Kind.CLUSTER:
            return ""
        try:
            return str(self._client.given.get_node_from_key(key.encode()).name)
        except Exception:  # noqa: BLE001 - the slots are not known yet, say
            return ""

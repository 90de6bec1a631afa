"""The contract of an EventStore. A backend's test derives a class, gives it a fixture `store`, and says how to damage an
artifact; one that outlives its process derives DurableContract too, with a fixture `open_again`."""
from __future__ import annotations

from append_contract import AppendContract
from beside_contract import BesideContract, DurableContract
from order_contract import OrderContract

__all__ = ["DurableContract", "EventStoreContract"]


class EventStoreContract(AppendContract, OrderContract, BesideContract):
    pass

"""What an append must be before a database is asked."""
from __future__ import annotations

from ledgergraph.eventstore.store import Append
from ledgergraph.schemas.envelope import NO_HASH
from ledgergraph.schemas.errors import InvalidInput


def check_append(append: Append) -> None:
    """Compares columns and header of each event with what goes before it, without hashing. Raises InvalidInput: a writer
    that made these events has a fault, which no second try would mend."""
    if not append.events:
        raise InvalidInput(f"an append to stream {append.stream!r} holds no events. Append at least one.")
    version, previous = append.expected_version, append.expected_hash
    if version == 0:
        previous = append.origin or NO_HASH
        if append.expected_hash not in (NO_HASH, previous):
            raise InvalidInput(f"an append to the new stream {append.stream!r} expects the hash {append.expected_hash.hex()[:16]}. "
                               "Expect zeros, or for a fork its origin.")
    stream = append.stream
    for event in append.events:
        version += 1
        data = event.data
        if event.version != version or int.from_bytes(data[17:25], "big") != version or event.stream != stream:
            raise InvalidInput(f"an append to stream {stream!r} holds event {event.version} of {event.stream!r} where version "
                               f"{version} was due. Make an append's events with one Chain.")
        if data[43:75] != previous:
            raise InvalidInput(f"event {version} of stream {stream!r} names the previous hash {data[43:75].hex()[:16]}, due was "
                               f"{previous.hex()[:16]}. Make an append's events with one Chain.")
        previous = event.hash

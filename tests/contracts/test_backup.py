"""A backup loses no commit, opens where it lies, and never leaves half a file."""
from __future__ import annotations

import sqlite3
import threading
from contextlib import closing
from pathlib import Path

import pytest
from stream_writer import StreamWriter, task_row

from ledgergraph.eventstore.backup import backup
from ledgergraph.eventstore.chain import verify
from ledgergraph.eventstore.migrations import upgrade
from ledgergraph.eventstore.opening import open_store, shown_url
from ledgergraph.eventstore.store import Rows
from ledgergraph.schemas.errors import DamagedLog, InvalidInput, NewerLog, NotALog, OlderLog


def _log(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'ledger.db'}"


def _files(folder: Path) -> set[str]:
    return {p.name for p in folder.iterdir()}


def test_a_copy_holds_what_stood_only_in_the_write_ahead_log(tmp_path: Path) -> None:
    with closing(open_store(_log(tmp_path))) as store:
        writer = StreamWriter("thread:a")
        writer.store(store, 3, key="k", rows=Rows(put_tasks=(task_row("t1"),)))
        backup(_log(tmp_path), tmp_path / "copy.db")
        events = store.read_all()
        writer.store(store, 1)
    assert _files(tmp_path) == {"ledger.db", "ledger.db.lock", "copy.db"} or _files(tmp_path) == {"ledger.db", "copy.db"}
    with closing(open_store(f"sqlite:///{tmp_path / 'copy.db'}")) as copy:
        assert copy.read_all() == events
        assert copy.tasks() == [task_row("t1")]
        assert copy.incarnation == store.incarnation


def test_a_copy_can_be_appended_to_at_the_logs_own_place(tmp_path: Path) -> None:
    writer = StreamWriter("thread:a")
    with closing(open_store(_log(tmp_path))) as store:
        writer.store(store, 3)
    backup(_log(tmp_path), tmp_path / "copy.db")
    (tmp_path / "ledger.db").unlink()
    (tmp_path / "copy.db").rename(tmp_path / "ledger.db")
    with closing(open_store(_log(tmp_path))) as restored:
        writer.store(restored, 2)
        assert verify(restored) == (5, 1)


def test_a_copy_made_while_others_append_is_one_moments_state(tmp_path: Path) -> None:
    with closing(open_store(_log(tmp_path))) as store:
        going, done = threading.Event(), threading.Event()

        def write(number: int) -> None:
            writer = StreamWriter(f"thread:{number}")
            while not done.is_set():
                writer.store(store, 2)
                going.set()

        threads = [threading.Thread(target=write, args=(n,)) for n in range(3)]
        for thread in threads:
            thread.start()
        assert going.wait(30)
        for n in range(3):
            before = store.last_position()
            backup(_log(tmp_path), tmp_path / f"copy{n}.db")
            with closing(open_store(f"sqlite:///{tmp_path / f'copy{n}.db'}")) as copy:
                assert copy.last_position() >= before
                assert verify(copy).events == copy.last_position()
        done.set()
        for thread in threads:
            thread.join(30)


def test_a_damaged_log_gives_no_copy(tmp_path: Path) -> None:
    with closing(open_store(_log(tmp_path))) as store:
        StreamWriter("thread:a").store(store, 3)
    with closing(sqlite3.connect(tmp_path / "ledger.db")) as db:
        db.execute("UPDATE events SET data = zeroblob(length(data)) WHERE position = 2")
        db.commit()
    with pytest.raises((DamagedLog, NewerLog)):
        backup(_log(tmp_path), tmp_path / "copy.db")
    assert not [name for name in _files(tmp_path) if name.startswith("copy")]


def test_an_older_log_can_be_copied(tmp_path: Path) -> None:
    open_store(_log(tmp_path)).close()
    with closing(sqlite3.connect(tmp_path / "ledger.db")) as db:
        db.execute("UPDATE alembic_version SET version_num = ''")
        db.commit()
    with pytest.raises(OlderLog):
        open_store(_log(tmp_path))
    backup(_log(tmp_path), tmp_path / "copy.db")
    assert (tmp_path / "copy.db").exists()


def test_what_cannot_be_copied_is_refused_with_a_remedy(tmp_path: Path) -> None:
    target = tmp_path / "copy.db"
    with pytest.raises(InvalidInput, match="in memory"):
        backup("memory://", target)
    with pytest.raises(InvalidInput, match="pg_dump") as refused:
        backup("postgresql+psycopg://u:hunter2@h/db?sslpassword=hunter2", target)
    assert "hunter2" not in str(refused.value)
    with pytest.raises(InvalidInput, match="there is no log"):
        backup(_log(tmp_path), target)
    open_store(_log(tmp_path)).close()
    with pytest.raises(InvalidInput, match="mkdir"):
        backup(_log(tmp_path), tmp_path / "missing" / "copy.db")
    target.write_bytes(b"precious")
    with pytest.raises(InvalidInput, match="exists"):
        backup(_log(tmp_path), target)
    assert target.read_bytes() == b"precious"


def test_an_upgrade_makes_a_new_log_and_leaves_one_that_is_up_to_date(tmp_path: Path) -> None:
    upgrade(_log(tmp_path))
    with closing(open_store(_log(tmp_path))) as store:
        StreamWriter("thread:a").store(store, 1)
    upgrade(_log(tmp_path))
    with closing(open_store(_log(tmp_path))) as store:
        assert store.last_position() == 1


def test_an_upgrade_leaves_alone_what_is_newer_or_not_ours(tmp_path: Path) -> None:
    open_store(_log(tmp_path)).close()
    with closing(sqlite3.connect(tmp_path / "ledger.db")) as db:
        db.execute("UPDATE log SET format = 99")
        db.commit()
    with pytest.raises(NewerLog):
        upgrade(_log(tmp_path))
    (tmp_path / "notes.db").write_text("dear diary, today I did not write a database at all")
    with pytest.raises(NotALog):
        upgrade(f"sqlite:///{tmp_path / 'notes.db'}")


def test_a_shown_url_has_no_password() -> None:
    shown = shown_url("postgresql+psycopg://u:hunter2@h:5/db?password=hunter2&sslpassword=hunter2&application_name=x")
    assert "hunter2" not in shown
    assert "u:***@h:5/db" in shown and "application_name=x" in shown

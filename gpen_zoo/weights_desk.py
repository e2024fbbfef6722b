"""Weights as the page handles them: look, fetch, verify, remove, take in; who may, and what must be accepted before."""

from __future__ import annotations

import hmac
import threading
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from pathlib import Path

from gpen_zoo.architecture import Config
from gpen_zoo.budget import Facts, Plan, Row, ladder, plans_table
from gpen_zoo.desk import Desk
from gpen_zoo.errors import guarded
from gpen_zoo.fetch import Progress
from gpen_zoo.hints import Note, note
from gpen_zoo.lock import TICK_NS
from gpen_zoo.manifest import Entry
from gpen_zoo.obtain import Wish, parts_of
from gpen_zoo.restore import Restorer, load
from gpen_zoo.zoo import Zoo

# Terms that allow any use; for all others the page wants a tick first.
FREE = ("CC0-1.0", "MIT", "BSD-3-Clause", "Apache-2.0")


class WeightsDesk:
    """Serves the Weights tab. After every change `desk` restores with what is installed then.

    locked: changes need the token. token: None means that nobody has set one, and then nobody can change anything.
    """

    def __init__(
        self,
        zoo: Zoo,
        desk: Desk,
        *,
        locked: bool,
        token: str | None,
        restorer_of: Callable[[Zoo], Restorer] | None = None,
    ) -> None:
        self.zoo, self.locked = zoo, locked
        self._restorer_of = restorer_of or (lambda zoo: load(zoo=zoo))
        self._desk, self._token = desk, token
        self._stops: dict[str, threading.Event] = {}
        self._changing = threading.Lock()

    def refusal(self, token: str | None) -> Note | None:
        """Why this visitor may not change anything, None when they may."""
        if not self.locked:
            return None
        if not self._token:
            return note("S20")
        given, wanted = (token or "").strip().encode(), self._token.encode()
        return None if hmac.compare_digest(given, wanted) else note("S21")

    def in_use(self) -> tuple[str, ...]:
        """Names of the weights that restore faces now."""
        return self._desk.in_use

    def wants_consent(self, entry: Entry) -> bool:
        """Whether its terms have to be accepted before its first use."""
        return entry.licence.spdx not in FREE and not self.zoo.present(entry)

    def restricted(self, names: Collection[str]) -> tuple[Entry, ...]:
        """Of the weights of these names, those whose terms do not allow any use."""
        return tuple(e for e in self.zoo.entries if e.name in names and e.licence.spdx not in FREE)

    def download(
        self,
        key: str,
        name: str,
        *,
        token: str | None,
        consent: bool,
        wish: Wish | None = None,
        tell: Callable[[Progress], None] | None = None,
    ) -> Note:
        """Fetch a weight for visitor `key`, who may `stop` it; what came of it."""
        wish = wish or Wish()
        entry = self.zoo.entry(name)
        if refused := self.refusal(token):
            return refused
        if self.wants_consent(entry) and not consent:
            return note("S22", name=entry.name)
        with self._stoppable(key) as stop:
            wish = Wish(
                source=wish.source,
                endpoint=wish.endpoint or None,
                accept_unpinned=wish.accept_unpinned,
                limits=wish.limits,
                report=tell,
                cancelled=stop.is_set,
            )

            def work() -> Note:
                installed = self.zoo.download(name, wish)
                if installed.fresh or self._overtaken():
                    self.use(entry.name)
                if not installed.fresh:
                    return note("S24", name=entry.name)
                return note("S23", name=entry.name, source=installed.record.source if installed.record else "-")

            return guarded(work)

    def stop(self, key: str) -> None:
        """End this visitor's download; what arrived is kept."""
        if stop := self._stops.get(key):
            stop.set()

    def downloading(self, key: str) -> bool:
        """Whether this visitor's download is still running."""
        return key in self._stops

    def removable(self, entry: Entry) -> bool:
        """Whether `remove` would find something: a file, or what a broken download has left."""
        there = [self.zoo.path_of(entry), *parts_of(self.zoo.home, entry)]
        return not entry.bundled and any(path.is_file() for path in there)

    def verify(self, name: str, *, token: str | None) -> Note:
        """Hash the file again. It costs seconds of a processor, so it needs the same right as a change."""
        if refused := self.refusal(token):
            return refused
        return guarded(lambda: self.zoo.verify(name))

    def remove(self, name: str, *, token: str | None) -> Note:
        """Delete an installed weight."""

        def work() -> Note:
            freed = self.zoo.remove(name)
            self.use(self.zoo.entry(name).name)
            return note("S25", name=self.zoo.entry(name).name, mb=f"{freed / 1e6:.0f}")

        if refused := self.refusal(token):
            return refused
        return guarded(work)

    def inspect(self, path: str | None, *, token: str | None) -> Note:
        """What an uploaded file is."""
        if not path:
            return note("S26")
        if refused := self.refusal(token):
            return refused
        return guarded(lambda: self.zoo.inspect(Path(path)).note)

    def adopt(self, path: str | None, *, name: str, token: str | None, consent: bool, accept_unpinned: bool) -> Note:
        """Take an uploaded file into the zoo. name: what it is meant to be, "" to go by its digest."""
        if not path:
            return note("S26")
        if refused := self.refusal(token):
            return refused

        def work() -> Note:
            wanted = self.zoo.entry(name) if name else None
            # Asked even when the digest will tell the name: most terms here want it, and nobody is harmed.
            if not consent and (wanted is None or self.wants_consent(wanted)):
                return note("S22", name=name or Path(path).name)
            installed = self.zoo.adopt(Path(path), name=name, accept_unpinned=accept_unpinned)
            for one in installed:
                if one.fresh or self._overtaken():
                    self.use(one.entry.name)
            return note("S23", name=", ".join(one.entry.name for one in installed), source=Path(path).name)

        return guarded(work)

    def branches(self) -> dict[str, Config]:
        """The official GPEN restorers of the manifest, smallest first."""
        found = {
            entry.name: Config(**{k: v for k, v in entry.architecture.params.items() if k != "family"})  # type: ignore[arg-type]
            for entry in self.zoo.branches()
        }
        return dict(sorted(found.items(), key=lambda item: item[1].size))

    def table(self, device: str) -> tuple[Row, ...]:
        """Plans by memory, as the engine would make them. device: `cuda` or `cpu`."""
        return plans_table(self.branches(), device)

    def plans_here(self, facts: Facts) -> dict[str, Plan]:
        """The plan each branch would start with on this machine."""
        return {name: ladder(branch, facts)[0] for name, branch in self.branches().items()}

    def use(self, changed: str) -> None:
        """Restore with what is installed now."""
        with self._changing:
            # The zoo does not remember the digest of a file younger than this, and would call it unverified.
            time.sleep(1.2 * TICK_NS / 1e9)
            self._desk.use(self._restorer_of(self.zoo), changed)

    def _overtaken(self) -> bool:
        """Whether another process has brought in or removed what restores faces."""
        return tuple(branch.name for branch in self._restorer_of(self.zoo).branches) != self.in_use()

    @contextmanager
    def _stoppable(self, key: str) -> Iterator[threading.Event]:
        stop = self._stops[key] = threading.Event()
        try:
            yield stop
        finally:
            self._stops.pop(key, None)

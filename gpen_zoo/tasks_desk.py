"""What happens when a visitor of the page colours a photo, fills something in, or makes a face from a label map.

As in desk.py every method answers with a value: the picture, or the note that says why there is none.
"""

from __future__ import annotations

import shutil
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from threading import Event

from gpen_zoo import zerogpu
from gpen_zoo.branches import Branch
from gpen_zoo.desk import Desk, Stage
from gpen_zoo.errors import Cancelled, guarded
from gpen_zoo.fill_mask import mask_of, painted_over
from gpen_zoo.hints import Note, note
from gpen_zoo.image_io import output_format, output_name, read, write
from gpen_zoo.label_map import read_label_map
from gpen_zoo.manifest import Entry
from gpen_zoo.previews import LONGEST, write_preview
from gpen_zoo.restore import Progress
from gpen_zoo.sessions import Sessions
from gpen_zoo.task_networks import TASKS, Task, entry_for, load_network
from gpen_zoo.tasks import Area, TaskResult, colorize, inpaint, seg2face
from gpen_zoo.types import Image
from gpen_zoo.zoo import Zoo

KEPT = 6  # visitors whose last picture of a task is kept
CANVAS = 1024  # px of the longer side of what is painted on: more only makes painting slow
ENDINGS: dict[Task, str] = {"colorize": "_colorized", "inpaint": "_filled", "seg2face": "_face"}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Picture:
    """A visitor's picture. photo: the uploaded file. format, notes: of reading it. before, after: fitted to a screen.
    canvas: the photo at the size to paint on. full: the previews have all pixels. file: what is downloaded.
    beside: what `after` is compared with, the photo itself or a label map brought to the size of its face."""

    folder: Path
    photo: str
    before: Path
    canvas: Path | None
    full: bool
    format: str
    notes: tuple[Note, ...]
    image: Image | None = None  # None for a label map, which is read when it is used
    result: TaskResult | None = None
    beside: Path | None = None
    after: Path | None = None
    file: Path | None = None

    def shows(self, path: str) -> bool:
        """Whether the page's field, which holds `path`, means this picture."""
        return path in (self.photo, str(self.before))


class TasksDesk:
    """Serves the tabs of the other tasks; photos go one at a time through the line that `desk` keeps."""

    def __init__(self, desk: Desk, zoo: Zoo) -> None:
        self.zoo = zoo
        self._desk = desk
        self.sessions: dict[Task, Sessions[Picture]] = {t: Sessions(desk.sessions.root, KEPT) for t in TASKS}
        self._network: tuple[object, Branch] | None = None  # the last one used: each takes hundreds of megabytes
        self._loading = threading.Lock()

    def entry(self, task: Task) -> Entry:
        """The weight of a task, there or not."""
        return entry_for(self.zoo, task)

    def available(self, task: Task) -> bool:
        """Whether the weights of a task are in the zoo folder."""
        return self.zoo.present(self.entry(task))

    def look(self, key: str, task: Task, photo: str | None) -> Picture | Note:
        """Read the file `photo`; what `key` had before in this task is forgotten."""
        if not photo:
            self.leave(key, task)
            return note("S01")

        def work() -> Picture:
            with self.sessions[task].working(key) as stop:
                picture = self._looked(key, task, photo, stop)
                self._keep(key, task, picture, stop)
                return picture

        return guarded(work)

    def colorize(
        self, key: str, photo: str | None, strength: float, area: Area, tell: Callable[[Stage], None]
    ) -> Picture | Note:
        """The photo in colour. See `tasks.colorize`."""

        def work(picture: Picture, network: Branch, told: Progress) -> TaskResult:
            assert picture.image is not None
            detector = self._desk.restorer.detector
            return colorize(picture.image, network, strength=strength, area=area, detector=detector, tell=told)

        return self._done(key, "colorize", photo, work, tell)

    def inpaint(
        self,
        key: str,
        photo: str | None,
        layers: Sequence[str],
        mask_file: str | None,
        area: Area,
        tell: Callable[[Stage], None],
    ) -> Picture | Note:
        """The photo with what was marked filled in. layers: files of what was painted. mask_file: a mask, used instead
        of them. See `tasks.inpaint`."""

        def work(picture: Picture, network: Branch, told: Progress) -> TaskResult:
            image = picture.image
            assert image is not None
            mask = (
                mask_of(self._desk.read(mask_file, Event()), image.width, image.height)
                if mask_file
                else painted_over([read(layer) for layer in layers], image.width, image.height)
            )
            return inpaint(image, mask, network, area=area, detector=self._desk.restorer.detector, tell=told)

        return self._done(key, "inpaint", photo, work, tell)

    def seg2face(self, key: str, photo: str | None, tell: Callable[[Stage], None]) -> Picture | Note:
        """A face from a label map. See `tasks.seg2face`."""

        def work(picture: Picture, network: Branch, told: Progress) -> TaskResult:
            source = Path(picture.photo)
            return seg2face(read_label_map(source.read_bytes(), name=source.name), network, tell=told)

        return self._done(key, "seg2face", photo, work, tell)

    def full_size(self, key: str, task: Task) -> tuple[Path, Path] | Note:
        """Before and after with all their pixels."""
        picture = self.sessions[task].get(key)
        if picture is None or picture.result is None or picture.after is None:
            return note("S02")
        result, folder = picture.result, picture.folder
        longest = max(result.image.width, result.image.height)

        def work() -> tuple[Path, Path]:
            return (
                write_preview(result.original, folder / "full-before", longest),
                write_preview(result.image, folder / "full-after", longest),
            )

        return guarded(work)

    def stop(self, key: str, task: Task) -> None:
        """Let the running work end at its next step."""
        self.sessions[task].stop(key)

    def leave(self, key: str, task: Task | None = None) -> None:
        """The visitor has taken the picture away, or (no task) closed the page."""
        for one in TASKS if task is None else (task,):
            self.sessions[one].stop(key)
            self.sessions[one].drop(key)

    def _looked(self, key: str, task: Task, photo: str, stop: Event) -> Picture:
        known = self.sessions[task].get(key)
        if known is not None and known.shows(photo):
            return known
        self.sessions[task].drop(key)
        if task == "seg2face":
            label_map = read_label_map(Path(photo).read_bytes(), name=Path(photo).name)
            image = replace(label_map.image, notes=label_map.notes)
        else:
            image = self._desk.read(photo, stop)
        folder = self.sessions[task].new_folder()
        return Picture(
            folder=folder,
            photo=photo,
            image=None if task == "seg2face" else image,
            before=write_preview(image, folder / "before"),
            canvas=write_preview(image, folder / "canvas", CANVAS) if task == "inpaint" else None,
            full=max(image.width, image.height) <= LONGEST,
            format=image.source.format,
            notes=image.notes,
        )

    def _done(
        self,
        key: str,
        task: Task,
        photo: str | None,
        work: Callable[[Picture, Branch, Progress], TaskResult],
        tell: Callable[[Stage], None],
    ) -> Picture | Note:
        if not photo:
            self.leave(key, task)
            return note("S01")

        def all_of_it() -> Picture:
            with self.sessions[task].working(key) as stop:

                def told(stage: str, done: int, total: int) -> None:
                    if stop.is_set():
                        raise Cancelled("S05")
                    tell(Stage(name=stage, done=done, total=total))

                told("read", 0, 1)
                network = self._load(task)
                picture = self._looked(key, task, photo, stop)
                self._keep(key, task, picture, stop)
                with self._desk.line.turn(stop.is_set, lambda ahead: told("line", ahead, ahead)):
                    result = work(picture, network, told)
                picture = self._with_result(picture, task, result)
                self._keep(key, task, picture, stop)
                return picture

        return guarded(all_of_it)

    def _load(self, task: Task) -> Branch:
        """The network of a task, verified now; the last one used is kept while its file stays the same."""
        with self._loading:
            entry = self.entry(task)
            path = self.zoo.locate(entry.name)
            facts = path.stat()
            known = (entry.name, path, facts.st_mtime_ns, facts.st_size)
            if self._network is None or self._network[0] != known:
                self._network = None  # room for the next
                self._network = known, zerogpu.borrowed_branch(load_network(self.zoo, task))
            return self._network[1]

    def _with_result(self, picture: Picture, task: Task, result: TaskResult) -> Picture:
        why = output_format(result.image)[1]
        result = replace(result, notes=(*result.notes, *([why] if why else [])))
        folder = picture.folder
        number = int(picture.after.stem.partition("-")[2]) + 1 if picture.after else 0
        after = write_preview(result.image, folder / f"after-{number}")
        file = write(result.image, folder / f"file-{number}" / output_name(result.image, ENDINGS[task]))
        beside = write_preview(result.original, folder / "beside") if task == "seg2face" else picture.before
        for old in (folder / f"after-{number - 2}.jpg", folder / f"after-{number - 2}.png"):
            old.unlink(missing_ok=True)
        shutil.rmtree(folder / f"file-{number - 2}", ignore_errors=True)
        return replace(picture, result=result, beside=beside, after=after, file=file)

    def _keep(self, key: str, task: Task, picture: Picture, stop: Event) -> None:
        if stop.is_set():
            raise Cancelled("S05")
        self.sessions[task].put(key, picture)

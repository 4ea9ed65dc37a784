"""Disks for tests: one that fails at a chosen operation, one that loses power.

``PowerLossFiles`` keeps, for each file and folder, what the drive has and what only the cache has. ``disks()`` then
gives every disk that a power cut at this moment may leave: any part of unsynced data, any subset of unsynced names.
It is stricter than most file systems, on purpose.
"""

from __future__ import annotations

import errno
import itertools
import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from app.store.files import Files

_MOST_DISKS = 20_000


class FailingFiles:
    """Passes everything on to ``inner``, but fails from the ``at``-th changing operation on (0: the first).

    A write that fails leaves half of its data behind, as a full disk does.

    Args:
        inner: The disk that really works.
        at: Index of the first operation to fail; None never fails, and ``count`` tells how many there were.
        code: An ``errno`` value: ENOSPC, EROFS, EIO.
        lasting: Whether everything after it fails too. A full disk (ENOSPC) still lets files be removed and cut.
    """

    def __init__(self, inner: Files, *, at: int | None, code: int = errno.ENOSPC, lasting: bool = True) -> None:
        self._inner = inner
        self._at = at
        self._code = code
        self._lasting = lasting
        self.count = 0

    def _fails(self, *, frees: bool = False) -> bool:
        index, self.count = self.count, self.count + 1
        if self._at is None or index < self._at:
            return False
        if frees and self._code == errno.ENOSPC:
            return False
        return self._lasting or index == self._at

    def _error(self, path: Path) -> OSError:
        return OSError(self._code, os.strerror(self._code), str(path))

    def read(self, path: Path) -> bytes:
        """Return the whole file."""
        return self._inner.read(path)

    def exists(self, path: Path) -> bool:
        """Return whether a file or folder stands there."""
        return self._inner.exists(path)

    def size_bytes(self, path: Path) -> int:
        """Return the length of a file."""
        return self._inner.size_bytes(path)

    def list(self, folder: Path) -> list[str]:
        """Return the names in a folder, sorted."""
        return self._inner.list(folder)

    def free_bytes(self, folder: Path) -> int:
        """Return how much may still be written there."""
        return self._inner.free_bytes(folder)

    def write(self, path: Path, data: bytes) -> None:
        """Write, or fail half-way."""
        if self._fails():
            if self._code == errno.ENOSPC:
                self._inner.write(path, data[: len(data) // 2])
            raise self._error(path)
        self._inner.write(path, data)

    def append(self, path: Path, data: bytes) -> None:
        """Append, or fail half-way."""
        if self._fails():
            if self._code == errno.ENOSPC:
                self._inner.append(path, data[: len(data) // 2])
            raise self._error(path)
        self._inner.append(path, data)

    def truncate(self, path: Path, size_bytes: int) -> None:
        """Cut, or fail."""
        if self._fails(frees=True):
            raise self._error(path)
        self._inner.truncate(path, size_bytes)

    def sync(self, path: Path) -> None:
        """Flush, or fail."""
        if self._fails():
            raise self._error(path)
        self._inner.sync(path)

    def rename(self, source: Path, target: Path) -> None:
        """Rename, or fail."""
        if self._fails():
            raise self._error(target)
        self._inner.rename(source, target)

    def unlink(self, path: Path) -> None:
        """Remove, or fail."""
        if self._fails(frees=True):
            raise self._error(path)
        self._inner.unlink(path)

    def make_folder(self, folder: Path) -> None:
        """Create, or fail."""
        if self._fails():
            raise self._error(folder)
        self._inner.make_folder(folder)

    def sync_folder(self, folder: Path) -> None:
        """Flush, or fail."""
        if self._fails():
            raise self._error(folder)
        self._inner.sync_folder(folder)


class PowerCut(BaseException):
    """The machine stopped. Not an Exception: no code of ours runs its handlers after a power cut."""


class _File:
    """Data in the cache, and data on the drive."""

    def __init__(self, data: bytes = b"") -> None:
        self.data = data
        self.durable = data

    def outcomes(self) -> list[bytes]:
        """Return every content that a power cut may leave."""
        old, new = self.durable, self.data
        if old == new:
            return [new]
        start = _same_bytes(old, new)
        middle = (start + len(new)) // 2
        zeros = bytes(len(new))
        torn = [new[:middle], new[:start] + zeros[start:], new[:start] + zeros[start:middle] + new[middle:]]
        return list(dict.fromkeys([old, *torn, new]))


def _same_bytes(old: bytes, new: bytes) -> int:
    """Return how many bytes two contents have in common from the start."""
    if new.startswith(old) or old.startswith(new):
        return min(len(old), len(new))
    different = (index for index, (a, b) in enumerate(zip(old, new, strict=False)) if a != b)
    return next(different, min(len(old), len(new)))


_Change = tuple[str, "_Node | None"]
"""A name, and what it names from then on; None if it is gone."""


class _Folder:
    """Names in the cache, names on the drive, and the changes between them, in order."""

    def __init__(self, names: dict[str, _Node] | None = None) -> None:
        self.names: dict[str, _Node] = dict(names or {})
        self.durable: dict[str, _Node] = dict(self.names)
        self.pending: list[tuple[_Change, ...]] = []

    def change(self, *changes: _Change) -> None:
        """Do changes that belong together: both halves of a rename."""
        _apply(self.names, changes)
        self.pending.append(changes)

    def sync(self) -> None:
        """Bring the drive up to date."""
        self.durable = dict(self.names)
        self.pending.clear()

    def outcomes(self) -> list[dict[str, _Node]]:
        """Return every set of names that a power cut may leave: any subset of the changes, in order."""
        found = []
        for kept in itertools.product((False, True), repeat=len(self.pending)):
            names = dict(self.durable)
            for changes in itertools.compress(self.pending, kept):
                _apply(names, changes)
            found.append(names)
        return found


_Node = _File | _Folder
_Outcome = bytes | dict[str, _Node]


def _apply(names: dict[str, _Node], changes: tuple[_Change, ...]) -> None:
    for name, node in changes:
        if node is None:
            names.pop(name, None)
        else:
            names[name] = node


class PowerLossFiles:
    """A disk in memory whose cache is lost when the power goes.

    Args:
        root: The folder that exists from the start; nothing outside it can be touched.
        cut_at: Index of the changing operation before which the power goes; None: never. ``count`` counts them.
    """

    def __init__(self, root: Path, *, cut_at: int | None = None, tree: _Folder | None = None) -> None:
        self.root = root
        self.cut_at = cut_at
        self.count = 0
        self.free = 1 << 40
        self._tree = tree or _Folder()

    def _step(self) -> None:
        if self.cut_at is not None and self.count >= self.cut_at:
            raise PowerCut
        self.count += 1

    def _find(self, path: Path) -> _Node | None:
        node: _Node | None = self._tree
        for part in path.relative_to(self.root).parts:
            node = node.names.get(part) if isinstance(node, _Folder) else None
        return node

    def _folder(self, path: Path) -> _Folder:
        node = self._find(path)
        if not isinstance(node, _Folder):
            raise FileNotFoundError(errno.ENOENT, "no such folder", str(path))
        return node

    def _file(self, path: Path) -> _File:
        node = self._find(path)
        if not isinstance(node, _File):
            raise FileNotFoundError(errno.ENOENT, "no such file", str(path))
        return node

    def read(self, path: Path) -> bytes:
        """Return the whole file."""
        return self._file(path).data

    def exists(self, path: Path) -> bool:
        """Return whether a file or folder stands there."""
        return self._find(path) is not None

    def size_bytes(self, path: Path) -> int:
        """Return the length of a file."""
        return len(self._file(path).data)

    def list(self, folder: Path) -> list[str]:
        """Return the names in a folder, sorted."""
        node = self._find(folder)
        return sorted(node.names) if isinstance(node, _Folder) else []

    def free_bytes(self, folder: Path) -> int:  # noqa: ARG002 - one disk
        """Return what the test has set."""
        return self.free

    def write(self, path: Path, data: bytes) -> None:
        """Create or overwrite a file, in the cache."""
        self._step()
        node = self._find(path)
        if node is None:
            file = _File()
            self._folder(path.parent).change((path.name, file))
        else:
            file = self._file(path)
        file.data = data

    def append(self, path: Path, data: bytes) -> None:
        """Add to a file, in the cache."""
        self._step()
        self._file(path).data += data

    def truncate(self, path: Path, size_bytes: int) -> None:
        """Cut a file, in the cache."""
        self._step()
        file = self._file(path)
        file.data = file.data[:size_bytes]

    def sync(self, path: Path) -> None:
        """Bring the file's data, not its name, to the drive."""
        self._step()
        file = self._file(path)
        file.durable = file.data

    def rename(self, source: Path, target: Path) -> None:
        """Rename within one folder, in the cache; the store never renames across folders."""
        self._step()
        if source.parent != target.parent:
            raise OSError(errno.EXDEV, "renaming across folders is not modelled", str(target))
        self._folder(source.parent).change((source.name, None), (target.name, self._file(source)))

    def unlink(self, path: Path) -> None:
        """Remove a name, in the cache."""
        self._step()
        self._file(path)
        self._folder(path.parent).change((path.name, None))

    def make_folder(self, folder: Path) -> None:
        """Create a folder, in the cache."""
        self._step()
        if self._find(folder) is None:
            self._folder(folder.parent).change((folder.name, _Folder()))

    def sync_folder(self, folder: Path) -> None:
        """Bring the folder's names to the drive."""
        self._step()
        self._folder(folder).sync()

    def disks(self) -> Iterator[PowerLossFiles]:
        """Yield every disk that a power cut now may leave, each fresh and at rest."""
        nodes = list(_reachable(self._tree))
        outcomes: list[Sequence[_Outcome]] = [node.outcomes() for node in nodes]
        seen: set[_Print] = set()
        for number, chosen in enumerate(itertools.product(*outcomes)):
            if number >= _MOST_DISKS:
                raise OverflowError("too many possible disks: sync more often, or cut earlier")
            state = {id(node): outcome for node, outcome in zip(nodes, chosen, strict=True)}
            tree = _copy_folder(self._tree, state)
            if (found := _print_of(tree)) not in seen:
                seen.add(found)
                yield PowerLossFiles(self.root, tree=tree)


_Print = bytes | frozenset[tuple[str, "_Print"]]


def _print_of(node: _Node) -> _Print:
    """Return a value that is equal for equal trees."""
    if isinstance(node, _File):
        return node.data
    return frozenset((name, _print_of(child)) for name, child in node.names.items())


def _reachable(tree: _Folder) -> Iterator[_Node]:
    """Yield each node once, whether the cache, the drive or a pending change names it."""
    seen: set[int] = set()
    waiting: list[_Node] = [tree]
    while waiting:
        node = waiting.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        yield node
        if isinstance(node, _Folder):
            changed = [new for changes in node.pending for _, new in changes if new is not None]
            waiting += [*node.names.values(), *node.durable.values(), *changed]


def _copy_folder(folder: _Folder, state: dict[int, _Outcome]) -> _Folder:
    names = state[id(folder)]
    assert isinstance(names, dict)  # noqa: S101 - a folder's outcome is its names
    return _Folder({name: _copy(node, state) for name, node in names.items()})


def _copy(node: _Node, state: dict[int, _Outcome]) -> _Node:
    if isinstance(node, _Folder):
        return _copy_folder(node, state)
    data = state[id(node)]
    assert isinstance(data, bytes)  # noqa: S101 - a file's outcome is its data
    return _File(data)


class ForgetfulFiles(PowerLossFiles):
    """A planted bug: claims to sync, but leaves out what ``forgets`` names. Tests use it to prove that they can fail.

    Args:
        root: As above.
        forgets: Gets "sync" or "sync_folder" and the path; returns whether to leave it out.
        cut_at: As above.
    """

    def __init__(self, root: Path, *, forgets: Callable[[str, Path], bool], cut_at: int | None = None) -> None:
        super().__init__(root, cut_at=cut_at)
        self._forgets = forgets

    def sync(self, path: Path) -> None:
        """Sync, unless this one is forgotten."""
        if not self._forgets("sync", path):
            super().sync(path)

    def sync_folder(self, folder: Path) -> None:
        """Sync, unless this one is forgotten."""
        if not self._forgets("sync_folder", folder):
            super().sync_folder(folder)

"""Every error a person can meet, as one small tree.

AppError
├── UserError           something to fix now, in place: an empty lesson, a wrong command
├── KnownError          the environment: disk full, a dead child, a broken file, a locked database
├── VerificationError   a hash, a signature or a format does not hold; fails closed, never retried
├── DeniedError         a person or a policy said no: learning is locked, the day's budget is used
└── BugError            ours: a state that should not exist

Each error says what failed (``op``), on what (``subject``), what the person can do (``hint``) and whether trying
again can help (``retryable``). Cancelled and paused are outcomes, not errors. None of the four texts may contain the
text of a message, since errors are logged.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass


@dataclass(frozen=True, slots=True)
class ErrorInfo:
    """An error as a plain value: what crosses a process, is stored with a job, or is printed as JSON."""

    kind: str
    what: str
    subject: str
    hint: str
    retryable: bool

    def as_dict(self) -> dict[str, str | bool]:
        """Return the fields as JSON-ready values."""
        return asdict(self)


class AppError(Exception):
    """Root of the tree.

    Args:
        op: What failed, as a short clause: "load the model".
        subject: On what: a file name, a version, a lesson id. Never message text.
        hint: What the person can do, as a plain sentence.
        retryable: Whether doing the same again can help.
    """

    retryable_by_default = False

    def __init__(self, op: str, subject: str = "", hint: str = "", *, retryable: bool | None = None) -> None:
        self.op = op
        self.subject = subject
        self.hint = hint
        self.retryable = self.retryable_by_default if retryable is None else retryable
        super().__init__(self.sentence())

    def sentence(self) -> str:
        """Return one plain sentence for a person."""
        where = f": {self.subject}" if self.subject else ""
        hint = f" {self.hint}" if self.hint else ""
        return f"Could not {self.op}{where}.{hint}"

    def info(self) -> ErrorInfo:
        """Return this error as a plain value."""
        return ErrorInfo(type(self).__name__, f"could not {self.op}", self.subject, self.hint, self.retryable)


class UserError(AppError):
    """The request itself must change; nothing was done."""


class KnownError(AppError):
    """The environment got in the way; usually worth another try once it is mended."""

    retryable_by_default = True


class VerificationError(AppError):
    """Something is not what it claims to be. Nothing of it was used."""


class DeniedError(AppError):
    """A person or a policy refused."""


class BugError(AppError):
    """A state that our own code should have made impossible."""


_BY_NAME: dict[str, type[AppError]] = {
    cls.__name__: cls for cls in (UserError, KnownError, VerificationError, DeniedError, BugError)
}


def from_info(info: ErrorInfo) -> AppError:
    """Rebuild an error that crossed a process boundary; an unknown kind becomes a BugError."""
    cls = _BY_NAME.get(info.kind, BugError)
    return cls(info.what.removeprefix("could not "), info.subject, info.hint, retryable=info.retryable)

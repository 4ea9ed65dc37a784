"""The five pages of the wizard. Each says one thing; none of them changes anything by itself.

Signals:
    SentencePage.ready_changed(ready): whether the sentence is typed as it stands there.
    MachinePage.measure_requested(): measure again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QButtonGroup, QLineEdit, QProgressBar, QWidget

from app.devmode.api import SENTENCE, Budget, MachineCheck
from app.ui import icons
from app.ui.card_prose import Prose
from app.ui.theme import Theme
from app.ui.widgets import Button, Label, column, frame, row
from app.ui.wizard_choice import Choice, Explanation, Number
from app.ui.wizard_folder import FolderLine

CHANGES = (
    "Lessons that you approve change the model itself. Nothing is learned without your approval.",
    "Each change is checked before it is used. If a check does not pass, the model stays as it was.",
    "Every version is kept. You can go back to any of them at any time, exactly.",
    "It all happens on this machine.",
)
NO_PROMISE = (
    "A lesson can change answers that no check asked about.",
    "Many lessons together can wear down what the model could do before.",
    "What the model has learned, it can say to anyone who uses it. Teach it nothing that must stay secret.",
)
SNAPSHOTS = (
    (
        "Sealed snapshots, kept by a provider that cannot read them, are not part of this version yet. "
        "Nothing leaves this machine."
    ),
    (
        "Until then, everything is in one folder: your conversations, your lessons and every version of the model. "
        "A copy of that folder, made while Ownmind is closed, is a full backup."
    ),
)


class Page(QWidget):
    """A page with a heading and paragraphs below each other."""

    def __init__(self, theme: Theme, title: str) -> None:
        super().__init__()
        self.setProperty("box", "scroll")
        self.theme = theme
        self.title = title
        self.heading = Label(title, role="page", wrap=True)
        self.body = column(self)
        self.body.addWidget(self.heading)
        theme.changed.connect(self._space)
        self._space()

    def say(self, text: str, *, role: str = "") -> Prose:
        """Add a paragraph."""
        prose = Prose(text, role=role)
        self.body.addWidget(prose)
        return prose

    def point(self, text: str) -> None:
        """Add one point of a list."""
        line = row(gap=self.theme.px(8))
        line.addWidget(Label("•", role="muted"), 0, Qt.AlignmentFlag.AlignTop)
        line.addWidget(Prose(text), 1)
        self.body.addLayout(line)

    def first_control(self) -> QWidget | None:
        """Return what should have the focus when the page opens, if not the button that goes on."""
        return None

    def _space(self) -> None:
        self.body.setSpacing(self.theme.px(8))


class ChangesPage(Page):
    """What changes, and what cannot be promised."""

    def __init__(self, theme: Theme) -> None:
        super().__init__(theme, "What changes")
        for text in CHANGES:
            self.point(text)
        self.body.addSpacing(theme.px(8))
        self.body.addWidget(Label("What cannot be promised", role="title", wrap=True))
        for text in NO_PROMISE:
            self.point(text)
        self.body.addStretch(1)


class MachinePage(Page):
    """This machine: what was measured, and whether it is enough."""

    measure_requested = Signal()

    def __init__(self, theme: Theme) -> None:
        super().__init__(theme, "This machine")
        self.measured = False
        self.intro = self.say("Learning needs memory, room on the disk and a few seconds of work.")
        self.wait = Label("Measuring, with one trial step …", role="small", wrap=True)
        self.bar = QProgressBar()
        self.bar.setRange(0, 0)
        self.bar.setTextVisible(False)
        self.bar.setAccessibleName("Measuring this machine")
        self.lines = column()
        self.problem = Label(role="bad", wrap=True)
        self.advice = Prose(role="muted")
        self.again = Button(theme, "Measure again")
        self.again.clicked.connect(self.measure_requested)
        self.body.addLayout(self.lines)
        for part in (self.bar, self.wait, self.problem, self.advice):
            self.body.addWidget(part)
        self.body.addWidget(self.again, 0, Qt.AlignmentFlag.AlignLeft)
        self.body.addStretch(1)
        self.show_measuring()
        theme.changed.connect(self._repaint_icons)

    def show_measuring(self) -> None:
        """Say that it takes a moment."""
        self._clear()
        self._show(measuring=True)

    def show_checks(self, checks: Sequence[MachineCheck]) -> None:
        """Show what was measured."""
        self._clear()
        self.measured = True
        for check in checks:
            self.lines.addWidget(_CheckLine(self.theme, check))
        short = not all(check.ok for check in checks)
        advice = "You can go on. Learning may fail or be slow until this is mended." if short else ""
        self._show(advice=advice)

    def show_problem(self, text: str) -> None:
        """Say why it could not be measured."""
        self._clear()
        self._show(problem=text)

    def _show(self, *, measuring: bool = False, problem: str = "", advice: str = "") -> None:
        self.bar.setVisible(measuring)
        self.wait.setVisible(measuring)
        self.problem.setText(problem)
        self.problem.setVisible(bool(problem))
        self.advice.set_words(advice)
        self.advice.setVisible(bool(advice))
        self.again.setVisible(bool(problem or advice))

    def _clear(self) -> None:
        while (item := self.lines.takeAt(0)) is not None:
            if (widget := item.widget()) is not None:
                widget.hide()
                widget.deleteLater()

    def _repaint_icons(self) -> None:
        for line in self.findChildren(_CheckLine):
            line.restyle()


class _CheckLine(QWidget):
    """One measurement: a mark, a name, and what was found."""

    def __init__(self, theme: Theme, check: MachineCheck) -> None:
        super().__init__()
        self._theme = theme
        self._ok = check.ok
        self.mark = Label()
        self.name = Label(check.name, role="title", wrap=True)
        self.words = Prose(check.words, role="muted" if check.ok else "warn")
        self.setAccessibleName(f"{check.name}: {check.words}{'' if check.ok else ', not enough'}")
        self._line = row(self)
        self._texts = column()
        self._texts.addWidget(self.name)
        self._texts.addWidget(self.words)
        self._line.addWidget(self.mark, 0, Qt.AlignmentFlag.AlignTop)
        self._line.addLayout(self._texts, 1)
        self.restyle()

    def restyle(self) -> None:
        """Draw the mark for the theme in use."""
        px = self._theme.px
        name, token = ("check", "accent") if self._ok else ("warning", "warn")
        scale = self.devicePixelRatioF()
        self.mark.setPixmap(icons.pixmap(name, self._theme.color(token), px(16), scale=scale))
        self._line.setSpacing(px(10))
        self._line.setContentsMargins(0, px(2), 0, px(2))
        self._texts.setSpacing(px(1))


SIZES = (
    (0.02, "Careful", "Stays very close to where it began. Some lessons will not fit."),
    (0.05, "Usual", "Room for many lessons. The checks watch over the rest."),
    (0.10, "Wide", "More room, and more that can wear down."),
)


class LimitsPage(Page):
    """How much may change."""

    def __init__(self, theme: Theme, budget: Budget) -> None:
        super().__init__(theme, "Limits")
        self.say("Limits hold even if something goes wrong, or if someone else sits at this machine.")
        self.changes = Number(theme, low=1, high=500, name="Changes a day, at most")
        self.changes.set_value(budget.changes_per_day)
        line = row(gap=theme.px(12))
        line.addWidget(Label("Changes a day, at most"))
        line.addWidget(self.changes)
        line.addStretch(1)
        self.body.addLayout(line)
        self.body.addWidget(Label("How far the model may move from where it began", role="title", wrap=True))
        self._group = QButtonGroup(self)
        self._sizes: list[float] = []
        self._choices = column()
        self.body.addLayout(self._choices)
        for size, name, words in _with_own(budget.size_limit):
            self._add_size(size, name, words, chosen=size == budget.size_limit)
        self.say("To change the limits later, lock learning in Settings and unlock it again.", role="small")
        self.body.addStretch(1)

    def budget(self) -> Budget:
        """Return the limits chosen."""
        return Budget(self.changes.value(), self._sizes[self._group.checkedId()])

    def sizes(self) -> list[Choice]:
        """Return the choices of size, smallest first."""
        return [button for button in self._group.buttons() if isinstance(button, Choice)]

    def first_control(self) -> QWidget | None:
        """Begin at the number."""
        return self.changes

    def _add_size(self, size: float, name: str, words: str, *, chosen: bool) -> None:
        label = f"{name} ({size:.0%})" if size >= 0.01 else f"{name} ({size:.1%})"
        button = Choice(self.theme, label, description=words)
        self._group.addButton(button, len(self._sizes))
        button.setChecked(chosen)
        self._sizes.append(size)
        self._choices.addWidget(button)
        self._choices.addWidget(Explanation(self.theme, words))


def _with_own(size: float) -> list[tuple[float, str, str]]:
    known = list(SIZES)
    if size not in {choice[0] for choice in known}:
        known.append((size, "As it is now", "The limit in force."))
    return sorted(known)


class SnapshotsPage(Page):
    """Where copies go: honestly, nowhere yet."""

    def __init__(self, theme: Theme, home: str, opener: Callable[[str], bool]) -> None:
        super().__init__(theme, "Where copies go")
        for text in SNAPSHOTS:
            self.say(text)
        self.folder = FolderLine(theme, home, opener=opener)
        self.body.addWidget(self.folder)
        self.body.addStretch(1)


class SentencePage(Page):
    """The sentence to type."""

    ready_changed = Signal(bool)

    def __init__(self, theme: Theme) -> None:
        super().__init__(theme, "Your word")
        self.say("To unlock learning, type this sentence:")
        self._box = frame("lesson")
        self._inside = column(self._box)
        self.sentence = Label(SENTENCE, role="title", wrap=True)
        self._inside.addWidget(self.sentence)
        self.line = QLineEdit()
        self.line.setAccessibleName(f"Type: {SENTENCE}")
        self.line.textChanged.connect(self._check)
        self.problem = Label(role="bad", wrap=True)
        self.problem.hide()
        self.body.addWidget(self._box)
        self.body.addWidget(self.line)
        self.body.addWidget(self.problem)
        self.say("You can lock it again at any time in Settings. What was learned stays, and can still be undone.")
        self.body.addStretch(1)
        theme.changed.connect(self._pad)
        self._pad()

    @property
    def ready(self) -> bool:
        """Whether the sentence is right; case, spaces and a full stop do not matter."""
        return _bare(self.line.text()) == _bare(SENTENCE)

    def show_problem(self, text: str) -> None:
        """Say why it was not unlocked."""
        self.problem.setText(text)
        self.problem.setVisible(bool(text))

    def first_control(self) -> QWidget | None:
        """Begin at the line."""
        return self.line

    def _check(self) -> None:
        self.show_problem("")
        self.ready_changed.emit(self.ready)

    def _pad(self) -> None:
        px = self.theme.px
        self._inside.setContentsMargins(px(12), px(10), px(12), px(10))


def _bare(sentence: str) -> str:
    return " ".join(sentence.split()).rstrip(".").rstrip().casefold()

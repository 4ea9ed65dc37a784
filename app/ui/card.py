"""The approval card: one item of the conversation, from "Shall I learn this?" to "Taken back".

It shows a ``CardView`` and says by signals what the person wants; it knows no use case. Showing the same view again
does nothing, and progress moves only the bar and its words, so nothing flickers. What the person typed while changing
the wording survives every update of the same lesson.

Signals:
    ApprovalCard.learn(resolution): a ``Resolution``, or None where there is no conflict.
    ApprovalCard.reword(prompt, answer): other words for the lesson.
    ApprovalCard.decline(never): not now, or never for this.
    ApprovalCard.cancel(): stop learning it.
    ApprovalCard.undo(): take it back.
    ApprovalCard.use_again(): put a lesson that was taken back into use.
    ApprovalCard.try_again(): after a failure or a stop.
    ApprovalCard.unlock_requested(resolution): the person wants to learn it, but learning is locked.
    ApprovalCard.opened(): an open question is on screen for the first time.
"""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QRectF, Qt, QTimer, Signal
from PySide6.QtGui import QFocusEvent, QKeySequence, QPainter, QPaintEvent, QPen, QShortcut
from PySide6.QtWidgets import QApplication, QFrame, QProgressBar, QVBoxLayout

from app.approvals.api import ProposalState
from app.errors import ErrorInfo
from app.learning.api import CardView, Resolution
from app.ui.card_buttons import CardButtons
from app.ui.card_checks import ChecksTable
from app.ui.card_lesson import ConflictBlock, LessonBlock, WordingEditor
from app.ui.card_prose import Prose
from app.ui.card_text import Act, Face, face, problem_words, shorten
from app.ui.theme import RADIUS_CARD, Theme
from app.ui.widgets import Button, Label, column, row, set_look

ANSWER_MS = 5000
"""How long buttons stay off after a click if no answer comes: long enough to stop a second click, never a dead card."""

SPOKEN = 300
"""Characters of each part of a lesson in the card's accessible description; the parts themselves hold all of it."""


class ApprovalCard(QFrame):
    """One card. Give it a view with ``set_card``; connect its signals once."""

    learn = Signal(object)
    reword = Signal(str, str)
    decline = Signal(bool)
    cancel = Signal()
    undo = Signal()
    use_again = Signal()
    try_again = Signal()
    unlock_requested = Signal(object)
    opened = Signal()

    def __init__(self, theme: Theme, *, locked: bool = False) -> None:
        super().__init__()
        self._theme = theme
        self._locked = locked
        self._card: CardView | None = None
        self._face = Face(title="")
        self._reopened = False
        self._detailed = False
        self._editing = False
        self._was_seen = False
        self._answer_timer = QTimer(self, singleShot=True, interval=ANSWER_MS)
        self._answer_timer.timeout.connect(self._enable)
        self._acts = self._act_table()
        self._build()
        self._add_shortcuts()
        theme.changed.connect(self._restyle)
        self._restyle()

    # --- what the shell calls ---------------------------------------------------------------------------------------

    @property
    def card(self) -> CardView | None:
        """The view shown now."""
        return self._card

    def set_card(self, card: CardView) -> None:
        """Show ``card``. Idempotent."""
        self._enable()
        if card == self._card:
            return
        before, self._card = self._card, card
        if before is None or before.id != card.id:
            self._was_seen = False
        if before is None or _lesson_of(before) != _lesson_of(card):
            self._editing = False
            self._reopened = False
            self._show_problem("")
        self._render()

    show_view = set_card

    def set_locked(self, locked: bool) -> None:
        """Say whether learning is locked; the card then asks for unlocking instead of learning."""
        if locked != self._locked:
            self._locked = locked
            self._render()

    def show_problem(self, error: ErrorInfo) -> None:
        """Say inline that what was asked could not be done; the card stays as it is, ready for another try."""
        self._enable()
        self._show_problem(problem_words(error))

    # --- building ---------------------------------------------------------------------------------------------------

    def _build(self) -> None:
        self.setProperty("box", "approval")
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.title = Label(role="title", wrap=True)
        self.body = Prose(role="muted", selectable=True)
        self.lesson = LessonBlock(self._theme)
        self.conflict = ConflictBlock(self._theme)
        self.editor = WordingEditor(self._theme)
        self.bar = QProgressBar(maximum=1000, textVisible=False)
        self.bar.setAccessibleName("Progress of the lesson")
        self.checks = ChecksTable(self._theme)
        self.note = Label(role="small", wrap=True)
        self.problem = Label(role="bad", wrap=True)
        self.buttons = CardButtons(self._theme)
        self.buttons.acted.connect(self._act)
        self.editor.submitted.connect(self._submit_wording)
        self.editor.dismissed.connect(self._close_editor)
        self._column = self._fill_column()

    def _fill_column(self) -> QVBoxLayout:
        layout = column(self)
        self._head = row()
        self._head.addWidget(self.title, 1)
        self._top = column()
        self._top.addLayout(self._head)
        self._top.addWidget(self.body)
        layout.addLayout(self._top)
        above = (self.lesson, self.conflict, self.editor, self.bar)
        below = (self.checks, self.note, self.problem, self.buttons)
        for part in (*above, *below):
            layout.addWidget(part)
            part.hide()
        return layout

    def _arrange(self, *, line: bool) -> None:
        """Put the buttons beside the title of a one-line card, else at the foot."""
        px = self._theme.px
        self.buttons.set_inline(line)
        if line:
            self._head.addWidget(self.buttons)
        else:
            self._column.addWidget(self.buttons)
        self._column.setContentsMargins(px(16), px(6 if line else 12), px(16 if not line else 8), px(6 if line else 14))

    def _add_shortcuts(self) -> None:
        for keys, slot in (
            ("Ctrl+Alt+Return", self.approve_by_key),
            ("Ctrl+Alt+Enter", self.approve_by_key),
            ("Ctrl+Alt+Backspace", self.decline_by_key),
        ):
            shortcut = QShortcut(QKeySequence(keys), self)
            shortcut.setContext(Qt.ShortcutContext.WidgetWithChildrenShortcut)
            shortcut.activated.connect(slot)

    def _restyle(self) -> None:
        px = self._theme.px
        self._column.setSpacing(px(8))
        self._top.setSpacing(px(4))
        self._render()

    # --- showing ----------------------------------------------------------------------------------------------------

    def _render(self) -> None:
        if self._card is None:
            return
        had_focus = self._has_focus_inside()
        self._face = face(self._card, locked=self._locked, reopened=self._reopened, detailed=self._detailed)
        self._arrange(line=self._face.line)
        self._show_words(self._card, self._face)
        self._show_parts(self._card, self._face)
        if had_focus and not self._has_focus_inside():
            self.setFocus(Qt.FocusReason.OtherFocusReason)

    def _show_words(self, card: CardView, shown: Face) -> None:
        set_look(self, "tone", shown.tone.value)
        self.title.set_role("muted" if shown.line else "title")
        _set_text(self.title, shown.title)
        self.body.set_words(shown.body)
        self.body.setVisible(bool(shown.body) and not self._editing)
        _set_text(self.note, "" if self._editing else shown.note)
        self.setAccessibleName(shown.title)
        self.setAccessibleDescription(" ".join(filter(None, (shown.body, _lesson_words(card, shown), shown.note))))

    def _show_parts(self, card: CardView, shown: Face) -> None:
        self.lesson.set_lesson(card.prompt, card.answer)
        self.conflict.set_conflict(card.conflict)
        self.lesson.setVisible(shown.lesson and not self._editing)
        self.conflict.setVisible(shown.conflict and not self._editing)
        self.editor.setVisible(self._editing)
        self.bar.setValue(round(1000 * min(max(card.share, 0.0), 1.0)))
        self.bar.setAccessibleDescription(shown.aside)
        self.bar.setVisible(shown.running)
        self.checks.set_rows(() if self._editing else shown.rows)
        self.checks.setVisible(bool(shown.rows) and not self._editing)
        self.buttons.set_actions(shown.actions)
        self.buttons.set_aside(shown.aside)
        self.buttons.setVisible(bool(shown.actions or shown.aside) and not self._editing)

    def _show_problem(self, text: str) -> None:
        _set_text(self.problem, text)

    # --- what the person does ---------------------------------------------------------------------------------------

    def _act_table(self) -> dict[Act, Callable[[], None]]:
        return {
            Act.LEARN: self._learn,
            Act.REPLACE: self._replace,
            Act.KEEP_BOTH: self._keep_both,
            Act.WORDING: self._open_editor,
            Act.NOT_NOW: self._not_now,
            Act.NEVER: self._never,
            Act.REOPEN: self._reopen,
            Act.STOP: self._stop,
            Act.UNDO: self._undo,
            Act.USE_AGAIN: self._use_again,
            Act.TRY_AGAIN: self._try_again,
            Act.DETAILS: self._toggle_details,
        }

    def button(self, act: Act) -> Button | None:
        """Return the button that does ``act`` now, if there is one."""
        return self.buttons.button(act)

    def _act(self, act: Act) -> None:
        self._acts[act]()

    def approve_by_key(self) -> None:
        """Do what the primary button does; where there is a choice, only lead to it."""
        if self._editing:
            if not self.editor.composing:
                self.editor.keep.click()
        elif (replace := self.button(Act.REPLACE)) is not None:
            replace.setFocus(Qt.FocusReason.ShortcutFocusReason)
        elif (learn := self.button(Act.LEARN)) is not None:
            learn.click()

    def decline_by_key(self) -> None:
        """Decline, or stop, or leave the wording as it was."""
        if self._editing:
            if not self.editor.composing:
                self._close_editor()
            return
        button = self.button(Act.NOT_NOW) or self.button(Act.STOP)
        if button is not None:
            button.click()

    def _learn(self) -> None:
        self._ask_to_learn(None)

    def _replace(self) -> None:
        self._ask_to_learn(Resolution.REPLACE)

    def _keep_both(self) -> None:
        self._ask_to_learn(Resolution.KEEP_BOTH)

    def _ask_to_learn(self, resolution: Resolution | None) -> None:
        if self._locked:
            self.unlock_requested.emit(resolution)
            return
        self._wait()
        self.learn.emit(resolution)

    def _not_now(self) -> None:
        if self._reopened:
            self._reopened = False
            self._render()
            return
        self._wait()
        self.decline.emit(False)

    def _never(self) -> None:
        self._wait()
        self.decline.emit(True)

    def _reopen(self) -> None:
        self._reopened = True
        self._render()
        self._note_seen()

    def _stop(self) -> None:
        self._wait()
        self.cancel.emit()

    def _undo(self) -> None:
        self._wait()
        self.undo.emit()

    def _use_again(self) -> None:
        self._wait()
        self.use_again.emit()

    def _try_again(self) -> None:
        self._wait()
        self.try_again.emit()

    def _toggle_details(self) -> None:
        self._detailed = not self._detailed
        self._render()

    def _open_editor(self) -> None:
        if self._card is None:
            return
        self._editing = True
        self.editor.set_lesson(self._card.prompt, self._card.answer)
        self._render()
        self.editor.answer.setFocus(Qt.FocusReason.OtherFocusReason)
        self.editor.answer.selectAll()

    def _close_editor(self) -> None:
        self._editing = False
        self._show_problem("")
        self._render()
        if (button := self.button(Act.WORDING)) is not None:
            button.setFocus(Qt.FocusReason.OtherFocusReason)

    def _submit_wording(self, prompt: str, answer: str) -> None:
        if self._card is None or (prompt, answer) == (self._card.prompt, self._card.answer):
            self._close_editor()
            return
        self._wait()
        self.reword.emit(prompt, answer)

    # --- waiting for an answer --------------------------------------------------------------------------------------

    def _wait(self) -> None:
        self._show_problem("")
        self._set_enabled(False)
        self._answer_timer.start()

    def _enable(self) -> None:
        self._answer_timer.stop()
        self._set_enabled(True)

    def _set_enabled(self, enabled: bool) -> None:
        if not enabled and self._has_focus_inside():
            self.setFocus(Qt.FocusReason.OtherFocusReason)
        self.buttons.set_usable(enabled)
        self.editor.drop.setEnabled(enabled)
        self.editor.keep.setEnabled(enabled and all(self.editor.wording()))

    def _has_focus_inside(self) -> bool:
        focused = QApplication.focusWidget()
        return focused is not None and (focused is self or self.isAncestorOf(focused))

    # --- painting ---------------------------------------------------------------------------------------------------

    def focusInEvent(self, event: QFocusEvent) -> None:
        """Show the focus ring."""
        super().focusInEvent(event)
        self.update()

    def focusOutEvent(self, event: QFocusEvent) -> None:
        """Take the focus ring away."""
        super().focusOutEvent(event)
        self.update()

    def paintEvent(self, event: QPaintEvent) -> None:
        """Draw the card, and note that it is on screen: only what is scrolled into view is painted."""
        super().paintEvent(event)
        if self.hasFocus():
            self._paint_ring()
        self._note_seen()

    def _paint_ring(self) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(QPen(self._theme.color("accent"), 2))
        radius = self._theme.px(RADIUS_CARD)
        painter.drawRoundedRect(QRectF(self.rect()).adjusted(1, 1, -1, -1), radius, radius)
        painter.end()

    def _note_seen(self) -> None:
        if self._was_seen or self._card is None:
            return
        if self._card.state is ProposalState.SURFACED or self._reopened:
            self._was_seen = True
            # Not from within a paint event: what listens may change widgets.
            QTimer.singleShot(0, self, self.opened.emit)


def _lesson_of(card: CardView) -> tuple[str, ProposalState, str, str]:
    return card.id, card.state, card.prompt, card.answer


def _lesson_words(card: CardView, shown: Face) -> str:
    if not shown.lesson:
        return ""
    earlier = f" Learned before: {shorten(card.conflict.answer, SPOKEN)}" if card.conflict else ""
    return f"When asked: {shorten(card.prompt, SPOKEN)} I will answer: {shorten(card.answer, SPOKEN)}{earlier}"


def _set_text(label: Label, text: str) -> None:
    """Set a label's text without touching it if nothing changed; an empty label takes no room."""
    if label.text() != text:
        label.setText(text)
    label.setVisible(bool(text))

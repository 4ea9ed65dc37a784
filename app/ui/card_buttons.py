"""The row of buttons at the foot of a card, with its menu and the words at its far end.

Signals:
    CardButtons.acted(act): a button or a menu entry was used; carries an ``Act``.
"""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QMenu, QWidget

from app.ui.card_flow import FlowRow
from app.ui.card_text import Act, Action, Weight
from app.ui.theme import Theme
from app.ui.widgets import Button, Kind, Label

_KINDS = {Weight.PRIMARY: Kind.PRIMARY, Weight.NORMAL: Kind.SECONDARY, Weight.TEXT: Kind.TEXT}


class _ActButton(Button):
    """A button that knows what it does."""

    acted = Signal(object)

    def __init__(self, theme: Theme, action: Action, parent: QWidget) -> None:
        super().__init__(theme, action.label, kind=_KINDS[action.weight])
        self.action = action
        self.setParent(parent)
        self.clicked.connect(self._act)
        self.show()

    def _act(self) -> None:
        self.acted.emit(self.action.act)


class CardButtons(QWidget):
    """Shows actions as buttons. The same actions again leave the buttons, and the focus, alone."""

    acted = Signal(object)

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self._actions: tuple[Action, ...] = ()
        self._buttons: list[_ActButton] = []
        self._usable = True
        self._inline = False
        self.aside = Label(role="small")
        self.more = Button(theme, kind=Kind.ICON, icon="more", name="More choices")
        self.more.setParent(self)
        self.more.hide()
        self.more.clicked.connect(self._open_menu)
        self.menu = QMenu(self.more)
        self._row = FlowRow(self)
        self._row.set_trailing(self.aside)
        theme.changed.connect(self._restyle)
        self._restyle()

    def set_actions(self, actions: tuple[Action, ...]) -> None:
        """Show these actions, in this order; those meant for the menu go there."""
        if actions == self._actions:
            return
        self._actions = actions
        old, self._buttons = self._buttons, [self._button(a) for a in actions if a.weight is not Weight.MENU]
        for button in old:
            if button not in self._buttons:
                button.hide()
                button.deleteLater()
        in_menu = self._fill_menu(actions)
        self.more.setVisible(in_menu)
        self._row.place([*self._buttons, *([self.more] if in_menu else [])])

    def set_aside(self, text: str) -> None:
        """Show words at the far end of the row."""
        if text != self.aside.text():
            self.aside.setText(text)
        self.aside.setVisible(bool(text))

    def set_usable(self, usable: bool) -> None:
        """Turn all buttons on or off."""
        self._usable = usable
        for button in (*self._buttons, self.more):
            button.setEnabled(usable)

    def button(self, act: Act) -> Button | None:
        """Return the button that does ``act`` now, if there is one."""
        return next((b for b in self._buttons if b.action.act is act), None)

    def _button(self, action: Action) -> _ActButton:
        kept = next((b for b in self._buttons if b.action == action), None)
        if kept is not None:
            return kept
        button = _ActButton(self._theme, action, self)
        button.setEnabled(self._usable)
        button.acted.connect(self.acted)
        return button

    def _fill_menu(self, actions: tuple[Action, ...]) -> bool:
        self.menu.clear()
        for action in actions:
            if action.weight is Weight.MENU:
                entry = self.menu.addAction(action.label)
                entry.setData(action.act.value)
                entry.triggered.connect(self._act_from_menu)
        return not self.menu.isEmpty()

    def _act_from_menu(self) -> None:
        entry = self.sender()
        chosen = next((a for a in self.menu.actions() if a is entry), None)
        if chosen is not None:
            self.acted.emit(Act(chosen.data()))

    def _open_menu(self) -> None:
        # popup, not exec: nothing may spin a second event loop beside the coroutines.
        right = self.layoutDirection() == Qt.LayoutDirection.RightToLeft
        corner = self.more.rect().bottomRight() if right else self.more.rect().bottomLeft()
        self.menu.popup(self.more.mapToGlobal(corner))

    def set_inline(self, inline: bool) -> None:
        """Say whether the row stands beside a line of words, without room above it."""
        self._inline = inline
        self._restyle()

    def _restyle(self) -> None:
        self._row.setSpacing(self._theme.px(8))
        self._row.setContentsMargins(0, 0 if self._inline else self._theme.px(4), 0, 0)

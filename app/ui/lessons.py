"""What happens with approval cards and versions: between their widgets and the learning use cases."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterable
from typing import Any, Protocol

from PySide6.QtWidgets import QWidget
from shiboken6 import isValid

from app.devmode.api import DevState, DevStatus
from app.errors import AppError
from app.learning.api import CardChanged, CardView, Learning, LearningEvent, Resolution, VersionView
from app.tasks import TaskSet
from app.ui.bridge import Bridge
from app.ui.card import ApprovalCard
from app.ui.card_text import RUNNING
from app.ui.problems import Problems
from app.ui.theme import Theme
from app.ui.versions import VersionsPanel


class Unlocking(Protocol):
    """Whoever leads a person to unlock learning."""

    def lead(self, then: Callable[[], None]) -> None:
        """Open what comes next on the way, and call ``then`` once learning is unlocked."""
        ...


class Lessons:
    """Makes cards, listens to them, and keeps the panel of versions up to date."""

    def __init__(
        self,
        *,
        theme: Theme,
        bridge: Bridge,
        learning: Learning,
        tasks: TaskSet,
        problems: Problems,
        panel: VersionsPanel,
    ) -> None:
        self._theme, self._bridge, self._learning = theme, bridge, learning
        self._tasks, self._problems, self._panel = tasks, problems, panel
        self._locked = True
        self._running: dict[str, CardView] = {}
        self.unlocking: Unlocking | None = None
        self.mounted: Callable[[], Iterable[QWidget]] = tuple
        """Returns the widgets that exist now."""
        self.on_card: Callable[[CardView], None] = _ignore
        self.on_versions: Callable[[list[VersionView]], None] = _ignore
        panel.use_requested.connect(self._use)
        panel.ask_requested.connect(self._ask)
        panel.stop_requested.connect(self._stop_running)

    # --- cards ------------------------------------------------------------------------------------------------------

    async def load(self, chat: str) -> list[CardView]:
        """Return the cards of a conversation."""
        return await self._bridge.call(self._learning.cards(chat))

    def build(self, card: CardView) -> QWidget:
        """Return a widget that shows a card."""
        widget = ApprovalCard(self._theme, locked=self._locked)
        widget.set_card(card)
        _Wires(self, widget, card.id)
        return widget

    def update(self, widget: QWidget, card: CardView) -> None:
        """Show another state of the same card."""
        if isinstance(widget, ApprovalCard):
            widget.set_card(card)

    def show_devmode(self, status: DevStatus) -> None:
        """Let open cards say whether learning is locked."""
        self._locked = status.state is not DevState.UNLOCKED
        for widget in self.mounted():
            if isinstance(widget, ApprovalCard):
                widget.set_locked(self._locked)

    def take(self, event: LearningEvent) -> None:
        """Show what the core published."""
        if isinstance(event, CardChanged):
            self._note_running(event.card)
            self.on_card(event.card)
        else:
            self._tasks.start(self.refresh(), "versions")

    def _note_running(self, card: CardView) -> None:
        if card.state in RUNNING:
            self._running[card.id] = card
        else:
            self._running.pop(card.id, None)
        foremost = max(self._running.values(), key=lambda running: running.share, default=None)
        self._panel.show_running(foremost)

    # --- what the person asks of a card -----------------------------------------------------------------------------

    def ask(self, widget: ApprovalCard, work: Coroutine[Any, Any, CardView | None]) -> None:
        """Do something with a card; an error is said on the card itself."""
        self._tasks.start(self._asked(widget, work), "card")

    async def _asked(self, widget: ApprovalCard, work: Coroutine[Any, Any, CardView | None]) -> None:
        try:
            card = await self._bridge.call(work)
        except AppError as error:
            if isValid(widget):
                widget.show_problem(error.info())
            else:
                self._problems.show(error)
            return
        if card is not None:
            self.take(CardChanged(card))

    def opened(self, card: str) -> None:
        """A card is on screen."""
        self._tasks.start(self._guarded(self._learning.opened(card)), "card opened")

    def lead_to_unlock(self, widget: ApprovalCard, card: str, resolution: Resolution | None) -> None:
        """Lead to developer mode; what the person wanted to learn is learned once it is unlocked."""
        if self.unlocking is not None:
            self._tasks.start(self._guarded(self._learning.wanted(card)), "card wanted")
            self.unlocking.lead(lambda: self.ask(widget, self._learning.approve(card, resolution)))

    async def learn_anew(self, card: CardView) -> CardView:
        """Propose the same lesson once more, and approve it. Runs on the core."""
        again = await self._learning.reword(card.id, card.prompt, card.answer)
        return await self._learning.approve(again.id)

    @property
    def learning(self) -> Learning:
        """The use cases that cards ask for."""
        return self._learning

    # --- versions ---------------------------------------------------------------------------------------------------

    async def refresh(self) -> None:
        """Read the timeline again."""
        try:
            versions = await self._bridge.call(self._learning.versions())
        except AppError as error:
            self._problems.show(error)
            return
        self._panel.show_view(versions)
        self.on_versions(versions)

    def _use(self, commit: str) -> None:
        self._tasks.start(self._used(commit), "use version")

    async def _used(self, commit: str) -> None:
        try:
            await self._bridge.call(self._learning.use(commit))
        except AppError as error:
            self._panel.show_problem(commit, error.info())
        await self.refresh()

    def _ask(self, commit: str, prompt: str) -> None:
        self._tasks.start(self._asked_version(commit, prompt), "ask version")

    async def _asked_version(self, commit: str, prompt: str) -> None:
        try:
            answer = await self._bridge.call(self._learning.ask_version(commit, prompt))
        except AppError as error:
            self._panel.show_problem(commit, error.info())
        else:
            self._panel.show_answer(commit, answer)

    def _stop_running(self, card: str) -> None:
        self._tasks.start(self._guarded(self._learning.cancel(card)), "stop lesson")

    async def _guarded(self, work: Coroutine[Any, Any, object]) -> None:
        try:
            await self._bridge.call(work)
        except AppError as error:
            self._problems.show(error)


class _Wires:
    """Connects one card's signals; the connections keep this alive as long as the card."""

    def __init__(self, lessons: Lessons, widget: ApprovalCard, card: str) -> None:
        self._lessons, self._widget, self._card = lessons, widget, card
        widget.learn.connect(self._learn)
        widget.reword.connect(self._reword)
        widget.decline.connect(self._decline)
        widget.cancel.connect(self._cancel)
        widget.undo.connect(self._undo)
        widget.use_again.connect(self._use_again)
        widget.try_again.connect(self._try_again)
        widget.unlock_requested.connect(self._unlock)
        widget.opened.connect(self._opened)
        widget.setProperty("wires", self)

    def _ask(self, work: Coroutine[Any, Any, CardView | None]) -> None:
        self._lessons.ask(self._widget, work)

    def _learn(self, resolution: Resolution | None) -> None:
        self._ask(self._lessons.learning.approve(self._card, resolution))

    def _reword(self, prompt: str, answer: str) -> None:
        self._ask(self._lessons.learning.reword(self._card, prompt, answer))

    def _decline(self, never: bool) -> None:
        self._ask(self._lessons.learning.decline(self._card, never=never))

    def _cancel(self) -> None:
        self._ask(self._lessons.learning.cancel(self._card))

    def _undo(self) -> None:
        self._ask(self._lessons.learning.undo(self._card))

    def _use_again(self) -> None:
        view = self._widget.card
        if view is not None and view.commit is not None:
            self._ask(self._used(view.commit))

    async def _used(self, commit: str) -> None:
        await self._lessons.learning.use(commit)

    def _try_again(self) -> None:
        view = self._widget.card
        if view is not None:
            self._ask(self._lessons.learn_anew(view))

    def _unlock(self, resolution: Resolution | None) -> None:
        self._lessons.lead_to_unlock(self._widget, self._card, resolution)

    def _opened(self) -> None:
        self._lessons.opened(self._card)


def _ignore(_: object) -> None:
    """Nobody listens yet."""

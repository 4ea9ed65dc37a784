"""The main window: puts the parts together and gives each key its meaning.

Signals:
    MainWindow.close_asked(): the person wants to leave. The window hides; whoever runs the app ends it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable

from PySide6.QtCore import QByteArray, Qt, Signal
from PySide6.QtGui import QAction, QCloseEvent, QResizeEvent
from PySide6.QtWidgets import QApplication, QMainWindow, QWidget

from app.chat.api import ConversationView
from app.devmode.api import DevStatus
from app.errors import AppError
from app.learning.api import VersionView
from app.tasks import TaskSet
from app.ui.bridge import Bridge
from app.ui.desk import Desk
from app.ui.dialogs import Dialogs
from app.ui.header import Header
from app.ui.lessons import Lessons
from app.ui.links import ask_to_open
from app.ui.notices import Banner
from app.ui.page import ConversationPage
from app.ui.palette import Palette
from app.ui.preferences import Preferences, as_text, name_of
from app.ui.problems import Problems
from app.ui.services import Services, Settings
from app.ui.shortcuts import ShortcutsDialog, install
from app.ui.sidebar import Sidebar
from app.ui.theme import PANEL_PX, SIDEBAR_PX, Theme
from app.ui.versions import VersionsPanel
from app.ui.widgets import column, row
from app.ui.wizard_calls import BridgedDevMode

WIDTH_PX, HEIGHT_PX = 1360, 860
LEAST_MIDDLE_PX = 420


class MainWindow(QMainWindow):
    """One per process. ``begin`` fills it; ``end`` keeps what is not stored yet."""

    close_asked = Signal()

    def __init__(
        self,
        *,
        theme: Theme,
        bridge: Bridge,
        services: Services,
        settings: Settings,
        preferences: Preferences,
        tasks: TaskSet,
    ) -> None:
        super().__init__()
        self._theme, self._bridge, self._services, self._settings = theme, bridge, services, settings
        self._preferences, self._tasks = preferences, tasks
        self._panel_first = False
        self.panel = VersionsPanel(theme)
        self.panel.setProperty("box", "panel")
        self.sidebar = Sidebar(theme)
        self.header = Header(theme, services.model_name)
        self._build_desks()
        self._lay_out()
        self._connect()
        self.actions_by_name = install(self, self._handlers())
        if sys.platform == "darwin":
            self._build_menu()
        theme.changed.connect(self._restyle)
        self._restyle()
        self._restore_place()

    # --- building ---------------------------------------------------------------------------------------------------

    def _build_desks(self) -> None:
        theme, services, bridge, tasks = self._theme, self._services, self._bridge, self._tasks
        banner = Banner(theme)
        problems = self.problems = Problems(banner)
        self.lessons = Lessons(
            theme=theme, bridge=bridge, learning=services.learning, tasks=tasks, problems=problems, panel=self.panel
        )
        self.page = ConversationPage(theme, self.lessons, banner)
        self.desk = Desk(
            bridge=bridge,
            chats=services.chats,
            tasks=tasks,
            problems=problems,
            cards=self.lessons,
            page=self.page,
            sidebar=self.sidebar,
            header=self.header,
        )
        self.dialogs = Dialogs(
            theme=theme,
            window=self,
            services=services,
            calls=BridgedDevMode(bridge, services.devmode),
            tasks=tasks,
            problems=problems,
            preferences=self._preferences,
            remember=self.remember,
            on_devmode=self._show_devmode,
        )

    def _lay_out(self) -> None:
        middle = QWidget()
        lines = column(middle)
        lines.addWidget(self.header)
        lines.addWidget(self.page, 1)
        center = QWidget()
        columns = row(center, gap=0)
        columns.addWidget(self.sidebar)
        columns.addWidget(middle, 1)
        columns.addWidget(self.panel)
        self.setCentralWidget(center)
        self.page.composer.set_enter_sends(self._preferences.enter_sends)

    def _connect(self) -> None:
        side, page = self.sidebar, self.page
        side.settings_asked.connect(self.dialogs.open_settings)
        side.devmode_asked.connect(self.dialogs.open_unlocking)
        side.about_asked.connect(self.dialogs.open_about)
        side.versions_asked.connect(self.toggle_panel)
        self.header.sidebar_asked.connect(self.toggle_sidebar)
        self.header.panel_asked.connect(self.toggle_panel)
        page.link_asked.connect(self._ask_link)
        page.copied.connect(self._say_copied)
        self.lessons.unlocking = self.dialogs
        self.lessons.mounted = lambda: page.scroller.mounted().values()
        self.lessons.on_card = self.desk.card_changed
        self.lessons.on_versions = self._show_versions
        self.desk.on_opened = self._opened
        self._bridge.listen(self._services.learning_events, self.lessons.take)

    def _handlers(self) -> dict[str, Callable[[], None]]:
        page, desk, scroller = self.page, self.desk, self.page.scroller
        return {
            "new": desk.new_chat,
            "palette": self._go_to,
            "find": page.find_bar.begin,
            "search": self._search,
            "rename": self._rename,
            "delete": desk.delete_current,
            "undo": page.toast.act,
            "focus": self._focus_composer,
            "stop": desk.stop,
            "again": desk.regenerate_last,
            "edit": page.edit_last_answer,
            "copy": page.copy_answer,
            "copy_code": page.copy_code,
            "before": lambda: page.step_focus(-1),
            "after": lambda: page.step_focus(1),
            "latest": scroller.to_end,
            "sidebar": self.toggle_sidebar,
            "versions": self.toggle_panel,
            "larger": lambda: self._zoom(1),
            "smaller": lambda: self._zoom(-1),
            "normal": lambda: self._zoom(0),
            "settings": self.dialogs.open_settings,
            "help": self._help,
            "quit": self._quit,
        }

    def _build_menu(self) -> None:
        actions = self.actions_by_name
        about = QAction("About Ownmind", self)
        about.setMenuRole(QAction.MenuRole.AboutRole)
        about.triggered.connect(self.dialogs.open_about)
        actions["settings"].setMenuRole(QAction.MenuRole.PreferencesRole)
        actions["quit"].setMenuRole(QAction.MenuRole.QuitRole)
        for title, names in (
            ("File", ("new", "rename", "delete", "settings", "quit")),
            ("View", ("sidebar", "versions", "larger", "smaller", "normal")),
            ("Help", ("help",)),
        ):
            menu = self.menuBar().addMenu(title)
            for name in names:
                menu.addAction(actions[name])
        self.menuBar().addMenu("Help").addAction(about)

    # --- life -------------------------------------------------------------------------------------------------------

    async def begin(self) -> None:
        """Fill the window."""
        if self._services.notices:
            self.page.banner.say("\n".join(self._services.notices))
        for part in (self.dialogs.refresh, self.lessons.refresh, self._begin_chatting):
            try:
                await part()
            except AppError as error:  # what cannot be read now must not keep the rest from being shown
                self.problems.show(error)
        self._focus_composer()

    async def _begin_chatting(self) -> None:
        await self.desk.begin(self._preferences.chat or None, keep_banner=True)

    async def end(self) -> None:
        """Keep what is not stored yet."""
        place = self.saveGeometry().toBase64().toStdString()
        await self.desk.close()
        await self._bridge.do(self._settings.set, name_of("geometry"), place)

    def remember(self, field: str, value: object) -> None:
        """Keep one preference."""
        setattr(self._preferences, field, value)
        self._tasks.start(self._bridge.do(self._settings.set, name_of(field), as_text(value)), "remember")

    def raise_up(self) -> None:
        """Come to the front."""
        self.setWindowState(self.windowState() & ~Qt.WindowState.WindowMinimized)
        self.show()
        self.raise_()
        self.activateWindow()

    def closeEvent(self, event: QCloseEvent) -> None:
        """Hide at once, and let the owner end things in order."""
        event.ignore()
        self.hide()
        self.close_asked.emit()

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Give the conversation its room first."""
        super().resizeEvent(event)
        self._fit()

    # --- showing ----------------------------------------------------------------------------------------------------

    def _show_devmode(self, status: DevStatus) -> None:
        self.sidebar.show_devmode(status)
        self.lessons.show_devmode(status)

    def _show_versions(self, versions: list[VersionView]) -> None:
        active = next((version.number or 0 for version in versions if version.active), 0)
        self.header.show_version(active)
        count = sum(1 for version in versions if not version.rejected and not version.base)
        self.sidebar.versions.set_end(str(count) if count else "")
        self.dialogs.refresh_soon()

    def _opened(self, conversation: ConversationView) -> None:
        self.setWindowTitle(f"{conversation.title} · Ownmind")
        if self._preferences.chat != conversation.id:
            self.remember("chat", conversation.id)

    def _ask_link(self, address: str) -> None:
        ask_to_open(self._theme, address, self)

    def _say_copied(self) -> None:
        self.page.toast.say("Copied")

    # --- keys -------------------------------------------------------------------------------------------------------

    def toggle_sidebar(self) -> None:
        """Show or hide the sidebar."""
        self._panel_first = False
        self._toggle("sidebar", self.sidebar)

    def toggle_panel(self) -> None:
        """Show or hide the panel of versions."""
        self._panel_first = True
        self._toggle("panel", self.panel)

    def _toggle(self, field: str, column: QWidget) -> None:
        self.remember(field, not column.isVisibleTo(self))
        self._fit()

    def _search(self) -> None:
        if not self.sidebar.isVisibleTo(self):
            self.toggle_sidebar()
        self.sidebar.search.setFocus(Qt.FocusReason.ShortcutFocusReason)
        self.sidebar.search.selectAll()

    def _rename(self) -> None:
        if not self.sidebar.isVisibleTo(self):
            self.toggle_sidebar()
        focused = self.sidebar.chats.current() if self.sidebar.chats.hasFocus() else None
        self.sidebar.chats.edit_title(focused)

    def _focus_composer(self) -> None:
        self.page.composer.edit.setFocus(Qt.FocusReason.ShortcutFocusReason)

    def _zoom(self, steps: int) -> None:
        self._theme.zoom_by(steps)
        self.remember("zoom", self._theme.zoom)

    def _help(self) -> None:
        dialog = ShortcutsDialog(self._theme, self.actions_by_name, self)
        dialog.finished.connect(dialog.deleteLater)
        dialog.open()

    def _go_to(self) -> None:
        actions = [action for name, action in self.actions_by_name.items() if name != "palette"]
        palette = Palette(self._theme, actions, self.sidebar.chats.chats(), self)
        palette.chat_picked.connect(self.desk.open)
        palette.finished.connect(palette.deleteLater)
        palette.open()

    def _quit(self) -> None:
        self.close()

    # --- room -------------------------------------------------------------------------------------------------------

    def _fit(self) -> None:
        """Show the columns that are wanted and have room, the one asked for last before the other."""
        px, room = self._theme.px, self.width() - self._theme.px(LEAST_MIDDLE_PX)
        columns = [("sidebar", self.sidebar, px(SIDEBAR_PX)), ("panel", self.panel, px(PANEL_PX))]
        if self._panel_first:
            columns.reverse()
        for field, widget, width in columns:
            shown = bool(getattr(self._preferences, field)) and room >= width
            room -= width if shown else 0
            widget.setVisible(shown)

    def _restyle(self) -> None:
        self.panel.setFixedWidth(self._theme.px(PANEL_PX))
        self._fit()

    def _restore_place(self) -> None:
        self.setMinimumSize(480, 420)
        place = QByteArray.fromBase64(self._preferences.geometry.encode())
        if place.isEmpty() or not self.restoreGeometry(place):
            room = QApplication.primaryScreen().availableSize()
            self.resize(min(WIDTH_PX, room.width()), min(HEIGHT_PX, room.height()))

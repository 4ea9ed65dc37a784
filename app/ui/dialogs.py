"""Settings, About and the unlock wizard: when they open, and what becomes of what is set there."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

from PySide6.QtWidgets import QWidget

from app.devmode.api import DevState, DevStatus
from app.errors import AppError
from app.tasks import TaskSet
from app.ui.about import AboutDialog
from app.ui.preferences import Preferences
from app.ui.problems import Problems
from app.ui.services import Services
from app.ui.settings_dialog import AnswerStyle, SettingsDialog, SettingsView
from app.ui.theme import Scheme, Theme
from app.ui.wizard import UnlockWizard
from app.ui.wizard_calls import DevCalls


class Dialogs:
    """One per window. Nothing here runs a loop of its own.

    Args:
        remember: Stores one preference by its field's name.
        on_devmode: Told whenever the state of developer mode may be different.
    """

    def __init__(
        self,
        *,
        theme: Theme,
        window: QWidget,
        services: Services,
        calls: DevCalls,
        tasks: TaskSet,
        problems: Problems,
        preferences: Preferences,
        remember: Callable[[str, object], None],
        on_devmode: Callable[[DevStatus], None],
    ) -> None:
        self._theme, self._window, self._services, self._calls = theme, window, services, calls
        self._tasks, self._problems = tasks, problems
        self._preferences, self._remember, self._on_devmode = preferences, remember, on_devmode
        self._status: DevStatus | None = None
        self._then: Callable[[], None] | None = None
        self.settings: SettingsDialog | None = None
        self.about: AboutDialog | None = None
        self.wizard: UnlockWizard | None = None

    # --- developer mode ---------------------------------------------------------------------------------------------

    async def refresh(self) -> None:
        """Read the state of developer mode and tell who shows it."""
        self._show_status(await self._calls.status())

    def refresh_soon(self) -> None:
        """Do the same as a task; an error is shown."""
        self._run(self.refresh(), "devmode")

    def lead(self, then: Callable[[], None]) -> None:
        """Open what comes next on the way to unlocking, and call ``then`` once it is unlocked."""
        self._then = then
        self.open_unlocking()

    def open_unlocking(self) -> None:
        """Open the wizard if it was found, else About, where it is found."""
        self._run(self._open_unlocking(), "unlock")

    async def _open_unlocking(self) -> None:
        status = await self._calls.status()
        self._show_status(status)
        if status.state is DevState.LOCKED:
            self.open_about()
        elif status.state is DevState.FOUND:
            self.open_wizard()
        else:
            self.open_settings()

    def _show_status(self, status: DevStatus) -> None:
        self._status = status
        self._on_devmode(status)
        if self.settings is not None:
            self.settings.show_view(self._settings_view(status))

    # --- opening ----------------------------------------------------------------------------------------------------

    def open_about(self) -> None:
        """Show About."""
        if self.about is None:
            services = self._services
            self.about = AboutDialog(
                self._theme, self._calls, version=services.app_version, home=services.home, parent=self._window
            )
            self.about.wizard_requested.connect(self._from_about)
            self.about.finished.connect(self._drop_about)
        self.about.open()

    def open_wizard(self) -> None:
        """Show the unlock wizard."""
        if self.wizard is None:
            budget = self._status.budget if self._status is not None else None
            self.wizard = UnlockWizard(
                self._theme, self._calls, home=self._services.home, budget=budget, parent=self._window
            )
            self.wizard.unlocked.connect(self._unlocked)
            self.wizard.finished.connect(self._drop_wizard)
        self.wizard.open()

    def open_settings(self) -> None:
        """Show Settings."""
        self._run(self._open_settings(), "settings")

    async def _open_settings(self) -> None:
        status = await self._calls.status()
        if self.settings is None:
            self.settings = SettingsDialog(self._theme, home=self._services.home, parent=self._window)
            self._connect_settings(self.settings)
        self._show_status(status)
        self.settings.open()

    def _connect_settings(self, dialog: SettingsDialog) -> None:
        dialog.scheme_changed.connect(self._set_scheme)
        dialog.zoom_changed.connect(self._set_zoom)
        dialog.style_changed.connect(self._set_style)
        dialog.instructions_changed.connect(self._set_instructions)
        dialog.lock_requested.connect(self._lock)
        dialog.unlock_requested.connect(self._unlock_from_settings)
        dialog.finished.connect(self._drop_settings)

    def _settings_view(self, status: DevStatus) -> SettingsView:
        preferences = self._preferences
        return SettingsView(self._theme.scheme, self._theme.zoom, preferences.style, preferences.instructions, status)

    # --- what is set ------------------------------------------------------------------------------------------------

    def _set_scheme(self, scheme: Scheme) -> None:
        self._theme.set_scheme(scheme)
        self._remember("scheme", scheme)

    def _set_zoom(self, zoom: float) -> None:
        self._theme.set_zoom(zoom)
        self._remember("zoom", zoom)

    def _set_style(self, style: AnswerStyle) -> None:
        self._remember("style", style)

    def _set_instructions(self, text: str) -> None:
        self._remember("instructions", text)

    def _lock(self) -> None:
        self._run(self._locked(), "lock")

    async def _locked(self) -> None:
        self._show_status(await self._calls.lock())

    def _unlock_from_settings(self) -> None:
        if self.settings is not None:
            self.settings.accept()
        self._then = None
        self.open_unlocking()

    def _from_about(self) -> None:
        if self.about is not None:
            self.about.accept()
        self.open_wizard()

    def _unlocked(self, status: DevStatus) -> None:
        self._show_status(status)
        then, self._then = self._then, None
        if then is not None:
            then()

    # --- closing ----------------------------------------------------------------------------------------------------

    def _drop_about(self) -> None:
        dialog, self.about = self.about, None
        if dialog is not None:
            dialog.deleteLater()
        self.refresh_soon()

    def _drop_wizard(self) -> None:
        dialog, self.wizard = self.wizard, None
        if dialog is not None:
            dialog.deleteLater()
        self._run(self.refresh(), "devmode")

    def _drop_settings(self) -> None:
        dialog, self.settings = self.settings, None
        if dialog is not None:
            dialog.deleteLater()

    def _run(self, work: Coroutine[Any, Any, object], name: str) -> None:
        self._tasks.start(self._guarded(work), name)

    async def _guarded(self, work: Coroutine[Any, Any, object]) -> None:
        try:
            await work
        except AppError as error:
            self._problems.show(error)

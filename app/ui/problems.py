"""How the window says that something went wrong: one plain sentence and one action."""

from __future__ import annotations

import logging
import traceback

from app.errors import AppError, BugError, ErrorInfo
from app.ui.answer_parts import plain_reason
from app.ui.notices import Banner

log = logging.getLogger(__name__)


class Problems:
    """Where views report errors to."""

    def __init__(self, banner: Banner) -> None:
        self._banner = banner

    def show(self, error: AppError) -> None:
        """Say what failed and what can be done."""
        self.show_info(error.info())

    def show_info(self, info: ErrorInfo) -> None:
        """Say what failed and what can be done."""
        log.warning("shown: %s (%s)", info.what, info.kind)
        self._banner.say(plain_reason(info))

    def show_any(self, error: BaseException) -> None:
        """Say what nobody caught. Of an unexpected error the log has the place, never its words."""
        if isinstance(error, AppError):
            self.show(error)
            return
        # The error's own words may quote a message; where it happened cannot.
        log.error("unexpected %s\n%s", type(error).__name__, "".join(traceback.format_tb(error.__traceback__)))
        hint = "Your chats and versions are stored. The log in the data folder says where it happened."
        self.show_info(BugError("finish that", type(error).__name__, hint).info())

"""Whether the system asks for reduced motion. Qt has no question for it, so each platform is asked."""

from __future__ import annotations

import os
import sys

from PySide6.QtCore import QSettings, Qt
from PySide6.QtWidgets import QApplication


def motion_is_reduced() -> bool:
    """Return True if fades and slides should be left out."""
    if os.environ.get("OWNMIND_REDUCED_MOTION") == "1":
        return True
    if sys.platform == "darwin":
        universal = QSettings("com.apple", "universalaccess")
        return bool(universal.value("reduceMotion", defaultValue=False, type=bool))
    # Windows reports its animation switch here; X11 and Wayland follow the desktop's own setting where a platform
    # theme exists, and report no effects at all where none does.
    return not QApplication.isEffectEnabled(Qt.UIEffect.UI_General)

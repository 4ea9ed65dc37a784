"""The app's own line icons: SVG paths on a 24 px square stroked in the colour of the text beside them."""

from __future__ import annotations

import functools

from PySide6.QtCore import QByteArray, QRectF, QSize, Qt
from PySide6.QtGui import QColor, QIcon, QPainter, QPixmap
from PySide6.QtSvg import QSvgRenderer

_SHAPES: dict[str, str] = {
    "plus": '<path d="M12 5v14M5 12h14"/>',
    "search": '<circle cx="10.5" cy="10.5" r="6"/><path d="m15 15 5 5"/>',
    "sidebar": '<rect x="3.5" y="4.5" width="17" height="15" rx="2.5"/><path d="M9.5 4.5v15"/>',
    "panel": '<rect x="3.5" y="4.5" width="17" height="15" rx="2.5"/><path d="M14.5 4.5v15"/>',
    "versions": '<circle cx="12" cy="12" r="8.5"/><path d="M12 7v5l3.5 2"/>',
    "settings": (
        '<path d="M4 7h8M18 7h2M4 17h2M12 17h8"/><circle cx="15" cy="7" r="2.6"/><circle cx="9" cy="17" r="2.6"/>'
    ),
    "heart": '<path d="M12 19.5S4 14.8 4 9.3A4.3 4.3 0 0 1 12 7a4.3 4.3 0 0 1 8 2.3c0 5.5-8 10.2-8 10.2z"/>',
    "heart-filled": (
        '<path fill="COLOR" d="M12 19.5S4 14.8 4 9.3A4.3 4.3 0 0 1 12 7a4.3 4.3 0 0 1 8 2.3c0 5.5-8 10.2-8 10.2z"/>'
    ),
    "edit": '<path d="m5 19 1-4L16.2 4.8a1.7 1.7 0 0 1 2.4 0l.6.6a1.7 1.7 0 0 1 0 2.4L9 18z"/>',
    "again": '<path d="M19 12a7 7 0 1 1-2.3-5.2L19.5 9"/><path d="M19.5 4.5V9H15"/>',
    "copy": (
        '<rect x="8.5" y="8.5" width="11" height="11" rx="2"/>'
        '<path d="M15.5 8.5v-2a2 2 0 0 0-2-2h-7a2 2 0 0 0-2 2v7a2 2 0 0 0 2 2h2"/>'
    ),
    "check": '<path d="m5 12.5 4.5 4.5L19 7.5"/>',
    "close": '<path d="M6 6l12 12M18 6 6 18"/>',
    "left": '<path d="m14.5 6-6 6 6 6"/>',
    "right": '<path d="m9.5 6 6 6-6 6"/>',
    "down": '<path d="M12 5v14M6 13l6 6 6-6"/>',
    "up": '<path d="M12 19V5M6 11l6-6 6 6"/>',
    "stop": '<rect x="7" y="7" width="10" height="10" rx="2" fill="COLOR"/>',
    "trash": '<path d="M4.5 7h15M9.5 7V4.5h5V7M6.5 7l1 12.5h9l1-12.5M10.2 10.5v6M13.8 10.5v6"/>',
    "undo": '<path d="M5 9.5h9a5 5 0 0 1 0 10h-4"/><path d="M9 5.5 5 9.5l4 4"/>',
    "warning": '<path d="M12 4.5 21 20H3z"/><path d="M12 10.5v4.5M12 17.4v.2"/>',
    "info": '<circle cx="12" cy="12" r="8.5"/><path d="M12 11v5.5M12 7.8v.2"/>',
    "lock": '<rect x="5" y="10.5" width="14" height="9" rx="2"/><path d="M8 10.5V8a4 4 0 0 1 8 0v2.5"/>',
    "unlock": '<rect x="5" y="10.5" width="14" height="9" rx="2"/><path d="M8 10.5V8a4 4 0 0 1 7.6-1.7"/>',
    "more": (
        '<circle cx="6" cy="12" r="1.2" fill="COLOR"/><circle cx="12" cy="12" r="1.2" fill="COLOR"/>'
        '<circle cx="18" cy="12" r="1.2" fill="COLOR"/>'
    ),
    "spark": '<path d="M12 4v4M12 16v4M4 12h4M16 12h4M6.5 6.5l2.5 2.5M15 15l2.5 2.5M17.5 6.5 15 9M9 15l-2.5 2.5"/>',
    "chat": '<path d="M4.5 6.5a2 2 0 0 1 2-2h11a2 2 0 0 1 2 2v8a2 2 0 0 1-2 2H11L6.5 20v-3.5a2 2 0 0 1-2-2z"/>',
}
_SCALES = (1, 2, 3)
ICON_PX = 16


def names() -> tuple[str, ...]:
    """Return every icon's name."""
    return tuple(_SHAPES)


def svg(name: str, color: QColor) -> bytes:
    """Return one icon as an SVG document in one colour. Raises KeyError for an unknown name."""
    shape = _SHAPES[name].replace("COLOR", color.name())
    return (
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 24 24" fill="none" '
        f'stroke="{color.name()}" stroke-width="1.7" stroke-linecap="round" stroke-linejoin="round">{shape}</svg>'
    ).encode()


def pixmap(name: str, color: QColor, size_px: int = ICON_PX, *, scale: float = 1.0) -> QPixmap:
    """Return one icon drawn for a screen of ``scale`` device pixels per logical pixel."""
    result = QPixmap(QSize(round(size_px * scale), round(size_px * scale)))
    result.fill(Qt.GlobalColor.transparent)
    painter = QPainter(result)
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    QSvgRenderer(QByteArray(svg(name, color))).render(painter, QRectF(result.rect()))
    painter.end()
    result.setDevicePixelRatio(scale)
    return result


def icon(name: str, color: QColor, size_px: int = ICON_PX) -> QIcon:
    """Return one icon for widgets, sharp at 100, 200 and 300 %."""
    return _icon(name, color.name(), size_px)


@functools.lru_cache(maxsize=512)
def _icon(name: str, color: str, size_px: int) -> QIcon:
    result = QIcon()
    for scale in _SCALES:
        result.addPixmap(pixmap(name, QColor(color), size_px, scale=scale))
    return result

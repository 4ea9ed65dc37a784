"""One window for each home: a second start raises the first one's window and ends.

This is a courtesy between windows. What keeps two processes from writing one home is the store's own lock.

Signals:
    FirstInstance.raised(): another start asks for the window.
"""

from __future__ import annotations

import getpass
import hashlib

from PySide6.QtCore import QObject, Signal
from PySide6.QtNetwork import QLocalServer, QLocalSocket

WAIT_MS = 500


def name_for(home: str) -> str:
    """Return the name that windows of one home and one person meet under."""
    digest = hashlib.sha256(f"{getpass.getuser()}\n{home}".encode()).hexdigest()
    return f"ownmind-{digest[:24]}"


def raise_other(home: str) -> bool:
    """Ask a window that is open on this home to come to the front; return whether there was one."""
    socket = QLocalSocket()
    socket.connectToServer(name_for(home))
    if not socket.waitForConnected(WAIT_MS):
        return False
    socket.write(b"raise\n")
    socket.waitForBytesWritten(WAIT_MS)
    socket.disconnectFromServer()
    return True


class FirstInstance(QObject):
    """Listens for later starts."""

    raised = Signal()

    def __init__(self, home: str) -> None:
        super().__init__()
        self._server = QLocalServer(self)
        self._server.setSocketOptions(QLocalServer.SocketOption.UserAccessOption)
        self._server.newConnection.connect(self._answer)
        if not self._server.listen(name_for(home)):
            # Nobody answered before: what is left is the socket of a process that ended badly.
            QLocalServer.removeServer(name_for(home))
            self._server.listen(name_for(home))

    def close(self) -> None:
        """Stop listening."""
        self._server.close()

    def _answer(self) -> None:
        socket = self._server.nextPendingConnection()
        if socket is not None:
            socket.disconnected.connect(socket.deleteLater)
            self.raised.emit()

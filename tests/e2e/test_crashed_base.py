from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from app.errors import KnownError
from app.model.engine.fake import FakeEngine
from app.wiring import open_app
from tests.support.real import real_base


@pytest.mark.real
def test_a_base_that_ended_while_loading_is_not_loaded_again_unasked(tmp_path: Path) -> None:
    async def scenario() -> None:
        app = open_app(tmp_path / "home", real_base(), engine=FakeEngine())
        app.crash_note.write(app.base.passport.id)
        try:
            await app.start()
            with pytest.raises(KnownError, match="ended while loading"):
                await app.engine.ready()
            assert not app.crash_note.names(app.base.passport.id)
        finally:
            await app.close()

    asyncio.run(scenario())

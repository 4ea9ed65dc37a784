"""The llama.cpp engine keeps the promises of an engine, on the real embedded model."""

from __future__ import annotations

from pathlib import Path

import pytest

from app.model.engine.client import LlamaEngine
from tests.engine.contract import EngineContract, Rig
from tests.support.real import real_base, small_adapter

pytestmark = pytest.mark.real


class TestLlamaEngine(EngineContract):
    @classmethod
    def make(cls, folder: Path) -> Rig:
        base = real_base()
        return Rig(LlamaEngine, base, (small_adapter(base, folder, seed=1), small_adapter(base, folder, seed=2)))

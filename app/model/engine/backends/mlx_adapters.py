"""Which adapter is in an MLX model, and swapping it whole or not at all."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from mlx import nn
from mlx_lm.tuner.lora import LoRALinear

from app.errors import VerificationError
from app.model.adapters.mlx import CONFIG
from app.model.api import AdapterRef
from app.model.mlx.adapter_folder import read_folder
from app.model.mlx.backends import lora


class Adapters:
    """The adapter slot of one model. ``base`` is the passport id that every adapter must be made for."""

    def __init__(self, model: nn.Module, base: str) -> None:
        self._model = model
        self._base = base
        self._ref: AdapterRef | None = None
        self._sha256: str | None = None

    @property
    def active(self) -> str | None:
        """Hash of the active adapter, derived from the very numbers that were loaded."""
        return self._sha256

    def swap(self, ref: AdapterRef | None) -> None:
        """Put this adapter in, or none. Raises VerificationError or KnownError, and then nothing has changed."""
        layers, sha256 = self._built(ref)
        self._set(layers, ref, sha256)

    @contextlib.contextmanager
    def during(self, ref: AdapterRef | None) -> Iterator[None]:
        """Have this adapter in for a while and the present one again afterwards; raises as ``swap``."""
        if ref == self._ref:
            yield
            return
        before = lora.attached(self._model), self._ref, self._sha256
        self.swap(ref)
        try:
            yield
        finally:
            self._set(*before)

    def _built(self, ref: AdapterRef | None) -> tuple[dict[str, LoRALinear], str | None]:
        if ref is None:
            return {}, None
        folder = ref.path.parent if ref.path.name == CONFIG else ref.path
        served = read_folder(folder)
        sha256 = served.identity(self._base)
        if sha256 != ref.sha256:
            hint = "Its numbers are not the ones that were learned for this model. Nothing of it was used."
            raise VerificationError("use an adapter", ref.sha256[:12], hint)
        return lora.build(self._model, served.pairs, scale=served.scale * ref.scale), sha256

    def _set(self, layers: dict[str, LoRALinear], ref: AdapterRef | None, sha256: str | None) -> None:
        lora.detach(self._model)
        lora.put(self._model, layers)
        self._ref, self._sha256 = ref, sha256

"""Verdicts as JSON-ready values and back. What is written here is stored for good: see ``docs/formats.md``."""

from __future__ import annotations

import math
from typing import Any

from app.errors import VerificationError
from app.model.api import Check, Outcome, Verdict

FORMAT = "ownmind-verdict-1"


def verdict_to_dict(verdict: Verdict) -> dict[str, Any]:
    """Return a verdict as JSON-ready values; numbers that JSON does not know become null."""
    return {
        "format": FORMAT,
        "outcome": verdict.outcome.value,
        "checks": [check_to_dict(check) for check in verdict.checks],
        "scale": verdict.scale,
        "suite_sha256": verdict.suite_sha256,
        "runtime": verdict.runtime,
        "adapter_sha256": verdict.adapter_sha256,
        "parent_sha256": verdict.parent_sha256,
        "seconds": verdict.seconds,
        "reason": verdict.reason,
        "suggestions": list(verdict.suggestions),
    }


def verdict_from_dict(data: dict[str, Any]) -> Verdict:
    """Rebuild a verdict. Raises VerificationError for anything that is none."""
    try:
        if data["format"] != FORMAT:
            raise VerificationError("read a verdict", str(data["format"]), "It was written by a newer app.")
        return Verdict(
            outcome=Outcome(data["outcome"]),
            checks=tuple(check_from_dict(check) for check in data["checks"]),
            scale=float(data["scale"]),
            suite_sha256=str(data["suite_sha256"]),
            runtime=str(data["runtime"]),
            adapter_sha256=str(data["adapter_sha256"]),
            parent_sha256=data["parent_sha256"],
            seconds=float(data["seconds"]),
            reason=str(data["reason"]),
            suggestions=tuple(data["suggestions"]),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise VerificationError("read a verdict", "it has not the form it should have") from error


def check_to_dict(check: Check) -> dict[str, Any]:
    """Return one line of evidence as JSON-ready values."""
    return {
        "rule": check.rule,
        "outcome": check.outcome.value,
        "words": check.words,
        "value": check.value if math.isfinite(check.value) else None,
        "limit": check.limit,
        "unit": check.unit,
        "details": list(check.details),
    }


def check_from_dict(data: dict[str, Any]) -> Check:
    """Rebuild one line of evidence."""
    return Check(
        rule=str(data["rule"]),
        outcome=Outcome(data["outcome"]),
        words=str(data["words"]),
        value=math.inf if data["value"] is None else float(data["value"]),
        limit=float(data["limit"]),
        unit=str(data["unit"]),
        details=tuple(data["details"]),
    )

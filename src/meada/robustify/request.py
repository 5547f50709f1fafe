"""The arguments of ``robustify``: checked before any work, saved with the plan, and compared on resume."""

import json
from dataclasses import asdict, dataclass
from pathlib import Path

from meada.corruptions.batch import SIDES
from meada.errors import MeadaError
from meada.images.inputs import check_count, check_numbers
from meada.runs.parts import find


@dataclass(frozen=True)
class Request:
    """Arguments, with absolute paths; the same arguments resume a folder."""

    data: str  # a folder or a CSV file
    tests: tuple[str, ...] = ()
    network: str = ""  # empty: chosen by the size of the pictures
    weights: str = ""
    model: str = ""  # an existing model to compare with
    minutes: float | None = None
    seed: int = 0
    side: int | None = None
    group: str = ""  # CSV column or regular expression: a group is never divided between training and held-out
    changes: tuple[str, ...] = ()  # settings, key=value

    def check(self) -> None:
        if self.side is not None and self.side not in SIDES:
            raise MeadaError(f"--side must be from {SIDES[0]} to {SIDES[-1]}, got {self.side}")
        if self.minutes is not None:
            check_numbers(**{"--minutes": self.minutes})
            if not self.minutes > 0:
                raise MeadaError(f"--minutes must be greater than 0, got {self.minutes:g}")
        check_count("--seed", self.seed, least=0)
        if self.weights and not self.network:
            raise MeadaError("--weights must come with the --network that they belong to, got no --network")
        if self.weights and not Path(self.weights).is_file():
            raise MeadaError(f"--weights must be a file, got {self.weights}")
        if self.model and not Path(self.model).exists():
            raise MeadaError(f"--model must be a folder or a file of meada, got {self.model}")
        if self.network:
            find("network", self.network, trust=[self.network])

    def same_as(self, held: object, where: Path) -> None:
        """Refuse to resume a folder with other arguments."""
        before = held if isinstance(held, dict) else {}
        for name, now in json.loads(json.dumps(asdict(self))).items():
            if before.get(name) != now:
                option = {"tests": "--test", "changes": "--set"}.get(name, f"--{name}")
                raise MeadaError(
                    f"{option} must be {before.get(name)!r} to resume {where}, got {now!r}: "
                    "repeat the same command, or give another --out to start again"
                )

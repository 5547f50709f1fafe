"""What was asked for: checked at once, written down, and compared when the command is given again."""

import json
from dataclasses import asdict, dataclass
from pathlib import Path

from meada.errors import MeadaError
from meada.images.inputs import check_count, check_numbers
from meada.runs.parts import find

SIDES = range(28, 513)  # what the corruptions are defined for


@dataclass(frozen=True)
class Request:
    """The command, with every path made absolute: the same one carries on."""

    data: str  # a folder, a CSV file, or the hash of pictures that were passed in memory
    tests: tuple[str, ...] = ()
    network: str = ""  # empty: chosen by the size of the pictures
    weights: str = ""
    model: str = ""  # a model of one's own, to compare with
    minutes: float | None = None
    seed: int = 0
    side: int | None = None
    group: str = ""  # what belongs together and never straddles the split
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
        """Refuse to carry on with another command in the same folder."""
        before = held if isinstance(held, dict) else {}
        for name, now in json.loads(json.dumps(asdict(self))).items():
            if before.get(name) != now:
                raise MeadaError(
                    f"{where} was begun with {name} {before.get(name)!r}, not {now!r}: "
                    "give the same command to carry on, or another --out to start again"
                )

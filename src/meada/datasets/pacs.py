"""PACS (section 4.2): train on three kinds of picture, test on the fourth."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from meada.datasets.domains import domains, protocol
from meada.datasets.pictures.image_cache import Tell
from meada.datasets.published.catalogue import PACS, advice
from meada.datasets.task import Sizes, Task
from meada.errors import MeadaError
from meada.files import data_root

# in the order of Table 2, with how many pictures are published of each
DOMAINS = {"art_painting": 2_048, "cartoon": 2_344, "photo": 1_670, "sketch": 3_929}


def pacs(
    *,
    targets: Sequence[str] = (),
    sources: Sequence[str] = (),
    side: int = 224,
    per_domain: int | None = None,
    root: str | Path | None = None,
    cache: str | Path | None = None,
    tell: Tell | None = None,
) -> Task:
    """Leave-one-domain-out with ``targets=["sketch"]``, single-source with ``sources=["photo"]``.

    By the published lists: ``train`` to train on and ``crossval`` to validate on, both of the
    sources; ``test``, which is the union of the two, of the targets alone. The arguments are those
    of :func:`meada.datasets.domains.domains`.
    """
    folder = data_root(root) / "pacs"
    for file in PACS.files:
        if not (data_root(root) / file.path).is_dir():
            where = data_root(root) / file.path
            raise MeadaError(f"{where} is missing; {advice(PACS, file)}")
    task = domains(
        folder=str(folder),
        targets=targets,
        sources=sources,
        side=side,
        per_domain=per_domain,
        cache=cache,
        tell=tell,
    )
    return replace(task, provenance=_with_published_count(task, folder / "images"))


def pacs_sizes(
    *,
    targets: Sequence[str] = (),
    sources: Sequence[str] = (),
    side: int = 224,
    per_domain: int | None = None,
    **_: object,
) -> Sizes:
    """As published, a tenth of the sources held out."""
    learn, meet = protocol([*DOMAINS], sources, targets)
    train = sum(min(per_domain or DOMAINS[name], round(0.9 * DOMAINS[name])) for name in learn)
    return Sizes(7, train, {name: DOMAINS[name] for name in meet}, len(learn), side)


def count(root: Path) -> int:
    """Pictures that are there, of the 9,991 published ones."""
    return sum(_held(root / "pacs" / "images", name) for name in DOMAINS)


def _with_published_count(task: Task, pictures: Path) -> dict[str, str]:
    return {
        name: f"{what}; {_held(pictures, name):,} of the {DOMAINS[name]:,} published are there"
        for name, what in task.provenance.items()
    }


def _held(pictures: Path, name: str) -> int:
    return sum(path.is_file() for path in (pictures / name).glob("*/*"))

"""The data set ``folder``: split a folder into training and held-out pictures, and test on other folders."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from meada.datasets.pictures.listing import Picture, list_pictures
from meada.datasets.pictures.parts import load, provenance, spread
from meada.datasets.pictures.split import alike, constants, shown, split, warnings
from meada.datasets.pictures.survey import MIN_CLASSES, Survey, grouped, summary, survey
from meada.datasets.task import Samples, Task
from meada.errors import MeadaError, check_range, some
from meada.machine.terminal import Count

SOURCE = "source"  # name of the held-out pictures in ``meada evaluate``, not of a test
Chosen = tuple[Survey, list[Picture]]  # a folder, and those of its pictures that are used


@dataclass(frozen=True)
class Division:
    """Which pictures are trained on, held out and tested on, before any is loaded."""

    own: Survey
    fit: list[Picture]
    kept: list[Picture]  # held out
    tests: dict[str, Chosen]


def folder(
    *, path: str, tests: Sequence[str] = (), side: int = 224, train: int | None = None, test: int | None = None,
    held_out: float = 0.2, seed: int = 0, group: str = "", multilabel: bool = False,
    cache: str | Path | None = None, tell: Count | None = None,
) -> Task:  # fmt: skip
    """Pictures from ``CLASS/*.jpg``, ``DOMAIN/CLASS/*.jpg`` or a CSV file of path,label.

    Files that cannot be decoded and classes without pictures are left out and listed in the
    provenance. Grey, CMYK, 16-bit and rotated pictures are supported (:func:`meada.datasets.pictures.decode.decode`).

    Args:
        path: the folder or the file.
        tests: other folders or files with the same classes, not used for training.
        side: width and height that every picture is resized to (bilinear).
        train: maximum number of training pictures, spread over classes and domains.
        test: maximum number of pictures per test, spread over its classes.
        held_out: share of each class of each domain that is held out from training.
        seed: seed of the split.
        group: a column of the CSV file, or a regular expression on the path whose first group names the
            object or patient that a picture shows. Pictures of one group, and exact copies, are never
            divided between training and held-out pictures.
        multilabel: also accept a CSV file of path and several columns of 0 and 1; labels are then (N, K).
        cache: folder for decoded pictures, as for ``domains``.
        tell: called with the number of pictures decoded so far and in total.
    """
    at_most = {name: 1 if n is None else n for name, n in (("train", train), ("test", test))}
    check_range("folder", "[1, inf)", side=side, **at_most)
    check_range("folder", "(0, 1)", held_out=held_out)
    check_range("folder", "[0, inf)", seed=seed)
    found = divide(
        path, tests, held_out=held_out, seed=seed, group=group, multilabel=multilabel, cache=cache, tell=tell
    )
    return load_task(found, side=side, train=train, test=test, cache=cache, tell=tell)


def divide(
    path: str, tests: Sequence[str], *, held_out: float, seed: int, group: str, multilabel: bool,
    cache: str | Path | None = None, tell: Count | None = None,
) -> Division:  # fmt: skip
    """Split the pictures and find those of the tests; arguments as for :func:`folder`."""
    own = survey(Path(path), group=group, cache=cache, tell=tell)
    if own.multilabel and not multilabel:
        raise MeadaError(
            f"{path} must have one column 'label', got the label columns {', '.join(own.classes[:4])}: "
            "only meada robustify supports several labels per picture"
        )
    if len(own.classes) < MIN_CLASSES and not own.multilabel:
        raise MeadaError(f"{path} must have at least two classes, got one, '{own.classes[0]}'")
    if own.multilabel and len(constant := constants(own)) == len(own.classes):
        raise MeadaError(f"{path} must have a label that some pictures have and others lack, got {constant[0]} for all")
    fit, kept = split(own, held_out=held_out, seed=seed)
    return Division(own, fit, kept, targets(tests, own, group=group, cache=cache, tell=tell))


def load_task(
    found: Division, *, side: int, train: int | None = None, test: int | None = None,
    cache: str | Path | None = None, tell: Count | None = None,
) -> Task:  # fmt: skip
    """Read the pictures; arguments as for :func:`folder`."""
    own, kept, fit = found.own, found.kept, spread(found.fit, train)
    used = {name: spread(part, test) for name, (_, part) in found.tests.items()}
    parts = {f"train {train or 'all'}": (own.root, fit), "held out": (own.root, kept)}
    parts |= {f"test {name} {test or 'all'}": (found.tests[name][0].root, part) for name, part in used.items()}
    samples = load(parts, own.classes, own.domains, side, cache=cache, tell=tell)
    said = provenance(own.domains, fit, kept, used, side)
    return Task(
        classes=own.classes,
        train=samples[0],
        validation=samples[1],
        targets=dict(zip(used, samples[2:], strict=True)),
        sources=own.domains,
        multilabel=own.multilabel,
        provenance=said | _left_out(found) | _warnings(found, used),
    )


def targets(
    tests: Sequence[str], own: Survey, *, group: str = "", cache: str | Path | None = None, tell: Count | None = None
) -> dict[str, Chosen]:
    """Test folders by name; each domain of a folder is a test of its own."""
    found: dict[str, Chosen] = {}
    classes, trained_on = own.classes, {look.content: file for file, look in own.looks.items()}
    for test in tests:
        one = survey(Path(test), group=_group_of(Path(test), group), cache=cache, tell=tell)
        if own.multilabel and one.classes != classes:
            raise MeadaError(f"test '{test}' must have the label columns {some(classes)}, got {some(one.classes)}")
        if both := [file for file, look in one.looks.items() if look.content in trained_on]:
            raise MeadaError(
                f"test '{test}' must hold none of the pictures to train on, got {len(both):,} of the same pixels, "
                f"such as {both[0]}, a copy of {own.root / trained_on[one.looks[both[0]].content]}"
            )
        for domain in one.domains:
            known = [p for p in one.pictures if p.domain == domain and (own.multilabel or p.label in classes)]
            if not known:
                got = f"{some(classes)}, got {some(one.classes)}"
                raise MeadaError(f"test '{test}' must have some of the classes {got}")
            found[_free(domain, Path(test), {*found, *own.domains, SOURCE})] = (one, known)
    return found


def read_pictures(path: Path, classes: Sequence[str] | None, side: int, *, strict: bool = False) -> Samples:
    """All pictures of a folder whose class is in ``classes`` (default: all classes), in order.

    Other classes are left out or, if ``strict``, refused.
    """
    found = survey(path)
    classes = found.classes if classes is None else classes
    unknown = [name for name in found.classes if name not in classes]
    if strict and unknown:
        raise MeadaError(f"{path} must have no classes but {some(classes)}, got '{unknown[0]}'")
    known = [p for p in found.pictures if p.label in classes]
    if not known:
        raise MeadaError(f"{path} must have some of the classes {some(classes)}, got {some(found.classes)}")
    one_label = [p._replace(labels=()) for p in known]
    return load({"all": (found.root, one_label)}, classes, (), side)[0]


def remarks_on_tests(found: Division) -> Iterator[str]:
    """One sentence per test folder: its files and classes that are left out, and classes without a picture."""
    classes = set(found.own.classes)
    for tests in grouped(found.tests.items(), lambda test: id(test[1][0])).values():
        one = tests[0][1][0]  # the survey that the tests of one folder have in common
        notes = [summary(one.skipped)] if one.skipped else []
        unknown = {p.label for p in one.pictures} - classes
        if unknown and not one.multilabel:
            notes.append(f"unknown classes are left out: {some(sorted(unknown))}")
        for name, (_, part) in tests:
            if missing := classes - shown(found.own, part):
                where = f" in {name}" if len(tests) > 1 else ""
                notes.append(f"no pictures of class {some(sorted(missing))}{where}")
        if notes:
            yield f"test {', '.join(name for name, _ in tests)}: {'; '.join(notes)}"


def _group_of(test: Path, group: str) -> str:
    """The group pattern if the test has such groups, else none."""
    with suppress(MeadaError):
        list_pictures(test, group)
        return group
    return ""


def _free(name: str, path: Path, taken: Collection[str]) -> str:
    """A name that is not taken: prefixed by the parent folder, or numbered."""
    full = f"{path.resolve().parent.name}-{name}"
    names = [name, full, *(f"{full}-{k}" for k in range(2, len(taken) + 3))]
    return next(one for one in names if one not in taken)


def _left_out(found: Division) -> dict[str, str]:
    own = found.own
    notes = [*([summary(own.skipped)] if own.skipped else []), *own.remarks, *remarks_on_tests(found)]
    return {"left out": "; ".join(notes)} if notes else {}


def _warnings(found: Division, used: Mapping[str, Sequence[Picture]]) -> dict[str, str]:
    own, fit, kept = found.own, found.fit, found.kept
    notes = [*warnings(own, fit, kept)]
    groups = {p.group for p in own.pictures} - {""}
    for name, part in used.items():
        notes += alike(f"test '{name}'", found.tests[name][0], part, own, [*fit, *kept])
        if shared := sorted(groups & {p.group for p in part}):
            notes.append(f"test '{name}' has {len(shared):,} groups of the data, such as '{shared[0]}'")
    return {"warnings": "; ".join(notes)} if notes else {}

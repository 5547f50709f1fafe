"""Folders DOMAIN/CLASS/*.jpg, with or without lists of which pictures are for training and which for tests."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import torch

from meada.datasets.pictures.listing import folders_in, is_picture
from meada.errors import MeadaError
from meada.machine.limits import read_text
from meada.streams import stream

Split = Literal["train", "crossval", "test"]
Entry = tuple[str, int]  # a picture below the tree's pictures, and its class


@dataclass(frozen=True)
class Tree:
    """Where things are; ``faults`` grows as parts are read, and is raised once, as a whole."""

    pictures: Path  # the folder of the domains
    lists: Path | None  # the folder of DOMAIN_{train,crossval,test}_kfold.txt
    domains: tuple[str, ...]
    classes: tuple[str, ...]
    faults: list[str] = field(default_factory=list)


def read_tree(folder: Path) -> Tree:
    """``folder`` holds the domains, or holds them in ``images`` next to ``splits``."""
    if not folder.is_dir():
        raise MeadaError(f"{folder} must be a folder DOMAIN/CLASS/*.jpg, got none")
    pictures = folder / "images" if (folder / "images").is_dir() else folder
    lists = folder / "splits" if (folder / "splits").is_dir() else None
    domains = [domain for domain in folders_in(pictures) if domain != lists]
    classes = sorted({folder.name for domain in domains for folder in folders_in(domain)})
    if not classes:
        raise MeadaError(f"{pictures} must hold DOMAIN/CLASS folders, got none")
    return Tree(pictures, lists, tuple(domain.name for domain in domains), tuple(classes))


def part(tree: Tree, domain: str, split: Split, *, held_out: float, seed: int) -> list[Entry]:
    """The pictures of one domain for training, for choosing, or all of them for the test.

    Out of the published lists where there are any; else ``held_out`` of each class is kept from
    training, drawn by ``seed``.
    """
    found = {k: _pictures(tree, domain, name) for k, name in enumerate(tree.classes)}
    tree.faults.extend(f"{domain}/{tree.classes[k]} holds no picture" for k, names in found.items() if not names)
    if tree.lists is not None:
        known = {name for names in found.values() for name in names}
        path = tree.lists / f"{domain}_{split}_kfold.txt"
        entries = _listed(tree, path, domain, known)
        if split != "crossval" and entries:  # a few pictures to choose by may lack a rare class
            unnamed = {k for k, names in found.items() if names} - {k for _, k in entries}
            tree.faults.extend(f"{path.name} names no picture of {tree.classes[k]}" for k in sorted(unnamed))
        return entries
    if split != "test":
        found = {k: share(some, split, held_out, f"{seed} {domain} {tree.classes[k]}") for k, some in found.items()}
    return [(name, k) for k, names in found.items() for name in names]


def read_list(path: Path, classes: Sequence[str]) -> tuple[list[Entry], list[str]]:
    """Lines ``DOMAIN/CLASS/NAME LABEL``, and what is wrong with others.

    Labels are 1..K, in the order of the classes' names; from here on they are 0..K-1.
    """
    entries, faults = list[Entry](), list[str]()
    for number, line in enumerate(read_text(path).splitlines(), 1):
        if not line.strip():
            continue
        name, _, label = line.strip().rpartition(" ")
        folders = name.split("/")
        if len(folders) != 3 or not label.isdecimal() or not 1 <= int(label) <= len(classes):
            faults.append(
                f"{path.name} line {number} must be DOMAIN/CLASS/NAME and a label from 1 to {len(classes)}, "
                f"got '{line.strip()}'"
            )
        elif classes[int(label) - 1] != folders[1]:
            faults.append(
                f"{path.name} line {number} labels {name} as {label}, which stands for {classes[int(label) - 1]}"
            )
        else:
            entries.append((name, int(label) - 1))
    return entries, faults


def _listed(tree: Tree, path: Path, domain: str, known: set[str]) -> list[Entry]:
    if not path.is_file():
        tree.faults.append(f"the list {path.name} is missing")
        return []
    entries, faults = read_list(path, tree.classes)
    strange = [name for name, _ in entries if not name.startswith(f"{domain}/")]
    missing = [name for name, _ in entries if name not in known and name not in strange]
    tree.faults.extend(faults)
    tree.faults.extend(f"{path.name} names {name}, which is not there" for name in missing)
    tree.faults.extend(f"{path.name} names {name} of another domain" for name in strange)
    return [entry for entry in entries if entry[0] in known]


def share(names: list[str], split: Split, held_out: float, key: str) -> list[str]:
    """A class's own draw: at least one picture to choose by, wherever there are two."""
    order = torch.randperm(len(names), generator=stream("split", key)).tolist()
    cut = max(round(held_out * len(names)), 1) if len(names) > 1 else 0
    return [names[i] for i in sorted(order[:cut] if split == "crossval" else order[cut:])]


def _pictures(tree: Tree, domain: str, name: str) -> list[str]:
    folder = tree.pictures / domain / name
    if not folder.is_dir():
        return []
    return [f"{domain}/{name}/{file.name}" for file in sorted(folder.iterdir()) if is_picture(file)]

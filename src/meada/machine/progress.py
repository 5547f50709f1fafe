"""A progress bar with the time left, for work whose phases are told as they go."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

Tell = Callable[[str, int, int], None]  # phase, done, of how many


@contextmanager
def bar(label: str) -> Iterator[Tell]:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        TextColumn("left"),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as shown:
        task, current = shown.add_task(f"{label}: reading data", total=None), ""

        def tell(phase: str, done: int, total: int) -> None:
            nonlocal current, task
            if phase != current:  # a new phase has a speed of its own
                shown.remove_task(task)
                task, current = shown.add_task(f"{label}: {phase}", total=total), phase
                shown.update(task, completed=done)
                shown.reset(task, total=total, completed=done)
            shown.update(task, completed=done)

        yield tell

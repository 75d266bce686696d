"""A progress bar for long work."""

from typing import Any

from tqdm.auto import tqdm

PROGRESS_DELAY = 1.0  # seconds of work after which a progress bar appears


def progress_bar(progress: bool | None, **options: Any) -> Any:
    """Make a progress bar of tqdm; by default for work over a second on a terminal."""
    return tqdm(
        delay=0 if progress else PROGRESS_DELAY,
        disable=None if progress is None else not progress,
        leave=False,
        **options,
    )

"""Reproduction of the paper: run studies and write their reports."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from vstatkit.studies import data as sources
from vstatkit.studies.registry import Plan, Study, options, studies_of
from vstatkit.studies.report import Report

QUICK_FOLDER = "quick"


def reproduce(
    part: str,
    out: Path | str,
    *,
    iterations: int | None = None,
    seed: int = 1,
    n_jobs: int | None = -1,
    data: Path | str | None = None,
    quick: bool = False,
    progress: bool | None = None,
    **given: Sequence[str] | None,
) -> Iterator[Report]:
    """Run studies, writing and yielding what each one shows.

    Parameters
    ----------
    part : {"table1", "table2", "figures", "all", "validity"}
        What to reproduce; "all" is all of the paper, and "validity" the study of
        standard errors on laws of our own. Studies that were added by `register`
        have their own names.
    out : path
        Directory for CSV, Markdown and PNG files. Finished iterations are kept in
        its subdirectory `checkpoints`: a run that was stopped goes on from there,
        and gives the same numbers.
    iterations : int, optional
        Data sets (splits for Table 1) instead of each study's own number: 20
        splits for Table 1, 500 for Table 2 as in print, 300 for the boxes and 1000
        for the variance components, 500 for the validity study. A part of several
        studies, such as "figures" and "all", never runs more than their own.
    seed : int
        Seed of everything.
    n_jobs : int, optional
        Threads; all cores by default.
    data : path, optional
        Directory with `boston.csv` and `retinopathy.arff`, or one of them; by
        default what the environment variable `VSTATKIT_DATA` names.
    quick : bool
        Run small studies of the same layout, in seconds; their files go into the
        subdirectory `quick`, apart from those of full studies.
    progress : bool, optional
        Show progress with the time remaining; by default on a terminal.
    **given
        Options of the study, lists of names. The validity study has `laws`, some
        of `studies.dgps.LAWS`, and `settings`, some of "fit", "estimators", "half",
        "whole" and "B500", with "seeds" for the Monte Carlo error and "peers" for
        other packages. Both are everything by default, but "peers" is left out of
        quick runs.

    Yields
    ------
    Report
        After its files are written.
    """
    chosen = studies_of(part)
    own = _checked({k: v for k, v in given.items() if v is not None}, part)
    plan = Plan(
        out=Path(out) / QUICK_FOLDER if quick else Path(out),
        iterations=iterations,
        capped=len(chosen) > 1,
        seed=seed,
        n_jobs=n_jobs,
        path=sources.checked_path(data),
        quick=quick,
        progress=progress,
        options=own,
    )
    for study in chosen:
        report = study.make(plan)
        report.write(plan.out)
        yield report


def _checked(given: dict[str, Sequence[str]], part: str) -> dict[str, Sequence[str]]:
    """Refuse options that no study has, and those of studies that do not run."""
    owners = options()
    for name in given:
        if name not in owners:
            raise TypeError(
                f"no study has the option {name!r}; there are "
                f"{', '.join(owners) or 'none'}."
            )
        if owners[name].part != part:
            raise ValueError(f"{_options_of(owners[name])} alone; got {part!r}.")
    return given


def _options_of(study: Study[object]) -> str:
    names = " and ".join(f"`{name}`" for name in study.options)
    verb = "are" if len(study.options) > 1 else "is"
    return f"{names} {verb} for the part {study.part!r}"

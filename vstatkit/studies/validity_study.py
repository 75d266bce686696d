"""The validity study: its settings, its Monte Carlo error, and other packages."""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace

from vstatkit.exceptions import VstatkitWarning
from vstatkit.studies import validity, validity_peers, validity_seeds
from vstatkit.studies.dgps import LAWS, Law, chosen_laws
from vstatkit.studies.experiment import Record
from vstatkit.studies.registry import Plan, Study, register
from vstatkit.studies.report import Report

QUICK_NOTE = (
    "*Quick: a few trees where there should be thousands. This checks the machinery, "
    "not the intervals.*"
)

Records = dict[tuple[str, str], Record]
"""Records by (setting, size or package; law)."""


@dataclass(frozen=True)
class Measured:
    """What was run.

    Attributes
    ----------
    settings, seeds, peers : dict of (str, str) to Record
        Records by setting, number of learners or package, and law.
    absent : list of str
        Packages that are not installed.
    """

    settings: Records
    seeds: Records
    peers: Records
    absent: list[str]


def _run(plan: Plan) -> Measured:
    extras = validity.EXTRAS[:1] if plan.quick else validity.EXTRAS
    wanted = plan.options.get("settings", [*validity.SETTINGS, *extras])
    validity.check_settings(wanted)
    laws = chosen_laws(plan.options.get("laws"))
    with warnings.catch_warnings():
        # Ensembles that are too small are part of what is studied.
        warnings.simplefilter("ignore", VstatkitWarning)
        settings = _law_records(plan, wanted, laws)
        seeds = _seed_records(plan, laws) if "seeds" in wanted else {}
    there, absent = validity_peers.installed() if "peers" in wanted else ([], [])
    return Measured(settings, seeds, _peer_records(plan, there, laws), absent)


def _law_records(plan: Plan, wanted: Sequence[str], laws: Sequence[Law]) -> Records:
    """Run every law in one setting after the other, the defaults first."""
    return {
        (setting.name, law.name): plan.run(
            validity.Validity(law, setting, quick=plan.quick), validity.ITERATIONS
        )
        for setting in validity.SETTINGS.values()
        if setting.name in wanted
        for law in laws
        if setting.applies(law)
    }


def _seed_records(plan: Plan, laws: Sequence[Law]) -> Records:
    """Run the study of the Monte Carlo error on those of its laws that are wanted."""
    capped = replace(plan, capped=True)
    names = [law.name for law in laws]
    return {
        (str(B), law): capped.run(
            validity_seeds.Seeds(LAWS[law], B, quick=plan.quick), validity_seeds.SEEDS
        )
        for B in validity_seeds.MC_SIZES
        for law in validity_seeds.MC_LAWS
        if law in names
    }


def _peer_records(plan: Plan, there: Sequence[str], laws: Sequence[Law]) -> Records:
    """Run other packages, on a block of data sets at a time."""
    size = {"trees": 100, "block": 2} if plan.quick else {}
    found = {}
    for name in there:
        for law in laws:
            if validity_peers.applies(name, law):
                peer = validity_peers.Peer(name, law, **size)
                wanted = plan.iterations or validity_peers.ITERATIONS
                data_sets = min(wanted, validity_peers.ITERATIONS)
                blocks = max(2, -(-data_sets // peer.block))
                record = replace(plan, iterations=blocks).run(peer, blocks)
                found[name, law.name] = validity_peers.one_by_one(record)
    return found


def _report(found: Measured) -> Report:
    from vstatkit.studies import validity_metrics as metrics  # noqa: PLC0415 with it
    from vstatkit.studies import validity_report  # noqa: PLC0415 only pictures need it

    return validity_report.report(
        validity_report.Findings(
            metrics.point_frame(found.settings),
            metrics.law_frame(found.settings),
            metrics.seeds_frame(found.seeds) if found.seeds else None,
            metrics.peer_frame(found.peers) if found.peers else None,
            found.absent,
        )
    )


register(
    Study(
        "validity",
        "standard errors and intervals on laws of our own",
        validity.ITERATIONS,
        _run,
        _report,
        quick_note=QUICK_NOTE,
        options={
            "laws": "laws, with commas between them",
            "settings": f"some of {','.join([*validity.SETTINGS, *validity.EXTRAS])}",
        },
    )
)

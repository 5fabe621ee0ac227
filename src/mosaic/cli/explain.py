"""explain: why a row was chosen, rejected or left out, with the names and row numbers of the file."""

from __future__ import annotations

from argparse import Namespace
from typing import Any

from mosaic.cli.answers import Difference, ExplainAnswer, ExplainedRow, write_answer
from mosaic.cli.saved import opened_or_loaded
from mosaic.cli.session import Session
from mosaic.cli.terminal import visible, write
from mosaic.estimators import explain_rows

#: What is not known of a row if there are no picks, as in a saved model that only detects outliers.
NO_PICKS: dict[str, Any] = {
    "rank": None, "represented_by": None, "similarity": None, "representation_error": None, "stands_for": 0, "members": (),
    "differs_in": (),
}  # fmt: skip


def explain(args: Namespace) -> int:
    """``mosaic explain``."""
    with opened_or_loaded(args) as (session, saved):
        rows = [session.table.find(name) for name in args.rows] + [session.row_of(number) for number in args.row]
        model = session.fit() if saved is None else saved
        settings = list(model.explain())
        explained = [explanation_of(session, model, row) for row in rows]
        answer = ExplainAnswer(session.file, settings, explained, session.notes)
    if args.json:
        write_answer("explain", answer)
        return 0
    for line in [f"{each.called}: {each.reason}" for each in explained] or settings:
        write(visible(line))
    session.say_notes()
    return 0


def explanation_of(session: Session, model: Any, row: int) -> ExplainedRow:
    """The model's explanation of a row."""
    said = NO_PICKS | explain_rows(model, [row], session.table)[0].to_dict()
    by, reason = said["represented_by"], said["reason"]
    if said["rank"] is None and by is not None:
        ours = (model.selection_.material.called(by), f"row {by}")
        for called in ours:
            reason = reason.replace(f": {called} stands", f": {session.called(by)} stands")
    (own,) = session.rows([row])
    return ExplainedRow(
        own.row,
        own.id,
        called=session.called(row),
        status=said["status"],
        reason=reason,
        rank=None if said["rank"] is None else said["rank"] + 1,
        effective_count=said["effective_count"],
        outlier_probability=said["outlier_probability"],
        representation_error=said["representation_error"],
        represented_by=None if by is None else session.rows([by])[0],
        similarity=said["similarity"],
        stands_for=said["stands_for"],
        members=session.rows(said["members"]) if said["members"] else [],
        differs_in=[Difference(feature, share) for feature, share in said["differs_in"]],
    )

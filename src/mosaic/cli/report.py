"""report: the answer as one page, from a file or from a saved model."""

from __future__ import annotations

import sys
from argparse import Namespace

from mosaic.cli.answers import ReportAnswer, write_answer
from mosaic.cli.saved import opened_or_loaded
from mosaic.cli.select import answer_of, write_selected
from mosaic.cli.session import check_outputs, write_page


def report(args: Namespace) -> int:
    """``mosaic report``."""
    check_outputs(args, "output")
    with opened_or_loaded(args) as (session, saved):
        model = session.fit() if saved is None else saved
        write_page(session, model, args.output)
        answer, _ = answer_of(session, model, bound=model.selection_.can_be_proven)
        answer.outputs["report"] = args.output
    if args.json:
        write_answer("report", ReportAnswer(**vars(answer)))
    elif sys.stdout.isatty():
        write_selected(answer)
    else:
        session.say_notes()
    return 0

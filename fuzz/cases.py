"""Many cases, each made from its number alone: the arguments that the fuzzers share, and their report."""

import argparse
import collections
import json
import os
import re
import time


def parser(doc, cases):
    p = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--start", type=int, default=0)
    p.add_argument("--cases", type=int, default=cases)
    p.add_argument("--seconds", type=float, default=480)
    p.add_argument("--case", type=int, help="one case again, with its traceback")
    p.add_argument("--out", default=os.devnull, help="a line of JSON for each case is added to this file")
    return p


def run(case, args):
    """Ask ``case(number)`` for what it was, its "outcome" and a "detail", until the time is over; 1 if any is a DEFECT."""
    if args.case is not None:
        print(json.dumps(case(args.case, say=True), indent=1, default=str))
        return 0
    counts, kinds, end = collections.Counter(), collections.defaultdict(list), time.monotonic() + args.seconds
    with open(args.out, "a") as out:
        for number in range(args.start, args.start + args.cases):
            if time.monotonic() > end:
                break
            found = case(number)
            counts[found["outcome"]] += 1
            if found["outcome"] in ("DEFECT", "warned") or found.get("seconds", 0) > 5:
                kinds[found["outcome"] + " " + re.sub(r"[-+]?\d+(\.\d+)?(e[-+]?\d+)?", "#", found["detail"])[:160]].append(number)
            out.write(json.dumps(found, default=str) + "\n")
    print(sum(counts.values()), "cases", dict(counts))
    for key, numbers in sorted(kinds.items(), key=lambda item: -len(item[1])):
        print(f"{len(numbers):5d}  {key}   e.g. {numbers[:4]}")
    return int(counts["DEFECT"] > 0)

"""Writes what the reference of the ranking computes, one JSON line per cut of each session.

usage: reference.py EVAL_DIR SESSIONS_DIR
EVAL_DIR holds the reference modules (metric, strategies, sessions, eval); this program only calls them.
"""
import importlib
import json
import os
import sys


def main(eval_dir, sessions_dir):
    sys.dont_write_bytecode = True
    sys.path.insert(0, eval_dir)
    runner = importlib.import_module("eval")
    metric = importlib.import_module("metric")
    strategies = importlib.import_module("strategies")
    for name, (adapter, path) in runner.SESSIONS.items():
        epochs = runner.LOADERS[adapter](os.path.join(sessions_dir, path))
        for epoch, cut in metric.cut_points(epochs):
            messages = epochs[epoch][1]
            region = strategies.Region(messages[: cut - metric.TAIL], messages[cut - metric.TAIL : cut])
            ranking = strategies.rank_expected(region)
            kept = {}
            for percent in metric.BUDGETS:
                limit = 4 * (metric.tokens(region.chars) * percent // 100)
                packer = metric.Packer(region.lens, limit).pack(ranking)
                kept[percent] = [i for i, k in enumerate(packer.kept) if k]
            row = {
                "session": name,
                "epoch": epoch,
                "cut": cut,
                "rows": region.rows,
                "synthetic": [m["synthetic"] for m in region.messages],
                "tail": "\n".join(line for line, _, _ in metric.serialise(region.tail)),
                "ranking": ranking,
                "kept": kept,
            }
            sys.stdout.write(json.dumps(row, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])

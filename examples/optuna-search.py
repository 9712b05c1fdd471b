#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Lets Optuna choose the parameters of a lab: optuna-search.py [--trials N] [--repeats N] LAB.yaml VARIANT

`feign lab --serve` measures what it is asked to, next to the baseline, and answers with the ratio of their times; Optuna
decides what to ask next. Numbers may take any value between the least and the greatest that the lab's file names;
everything else is chosen among the values there. Needs: pip install optuna.
"""
import argparse
import json
import os
import re
import subprocess
import sys

SIZES = {"": 1, "k": 1 << 10, "KiB": 1 << 10, "m": 1 << 20, "MiB": 1 << 20, "g": 1 << 30, "GiB": 1 << 30}
TIMES = {"": 1, "ns": 1, "us": 10**3, "ms": 10**6, "s": 10**9, "m": 60 * 10**9, "h": 3600 * 10**9}


def number(text, units):
    """The number of "0.5", "64KiB" or "10ms": in bytes or ns, where it has a unit; None if it is none in these units."""
    m = re.fullmatch(r"(\d+(?:\.\d+)?)([A-Za-z]*)", text)
    if not m or m[2] not in units:
        return None
    return int(float(m[1]) * units[m[2]]) if m[2] or "." not in m[1] else float(m[1])


def suggest(trial, name, values):
    """A value for one parameter, as the lab's file would write it."""
    sizes, times = ([number(v, units) for v in values] for units in (SIZES, TIMES))
    numbers = times if None in sizes else sizes
    either = None not in sizes + times and sizes != times  # 1m and 5m: mebibytes or minutes
    if len(values) < 2 or None in numbers or either:
        return trial.suggest_categorical(name, values)
    low, high = min(numbers), max(numbers)
    wide = low > 0 and high / low >= 10
    if any(isinstance(n, float) for n in numbers):
        return repr(trial.suggest_float(name, low, high, log=wide))
    value = trial.suggest_int(name, low, high, log=wide)
    return f"{value}ns" if numbers is times else str(value)


class Lab:
    """The other end of the protocol."""

    def __init__(self, feign, path):
        self.process = subprocess.Popen([feign, "lab", path, "--serve"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.about = self.read()

    def read(self):
        line = self.process.stdout.readline()
        if not line:
            sys.exit("feign lab ended; what it said is above")
        return json.loads(line)

    def measure(self, variant, parameters, repeats):
        self.process.stdin.write(json.dumps({"variant": variant, "parameters": parameters, "repeats": repeats}) + "\n")
        self.process.stdin.flush()
        return self.read()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("lab")
    parser.add_argument("variant")
    parser.add_argument("--trials", type=int, default=30)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--feign", default=os.environ.get("FEIGN", "feign"), help="the command [feign]")
    options = parser.parse_args()
    try:
        import optuna
    except ImportError:
        sys.exit("optuna-search.py: Optuna is not installed: pip install optuna")
    optuna.logging.set_verbosity(optuna.logging.WARNING)

    lab = Lab(options.feign, options.lab)
    parameters = lab.about["variants"].get(options.variant)
    if not parameters:
        sys.exit(f"optuna-search.py: variant {options.variant} has no parameters to choose; there are {lab.about['variants']}")

    def objective(trial):
        chosen = {name: suggest(trial, name, values) for name, values in parameters.items()}
        answer = lab.measure(options.variant, chosen, options.repeats)
        if "error" in answer or answer["comparison"] is None:
            print(f"{trial.number + 1:4}  {chosen}: {answer.get('error', 'no run went well')}", flush=True)
            raise optuna.TrialPruned()
        ratio = answer["comparison"]["ratio"]
        print(f"{trial.number + 1:4}  ratio {ratio:.3f}  {answer['label']}", flush=True)
        return ratio

    study = optuna.create_study(direction="minimize", sampler=optuna.samplers.TPESampler(seed=options.seed))
    study.optimize(objective, n_trials=options.trials)
    lab.process.stdin.close()
    lab.process.wait()
    good = [t for t in study.trials if t.state == optuna.trial.TrialState.COMPLETE]
    if not good:
        sys.exit("optuna-search.py: nothing could be measured")
    print(f"best: {study.best_params}, ratio {study.best_value:.3f} to the baseline. Measure it with fresh runs before you rely on it.")


if __name__ == "__main__":
    main()

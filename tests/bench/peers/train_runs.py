# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The cddp authors
"""Runs of cddp-train on simulated data, for the scripts that compare such runs."""
import datetime
import json
import os
import pathlib
import subprocess
import sys

BUILD = pathlib.Path(os.environ.get("BUILD", ".")).resolve()


def prepare(folder, text, **words):
    """Make data in folder/data, and folder/run.yaml: the text, in which DATA and each
    word in words are replaced."""
    subprocess.run([str(BUILD / "cddp-data"), "make", "ising", "-o",
                    f"{folder}/data"], check=True, stdout=subprocess.DEVNULL)
    for word, value in {"DATA": f"{folder}/data", **words}.items():
        text = text.replace(word, str(value))
    pathlib.Path(folder, "run.yaml").write_text(text, encoding="utf-8")


def train(folder, name, settings):
    """Run folder/run.yaml in the run directory folder/name. A run that fails ends the
    script."""
    command = [str(BUILD / "cddp-train"), "run.yaml",
               "--set", f"run.dir={name}"]
    for setting in settings:
        command += ["--set", setting]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True,
                          check=False)
    if done.returncode:
        sys.exit(f"{pathlib.Path(sys.argv[0]).stem}: {' '.join(command)}: "
                 f"{done.stderr}")


def rows_of(folder, name):
    """The rows of metrics.jsonl of the run: those of steps, and those of events."""
    text = pathlib.Path(folder, name, "metrics.jsonl").read_text()
    rows = [json.loads(line) for line in text.splitlines()]
    return ([row for row in rows if "event" not in row],
            [row for row in rows if "event" in row])


def time_of(row):
    """The time of a row of metrics.jsonl, in seconds since 1970."""
    when = datetime.datetime.fromisoformat(row["time"].replace("Z", "+00:00"))
    return when.timestamp()

#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The cddp authors
"""Compare RUNDIR/tb with RUNDIR/metrics.jsonl by TensorBoard's own reader.

    python3 -m venv ~/tensorboard && ~/tensorboard/bin/pip install tensorboard
    ~/tensorboard/bin/python check_tensorboard.py RUNDIR

Every number of a step or an evaluation that belongs into TensorBoard must be
there once, as float32, at its step, and no other number. Exits with 77, and says
so, where TensorBoard is not installed.
"""
import json
import struct
import sys

try:
    from tensorboard.backend.event_processing import event_accumulator
    from tensorboard.plugins.hparams import plugin_data_pb2
except ImportError as reason:
    print("SKIP: the Python package tensorboard is missing (CDDP_TENSORBOARD): no "
          f"numbers were read ({reason})")
    sys.exit(77)

# what metrics.jsonl has beside the numbers for TensorBoard
OTHERS = {"step", "epoch", "samples", "time", "event", "step_s", "data_s",
          "forward_s", "backward_s", "comm_s", "comm_exposed_s", "comm_bytes",
          "read_bytes", "decode_s", "retries", "data_wait_s"}


def float32(value):
    return struct.unpack("f", struct.pack("f", value))[0]


def rows_read(path):
    """{(tag, step): value}"""
    wanted = {}
    with open(path, encoding="utf-8") as rows:
        for row in map(json.loads, rows):
            if row.get("event", "eval") != "eval":
                continue
            prefix = "valid/" if "event" in row else ""
            for name, value in row.items():
                if name not in OTHERS and value is not None:
                    wanted[prefix + name, row["step"]] = float32(value)
    return wanted


def main(run):
    wanted = rows_read(run + "/metrics.jsonl")
    seen = event_accumulator.EventAccumulator(
        run + "/tb", size_guidance={"scalars": 0, "tensors": 0})
    seen.Reload()
    found, tags = {}, seen.Tags()["scalars"]
    for tag in tags:
        for event in seen.Scalars(tag):
            if (tag, event.step) in found:
                sys.exit(f"{tag} of step {event.step} is there twice")
            found[tag, event.step] = event.value
    # metrics.jsonl has only 6 digits of the speed
    wrong = [key for key in wanted.keys() | found.keys()
             if key not in wanted or key not in found or
             abs(wanted[key] - found[key]) >
             (1e-5 * abs(wanted[key]) if key[0] == "samples_per_s" else 0)]
    for key in sorted(wrong)[:10]:
        print(key, "metrics:", wanted.get(key), "TensorBoard:", found.get(key))
    text = seen.Tensors("run_file/text_summary")[-1].tensor_proto.string_val[0]
    content = seen.summary_metadata[
        "_hparams_/session_start_info"].plugin_data.content
    hparams = plugin_data_pb2.HParamsPluginData.FromString(
        content).session_start_info.hparams
    if b"train:" not in text or hparams["train.batch"].number_value < 1:
        sys.exit("the run file or the settings are missing")
    print(f"{len(found)} numbers in {len(tags)} tags, {len(wrong)} wrong, "
          f"{len(hparams)} settings")
    sys.exit(1 if wrong or not found else 0)


if len(sys.argv) != 2:
    sys.exit(__doc__)
main(sys.argv[1])

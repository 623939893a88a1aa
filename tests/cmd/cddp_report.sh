#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The cddp authors
# cddp-report on a run of cddp-train, on a long run, on hostile and torn files; in a
# browser if there is one (chromium-headless-shell or chromium). CDDP_REPORT_STEPS
# is the length of the long run, in steps.
set -u
build=$PWD
source=$(cd "${srcdir:-.}" && pwd)
# shellcheck source=SCRIPTDIR/waitlib.sh
. "$source/tests/cmd/waitlib.sh"
steps=${CDDP_REPORT_STEPS:-100000}
scratch=$(mktemp -d)
pid=
holder=
trap '[ -z "$pid$holder" ] || kill -9 $pid $holder 2>/dev/null; rm -rf "$scratch"' EXIT
cd "$scratch" || exit 1
export OMP_NUM_THREADS=1
: >log

# expect STATUS PATTERN ARGUMENT...: the command ends so, and prints PATTERN.
expect() {
    local rc
    "$build/cddp-report" "${@:3}" >log 2>&1
    rc=$?
    [ $rc -eq "$1" ] || fail "cddp-report ${*:3}: status $rc, not $1"
    grep -q -- "$2" log || fail "cddp-report ${*:3}: no \"$2\""
}

# query EXPRESSION PAGE: a Python expression on the data of the page is true.
query() {
    python3 "$source/tests/cmd/report_page.py" data "$2" >data.json ||
        fail "$2 has no data, or loads something"
    python3 -c "
import json
runs = json.load(open('data.json'))
run = runs[0]
about, curves = run['about'], run['curves']
assert $1, (about, {k: len(v['x']) for k, v in curves.items()})" 2>log ||
        fail "$2: $1"
}

# ranks STEPS HOSTS HOST DATA COMPUTE OTHER: a row about what each rank needed.
ranks() {
    printf '{"event": "ranks", "step": 49, "steps": %s, "ranks": {"hosts": [%s], ' \
        "$1" "$2"
    printf '"host": [%s], "data_s": [%s], "compute_s": [%s], "comm_s": [%s], ' \
        "${@:3:4}"
    printf '"throttled_s": [%s], "delay_s": [%s]}}\n' "$6" "$6"
}

# --- The command line.
expect 64 'at least one directory'
expect 64 'exclude each other' --csv --list .
expect 64 'unknown option' --lists .
expect 64 'from 1 to 3600' --watch --every 0 .
expect 64 '-o is for' --list -o x .
expect 64 'for --watch only' --every 5 .
expect 64 'shows one run' --watch a b
expect 0 '^usage: cddp-report' --help
expect 0 '^dygraphs' --version
expect 65 'No such file' nowhere
expect 65 'no run directory' .
[ ! -e report.html ] || fail "a report on nothing"

# --- A run, and another one with a different rate.
"$build/cddp-data" make ising -o data --train 128 --valid 64 --shards 1 \
    >/dev/null || exit 1
cat >run.yaml <<'END'
run: {name: first, dir: runs/first}
data:
  train: "data/train-*.h5"
  valid: "data/valid-*.h5"
  input: {path: /spins}
  target: {path: /phase}
model:
  input: [1, 32, 32]
  layers: [flatten, {linear: {out: 16}}, relu, {linear: {out: 2}}]
loss: cross_entropy
optimizer: {sgd: {lr: 1.0e-3}}
train: {epochs: 3, batch: 8, threads: 1}
checkpoint: {every: 20 steps}
END
"$build/cddp-train" --local 2 run.yaml >log 2>&1 || fail "no run"
"$build/cddp-train" --set run.dir=runs/second --set run.name=second \
    --set optimizer.sgd.lr=1.0e-2 --set train.epochs=2 run.yaml >log 2>&1 ||
    fail "no second run"
expect 0 'report.html: written' runs/first runs/second
query 'about["state"] == "complete" and about["step"] == 48' report.html
query 'len(curves["loss"]["x"]) == 48 and "low" not in curves["loss"]' report.html
query 'len(curves["valid/accuracy"]["x"]) == 3 and about["best"]["name"] == "accuracy"' \
    report.html
query 'runs[1]["about"]["loads"] is None' report.html
query 'about["notes"] == [] and "oneDNN" in about["versions"]' report.html
query 'len(about["saves"]) >= 2 and about["lives"][-1]["event"] == "end"' report.html
query 'about["world_size"] == 2 and about["summary"]["spent"]["wall"] > 0' report.html
query 'runs[1]["about"]["settings"]["optimizer.sgd.lr"] != about["settings"]["optimizer.sgd.lr"]' \
    report.html
python3 -c '
import json
rows = [json.loads(line) for line in open("runs/first/metrics.jsonl")]
losses = [row["loss"] for row in rows if "event" not in row]
found = json.load(open("data.json"))[0]["curves"]["loss"]["y"]
assert len(losses) == len(found), (len(losses), len(found))
assert all(abs(a - b) < 1e-5 * abs(a) for a, b in zip(losses, found))
' 2>log || fail "the curve is not that of metrics.jsonl"
expect 0 'complete  *48  accuracy .*runs/first$' --list runs
expect 0 'runs/second: complete' --watch runs/second
expect 0 'complete' --list runs/first
expect 65 'no run directory' --list data
expect 0 '^run,step,epoch,samples,time,loss' --csv runs/first runs/second
python3 -c '
import csv, json
table = list(csv.DictReader(open("log", newline="")))
rows = [json.loads(line) for name in ("first", "second")
        for line in open("runs/" + name + "/metrics.jsonl")]
assert len(table) == len(rows), (len(table), len(rows))
for line, row in zip(table, rows):
    for key, value in row.items():
        if type(value) is dict: # of the event "ranks", on a slow machine
            continue
        said = line[key]
        assert said == ("" if value is None else said), (key, row)
        assert value is None or type(value)(said) == value, (key, said, value)
' 2>python.log || fail "CSV: $(cat python.log)"
"$build/cddp-report" -o - runs/first >to-standard.html
cmp -s <("$build/cddp-report" -o - runs/first) to-standard.html || fail "-o -"
"$build/cddp-report" -o - runs/first >/dev/full 2>log
[ $? -eq 74 ] || fail "a full disk is not reported"
expect 74 'nowhere' -o nowhere/report.html runs/first

# --- Text that would be a script, if it were not escaped; a cut line; later events.
evil='<img src=x onerror=hacked=1>'
mkdir -p "hostile/$evil"
cp -r runs/first/. "hostile/$evil"
cd "hostile/$evil" || exit 1
printf 'run: {name: "</script><script>hacked=1</script>%s"}\n' "$evil" >config.yaml
{
    echo "{\"step\": 49, \"epoch\": 3, \"loss\": 1, \"$evil\": 2}"
    echo "{\"event\": \"</script><script>hacked=1</script>\", \"step\": 49}"
    echo '{"event": "straggler", "step": 49, "host": "n1", "rank": 1, "cause": "data"}'
    echo '{"event": "later", "list": [1, {"a": "]"}], "step": 49}'
    # Two starts: on two ranks, and on three with one more host. The last row lacks
    # a number.
    ranks 10 '"n1"' 0,0 0,0 1,2 0,0
    ranks 9 "\"n1\", \"</script>$evil\"" 0,0,1 0,0,3 1,1,1 0,0,0.5
    ranks 9 '"n1"' 0,0 0,0 1 0,0
    printf 'this is no row\n{"step": 50, "lo'
} >>metrics.jsonl
{
    echo "{\"event\": \"fault\", \"time\": \"2031-05-04T10:20:30Z\", \"step\": 3,
        \"detail\": \"x\"}" | tr -d '\n'
    printf '\n{"event": "fault", "time": "2031-05-04T10:20:30Z", "step": 3, '
    printf '"detail": "</script><script>hacked=1</script>"}\n{"event": "be'
} >>lives.jsonl
echo '{"cut' >summary.json
cd "$scratch" || exit 1
expect 0 'written' -o hostile.html "hostile/$evil" runs/second
query 'about["step"] == 49 and len(about["notes"]) == 5' hostile.html
query '([one[:4] for one in about["loads"]["ranks"]] ==
    [[0, 0, 19, 1], [0, 1, 19, 1.526], [1, 2, 9, 4]])' hostile.html
query '"</script>" in about["loads"]["hosts"][1]' hostile.html
query '[row["rank"] for row in about["events"] if "rank" in row] == [1]' hostile.html
[ "$(grep -o '</script' hostile.html | wc -l)" -eq \
    "$(grep -o '</script' report.html | wc -l)" ] || fail "text ends a script"
# Neither files that are none nor files of others block or are followed.
mkdir strange
touch strange/config.yaml
mkfifo strange/metrics.jsonl
expect 65 'metrics.jsonl' strange
expect 65 'metrics.jsonl' --csv strange
expect 65 'metrics.jsonl' --csv -o partial.csv runs/first strange
[ ! -e partial.csv ] || fail "a part of the rows was written"
expect 65 'metrics.jsonl' --watch strange

# --- A long run: bounded memory, a small file, and less time than Python's JSON.
mkdir long
awk -v n="$steps" 'BEGIN {
    for (s = 1; s <= n; s++)
        printf "{\"step\": %d, \"epoch\": 0, \"samples\": %d, \"time\": \"2031-05-04T" \
            "10:20:30.125Z\", \"loss\": %.17g, \"lr\": 0.001, \"step_s\": 0.0123456, " \
            "\"data_s\": 0.00123456, \"forward_s\": 0.00323456, \"backward_s\": " \
            "0.00523456, \"comm_s\": 0.00223456, \"comm_exposed_s\": 0.000123456, " \
            "\"comm_bytes\": 4000000, \"samples_per_s\": 6400.12, \"grad_norm\": " \
            "%.17g}\n", s, s, s == 777 ? 1e6 : 1 / s + 1 / 3, sqrt(s)
    # A week of 1,024 ranks on 128 hosts.
    for (r = 0; r < 1024; r++) {
        comma = r > 0 ? "," : ""
        if (r < 128)
            names = names comma sprintf("\"node%04d\"", r)
        hosts = hosts comma int(r / 8)
        zeros = zeros comma 0
        times = times comma sprintf("%.4g", 0.0123456 + r / 1e6)
    }
    for (i = 0; i < 60; i++)
        printf "{\"event\": \"ranks\", \"step\": %d, \"epoch\": 0, \"windows\": 9, " \
            "\"steps\": 7, \"ranks\": {\"hosts\": [%s], \"host\": [%s], \"data_s\": " \
            "[%s], \"compute_s\": [%s], \"comm_s\": [%s], \"throttled_s\": [%s], " \
            "\"delay_s\": [%s]}}\n", n, names, hosts, times, times, times, zeros, times
}' >long/metrics.jsonl
TIMEFORMAT=%U
ours=$({ time "$build/cddp-report" -o long.html long >/dev/null; } 2>&1)
theirs=$({ time python3 -c 'import json
for line in open("long/metrics.jsonl"):
    json.loads(line)'; } 2>&1)
echo "$steps steps: $ours s of CPU; Python's JSON alone $theirs s"
awk -v a="$ours" -v b="$theirs" 'BEGIN { exit !(a <= b + 0.1) }' ||
    fail "a report on $steps steps takes $ours s, Python's JSON $theirs s"
[ "$(stat -c %s long.html)" -lt 3000000 ] || fail "a report of $(stat -c %s long.html) bytes"
(
    ulimit -v 200000
    exec "$build/cddp-report" -o long.html long
) >log 2>&1 || fail "not within 200 MB"
query 'max(curves["loss"]["high"]) == 1e6 and about["step"] == '"$steps" long.html
query '512 <= len(curves["loss"]["x"]) <= 1024' long.html
query 'len(about["loads"]["ranks"]) == 1024 and len(about["loads"]["hosts"]) == 128' \
    long.html
query 'max(one[3] for one in about["loads"]["ranks"]) > 1.03' long.html

# --- A run that is training: a process holds the lock; rows come one by one.
mkdir live
head -30 runs/first/metrics.jsonl >live/metrics.jsonl
head -1 runs/first/lives.jsonl >live/lives.jsonl
cp runs/first/config.yaml live
: >live/lock
expect 0 'interrupted  *[23][0-9] .*live$' --list live
mkfifo release
python3 -c 'import fcntl
file = open("live/lock", "r+")
fcntl.lockf(file, fcntl.LOCK_EX)
open("locked", "w").close()
open("release").read()' &
holder=$!
pid=$holder
wait_for test -e locked
expect 0 '^running' --list live
# Without gnuplot there is a table at the end.
mkdir empty
PATH=$scratch/empty "$build/cddp-report" --watch --every 1 live >log 2>&1 &
pid=$!
wait_for grep -q 'live: running, step [23]' log
sed -n '31,$p' runs/first/metrics.jsonl >>live/metrics.jsonl
wait_for grep -q 'live: running, step 48' log
grep '"event":"end"' runs/first/lives.jsonl >>live/lives.jsonl
echo >release
wait "$holder"
holder=
wait "$pid"
rc=$?
pid=
[ $rc -eq 0 ] || fail "--watch: status $rc"
grep -q 'live: complete' log || fail "--watch does not see the end"
grep -q 'least loss' log || fail "--watch without gnuplot prints no table"
# It waits for a run that comes back, and a signal ends it.
sed -i 's/"status":0/"status":75/' live/lives.jsonl
"$build/cddp-report" --watch live >log 2>&1 &
pid=$!
wait_for grep -q 'waits (75)' log
kill "$pid"
wait "$pid"
rc=$?
pid=
[ $rc -eq 143 ] || fail "--watch after a signal: status $rc"
if command -v gnuplot >/dev/null; then
    expect 0 'loss \**' --watch runs/first
    ! grep -q 'least loss' log || fail "a table, though there is gnuplot"
else
    echo "SKIP: gnuplot is missing: no plot in a terminal was tested"
fi

# --- In a browser.
browser=$(command -v chromium-headless-shell chromium | head -1)
if [ -z "$browser" ]; then
    echo "SKIP: chromium (or chromium-headless-shell) is missing: no page was opened"
elif ! grep -q 'dygraphs: Copyright' report.html; then
    echo "SKIP: this build has no dygraphs (libjs-dygraphs): no plot was drawn"
else
    for page in hostile long; do
        ids="plot-loss plot-lr plot-norm plot-speed plot-time plot-overlap ranks"
        [ $page = long ] || ids="$ids plot-valid plot-time1 lives heat"
        # shellcheck disable=SC2086 # words
        python3 "$source/tests/cmd/report_page.py" draw $page.html "$browser" $ids >log 2>&1
        rc=$?
        if [ $rc -eq 77 ]; then
            echo "SKIP: $(tail -1 log)"
            break
        fi
        [ $rc -eq 0 ] || fail "$page.html in $browser"
    done
fi
exit 0

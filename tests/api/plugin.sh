#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The cddp authors
# Plugins, compiled as a user would: the example trains, alone and in a model of
# the run file, its gradient is right, and each bad one gets its sentence.
# shellcheck source=SCRIPTDIR/install.sh
. "${srcdir:-.}/tests/api/install.sh"
cd "$scratch" || exit 1

# plugin SOURCE OUT [FLAG...]
plugin()
{
    # shellcheck disable=SC2046,SC2086 # lists of words
    $CC -std=gnu11 -Wall -Wextra -Werror -O1 $SANITIZE -shared -fPIC "$1" \
        "${@:3}" \
        $(pkg-config --cflags cddp) -o "$2" || fail "$1 ${*:3} does not compile"
}

# check STATUS SENTENCE MODEL [LOSS]: cddp-train --check of a model.
check()
{
    local status=$1 sentence=$2 rc
    printf 'data: {train: "data/train-*.h5", valid: "data/valid-*.h5", input: {path: /spins}, target: {path: /phase}}\nmodel: %s\nloss: %s\noptimizer: sgd\ntrain: {epochs: 1, batch: 8}\n' \
        "$3" "${4:-cross_entropy}" >run.yaml
    out=$("$build/cddp-train" --check run.yaml 2>&1)
    rc=$?
    [[ $rc == "$status" ]] || fail "status $rc for $3: $out"
    grep -qF -- "$sentence" <<<"$out" ||
        fail "$3: expected: $sentence, found: $out"
}

plugin "$source/examples/c/plugin.c" libprelu.so
"$build/cddp-data" make ising -o data --train 24 --valid 8 --shards 1 \
    >/dev/null || exit 1

# The plugin's model, and its layer in a model of the run file; trained.
check 0 prelu2 '{plugin: ./libprelu.so, input: [1, 32, 32], classes: 2}'
for model in '{plugin: ./libprelu.so, input: [1, 32, 32], classes: 2, width: 3}' \
    '{plugin: ./libprelu.so, input: [1, 32, 32], layers: [conv: {out: 4, kernel: 3}, batchnorm, prelu: {start: 0.1}, linear: {out: 2}]}'; do
    check 0 prelu1 "$model"
    out=$("$build/cddp-train" --local 2 --fresh run.yaml 2>&1)
    grep -q '^final: .*after 3 steps' <<<"$out" || fail "training $model: $out"
done

# Its gradient, through the installed library: alone; ahead of and behind layers
# that compute in blocked layouts (there with slopes of 1, as finite differences
# step over kinks); and as the first layer.
compile "$source/tests/api/plugin_gradient.c" gradient -lm ||
    fail "plugin_gradient.c does not compile"
for layers in 'linear: {out: 4}, prelu: {start: 0.3}, linear: {out: 4}' \
    'conv: {out: 16, kernel: 3}, prelu: {start: 1}, conv: {out: 16, kernel: 2}, prelu: {start: 1}, linear: {out: 4}' \
    'prelu, linear: {out: 4}'; do
    out=$(./gradient "{model: {plugin: ./libprelu.so, input: [2, 5, 6], layers: [$layers]}, loss: mse}" 2>&1) ||
        fail "gradient of $layers: $out"
done

# What the user writes wrong. The model stands in line 2, from column 8 on.
check 78 'run.yaml:2:17: the plugin cannot be loaded: ./libnone.so: ' \
    '{plugin: ./libnone.so, input: [1, 32, 32]}'
check 78 'run.yaml:2:17: the plugin cannot be loaded: libnone.so: ' \
    '{plugin: libnone.so, input: [1, 32, 32]}'
check 78 'run.yaml:2:17: model.plugin is the name of a shared object' \
    '{plugin: [a], input: [1, 32, 32]}'
check 78 'run.yaml:2:69: unknown key '"'widht'"'' \
    '{plugin: ./libprelu.so, input: [1, 32, 32], classes: 2,      widht: 3}'
check 78 'run.yaml:2:8: model.classes is missing' \
    '{plugin: ./libprelu.so, input: [1, 32, 32]}'
check 78 'model.classes' \
    '{plugin: ./libprelu.so, input: [1, 32, 32], classes: 2.5}'
check 78 'run.yaml:2:17: the plugin: the model takes [channels, height, width]' \
    '{plugin: ./libprelu.so, input: [1024], classes: 2}'
check 78 'run.yaml:2:67: unknown layer '"'preluu'; did you mean 'prelu'?" \
    '{plugin: ./libprelu.so, input: [1, 32, 32], layers: [      preluu]}'
check 78 'model.layers[0].prelu.start: expected' \
    '{plugin: ./libprelu.so, input: [1, 32, 32], layers: [prelu: {start: 2}, linear: {out: 2}]}'
check 78 'run.yaml:2:17: the model has a preset and a plugin' \
    '{plugin: ./libprelu.so, input: [1, 32, 32], preset: lenet, classes: 2}'

# Faults of the plugin itself.
bad()
{
    plugin "$source/tests/api/bad_plugin.c" bad.so "-DFAULT=$1"
    check 78 "$2" '{plugin: ./bad.so, input: [3, 32, 32]}'
}
bad 1 'run.yaml:2:17: plugin ./bad.so was built for cddp 0.99.'
bad 2 'run.yaml:2:17: ./bad.so is no plugin of cddp, as it defines no cddp_plugin'
bad 3 "run.yaml:2:17: the plugin calls a layer 'relu', but there is one"
bad 4 "run.yaml:2:17: layer mine1 (mine) with input [3, 32, 32]: mine: the plugin's shape function"
bad 5 'run.yaml:2:17: layer mine1 (mine) with input [3, 32, 32]: mine: [3] is odd'
bad 6 'run.yaml:2:17: the plugin builds no model'
bad 7 'run.yaml:2:17: the plugin: it is full moon'
bad 8 "run.yaml:2:17: unknown layer ''"

# An error while it runs ends the run with its sentence.
plugin "$source/tests/api/bad_plugin.c" bad.so -DFAULT=0
check 0 mine1 '{plugin: ./bad.so, input: [1, 32, 32]}'
out=$("$build/cddp-train" --fresh run.yaml 2>&1)
[[ $? == 78 && $out == *"mine: not today"* ]] || fail "not today: $out"
exit $failed

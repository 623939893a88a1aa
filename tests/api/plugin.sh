#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The cddp authors
# Plugins, compiled as a user would. The example trains, alone and in a model of
# the run file; its gradient is right; and each wrong plugin gives its error
# message.
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

# The plugin's model, and its layer in a model of the run file, are trained.
check 0 own_prelu2 '{plugin: ./libprelu.so, input: [1, 32, 32], classes: 2}'
for model in '{plugin: ./libprelu.so, input: [1, 32, 32], classes: 2, width: 3}' \
    '{plugin: ./libprelu.so, input: [1, 32, 32], layers: [conv: {out: 4, kernel: 3}, batchnorm, own_prelu: {start: 0.1}, linear: {out: 2}]}'; do
    check 0 own_prelu1 "$model"
    out=$("$build/cddp-train" --local 2 --fresh run.yaml 2>&1)
    grep -q '^final: .*after 3 steps' <<<"$out" || fail "training $model: $out"
done

# The gradient of the plugin's layer, through the installed library: alone;
# before and after layers that use blocked layouts (with slopes of 1 there,
# because finite differences step over kinks); and as the first layer.
compile "$source/tests/api/plugin_gradient.c" gradient -lm ||
    fail "plugin_gradient.c does not compile"
for layers in 'linear: {out: 4}, own_prelu: {start: 0.3}, linear: {out: 4}' \
    'conv: {out: 16, kernel: 3}, own_prelu: {start: 1}, conv: {out: 16, kernel: 2}, own_prelu: {start: 1}, linear: {out: 4}' \
    'own_prelu, linear: {out: 4}'; do
    out=$(./gradient "{model: {plugin: ./libprelu.so, input: [2, 5, 6], layers: [$layers]}, loss: mse}" 2>&1) ||
        fail "gradient of $layers: $out"
done

# A layer with two or three inputs, in blocked layouts or not. The gradient of
# one of the inputs is not needed.
plugin "$source/tests/api/pair_plugin.c" libpair.so
for layers in '{name: a, linear: {out: 4}}, {name: b, linear: {out: 4}, from: input}, {pair: , from: [b, a]}' \
    '{name: a, conv: {out: 16, kernel: 3}}, {name: b, conv: {out: 16, kernel: 3}, from: input}, {pair: , from: [a, b, a]}, conv: {out: 16, kernel: 2}, linear: {out: 4}' \
    '{name: a, linear: {out: 60}}, {reshape: {shape: [2, 5, 6]}}, {pair: , from: [input, reshape1, input]}, linear: {out: 4}'; do
    out=$(./gradient "{model: {plugin: ./libpair.so, input: [2, 5, 6], layers: [$layers]}, loss: mse}" 2>&1) ||
        fail "gradient of $layers: $out"
    [[ $out == *"pair1.gain "* ]] || fail "no gain in $layers: $out"
done
check 78 'run.yaml:2:71: layer pair1 (pair) takes 2 to 8 inputs' \
    '{plugin: ./libpair.so, input: [1, 32, 32], layers: [           pair]}'
check 78 'layer pair1 (pair) with input [4]: pair: input 2 is not as large as the first' \
    '{plugin: ./libpair.so, input: [1, 32, 32], layers: [linear: {out: 4}, {pair: , from: [linear1, input]}]}'

# Two inputs and two losses: the plugin's network has the bits of the network in
# the run file, with losses of the plugin and with losses of the run file.
plugin "$source/examples/c/plugin-two.c" libtwo.so
two=$source/examples/ising-two.yaml
losses=$(sed -n '/^loss:/,/^optimizer:/p' "$two" | sed '$d')
sed '/^model:/,/^optimizer:/{/^optimizer:/!d}' "$two" >rest.yaml
steps()
{
    "$build/cddp-train" --fresh --local 2 --set train.batch=8 \
        --set train.epochs=2 --set run.dir="$1" \
        --set data.train='data/train-*.h5' --set data.valid='data/valid-*.h5' \
        "$2" >"$1.log" 2>&1 ||
        fail "$1: $(cat "$1.log")"
    grep -vE '"event": "(ranks|straggler)"' "$1/metrics.jsonl" |
        grep -oE '"(step|loss|phase_loss|energy_loss|energy_mae)": [0-9.e+-]+' >"$1.txt"
}
steps two-plain "$two"
[[ $(grep -c energy_loss two-plain.txt) -ge 6 ]] || fail "two-plain: no rows"
for from in plugin "$losses"; do
    {
        cat rest.yaml
        echo 'model: {plugin: ./libtwo.so, input: {spins: [1, 32, 32], heat: [1]}}'
        [[ $from == plugin ]] && echo 'loss: plugin' || echo "$from"
    } >two.yaml
    steps two-plugin two.yaml
    cmp -s two-plain.txt two-plugin.txt ||
        fail "two inputs: $(diff two-plain.txt two-plugin.txt | head -4)"
done
check 78 'run.yaml:2:17: the plugin: the model has two inputs, spins and heat' \
    '{plugin: ./libtwo.so, input: {spins: [1, 32, 32], meta: [1]}}' plugin
check 78 'run.yaml:2:17: the plugin: spins are [channels, height, width]' \
    '{plugin: ./libtwo.so, input: {spins: [32, 32], heat: [1]}}' plugin

# Errors of the user. The model begins in line 2, column 8.
check 78 'run.yaml:2:17: the plugin cannot be loaded: ./libnone.so: ' \
    '{plugin: ./libnone.so, input: [1, 32, 32]}'
# A name without a slash is not searched for in LD_LIBRARY_PATH.
LD_LIBRARY_PATH=$PWD${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} check 78 \
    "run.yaml:2:17: model.plugin is 'libprelu.so', which is no path: " \
    '{plugin: libprelu.so, input: [1, 32, 32], classes: 2}'
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
check 78 'run.yaml:2:67: unknown layer '"'own_preluu'; did you mean 'own_prelu'?" \
    '{plugin: ./libprelu.so, input: [1, 32, 32], layers: [      own_preluu]}'
check 78 'model.layers[0].own_prelu.start: expected' \
    '{plugin: ./libprelu.so, input: [1, 32, 32], layers: [own_prelu: {start: 2}, linear: {out: 2}]}'
check 78 'run.yaml:2:17: the model has a preset and a plugin' \
    '{plugin: ./libprelu.so, input: [1, 32, 32], preset: lenet, classes: 2}'

# Errors of the plugin itself.
bad()
{
    plugin "$source/tests/api/bad_plugin.c" bad.so "-DFAULT=$1"
    check 78 "$2" '{plugin: ./bad.so, input: [3, 32, 32]}' "${3:-cross_entropy}"
}
bad 1 'run.yaml:2:17: plugin ./bad.so was built for cddp 0.99.'
bad 2 'run.yaml:2:17: ./bad.so is no plugin of cddp, as it defines no cddp_plugin'
bad 3 "run.yaml:2:17: the plugin calls a layer 'relu', but there is one"
bad 4 "run.yaml:2:17: layer mine1 (mine) with input [3, 32, 32]: mine: the plugin's shape function"
bad 5 'run.yaml:2:17: layer mine1 (mine) with input [3, 32, 32]: mine: [3] is odd'
bad 6 'run.yaml:2:17: the plugin builds no model'
bad 7 'run.yaml:2:17: the plugin: it is full moon'
bad 8 "run.yaml:2:17: unknown layer ''"
bad 9 'run.yaml:2:17: plugin ./bad.so was built for cddp '
[[ $out == *"(plugin interface 1), but this is cddp"* ]] || fail "interface: $out"
bad 10 'run.yaml:2:17: model.layers[1].linear.out: expected'
bad 11 "run.yaml:2:17: unknown loss 'cross_entropyy'; did you mean 'cross_entropy'" plugin
bad 0 'run.yaml:3:7: loss: plugin ' plugin
check 78 'run.yaml:3:7: loss: plugin ' \
    '{plugin: ./libprelu.so, input: [1, 32, 32], layers: [linear: {out: 2}]}' plugin
check 78 'but the model has no plugin' \
    '{input: [1, 32, 32], layers: [linear: {out: 2}]}' plugin

# An error while the plugin runs ends the run with the plugin's message.
plugin "$source/tests/api/bad_plugin.c" bad.so -DFAULT=0
check 0 mine1 '{plugin: ./bad.so, input: [1, 32, 32]}'
out=$("$build/cddp-train" --fresh run.yaml 2>&1)
[[ $? == 78 && $out == *"mine: not today"* ]] || fail "not today: $out"
exit $failed

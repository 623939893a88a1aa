# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The cddp authors
"""
Models of transformers and torchvision go to cddp and back by safetensors:
their weights give the same outputs here (cddp-train --predict), and what
cddp-ckpt exports loads with strict=True and gives the same outputs there.

usage: safetensors_peers.py BUILD MAPS [RESNET...]
in an empty directory, by a Python that has torch, torchvision, transformers,
safetensors and h5py. Exit status: 0 equal, 1 not, 77 a package is missing.
"""

import os
import subprocess
import sys

try:
    import h5py
    import safetensors.torch
    import torch
    import torchvision
    import transformers
except ImportError as missing:
    print(f"a package is missing: {missing}")
    sys.exit(77)

BUILD, MAPS = sys.argv[1:3]
TOLERANCE = 1e-5  # of the largest output
SAMPLES = 6
failed = False


def command(*words):
    done = subprocess.run(
        [f"{BUILD}/{words[0]}", *words[1:]],
        env={**os.environ, "CDDP_MAPS": MAPS},
        capture_output=True,
        text=True,
    )
    if done.returncode != 0:
        sys.exit(f"{' '.join(words)}: status {done.returncode}: {done.stderr}")


def expect(what, there, here):
    """Print how far the outputs are from each other; they must be near."""
    global failed
    far = (there - here).abs().max().item() / there.abs().max().item()
    good = there.shape == here.shape and far <= TOLERANCE
    failed = failed or not good
    print(f"{'ok' if good else 'FAIL'}: {what}: largest difference {far:.2g} of the largest output")


def predict(name, *options):
    command("cddp-train", "--predict", f"{name}.h5", *options, "run.yaml")
    with h5py.File(f"{name}.h5") as file:
        return torch.from_numpy(file["output"][...])


def round_trip(name, there, make, data, model):
    """[there] is their model with random weights, [make] makes another one."""
    there.eval()
    # None is so small that the smallest update would change it.
    for value in there.parameters():
        value.data[value.data.abs() < 1e-6] = 0.01
    with torch.no_grad():
        expected = there(data["x"])
    expected = getattr(expected, "logits", expected)
    safetensors.torch.save_file(
        {k: v.contiguous() for k, v in there.state_dict().items() if k != "lm_head.weight"},
        "theirs.safetensors",
    )
    command("cddp-ckpt", "import", "theirs.safetensors", "ours.safetensors", "--map", name, "--force")
    with h5py.File("data.h5", "w") as file:
        for key, value in data.items():
            file[key] = value.int().numpy() if value.dtype == torch.int64 else value.numpy()
    run = f"run-{name}"
    with open("run.yaml", "w") as file:
        file.write(
            f"run: {{name: peers, dir: {run}}}\n"
            "data: {train: data.h5, valid: data.h5, input: {path: /x}, target: {path: /y}}\n"
            f"model: {model}\n"
            "loss: cross_entropy\n"
            "optimizer: {sgd: {lr: 1.0e-30}}\n"
            f"train: {{epochs: 1, batch: {SAMPLES}}}\n"
            "checkpoint: {init: ours.safetensors}\n"
        )
    expect(f"{name}: their weights here", expected, predict(f"{name}-there"))
    command("cddp-train", "run.yaml")
    command("cddp-ckpt", "export", run, "back.safetensors", "--map", name, "--force")
    back = make()
    back.load_state_dict(safetensors.torch.load_file("back.safetensors"), strict=True)
    back.eval()
    for key, value in there.named_parameters():
        if not torch.equal(value, dict(back.named_parameters())[key]):
            sys.exit(f"FAIL: {name}: {key} has come back with other bits")
    with torch.no_grad():
        returned = back(data["x"])
    returned = getattr(returned, "logits", returned)
    expect(f"{name}: our weights there", returned, predict(f"{name}-back"))


def gpt2(name, dropout):
    config = transformers.GPT2Config(
        bos_token_id=0, eos_token_id=0, vocab_size=301, n_positions=40, n_embd=96, n_layer=3, n_head=4, initializer_range=0.2
    )
    tokens = torch.randint(301, (SAMPLES, 40))
    there = transformers.GPT2LMHeadModel(config)
    for key, value in there.named_parameters():
        if key.endswith("bias") or ".ln_" in key:
            value.data += 0.1 * torch.randn_like(value)
    round_trip(
        name,
        there,
        lambda: transformers.GPT2LMHeadModel(config),
        {"x": tokens, "y": tokens},
        "{preset: gpt2, input: [40], vocabulary: 301, width: 96, depth: 3, heads: 4, "
        f"dropout: {dropout}}}",
    )


def resnet(name):
    def make():
        return getattr(torchvision.models, name)(num_classes=37)

    there = make()
    for module in there.modules():
        if isinstance(module, torch.nn.BatchNorm2d):
            module.running_mean.normal_(0, 0.1)
            module.running_var.uniform_(0.5, 1.5)
            module.weight.data.uniform_(0.5, 1.0)
            module.bias.data.normal_(0, 0.1)
    round_trip(
        name,
        there,
        make,
        {"x": torch.randn(SAMPLES, 3, 96, 96), "y": torch.randint(37, (SAMPLES,))},
        f"{{preset: {name}, input: [3, 96, 96], classes: 37, stem: imagenet}}",
    )


def vit():
    def make():
        return torchvision.models.VisionTransformer(
            image_size=64, patch_size=16, num_layers=3, num_heads=4, hidden_dim=96, mlp_dim=384, num_classes=37
        )

    there = make()
    for value in there.parameters():
        value.data += 0.05 * torch.randn_like(value)
    round_trip(
        "vit",
        there,
        make,
        {"x": torch.randn(SAMPLES, 3, 64, 64), "y": torch.randint(37, (SAMPLES,))},
        "{preset: vit, input: [3, 64, 64], classes: 37, width: 96, depth: 3, heads: 4, "
        "pool: token, eps: 1.0e-6}",
    )


torch.manual_seed(1)
torch.set_num_threads(2)
print(
    f"torch {torch.__version__}, torchvision {torchvision.__version__}, "
    f"transformers {transformers.__version__}, safetensors {safetensors.__version__}"
)
gpt2("gpt2", 0)
gpt2("gpt2-dropout", 0.1)
for which in sys.argv[3:] or ("resnet18", "resnet34", "resnet50"):
    resnet(which)
vit()
sys.exit(failed)

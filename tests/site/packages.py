#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The cddp authors
"""Compare the recipes of docs/admin with configure.ac and m4/.

usage: packages.py SOURCE

Both recipes have the version of this source, name only libraries and options that
configure has and least versions that m4/ asks for, and name every library that configure
cannot do without. Then recipes with one mistake each must be refused."""
import ast
import glob
import re
import sys

# What Spack calls the compilers and pkg-config, and the macros that look for them.
TOOLS = {"c": "AC_PROG_CC", "cxx": "AC_PROG_CXX", "pkgconfig": "PKG_PROG_PKG_CONFIG",
         "mpi": "CDDP_HDF5_PARALLEL"}


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


class Configure:
    def __init__(self, source):
        made = read(source + "/configure")
        text = read(source + "/configure.ac") + "".join(
            read(path) for path in sorted(glob.glob(source + "/m4/cddp_*.m4")))
        self.text = re.sub(r"dnl\n", "", text)
        self.version = re.search(r"^PACKAGE_VERSION='(.*)'$", made, re.M).group(1)
        self.options = set(re.findall(r"^  --(?:with|enable)-([a-z0-9-]+)", made, re.M))
        # Of each library that is needed: its title and its name in Spack.
        needs = re.findall(r"^  CDDP_NEED\((.*?)\)$", self.text, re.M | re.S)
        words = [re.findall(r"\[(.*?)\]", need) for need in needs]
        self.titles = {word[5].lower() for word in words} | {"hdf5"}
        self.spack = {word[7] for word in words} | {"hdf5"}
        assert len(self.titles) >= 8, self.titles

    def knows(self, word):
        return re.search(r"(?<![\w-])%s(?![\w-])" % re.escape(word), self.text, re.I)

    def options_wrong(self, texts):
        for text in texts:
            for name in re.findall(r"--(?:with|without|enable|disable)-([a-z0-9-]+)", text):
                if name not in self.options:
                    yield "configure has no option for %s" % name


def strings(tree):
    return [node.value for node in ast.walk(tree)
            if isinstance(node, ast.Constant) and isinstance(node.value, str)]


def calls(tree, name):
    """The first argument of each call of [name]."""
    return [node.args[0].value for node in ast.walk(tree)
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == name]


def spack_wrong(configure, text):
    """What is wrong with the recipe for Spack, as sentences."""
    tree = ast.parse(text)
    yield from configure.options_wrong(strings(tree))
    if calls(tree, "version") != [configure.version]:
        yield "versions %s, not %s" % (calls(tree, "version"), configure.version)
    if not any("cddp-%s.tar.gz" % configure.version in text for text in strings(tree)):
        yield "no tarball of version %s" % configure.version
    named = set()
    for spec in calls(tree, "depends_on"):
        name, least = re.match(r"([a-z0-9-]+)(?:@([0-9.]+):)?", spec).groups()
        named.add(name)
        if not (TOOLS.get(name, "no tool") in configure.text or configure.knows(name)):
            yield "configure does not look for %s" % name
        if least and not configure.knows(least):
            yield "configure does not ask for %s %s" % (name, least)
    for name in sorted(configure.spack - named):
        yield "%s is missing" % name


def easybuild_wrong(configure, text):
    """What is wrong with the recipe for EasyBuild."""
    tree = ast.parse(text)
    values = {node.targets[0].id: node.value for node in tree.body
              if isinstance(node, ast.Assign)}
    yield from configure.options_wrong(strings(tree))
    if ast.literal_eval(values["version"]) != configure.version:
        yield "another version than %s" % configure.version
    named = {item[0].lower() for item in ast.literal_eval(values["dependencies"])}
    for name in sorted(named):
        if not configure.knows(name):
            yield "configure does not look for %s" % name
    for name in sorted(configure.titles - named):
        yield "%s is missing" % name


def main():
    source = sys.argv[1]
    configure = Configure(source)
    spack = read(source + "/docs/admin/spack/package.py")
    easybuild_path, = glob.glob(source + "/docs/admin/easybuild/cddp-*.eb")
    easybuild = read(easybuild_path)
    wrong = list(spack_wrong(configure, spack)) + list(easybuild_wrong(configure, easybuild))
    if "/cddp-%s-" % configure.version not in easybuild_path:
        wrong.append("%s has no version in its name" % easybuild_path)
    for find, text, old, new in (
            (spack_wrong, spack, "--with-isal", "--with-isa"),
            (spack_wrong, spack, 'version("', 'version("9.'),
            (spack_wrong, spack, "cudnn@9.10:", "cudnn@9.77:"),
            (spack_wrong, spack, 'depends_on("jansson")', 'depends_on("jans")'),
            (easybuild_wrong, easybuild, "--with-mpi", "--with-mpy"),
            (easybuild_wrong, easybuild, "version = '", "version = '9."),
            (easybuild_wrong, easybuild, "('libyaml'", "('libyam'")):
        assert old in text, old
        if not list(find(configure, text.replace(old, new, 1))):
            wrong.append("not noticed: %s" % new)
    for sentence in wrong:
        print("FAIL:", sentence)
    sys.exit(1 if wrong else 0)


main()

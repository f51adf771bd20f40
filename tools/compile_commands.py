# SPDX-License-Identifier: Apache-2.0
"""The compiler's commands of a build folder, for tools that let the compiler look at files once more."""
import json
import os
import shlex

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def entries_below(build, folder):
    """Returns: the entries of compile_commands.json whose files are in a folder of the repository, also of targets that are built on demand only."""
    with open(os.path.join(build, "compile_commands.json"), encoding="utf-8") as file:
        entries = json.load(file)
    return [entry for entry in entries if os.path.relpath(os.path.join(entry["directory"], entry["file"]), ROOT).startswith(folder + os.sep)]


def syntax_command(entry, without=(), first=(), last=()):
    """Returns: the command of an entry, which checks the file and writes nothing. `without`: options to leave out; `first`, `last`: options before and
    after its own."""
    words = [word for word in shlex.split(entry["command"]) if word not in ("ccache", *without)]
    for option in "-o", "-MF", "-MQ":
        if option in words:
            at = words.index(option)
            del words[at:at + 2]
    words = [word for word in words if word not in ("-MD", "-c")]
    return [words[0], *first, *words[1:], "-fsyntax-only", "-fdiagnostics-color=never", *last]

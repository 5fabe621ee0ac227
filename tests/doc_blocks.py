"""The code on a page of documentation: found, run, and compared with what the page says comes out.

- ``python`` in the form of doctests (``>>>``) is compared; plain ``python`` is run. All blocks of a page share their names.
- ``console``: lines that begin with ``$ `` are commands for bash, the lines after them what they print, errors included. A
  line may go on after a backslash. A command that fails is a fault, unless the next one is ``echo $?``.
- ``sh`` is not run, as installing is; its commands, targets, extras and files have to exist.
- Other blocks are not code.

A comment just before a block says more about it: ``<!-- slow -->``; ``<!-- needs: ray -->``, a module or a command without
which it is left out; ``<!-- terminal -->``, its commands see a terminal of 100 columns. ``<!-- setup … -->`` holds Python that
is run on its way and not shown. ``...`` stands for anything, and white space for white space, as in doctests.
"""

import doctest
import io
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from shutil import which
from typing import Any

import pytest

from cli_runs import environment, in_terminal

markdown_it = pytest.importorskip("markdown_it")

OPTIONS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
COMMENT = re.compile(r"<!--\s*(slow|needs|terminal|setup)\b:?(.*?)-->", re.DOTALL)
#: Written after each command of a console block, with its exit status: no output has it.
MARK = "--- 7c1f the command is done:"
SECONDS = 300


@dataclass(frozen=True)
class Block:
    """One block of code and what the comments before it say."""

    language: str  #: "python", "console", "sh" …, "setup" for code in a comment, "" if the page does not say
    text: str
    line: int  #: where it begins on the page, from 1
    slow: bool = False
    needs: tuple[str, ...] = ()
    terminal: bool = False

    @property
    def runs_here(self) -> bool:
        """Whether all that it needs is here."""
        return all(find_spec(name) is not None or which(name) is not None for name in self.needs)


def blocks_of(page: str) -> list[Block]:
    """The blocks of a page in Markdown, in their order."""
    found: list[Block] = []
    marks: dict[str, str] = {}
    for token in markdown_it.MarkdownIt("commonmark").parse(page):
        if token.type == "html_block":
            for word, rest in COMMENT.findall(token.content):
                if word == "setup":
                    found.append(_block("setup", rest, token.map[0], marks))
                else:
                    marks[word] = rest.strip()
            continue
        if token.type == "fence":
            language = token.info.split()[0] if token.info.strip() else ""
            found.append(_block(language, token.content, token.map[0] + 1, marks))
        marks = {}
    return found


def _block(language: str, text: str, line: int, marks: dict[str, str]) -> Block:
    needs = tuple(marks.get("needs", "").replace(",", " ").split())
    return Block(language, text, line + 1, "slow" in marks, needs, "terminal" in marks)


def run_blocks(blocks: list[Block], folder: Path, name: str) -> None:
    """Run blocks one after the other in a folder, which is the current one; AssertionError says which one is wrong and how."""
    namespace: dict[str, Any] = {"__name__": "__main__"}
    for block in blocks:
        if block.language == "console":
            check_console(block, folder, name)
        elif block.language == "python" and block.text.lstrip().startswith(">>>"):
            check_doctest(block, namespace, name)
        elif block.language in ("python", "setup"):
            # Empty lines before it: a traceback names the line of the page.
            exec(compile("\n" * (block.line - 1) + block.text, name, "exec"), namespace)


def check_doctest(block: Block, namespace: dict[str, Any], name: str) -> None:
    """Run a block in doctest form, and keep its names."""
    test = doctest.DocTestParser().get_doctest(block.text, namespace, name, name, block.line - 1)
    told = io.StringIO()
    runner = doctest.DocTestRunner(optionflags=OPTIONS)
    failed = runner.run(test, out=told.write, clear_globs=False).failed
    namespace.update(test.globs)
    assert not failed, told.getvalue()


def check_console(block: Block, folder: Path, name: str) -> None:
    """Run the commands of a block in one shell, and compare what each prints with the lines below it."""
    steps = list(commands_of(block.text))
    script = "".join(f"{command}\n_s=$?; printf '\\n{MARK} %s\\n' $_s; (exit $_s)\n" for command, _ in steps)
    printed = run_bash(script, folder, terminal=block.terminal)
    parts = re.split(rf"\n?{re.escape(MARK)} (\d+)\n", printed)
    outputs, statuses = parts[0:-1:2], [int(status) for status in parts[1::2]]
    assert len(outputs) == len(steps), f"{name}, line {block.line}: the shell stopped early:\n{printed}"
    following = [command for command, _ in steps[1:]] + [""]
    for (command, want), got, status, after in zip(steps, outputs, statuses, following, strict=True):
        where = f"{name}, line {block.line}: $ {command}\n"
        assert status == 0 or after == "echo $?", f"{where}failed with status {status}:\n{got}"
        same = doctest.OutputChecker().check_output(want, got + "\n" if got else "", OPTIONS)
        assert same, f"{where}should print\n{want}\nand prints\n{got}"


def commands_of(text: str) -> Iterator[tuple[str, str]]:
    """Commands of a console block, each with what should come out."""
    command, output, goes_on = None, "", False
    for line in text.splitlines():
        if goes_on:
            command = f"{command}\n{line}"
        elif line.startswith("$ "):
            if command is not None:
                yield command, output
            command, output = line[2:], ""
        else:
            assert command is not None, f"a console block begins with a command, '$ …'; this one with {line!r}"
            output += line + "\n"
            continue
        goes_on = line.endswith("\\")
    if command is not None:
        yield command, output


def run_bash(script: str, folder: Path, *, terminal: bool = False) -> str:
    """All that a script prints, on both streams; installed commands are those of this interpreter.

    Of a terminal the lines as they stand in the end, progress overwritten.
    """
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)])
    more = {"PATH": path, "TERM": "dumb", "NO_COLOR": "1", "MPLBACKEND": "Agg"}
    words = ["bash", "-c", script]
    if terminal:
        lines = in_terminal(words, folder, **more)[1].replace("\r\n", "\n").split("\n")
        return "\n".join(line.rsplit("\r", 1)[-1] for line in lines)
    streams = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    return subprocess.run(words, cwd=folder, env=environment(**more), text=True, timeout=SECONDS, check=False, **streams).stdout

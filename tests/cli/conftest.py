"""A folder of a user's files, and commands run in it."""

import pytest
from files import write_files

from lksd.cli import main


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("files")
    write_files(made)
    return made


@pytest.fixture
def lksd_command(folder, monkeypatch, capsys):
    """Calls the command line in the folder: (exit code, what was printed, what was said beside it)."""
    monkeypatch.chdir(folder)

    def call(*arguments):
        code = main([str(argument) for argument in arguments])
        out, err = capsys.readouterr()
        return code, out, err

    return call

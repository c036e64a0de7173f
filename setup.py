"""What pyproject.toml cannot say: manual pages are made from the commands' parsers as a package is built."""

import sys
from pathlib import Path

from setuptools import setup
from setuptools.command.install import install
from setuptools.dist import Distribution

HERE = Path(__file__).resolve().parent
MANUAL = "share/man/man1"  # below the prefix of an installation, where man(1) looks for the programs on PATH


def pages() -> list[str]:
    """Writes the pages into build/man; their paths, relative to here."""
    sys.path.insert(0, str(HERE))
    try:
        from livepro.cli.man import write
    finally:
        sys.path.remove(str(HERE))
    return [str(path.relative_to(HERE)) for path in write(HERE / "build/man")]


class Package(Distribution):
    """The distribution, with the pages among its files. They are made when these are asked for: not for an
    archive of the sources, nor where only metadata are wanted."""

    def has_data_files(self) -> bool:
        return True


class Install(install):
    """Makes the pages before they are put in place."""

    def run(self) -> None:
        self.distribution.data_files = [(MANUAL, pages())]
        super().run()


setup(distclass=Package, cmdclass={"install": Install})

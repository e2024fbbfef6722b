"""Puts weights_manifest.yaml, which lives at the top of the repository, beside the modules of a built wheel.

Everything else is declared in pyproject.toml, where setuptools has no way to name a file outside the package. An
editable install needs no copy: manifest.py then finds the file one folder above the package.
"""

import shutil
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

MANIFEST = "weights_manifest.yaml"


class BuildWithManifest(build_py):
    def run(self) -> None:
        super().run()
        if not self.editable_mode:
            shutil.copyfile(MANIFEST, Path(self.build_lib, "gpen_zoo", MANIFEST))

    def get_source_files(self) -> list[str]:
        return [*super().get_source_files(), MANIFEST]

    def get_outputs(self, include_bytecode: bool = True) -> list[str]:
        outputs = super().get_outputs(include_bytecode)
        return outputs if self.editable_mode else [*outputs, str(Path(self.build_lib, "gpen_zoo", MANIFEST))]


setup(cmdclass={"build_py": BuildWithManifest})

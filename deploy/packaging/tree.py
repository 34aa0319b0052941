# SPDX-License-Identifier: Apache-2.0
"""The files of a package before it is packed: the same modes and times on every machine."""

import gzip
import os
import pathlib
import subprocess


class Tree:
    """A folder that becomes a package. Not thread-safe."""

    def __init__(self, folder, epoch):
        self.folder = pathlib.Path(folder)
        self._epoch = epoch
        self.folder.mkdir(parents=True)

    def write(self, path, content, mode=0o644):
        """A file with `content`, which is text or bytes, at `path` in the package."""
        target = self.folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content.encode() if isinstance(content, str) else content)
        target.chmod(mode)

    def copy(self, path, source, mode=0o644):
        self.write(path, pathlib.Path(source).read_bytes(), mode)

    def compressed(self, path, content):
        """The same bytes for the same content: no name and no time in the file."""
        data = content.encode() if isinstance(content, str) else content
        self.write(f"{path}.gz", gzip.compress(data, 9, mtime=0))

    def program(self, path, source, mode=0o755):
        """An executable or a library without the symbols that only a debugger reads."""
        self.copy(path, source, 0o755)
        target = self.folder / path
        subprocess.run(["strip", "--strip-unneeded", "--remove-section=.comment",
                        "--remove-section=.note", str(target)], check=True)
        target.chmod(mode)

    def link(self, path, target):
        place = self.folder / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.symlink_to(target)

    def files(self):
        """Paths of all files but those for dpkg, sorted."""
        found = [path.relative_to(self.folder) for path in self.folder.rglob("*")
                 if path.is_symlink() or path.is_file()]
        return sorted(str(path) for path in found if path.parts[0] != "DEBIAN")

    def settle(self):
        """Sets what the machine chose: modes of folders, and times."""
        for path in [*self.folder.rglob("*"), self.folder]:
            if path.is_dir() and not path.is_symlink():
                path.chmod(0o755)
            os.utime(path, (self._epoch, self._epoch), follow_symlinks=False)

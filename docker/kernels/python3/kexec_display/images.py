"""Images that are saved as a file by its name are displayed, too, and show() displays them instead of looking for a
program with a window."""

import functools
import sys
from importlib.machinery import PathFinder

from IPython.display import display


def change_image(module):
    save = module.Image.save

    @functools.wraps(save)
    def save_and_display(self, fp, format=None, **params):
        if isinstance(fp, str):
            display(self)
        return save(self, fp, format, **params)

    module.Image.save = save_and_display


def change_show(module):
    module.register(module.IPythonViewer, 0)


CHANGES = {"PIL.Image": change_image, "PIL.ImageShow": change_show}


class Finder:
    """Changes the modules right after their import."""

    def find_spec(self, name, path, target=None):
        if name not in CHANGES:
            return None
        spec = PathFinder.find_spec(name, path, target)
        if spec and spec.loader:
            spec.loader.exec_module = self.change_after(spec.loader.exec_module, CHANGES[name])
        return spec

    @staticmethod
    def change_after(execute, change):
        def exec_module(module):
            execute(module)
            change(module)
        return exec_module


def watch():
    for name, change in CHANGES.items():
        if name in sys.modules:         # somebody's configuration was faster
            change(sys.modules[name])
    sys.meta_path.insert(0, Finder())

#!/usr/bin/python3
"""What the python kernel shows: through a real kernel, with its configuration."""

import base64
import os
import unittest

from kernel import KernelTest

LAZY = ("numpy", "pandas", "matplotlib", "PIL", "kexec_display.charts", "kexec_display.boxes")


class FreshKernel(KernelTest):
    """What must be so before anything else was run; tests run in the order of their names."""

    def test_0_nothing_is_imported(self):
        code = "import sys\n', '.join(name for name in %r if name in sys.modules)" % (LAZY,)
        self.assertEqual(self.text(code), "''")

    def test_1_namespace_is_the_users(self):
        code = "{n for n in dir() if n[0] != '_'} - {'In', 'Out', 'exit', 'quit', 'open', 'get_ipython', 'sys'}"
        self.assertEqual(self.text(code), "set()")

    def test_2_package_does_not_shadow_modules(self):
        shown = self.messages("import charts")
        self.assertEqual([content.get("ename") for _, content in shown], ["ModuleNotFoundError"])


class Text(KernelTest):
    def test_number_has_text_alone(self):
        self.assertEqual(self.result("1"), {"text/plain": "1"})

    def test_traceback_has_no_colours(self):
        (kind, content), = self.messages("1/0")
        self.assertEqual(kind, "error")
        self.assertIn("----> 1 1/0", "\n".join(content["traceback"]))
        self.assertNotIn("\x1b", "\n".join(content["traceback"]))

    def test_syntax_error_has_no_colours(self):
        (_, content), = self.messages("1 +")
        self.assertNotIn("\x1b", "\n".join(content["traceback"]))

    def test_long_sequences_are_not_truncated(self):
        for code in ("list(range(1500))", "tuple(range(1500))", "set(range(1500))", "dict.fromkeys(range(1500))"):
            with self.subTest(code=code):
                text = self.text(code)
                self.assertNotIn("...", text)
                self.assertIn("1499", text)


class Json(KernelTest):
    def test_list(self):
        self.assertEqual(self.result("[1, 'a', None, 2.5]"),
                         {"text/plain": "[1, 'a', None, 2.5]", "application/json": [1, "a", None, 2.5]})

    def test_dict(self):
        self.assertEqual(self.result("{1: 2}"), {"text/plain": "{1: 2}", "application/json": {"1": 2}})

    def test_numpy(self):
        data = self.result("import numpy\n[numpy.arange(2), {numpy.int64(1): numpy.float32(.5)}]")
        self.assertEqual(data["application/json"], [[0, 1], {"1": 0.5}])

    def test_subclass(self):
        data = self.result("from collections import Counter\nCounter('aab')")
        self.assertEqual(data["application/json"], {"a": 2, "b": 1})

    def test_what_has_no_form_in_json_has_its_text(self):
        for code in ("[object]", "[b'x']", "[{1}]", "{(1, 2): 3}", "l = []\nl.append(l)\nl", r"['\ud800']",
                     "(1, 2)", "{1, 2}"):
            with self.subTest(code=code):
                self.assertEqual(list(self.result(code)), ["text/plain"])

    def test_nested_too_deep(self):
        for depth in (300, 480, 600, 900):
            with self.subTest(depth=depth):
                kinds = [kind for kind, content in
                         self.messages("l = []\nfor _ in range(%d): l = [l]\nl" % depth)
                         if "application/json" in content.get("data", "")]
                self.assertEqual(kinds, [])

    def test_the_objects_own_method_is_asked(self):
        code = "class A:\n def _repr_json_(self): return {'own': 1}\nA()"
        self.assertEqual(self.result(code)["application/json"], {"own": 1})


class Data(KernelTest):
    def test_frame(self):
        data = self.result("import pandas as pd\npd.DataFrame({'a': [1, 2], 'b': ['x', 'y']})")
        self.assertEqual(data["e2b/data"], {"a": [1, 2], "b": ["x", "y"]})
        self.assertEqual(sorted(data), ["e2b/data", "text/html", "text/plain"])

    def test_timestamps_and_nothing(self):
        data = self.result("import pandas as pd\npd.DataFrame({'t': pd.to_datetime(['2024-01-02 03:04:05', None]), "
                           "'n': [1.5, None], 'o': ['a', None], 'i': pd.array([1, None], dtype='Int64')})")
        self.assertEqual(data["e2b/data"], {"t": ["2024-01-02T03:04:05", None], "n": [1.5, None],
                                            "o": ["a", None], "i": [1, None]})

    def test_subclass(self):
        data = self.result("import pandas as pd\nclass Own(pd.DataFrame): pass\nOwn({'a': [1]})")
        self.assertEqual(data["e2b/data"], {"a": [1]})

    def test_series_has_none(self):
        self.assertEqual(list(self.result("import pandas as pd\npd.Series([1])")), ["text/plain"])

    def test_the_objects_own_methods_are_asked(self):
        code = "class A:\n def _repr_e2b_data_(self): return {'d': [1]}\n def _repr_e2b_chart_(self): " \
               "return {'type': 'line'}\nA()"
        data = self.result(code)
        self.assertEqual((data["e2b/data"], data["e2b/chart"]), ({"d": [1]}, {"type": "line"}))


class Chart(KernelTest):
    def test_show(self):
        data = self.result("import matplotlib.pyplot as plt\nplt.plot([1, 2], label='l'); plt.title('T'); plt.show()")
        self.assertEqual(sorted(data), ["e2b/chart", "image/png", "text/plain"])
        self.assertEqual(data["e2b/chart"]["type"], "line")
        self.assertEqual(data["e2b/chart"]["elements"], [{"label": "l", "points": [[0, 1], [1, 2]]}])

    def test_figure_as_the_result(self):
        data = self.result("import matplotlib.pyplot as plt\nfig, ax = plt.subplots(); ax.pie([1, 1])\n"
                           "plt.close()\nfig")
        self.assertEqual([e["angle"] for e in data["e2b/chart"]["elements"]], [180, 180])

    def test_nothing_drawn(self):
        data = self.result("import matplotlib.pyplot as plt\nfig = plt.figure(); plt.close()\nfig")
        self.assertEqual(data["e2b/chart"], {})


class Images(KernelTest):
    def image(self, code):
        data = self.result("from PIL import Image\nimage = Image.new('RGB', (2, 2))\n" + code)
        self.assertEqual(base64.b64decode(data["image/png"])[:4], b"\x89PNG")
        return data["text/plain"]

    def test_saved_by_name(self):
        self.assertIn("size=2x2", self.image("image.save('saved.png')"))
        self.assertTrue(os.path.exists(os.path.join(self.home, "saved.png")))

    def test_saved_elsewhere(self):
        self.assertEqual(self.results("import io\nfrom PIL import Image\n"
                                      "Image.new('RGB', (2, 2)).save(io.BytesIO(), 'PNG')"), [])

    def test_shown(self):
        self.image("image.show()")

    def test_result(self):
        self.image("image")

    def test_figure_saved_by_name(self):
        code = "import matplotlib.pyplot as plt\nfig = plt.figure(figsize=(1, 1)); fig.savefig('f.png'); plt.close()"
        self.assertIn("PIL.Image", self.text(code))

    def test_module_is_itself(self):
        code = "import importlib.util, PIL.Image\n" \
               "(PIL.Image.Image.save.__module__, PIL.Image.__spec__.loader.name, PIL.Image.open.__module__)"
        self.assertEqual(self.text(code), "('PIL.Image', 'PIL.Image', 'PIL.Image')")


class Printed(KernelTest):
    def printed(self, code):
        shown = self.messages(code)
        self.assertEqual({content.get("name") for _, content in shown}, {"stdout"}, shown)
        text = "".join(content["text"] for _, content in shown)
        self.assertNotIn("\x1b", text)
        return text

    def test_help(self):
        self.assertIn("Return the number of items in a container.", self.printed("len?"))
        self.assertIn("Serialize ``obj`` to a JSON formatted ``str``.", self.printed("import json\njson.dumps?"))

    def test_source(self):
        self.assertIn("def dumps(obj, *, skipkeys=False", self.printed("import json\njson.dumps??"))
        self.assertIn("def dumps(obj, *, skipkeys=False", self.printed("import json\n%psource json.dumps"))

    def test_pages_of_magics(self):
        self.assertIn("%history", self.printed("%quickref") + self.printed("%magic"))

    def test_names_that_match(self):
        self.assertIn("str.upper", self.printed("str.up*?"))

    def test_history(self):
        self.messages("first = 41")
        self.messages("print('second', first)")
        for magic in ("%history", "%history -l", "%history -g first"):
            with self.subTest(magic):
                self.assertIn("first = 41", self.printed(magic))
        self.assertIn("second 41", self.printed("print('second', first)\n%rerun -g second"))

    def test_rerun(self):
        self.messages("print('again')")
        self.assertRegex(self.printed("%rerun"), "(?s)Executing.*again")

    def test_history_is_nowhere_on_disk(self):
        self.messages("secret = 42")
        files = [name for _, _, names in os.walk(self.home) for name in names]
        self.assertEqual([name for name in files if "history" in name], [])


class UsersProfile(KernelTest):
    startup = {"00-own.py": "mine = 42"}
    config = "import PIL.Image\nc = get_config()\nc.InteractiveShellApp.extensions = ['autoreload']\n"

    def test_startup_file_was_run(self):
        self.assertEqual(self.text("mine"), "42")

    def test_both_extensions_are_loaded(self):
        code = "' '.join(sorted(get_ipython().extension_manager.loaded & {'IPython.extensions.autoreload', " \
               "'autoreload', 'kexec_display'}))"
        self.assertRegex(self.text(code), "autoreload kexec_display'$")

    def test_image_imported_by_the_configuration(self):
        self.assertIn("image/png", self.result("import PIL.Image\nPIL.Image.new('RGB', (2, 2)).save('x.png')"))


if __name__ == "__main__":
    unittest.main()

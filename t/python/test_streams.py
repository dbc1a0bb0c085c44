#!/usr/bin/python3
"""stdout and stderr: replaced, closed, broken, and written to by other programs."""

import unittest

from kernel import KernelTest

BREAK = {
    "a file that was closed": "sys.stdout = open('out', 'w'); print('x'); sys.stdout.close()",
    "both": "sys.stdout = sys.stderr = open('out', 'w'); print('x'); sys.stdout.close()",
    "stderr": "sys.stderr = open('out', 'w'); sys.stderr.close()",
    "a closed buffer": "import io; sys.stdout = io.StringIO(); sys.stdout.close()",
    "none": "sys.stdout = None",
    "nothing": "del sys.stdout",
    "what is no file": "sys.stdout = 5",
    "a device that is full": "sys.stdout = open('/dev/full', 'w'); print('x')",
    "what fails": "sys.stdout = type('Own', (), {'write': print, 'flush': lambda self: 1 / 0})()",
    "the kernel's own": "sys.stdout.close()",
    "with": "with sys.stdout: pass",
    "its method": "sys.stdout.flush = None",
    "its method for writing": "sys.stdout.write = None",
    "an await": "import asyncio; await asyncio.sleep(0); sys.stdout = open('out', 'w'); sys.stdout.close()",
    "descriptor 1": "os.close(1)",
    "descriptor 2": "os.close(2)",
    "the copy of a descriptor": "try: os.close(sys.stdout.fileno())\nexcept OSError: pass",
}


class StreamsTest(KernelTest):
    def setUp(self):
        self.results("import os, subprocess, sys;")

    def printed(self, code, name="stdout"):
        return "".join(content["text"] for kind, content in self.messages(code) if content.get("name") == name)


class Broken(StreamsTest):
    def test_next_cell_prints(self):
        for name, code in BREAK.items():
            with self.subTest(name):
                self.messages(code)
                self.assertEqual(self.printed("print('out')"), "out\n")
                self.assertEqual(self.printed("print('err', file=sys.stderr)", "stderr"), "err\n")
                self.assertEqual(self.printed("os.system('echo out')").replace("0", ""), "out\n")
                self.assertEqual(self.printed("os.system('echo err >&2')", "stderr"), "err\n")

    def test_result_and_error_are_told(self):
        for name, code in BREAK.items():
            with self.subTest(name):
                self.assertIn("execute_result", [kind for kind, _ in self.messages(code + "\n42")])
                self.assertEqual([content["ename"] for kind, content in self.messages(code + "\nnothing_there")
                                  if kind == "error"], ["NameError"])

    def test_what_works_stays(self):
        self.messages("sys.stdout = open('kept', 'w')")
        self.assertEqual(self.printed("print('kept')"), "")
        self.assertEqual(self.printed("sys.stdout = sys.__stdout__; print(open('kept').read(), flush=True)"), "kept\n\n")

    def test_what_has_no_flush_stays(self):
        self.messages("got = []\nsys.stdout = type('Own', (), {'write': lambda self, text: got.append(text)})()")
        self.messages("print('kept')")
        self.assertEqual(self.text("''.join(got)"), "'kept\\n'")
        self.messages("sys.stdout = None")

    def test_redirected_descriptor_stays(self):
        self.messages("saved = os.dup(1); os.dup2(os.open('fd', os.O_WRONLY | os.O_CREAT), 1)")
        self.assertEqual(self.printed("os.system('echo kept');"), "")
        self.messages("os.dup2(saved, 1)")
        self.assertEqual(self.printed("print(open('fd').read(), end='')"), "kept\n")


class Programs(StreamsTest):
    def test_split_characters(self):
        text = self.printed("os.system('printf x; yes é | tr -d \"\\\\n\" | head -c 200001');")
        self.assertEqual(text, "x" + "é" * 100000 + "\ufffd")

    def test_bytes_that_are_no_text(self):
        self.assertEqual(self.printed("os.write(1, b'a\\xffb')\nos.system('echo c');"), "a\ufffdbc\n")
        self.assertEqual(self.printed("os.system('echo d');"), "d\n")

    def test_half_a_character(self):
        self.assertEqual(self.printed("os.write(1, b'a\\xc3');"), "a\ufffd")
        self.assertEqual(self.printed("os.write(1, b'a\\xc3'); os.write(1, b'\\xa9');"), "aé")

    def test_much(self):
        sizes = [len(content["text"]) for _, content in self.messages("os.system('head -c 10000000 /dev/zero | tr \\\\0 y');")]
        self.assertEqual(sum(sizes), 10000000)
        self.assertLess(max(sizes), 2 << 20)

    def test_it_is_in_the_cell_that_printed_it(self):
        for n in range(50):
            self.assertEqual(self.printed("os.system('echo %d');" % n), "%d\n" % n)

    def test_who_writes_for_ever(self):
        self.messages("noise = subprocess.Popen('while sleep 0.001; do echo noise; done', shell=True)")
        self.assertIn("42", [c["data"]["text/plain"] for kind, c in self.messages("42") if kind == "execute_result"])
        self.messages("noise.kill(); noise.wait()")


if __name__ == "__main__":
    unittest.main()

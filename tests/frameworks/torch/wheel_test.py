"""Installs the wheel in an environment without any other part of Penstock, and
uses it."""

import os
import pathlib
import subprocess
import sys
import tempfile
import unittest
import zipfile

USE = """
import torch.distributed as dist
# The entry point has made the backend known.
store = dist.HashStore()
dist.init_process_group("cpu:penstock", store=store, rank=0, world_size=1)
value = torch.ones(3)
dist.all_reduce(value)
assert value.tolist() == [1] * 3
import penstock.torch
print(penstock.torch.__file__)
"""


class WheelTest(unittest.TestCase):

    def test_pip_installs_it_and_import_torch_finds_it(self):
        with tempfile.TemporaryDirectory() as folder:
            wheel = self.make(folder)
            names = {name for name in zipfile.ZipFile(wheel).namelist()
                     if ".dist-info/" not in name}
            self.assertEqual(names, {
                "penstock/torch/" + name
                for name in ("__init__.py", "_backend.so", "_registration.py",
                             "py.typed")})
            site = os.path.join(folder, "site")
            subprocess.run([sys.executable, "-m", "pip", "install", "--quiet",
                            "--no-deps", "--no-index", "--target", site, wheel],
                           check=True)
            for first in ("torch", "penstock.torch"):
                program = f"import {first}\nimport torch\n{USE}"
                said = subprocess.run(
                    [sys.executable, "-c", program], check=True, text=True,
                    stdout=subprocess.PIPE,
                    env=dict(os.environ, PYTHONPATH=site)).stdout
                self.assertTrue(said.strip().startswith(site), said)

    def make(self, folder):
        made = subprocess.run(
            ["tools/torch_wheel", "--built=frameworks/torch", folder],
            text=True, capture_output=True, check=False,
            env=dict(os.environ, PENSTOCK_TORCH=sys.prefix))
        self.assertEqual(made.returncode, 0, made.stderr)
        return pathlib.Path(made.stdout.strip())


if __name__ == "__main__":
    unittest.main()

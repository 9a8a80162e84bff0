#!/usr/bin/python3 -B
"""Tests the wheel where nothing else of Penstock is installed."""

import os
import pathlib
import re
import subprocess
import sys
import sysconfig
import zipfile

import run_pytest

import pytest

USE = """
import numpy as np
import penstock
from penstock import ps
assert ps.Worker and ps.Reader
with penstock.TensorServer() as server:
    with penstock.TensorClient(f"127.0.0.1:{server.port}") as client:
        client.put({"x": np.arange(5000)})
        assert client.get(["x"])["x"].numpy().sum() == 12497500
print(penstock.__file__)
"""


@pytest.fixture(name="wheel", scope="module")
def make_wheel(tmp_path_factory):
    folder = tmp_path_factory.mktemp("dist")
    made = subprocess.run(
        ["tools/wheel", "--built=python/penstock", folder], text=True,
        capture_output=True)
    assert made.returncode == 0, made.stderr
    return pathlib.Path(made.stdout.strip())


def test_its_tag_says_where_it_runs(wheel):
    python = "cp%d%d" % sys.version_info[:2]
    assert re.fullmatch(rf"penstock-\d+\.\d+\.\d+-{python}-{python}-"
                        r"linux_x86_64\.whl", wheel.name)


def test_it_has_what_the_package_has_and_no_more(wheel):
    names = {name for name in zipfile.ZipFile(wheel).namelist()
             if ".dist-info/" not in name}
    assert names == {
        "penstock/" + name for name in (
            "__init__.py", "_errors.py", "_penstock.pyi", "_ps_calls.py",
            "_ps_attach.py", "_ps_clip.py", "_ps_model.py", "_tensors.py",
            "_types.py", "ps.py", "py.typed", "grpc/__init__.py",
            "grpc/__main__.py",
            "grpc/_calls.py", "grpc/_channel.py", "grpc/_context.py",
            "grpc/_reports.py", "grpc/_rules.py", "grpc/_run.py",
            "grpc/_server.py",
            "grpc/_stream_calls.py", "grpc/_wire.py", "grpc/aio.py",
            "_penstock" + sysconfig.get_config_var("EXT_SUFFIX"),
            "_rpc" + sysconfig.get_config_var("EXT_SUFFIX"))}


def test_pip_installs_it_and_it_works(wheel, tmp_path):
    if subprocess.run([sys.executable, "-c", "import ensurepip"],
                      capture_output=True).returncode:
        pytest.skip("no venv here: apt-get install python3-venv")
    subprocess.run([sys.executable, "-m", "venv", "--system-site-packages",
                    tmp_path], check=True)
    environment = {name: value for name, value in os.environ.items()
                   if name != "PYTHONPATH"}
    subprocess.run([tmp_path / "bin/pip", "install", "--no-index", "--quiet",
                    wheel], check=True, env=environment)
    used = subprocess.run([tmp_path / "bin/python", "-c", USE], text=True,
                          capture_output=True, cwd=tmp_path, env=environment)
    assert used.stdout.startswith(str(tmp_path)), used


def test_a_folder_without_a_module_is_refused(tmp_path):
    made = subprocess.run(["tools/wheel", f"--built={tmp_path}"], text=True,
                          capture_output=True)
    assert made.returncode == 1
    assert "has no _penstock.so" in made.stderr


if __name__ == "__main__":
    run_pytest.main(__file__)

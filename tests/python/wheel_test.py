#!/usr/bin/python3 -B
"""Tests the wheels in an environment that has nothing else of Penstock.
tools/check_wheel tests penstock-grpc with its libraries and PyPI's grpcio, which
needs the network.
"""

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


CALLS = pathlib.Path(__file__).with_name("wheel_calls.py").read_text()

GRPC_FILES = {
    "penstock/" + name for name in (
        "__init__.py", "grpc/__init__.py", "grpc/__main__.py",
        "grpc/_aio_call.py", "grpc/_aio_channel.py", "grpc/_aio_context.py",
        "grpc/_aio_server.py", "grpc/_calls.py", "grpc/_context.py",
        "grpc/_fast_channel.py", "grpc/_fast_server.py",
        "grpc/_identity.py", "grpc/_limits.py", "grpc/_loops.py",
        "grpc/_open_call.py", "grpc/_reports.py", "grpc/_rules.py",
        "grpc/_run.py", "grpc/_stream_calls.py", "grpc/_two_ways.py",
        "grpc/_views.py", "grpc/_wire.py", "grpc/aio.py",
        "_rpc" + sysconfig.get_config_var("EXT_SUFFIX"))}


def make(*arguments):
    made = subprocess.run(["tools/wheel", *arguments], text=True,
                          capture_output=True)
    assert made.returncode == 0, made.stderr
    return pathlib.Path(made.stdout.strip())


@pytest.fixture(name="wheel", scope="module")
def make_wheel(tmp_path_factory):
    return make("--built=python/penstock", tmp_path_factory.mktemp("dist"))


def names_in(wheel):
    return {name for name in zipfile.ZipFile(wheel).namelist()
            if ".dist-info/" not in name and not name.endswith("/")}


def run_in_venv(folder, wheel, program, *venv_options):
    """Installs the wheel by pip, and runs the program."""
    if subprocess.run([sys.executable, "-c", "import ensurepip"],
                      capture_output=True).returncode:
        pytest.skip("no venv here: apt-get install python3-venv")
    subprocess.run([sys.executable, "-m", "venv", *venv_options, folder],
                   check=True)
    environment = {name: value for name, value in os.environ.items()
                   if name != "PYTHONPATH"}
    index = ["--no-index"] if "--system-site-packages" in venv_options else []
    subprocess.run([folder / "bin/pip", "install", *index, "--quiet", wheel],
                   check=True, env=environment)
    return subprocess.run([folder / "bin/python", "-c", program], text=True,
                          capture_output=True, cwd=folder, env=environment)


def test_its_tag_says_where_it_runs(wheel):
    python = "cp%d%d" % sys.version_info[:2]
    assert re.fullmatch(rf"penstock-\d+\.\d+\.\d+-{python}-{python}-"
                        r"linux_x86_64\.whl", wheel.name)


def test_it_has_what_the_package_has_and_no_more(wheel):
    assert names_in(wheel) == GRPC_FILES | {
        "penstock/" + name for name in (
            "_errors.py", "_penstock.pyi", "_ps_calls.py", "_ps_attach.py",
            "_ps_clip.py", "_ps_model.py", "_tensors.py", "_types.py", "ps.py",
            "py.typed", "collectives/__init__.py", "collectives/_arrays.py",
            "collectives/_group.py", "collectives/_launch.py",
            "collectives/_pool.py",
            "collectives/_prepared.py", "collectives/_rendezvous.py",
            "collectives/_turns.py",
            "_collectives" + sysconfig.get_config_var("EXT_SUFFIX"),
            "_penstock" + sysconfig.get_config_var("EXT_SUFFIX"))}


def test_pip_installs_it_and_it_works(wheel, tmp_path):
    used = run_in_venv(tmp_path, wheel, USE, "--system-site-packages")
    assert used.stdout.startswith(str(tmp_path)), used


def test_grpc_alone(tmp_path):
    wheel = make("--grpc", "--plain", "--built=python/penstock", tmp_path)
    assert names_in(wheel) == GRPC_FILES
    used = run_in_venv(tmp_path / "venv", wheel, CALLS,
                       "--system-site-packages")
    assert used.stdout.startswith(str(tmp_path)), used
    assert "TensorClient is not in penstock-grpc" in used.stdout


def test_other_pythons_are_for_grpc_alone():
    for arguments, message in (
            (["--python=/usr/bin/python4"], "--python are for --grpc"),
            (["--grpc", "--plain", "--python=/usr/bin/python4"],
             "--plain is for /usr/bin/python3"),
            (["--grpc", "--python=/is/nowhere"], "is no Python")):
        made = subprocess.run(["tools/wheel", *arguments], text=True,
                              capture_output=True)
        assert made.returncode == 1
        assert message in made.stderr


def test_a_package_that_is_built_has_no_libraries_inside(tmp_path):
    made = subprocess.run(
        ["tools/wheel", "--grpc", "--built=python/penstock", tmp_path],
        text=True, capture_output=True)
    assert made.returncode == 1
    assert "it needs --plain" in made.stderr


def test_a_folder_without_a_module_is_refused(tmp_path):
    made = subprocess.run(["tools/wheel", f"--built={tmp_path}"], text=True,
                          capture_output=True)
    assert made.returncode == 1
    assert "has no _penstock.so" in made.stderr


if __name__ == "__main__":
    run_pytest.main(__file__)

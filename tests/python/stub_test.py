#!/usr/bin/python3 -B
"""Tests that the stub declares everything in the module, that all of it is
documented, and that the certificates of TLS are used."""

import ast
import importlib.util
import inspect
import itertools
import pathlib
import pydoc
import re
import subprocess
import sys

import run_pytest

import numpy as np
import pytest

import penstock
from penstock import _penstock, ps

PACKAGE = pathlib.Path(penstock.__file__).parent


def public(names):
    return {name for name in names if not name.startswith("_")}


def stub():
    """Returns {class or function: its members} of the stub."""
    tree = ast.parse((PACKAGE / "_penstock.pyi").read_text())
    return {node.name: {member.name for member in getattr(node, "body", [])
                        if isinstance(member, ast.FunctionDef)}
            for node in tree.body
            if isinstance(node, (ast.ClassDef, ast.FunctionDef))
            and not node.name.startswith("Supports")}


def test_the_stub_has_what_the_module_has():
    assert public(stub()) == public(vars(_penstock))
    assert public(stub()) <= set(penstock.__all__)


@pytest.mark.parametrize("name", stub())
def test_the_stub_of_each_class_is_right(name):
    real, members = getattr(_penstock, name), stub()[name]
    if isinstance(real, type):
        assert public(members) == public(vars(real))
        assert all(hasattr(real, member) for member in members)


def declared_parameters():
    """Returns {"Class", "Class.method" or "function": its parameters} of the
    stub."""
    found = {}
    for node in ast.parse((PACKAGE / "_penstock.pyi").read_text()).body:
        if isinstance(node, ast.FunctionDef):
            found[node.name] = declared(node)
        for member in getattr(node, "body", []):
            if not isinstance(member, ast.FunctionDef) or any(
                    getattr(how, "id", "") == "property"
                    for how in member.decorator_list):
                continue
            if member.name == "__init__":
                found[node.name] = declared(member)[1:]  # without `self`
            elif not member.name.startswith("_"):
                found[f"{node.name}.{member.name}"] = declared(member)
    return {name: value for name, value in found.items()
            if name[0] != "_" and name.split(".")[0] in penstock.__all__}


def declared(function):
    """Returns the parameters of a function of the stub, without types."""
    for argument in ast.walk(function.args):
        if isinstance(argument, ast.arg):
            argument.annotation = None
    return parameters(eval(  # pylint: disable=eval-used
        f"lambda {ast.unparse(function.args)}: None"))


def parameters(function):
    """Returns a tuple for each parameter: (name, kind, True if it has a
    default)."""
    return [(each.name, each.kind, each.default is not each.empty)
            for each in inspect.signature(function).parameters.values()]


DECLARED = declared_parameters()


@pytest.mark.parametrize("name", DECLARED)
def test_parameters_can_be_read_and_are_those_of_the_stub(name):
    thing = _penstock
    for word in name.split("."):
        thing = getattr(thing, word)
    assert parameters(thing) == DECLARED[name]


def test_help_shows_parameters():
    assert ("put(self, tensors)"
            in pydoc.render_doc(penstock.TensorClient, renderer=pydoc.plaintext))


def methods_of(module):
    for name in module.__all__:
        thing = getattr(module, name)
        if isinstance(thing, type) and not issubclass(thing, Exception):
            for member in public(vars(thing)):
                if inspect.isroutine(getattr(thing, member)):
                    yield f"{name}.{member}", getattr(thing, member)
        elif inspect.isroutine(thing):
            yield name, thing


METHODS = dict(itertools.chain(methods_of(penstock), methods_of(ps)))


@pytest.mark.parametrize("name", METHODS)
def test_each_public_method_names_its_parameters(name):
    for each in inspect.signature(METHODS[name]).parameters.values():
        assert each.kind not in (each.VAR_POSITIONAL, each.VAR_KEYWORD)
        assert not re.fullmatch(r"arg\d*", each.name)  # pybind11's invention


def test_the_package_is_typed():
    assert (PACKAGE / "py.typed").exists()


USES = """
from concurrent.futures import Future
from typing import assert_type
import numpy as np
import penstock
from penstock import ps

model = [ps.Dense("w", "f32", [64, 10], optimizer=ps.Adam(ps.Cosine(0.1, 9))),
         ps.Sparse("emb", 64, optimizer=ps.Adagrad(0.1), initial=ps.Normal())]
how = {"w": ps.TopK(0.01), "v": ps.Int8()}
ps.Dense("w", "f32", [64, 10])  # wrong
ps.Dense("w", "f32", [64, 10], optimizer="sgd")  # wrong
ps.Sgd("fast")  # wrong
with ps.Worker(["ps0:7000"], rank=0, model=model, values={"w": np.zeros(1)},
               compression=how, secret="file") as worker:
    assert_type(worker, ps.Worker)
    for step in worker.steps(10):
        pulled = worker.pull(step, dense=["w"], rows={"emb": [1, 2]})
        gradient = pulled["w"] * 2
        pushed = worker.push(step, {"w": gradient, "v": pulled.tensor("w")},
                             rows={"emb": ([1, 2], np.ones((2, 64)))})
        assert_type(pushed.counted, bool)
    assert_type(worker.pull_async(0), Future[ps.Pulled])
    assert_type(worker.push_async(0).result(), ps.Pushed)
    assert_type(worker.checkpoint(keep=3).step, int)
    assert_type(worker.tables, tuple[ps.Table, ...])
    worker.pull("0")  # wrong
    worker.pull(0, rows=[1])  # wrong
    worker.push(0, rows={"emb": 1})  # wrong
    pulled["w"] = gradient  # wrong
ps.Worker(["ps0:7000"])  # wrong
ps.Worker(["ps0:7000"], rank=0, compression={"w": "half"})  # wrong
with ps.Reader(["ps0:7000"], tls=ps.TlsFiles("ca", "cert", "key")) as reader:
    assert_type(reader.pull().tensor("w"), penstock.Tensor)
    reader.push(0, {})  # wrong
"""


def test_mypy_finds_the_package_right_and_wrong_uses_wrong(tmp_path):
    if importlib.util.find_spec("mypy") is None:
        pytest.skip("no mypy here: apt-get install mypy")
    program = tmp_path / "uses.py"
    program.write_text(USES)
    told = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--cache-dir", tmp_path,
         program, *PACKAGE.glob("*.py"), *PACKAGE.glob("*.pyi")], text=True,
        capture_output=True, check=False)
    wrong = {number for number, line in enumerate(USES.splitlines(), 1)
             if line.endswith("# wrong")}
    errors = re.findall(r"(\S+?):(\d+): error", told.stdout)
    assert {(file, int(line)) for file, line in errors} == {
        (str(program), line) for line in wrong}, told


@pytest.mark.parametrize("name", penstock.__all__)
def test_each_name_is_documented(name):
    thing = getattr(penstock, name)
    assert thing.__doc__
    if name in stub() and name != "PathReport":
        for member in public(vars(thing) if isinstance(thing, type) else ()):
            assert getattr(thing, member).__doc__, member


@pytest.fixture(name="pair")
def make_pair(tmp_path):
    """Makes a key and a self-signed certificate of "localhost"."""
    key, certificate = tmp_path / "key", tmp_path / "certificate"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days",
         "2", "-subj", "/CN=localhost", "-addext",
         "subjectAltName=DNS:localhost,IP:127.0.0.1", "-keyout", key, "-out",
         certificate], check=True, capture_output=True)
    return key.read_bytes(), certificate.read_bytes()


def test_tls_lets_only_those_in_who_have_a_certificate(pair):
    key, certificate = pair
    with penstock.TensorServer(credentials=penstock.ssl_server_credentials(
            key, certificate, certificate)) as server:
        target = f"127.0.0.1:{server.port}"
        with penstock.TensorClient(
                target, credentials=penstock.ssl_channel_credentials(
                    certificate, key, certificate)) as client:
            client.put({"x": np.ones(3)})
        with penstock.TensorClient(
                target, timeout=1,
                credentials=penstock.ssl_channel_credentials(certificate)
                ) as client, pytest.raises(penstock.Error):
            client.list()


if __name__ == "__main__":
    run_pytest.main(__file__)

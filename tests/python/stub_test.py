#!/usr/bin/python3 -B
"""The stub says what the module has, all of it is documented, and the
certificates of TLS are used."""

import ast
import pathlib
import subprocess

import run_pytest

import numpy as np
import pytest

import penstock
from penstock import _penstock

PACKAGE = pathlib.Path(penstock.__file__).parent


def public(names):
    return {name for name in names if not name.startswith("_")}


def stub():
    """{class or function: its members} of the stub."""
    tree = ast.parse((PACKAGE / "_penstock.pyi").read_text())
    return {node.name: {member.name for member in getattr(node, "body", [])
                        if isinstance(member, ast.FunctionDef)}
            for node in tree.body
            if isinstance(node, (ast.ClassDef, ast.FunctionDef))
            and node.name != "SupportsDLPack"}


def test_the_stub_has_what_the_module_has():
    assert public(stub()) == public(vars(_penstock))
    assert public(stub()) <= set(penstock.__all__)


@pytest.mark.parametrize("name", stub())
def test_the_stub_of_each_class_is_right(name):
    real, members = getattr(_penstock, name), stub()[name]
    if isinstance(real, type):
        assert public(members) == public(vars(real))
        assert all(hasattr(real, member) for member in members)


def test_the_package_is_typed():
    assert (PACKAGE / "py.typed").exists()


@pytest.mark.parametrize("name", penstock.__all__)
def test_each_name_is_documented(name):
    thing = getattr(penstock, name)
    assert thing.__doc__
    if name in stub() and name != "PathReport":
        for member in public(vars(thing) if isinstance(thing, type) else ()):
            assert getattr(thing, member).__doc__, member


@pytest.fixture(name="pair")
def make_pair(tmp_path):
    """Key and self-signed certificate of "localhost"."""
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

#!/usr/bin/python3 -B
"""Tests that wrong arguments are refused by name, that files of TLS and
secrets are used, and that the README's example runs."""

import dataclasses
import pathlib
import re
import subprocess
import sys

import run_pytest

import numpy as np
import peer
import pytest

import penstock
from penstock import ps

VALUES = {"w": np.zeros((4, 3), "f4")}


def dense(**changes):
    return dataclasses.replace(
        ps.Dense("w", "f32", (4, 3), optimizer=ps.Sgd(0.1)), **changes)


def sparse(**changes):
    return dataclasses.replace(
        ps.Sparse("emb", 8, optimizer=ps.Sgd(0.1)), **changes)


# Wrong values of each argument of Worker(), and the error text.
WRONG_WORKERS = [
    ({"servers": "ps0:1"}, TypeError, "servers"),
    ({"servers": []}, ValueError, "servers"),
    ({"servers": [1]}, TypeError, r"servers\[0\]"),
    ({"rank": "0"}, TypeError, "rank"),
    ({"rank": True}, TypeError, "rank"),
    ({"rank": -1}, ValueError, "rank is -1"),
    ({"rank": 65536}, ValueError, "rank is 65536"),
    ({"rank": 1}, ValueError, "model: the worker of rank 0"),
    ({"rank": 1, "model": None}, ValueError, "values: the worker of rank 0"),
    ({"timeout": 0}, ValueError, "timeout is 0"),
    ({"timeout": "1"}, TypeError, "timeout is '1'"),
    ({"pull_timeout": float("nan")}, ValueError, "pull_timeout is nan"),
    ({"push_timeout": -1}, ValueError, "push_timeout is -1"),
    ({"tls": "ca.pem"}, TypeError, "tls"),
    ({"tls": ps.TlsFiles("/no/ca", "/no/cert", "/no/key")},
     penstock.NotFound, "/no/c"),
    ({"tls": ps.TlsFiles(1, "cert", "key")}, TypeError, "tls: ca"),
    ({"tls": ps.TlsFiles("ca", "", "key")}, ValueError, "tls: cert"),
    ({"tls": ps.TlsFiles("ca", "cert", None)}, ValueError, "key"),
    ({"secret": 1}, TypeError, "secret"),
    ({"secret": "/no/secret"}, penstock.NotFound, "/no/secret"),
    ({"stock": "no"}, TypeError, "stock"),
    ({"model": "w"}, TypeError, "model"),
    ({"model": ["w"]}, TypeError, r"model\[0\]"),
    ({"model": [dense(), dense()]}, ValueError, "w"),
    ({"values": [1]}, TypeError, "values"),
    ({"values": {1: [1]}}, TypeError, "values: the name of a table"),
    ({"values": {"w": ["x"]}}, ValueError, "values of w"),
    ({"compression": {"w": "half"}}, TypeError, "compression of w"),
    ({"compression": {"w": ps.TopK}}, TypeError, "compression of w"),
    ({"compression": {"w": ps.TopK(2.0)}}, ValueError, "compression.*ratio"),
    ({"compression": {"w": ps.TopK("x")}}, TypeError,
     "compression of w: ratio"),
    ({"compression": {"w": ps.Half("f7")}}, ValueError,
     "compression of w: dtype"),
    ({"compression": {"w": ps.Int8(-1)}}, ValueError, "compression of w: seed"),
    ({"compression": {1: ps.Half()}}, TypeError, "compression"),
]


@pytest.mark.parametrize("wrong, error, text", WRONG_WORKERS)
def test_a_wrong_argument_of_a_worker_is_named(wrong, error, text):
    arguments = {"servers": ["127.0.0.1:1"], "rank": 0, "model": [dense()],
                 "values": VALUES, "timeout": 5, **wrong}
    with pytest.raises(error, match=text):
        ps.Worker(**arguments)


WRONG_TABLES = [
    (dense(name=1), TypeError, r"model\[0\]: name"),
    (dense(name=""), ValueError, "name"),
    (dense(dtype="f31"), ValueError, "table w: dtype is 'f31'"),
    (dense(dtype="int8"), ValueError, "w"),
    (dense(shape="x"), TypeError, "table w: shape"),
    (dense(shape=(2, -1)), ValueError, "table w: shape is -1"),
    (dense(shape=(2, 1.5)), TypeError, "table w: shape is 1.5"),
    (dense(optimizer="sgd"), TypeError, "table w: optimizer"),
    (dense(optimizer=ps.Sgd), TypeError, "table w: optimizer"),
    (dense(optimizer=ps.Sgd("x")), TypeError,
     "table w: optimizer: learning_rate"),
    (dense(optimizer=ps.Sgd(-1.0)), ValueError, "w.*learning_rate"),
    (dense(optimizer=ps.Adam(1e-3, beta1=1.5)), ValueError, "w.*beta1"),
    (dense(optimizer=ps.Adam(1e-3, epsilon="x")), TypeError, "epsilon"),
    (dense(optimizer=ps.Momentum(1e-3, momentum=2.0)), ValueError, "momentum"),
    (dense(optimizer=ps.Sgd(0.1, clip_value=-1.0)), ValueError, "clip_value"),
    (dense(optimizer=ps.Ftrl(0.1, lambda1=-1.0)), ValueError, "lambda1"),
    (dense(optimizer=ps.Sgd(ps.Step(0.1, every=0))), ValueError, "every"),
    (dense(optimizer=ps.Sgd(ps.Cosine(0.1, every=-1))), ValueError,
     "learning_rate: every"),
    (dense(staleness=-1), ValueError, "table w: staleness"),
    (dense(staleness=0.5), TypeError, "table w: staleness"),
    (dense(backup_workers="1"), TypeError, "table w: backup_workers"),
    (sparse(dim=0), ValueError, "emb.*dim"),
    (sparse(dim="8"), TypeError, "table emb: dim"),
    (sparse(initial="zeros"), TypeError, "table emb: initial"),
    (sparse(initial=ps.Uniform("0", 1)), TypeError, "table emb: initial: low"),
    (sparse(initial=ps.Uniform(2, 1)), ValueError, "emb"),
    (sparse(seed=2**64), ValueError, "table emb: seed"),
    (sparse(min_count=-1), ValueError, "table emb: min_count"),
    (sparse(time_to_live=-1), ValueError, "table emb: time_to_live"),
    (sparse(max_rows=-1), ValueError, "table emb: max_rows"),
    (sparse(budget_bytes="1"), TypeError, "table emb: budget_bytes"),
    (sparse(above_budget="drop"), ValueError,
     "table emb: above_budget is 'drop': give \"evict\" or \"refuse\" "
     "or \"spill\""),
]


@pytest.mark.parametrize("table, error, text", WRONG_TABLES)
def test_a_wrong_field_of_a_table_is_named(table, error, text):
    with pytest.raises(error, match=text):
        ps.Worker(["127.0.0.1:1"], rank=0, model=[table])


@pytest.fixture(name="address", scope="module")
def make_address():
    with peer.ps_server() as address:
        yield address


@pytest.fixture(name="worker", scope="module")
def make_worker(address):
    with ps.Worker([address], rank=0, model=[dense(), sparse()],
                   values=VALUES) as worker:
        yield worker


@pytest.fixture(name="reader", scope="module")
def make_reader(address, worker):
    del worker  # the worker is the chief
    with ps.Reader([address]) as reader:
        yield reader


WRONG_CALLS = [
    (lambda w: w.pull("0"), TypeError, "step is '0'"),
    (lambda w: w.pull(-1), ValueError, "step is -1"),
    (lambda w: w.pull(0, dense="w"), TypeError, "dense"),
    (lambda w: w.pull(0, dense=[1]), TypeError, r"dense\[0\]"),
    (lambda w: w.pull(0, dense=["v"]), ValueError, "v"),
    (lambda w: w.pull(0, rows=[1]), TypeError, "rows"),
    (lambda w: w.pull(0, rows={1: [1]}), TypeError, "rows"),
    (lambda w: w.pull(0, rows={"emb": [1.5]}), TypeError, "rows of emb: ids"),
    (lambda w: w.pull(0, rows={"emb": [[1]]}), ValueError, "rows of emb: ids"),
    (lambda w: w.pull(0, rows={"emb": [True]}), TypeError, "rows of emb: ids"),
    (lambda w: w.pull(0, rows={"emb": 7}), ValueError, "rows of emb: ids"),
    (lambda w: w.pull(0, rows={"v": [1]}), ValueError, "v"),
    (lambda w: w.pull(0, rows={"w": [1]}), ValueError, "w"),
    (lambda w: w.pull(0, dtype="f32"), ValueError, "dtype"),
    (lambda w: w.pull(0, dtype=[[1]]), ValueError, "dtype"),
    (lambda w: w.pull_async("0"), TypeError, "step"),
    (lambda w: w.push("0", {}), TypeError, "step"),
    (lambda w: w.push(0, [1]), TypeError, "gradients"),
    (lambda w: w.push(0, {"v": np.ones(1)}), ValueError, "v"),
    (lambda w: w.push(0, {"w": np.ones(1)}), ValueError, "w"),
    (lambda w: w.push(0, {"w": ["x"]}), ValueError, "gradients of w"),
    (lambda w: w.push(0, {"w": None}), ValueError, "gradients of w"),
    (lambda w: w.push(0, {"w": np.ones((4, 3), "i4")}), ValueError, "w"),
    (lambda w: w.push(0, {"w": np.full((4, 3), np.nan)}), ValueError, "w"),
    (lambda w: w.push(0, rows={"emb": [1]}), TypeError, "rows of emb"),
    (lambda w: w.push(0, rows={"emb": ([1.5], np.ones((1, 8)))}), TypeError,
     "rows of emb: ids"),
    (lambda w: w.push(0, rows={"emb": ([1], np.ones((2, 8)))}), ValueError,
     "emb"),
    (lambda w: w.push(0, rows={"emb": ([1], ["x"])}), ValueError,
     "rows of emb: gradients"),
    (lambda w: w.push(0, rows={"emb": ([1], np.ones((1, 8)))}), ValueError,
     "table emb: .* f64"),
    (lambda w: w.push_async(0, rows={"v": ([1], np.ones((1, 8)))}).result(),
     ValueError, "table v"),
    (lambda w: w.checkpoint(incremental=1), TypeError, "incremental"),
    (lambda w: w.checkpoint(keep=-1), ValueError, "keep"),
    (lambda w: w.checkpoint(timeout=0), ValueError, "timeout"),
]


@pytest.mark.parametrize("number", range(len(WRONG_CALLS)))
def test_a_wrong_argument_of_a_call_is_named(worker, number):
    call, error, text = WRONG_CALLS[number]
    with pytest.raises(error, match=text):
        call(worker)


def test_a_wrong_argument_of_a_reader_is_named():
    for wrong, error, text in [
            ({"wait_for_values": 1}, TypeError, "wait_for_values"),
            ({"timeout": -1}, ValueError, "timeout"),
            ({"tls": "ca.pem"}, TypeError, "tls"),
            ({"secret": 1}, TypeError, "secret"),
            ({"stock": 1}, TypeError, "stock"),
            ({"servers": 1}, TypeError, "servers")]:
        with pytest.raises(error, match=text):
            ps.Reader(**{"servers": ["127.0.0.1:1"], **wrong})


@pytest.mark.parametrize("call, error, text", [
    (lambda r: r.pull("0"), TypeError, "step is '0'"),
    (lambda r: r.pull(timeout=0), ValueError, "timeout"),
    (lambda r: r.pull(dense=["v"]), ValueError, "v"),
    (lambda r: r.pull(rows={"emb": [1.5]}), TypeError, "rows of emb: ids"),
    (lambda r: r.pull_async(dtype="f32"), ValueError, "dtype"),
    (lambda r: r.checkpoint(keep=-1), ValueError, "keep")])
def test_a_wrong_argument_of_a_readers_call_is_named(reader, call, error, text):
    with pytest.raises(error, match=text):
        call(reader)


def test_compression_of_a_table_that_is_not_there_is_refused():
    with peer.ps_server() as address:
        with pytest.raises(ValueError, match="compression of emb"):
            ps.Worker([address], rank=0, model=[dense(), sparse()],
                      values=VALUES, compression={"emb": ps.Half()})


@pytest.mark.parametrize("values, text", [
    (None, "values: .*0 of 1"),
    ({"w": np.zeros((4, 3))}, "values: table w: .*f64"),
    ({"w": np.zeros((3, 4), "f4")}, r"values: table w: .*\[3,4\]"),
    ({**VALUES, "v": np.zeros(1)}, "values: .*v")])
def test_values_that_are_not_the_models_are_refused(values, text):
    with peer.ps_server() as address, pytest.raises(ValueError, match=text):
        ps.Worker([address], rank=0, model=[dense()], values=values)


def test_a_model_that_does_not_fit_names_the_server_and_the_flag():
    with peer.ps_server("--memory=10B") as address:
        said = rf"\Adefine: server 0 \({address}\): the dense .* --memory\Z"
        with pytest.raises(MemoryError, match=said):
            ps.Worker([address], rank=0, model=[dense()], values=VALUES)


def test_nobody_there_is_a_timeout():
    with penstock.TensorServer() as server:
        address = f"127.0.0.1:{server.port}"
    with pytest.raises(TimeoutError, match="server 0"):
        ps.Reader([address], timeout=0.2)


def test_a_checkpoint_that_the_servers_have_no_folder_for_is_an_error(worker):
    with pytest.raises(penstock.Error, match="checkpoint"):
        worker.checkpoint(timeout=30)


@pytest.fixture(name="files", scope="module")
def make_files(tmp_path_factory):
    """Makes the key and self-signed certificate of "localhost"."""
    folder = tmp_path_factory.mktemp("tls")
    key, certificate = folder / "key", folder / "certificate"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days",
         "2", "-subj", "/CN=localhost", "-addext",
         "subjectAltName=DNS:localhost,IP:127.0.0.1", "-keyout", key, "-out",
         certificate], check=True, capture_output=True)
    return ps.TlsFiles(certificate, certificate, key)


def test_the_files_of_tls_are_used(files):
    with peer.ps_server(f"--ca={files.ca}", f"--cert={files.cert}",
                        f"--key={files.key}") as address:
        with ps.Worker([address], rank=0, model=[dense()], values=VALUES,
                       tls=files) as worker:
            np.testing.assert_array_equal(worker.pull(0)["w"], VALUES["w"])
        with pytest.raises(penstock.Error, match="TLS|tls|certificate"):
            ps.Reader([address], timeout=20)


def test_the_secret_is_sent(tmp_path):
    secret, other = tmp_path / "secret", tmp_path / "other"
    for path, text in ((secret, "a" * 44), (other, "b" * 44)):
        path.write_text(text + "\n")
        path.chmod(0o600)
    with peer.ps_server(f"--secret={secret}") as address:
        with ps.Worker([address], rank=0, model=[dense()], values=VALUES,
                       secret=secret) as worker:
            worker.pull(0)
        for wrong in (None, other):
            with pytest.raises(penstock.Error) as raised:
                ps.Reader([address], secret=wrong, timeout=20)
            assert raised.value.code in ("UNAUTHENTICATED", "PERMISSION_DENIED")


def test_stock_has_no_path_of_penstock():
    with peer.ps_server("--stock") as address, ps.Worker(
            [address], rank=0, model=[dense()], values=VALUES,
            stock=True) as worker:
        worker.pull(0)
        assert all(path.path == "http2" for path in penstock.describe_paths()
                   if path.peer.endswith(address.split(":")[1]))


def test_each_name_is_documented():
    for name in ps.__all__:
        thing = getattr(ps, name)
        if not isinstance(thing, type):
            continue
        assert thing.__doc__, name
        for member, value in vars(thing).items():
            if not member.startswith("_") and callable(value):
                assert value.__doc__, f"{name}.{member}"


def test_the_example_of_the_readme_runs():
    text = pathlib.Path("python/README.md").read_text()
    (example,) = re.findall(r"```python\n(import sys\n.*?)```", text, re.DOTALL)
    assert len(example.splitlines()) <= 40
    with peer.ps_server(workers=2) as address:
        processes = [
            subprocess.Popen([sys.executable, "-B", "-c", example, str(rank),
                              address], text=True, stdout=subprocess.PIPE)
            for rank in range(2)]
        for process in processes:
            told, _ = process.communicate(timeout=60)
            assert process.returncode == 0
            assert float(re.search(r"loss ([0-9.]+)", told).group(1)) < 0.1


if __name__ == "__main__":
    run_pytest.main(__file__)

#!/usr/bin/python3 -B
"""Tests penstock.grpc with packages of PyPI that build on grpcio. Skips the
test without them: pip install grpcio-health-checking grpcio-reflection
grpcio-status."""

import concurrent.futures
import contextlib

import run_pytest

import grpc
import pytest

import fast_grpc
import penstock.grpc


@contextlib.contextmanager
def fast_channel(add, handlers=None):
    """Runs a server to which add() adds services. Yields a channel to the
    server that uses the data plane."""
    pool = concurrent.futures.ThreadPoolExecutor(4)
    server = penstock.grpc.server(pool, handlers)
    port = server.add_insecure_port("127.0.0.1:0")
    add(server)
    server.start()
    with penstock.grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
        fast_grpc.until_fast(channel)
        yield channel
    server.stop(None)


@pytest.mark.parametrize("is_blocking", [True, False])
def test_health_checking(is_blocking):
    health = pytest.importorskip("grpc_health.v1.health")
    from grpc_health.v1 import health_pb2, health_pb2_grpc
    servicer = health.HealthServicer(
        experimental_non_blocking=not is_blocking,
        experimental_thread_pool=concurrent.futures.ThreadPoolExecutor(2))
    serving = health_pb2.HealthCheckResponse.SERVING
    not_serving = health_pb2.HealthCheckResponse.NOT_SERVING
    servicer.set("it", serving)
    with fast_channel(lambda server:
                      health_pb2_grpc.add_HealthServicer_to_server(
                          servicer, server)) as channel:
        stub = health_pb2_grpc.HealthStub(channel)
        request = health_pb2.HealthCheckRequest(service="it")
        assert stub.Check(request).status == serving
        error = fast_grpc.caught(
            stub.Check, health_pb2.HealthCheckRequest(service="none"))
        assert error.code() is grpc.StatusCode.NOT_FOUND
        watch = stub.Watch(request)
        assert next(watch).status == serving
        servicer.set("it", not_serving)
        assert next(watch).status == not_serving
        watch.cancel()


def test_reflection():
    reflection = pytest.importorskip("grpc_reflection.v1alpha.reflection")
    from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc
    names = ("test.Service", reflection.SERVICE_NAME)
    with fast_channel(lambda server: reflection.enable_server_reflection(
            names, server)) as channel:
        stub = reflection_pb2_grpc.ServerReflectionStub(channel)
        request = reflection_pb2.ServerReflectionRequest(list_services="")
        (response,) = stub.ServerReflectionInfo(iter([request]))
        assert {service.name for service in
                response.list_services_response.service} == set(names)


def test_rich_statuses():
    rpc_status = pytest.importorskip("grpc_status.rpc_status")
    from google.rpc import error_details_pb2, status_pb2

    def fail(request, context):
        status = status_pb2.Status(code=8, message="too much")
        status.details.add().Pack(
            error_details_pb2.DebugInfo(detail="a detail"))
        context.abort_with_status(rpc_status.to_status(status))

    with fast_channel(lambda server: None,
                      [fast_grpc.Handlers({"fail": fail})]) as channel:
        error = fast_grpc.caught(channel.unary_unary("/test/fail"), b"")
        status = rpc_status.from_call(error)
        detail = error_details_pb2.DebugInfo()
        assert status.details[0].Unpack(detail)
        assert (status.code, status.message, detail.detail) == (
            8, "too much", "a detail")


if __name__ == "__main__":
    run_pytest.main(__file__)

"""grpc.aio, over grpcio: the fast way has no asyncio yet.

Programs may write `penstock.grpc.aio` today, and will get the fast way when it
exists.
"""

from grpc.aio import *  # noqa: F401,F403  pylint: disable=wildcard-import,unused-wildcard-import

#!/usr/bin/python3 -B
"""Tests the heads of penstock.grpc's calls: golden bytes, and any input."""

import random

import run_pytest

import pytest

from penstock.grpc import _wire

REQUEST = (b"\x01"
           b"\x03\x00\x02\x00\x00\x00x-ahi"
           b"\x05\x00\x01\x00\x00\x00x-bin\xff")
RESPONSE = (b"\x01\x00\x05\x03\x00\x00\x00why"
            b"\x01\x00"
            b"\x03\x00\x01\x00\x00\x00x-a1"
            b"\x03\x00\x01\x00\x00\x00x-b2")
OFFER = b"\x02\x39\x30\x03\x03\x02abc::1id"
SECURE_OFFER = b"\x03" + OFFER[1:] + b"\x06ticket"


def test_golden_bytes():
    metadata = (("x-a", "hi"), ("x-bin", b"\xff"))
    assert _wire.encode_request(metadata) == REQUEST
    assert _wire.decode_request(REQUEST) == metadata
    outcome = (5, "why", (("x-a", "1"),), (("x-b", "2"),))
    assert _wire.encode_response(5, b"why", *outcome[2:]) == RESPONSE
    assert _wire.decode_response(RESPONSE) == outcome
    offer = _wire.Offer(12345, b"abc", "::1", b"id")
    assert _wire.encode_offer(offer) == OFFER
    assert _wire.decode_offer(OFFER) == offer
    offer = offer._replace(ticket=b"ticket")
    assert _wire.encode_offer(offer) == SECURE_OFFER
    assert _wire.decode_offer(SECURE_OFFER) == offer
    assert _wire.decode_response(_wire.PLAIN_OK) == (0, "", (), ())
    assert _wire.decode_response(_wire.DECLINED) is None


@pytest.mark.parametrize("metadata", [
    [("X", "1")], [("", "1")], [("x", b"1")], [("x-bin", "1")], [("x", 1)],
    [("x", "a\n")], [("x", " a")], [("x", "ü")], [("te", "1")], [("x",)], 7,
    [("grpc-timeout", "1S")], [("x", "1" * 9000)], [("x", "")] * 300,
])
def test_odd_metadata_is_left_to_grpcio(metadata):
    assert _wire.encode_request(metadata) is None


def test_details_of_errors_keep_their_name():
    status = (("grpc-status-details-bin", b"\x08\x05"),)
    head = _wire.encode_response(5, b"", (), status)
    assert _wire.decode_response(head).trailing == status


def test_any_input_gives_a_value_or_value_error():
    seed = random.randrange(2**32)
    print("seed", seed)
    chance = random.Random(seed)
    for _ in range(20000):
        start = chance.choice((REQUEST, RESPONSE, OFFER, SECURE_OFFER,
                               b"\x01"))
        data = bytearray(start[:chance.randrange(len(start) + 1)])
        for _ in range(chance.randrange(4)):
            data.insert(chance.randrange(len(data) + 1), chance.randrange(256))
        for decode in (_wire.decode_request, _wire.decode_response,
                       _wire.decode_offer):
            try:
                decode(bytes(data))
            except ValueError:
                pass


if __name__ == "__main__":
    run_pytest.main(__file__)

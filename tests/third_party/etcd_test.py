#!/usr/bin/python3 -B
"""Tests what third_party/etcd/strip_options.py removes from .proto files."""

import runpy
import unittest

STRIP = runpy.run_path("third_party/etcd/strip_options.py")["strip"]

FILE = '''syntax = "proto3";
package p;

import "gogoproto/gogo.proto";
import "etcd/mvcc/mvccpb/kv.proto";

option go_package = "p";
option (gogoproto.marshaler_all) = true;

service S {
  rpc Call(A) returns (B) {
      option (google.api.http) = {
        post: "/v3/};"
        body: "*"
        additional_bindings {
            post: "/v3/again"
        }
    };
  }
}

message A {
  repeated int64 option = 1;
  bytes key = 2 [(gogoproto.nullable) = false];
  repeated int64 packed = 3 [packed = false];
}
'''

STRIPPED = '''syntax = "proto3";
package p;

import "x/kv.proto";

option go_package = "p";

service S {
  rpc Call(A) returns (B) {
  }
}

message A {
  repeated int64 option = 1;
  bytes key = 2;
  repeated int64 packed = 3 [packed = false];
}
'''


class StripTest(unittest.TestCase):

    maxDiff = None

    def test_only_options_in_parentheses_and_their_imports_go(self):
        self.assertEqual(STRIP(FILE, "x", {"kv.proto"}), STRIPPED)

    def test_an_option_without_an_end_is_an_error(self):
        with self.assertRaises(ValueError):
            STRIP("option (a) = {\n  b: 1;\n", "x", set())


if __name__ == "__main__":
    unittest.main()

"""Rewrites one of gRPC's own programs to run over Penstock: IN.cc OUT.cc.

The program adds only the calls that a user would write: Enable() after each
ServerBuilder, and Credentials() around each channel's credentials.
"""

import pathlib
import re
import sys

CHANGES = [
    (r"((?:^|[^\w:])(?:grpc::)?ServerBuilder builder;)",
     r"\1 penstock::Enable(&builder);"),
    (r"std::make_unique<ServerBuilder>\(\)", "penstock::NewServerBuilder()"),
    (r"(?:testing::)?GetCredentialsProvider\(\)->GetChannelCredentials\(",
     "penstock::TestCredentials("),
    (r"(?<![\w:])(?:::)?(?:grpc::)?InsecureChannelCredentials\(\)",
     "penstock::InsecureCredentials()"),
]


def main():
    source, target = map(pathlib.Path, sys.argv[1:])
    text = source.read_text(encoding="utf-8")
    for pattern, replacement in CHANGES:
        text = re.sub(pattern, replacement, text, flags=re.MULTILINE)
    header = '#include "tests/grpc_end2end/over_penstock.h"\n'
    target.write_text(header + text, encoding="utf-8")


if __name__ == "__main__":
    main()

// The contents of messages, and digests of received messages.

#ifndef PENSTOCK_TESTS_ORACLE_CONTENT_H_
#define PENSTOCK_TESTS_ORACLE_CONTENT_H_

#include <cstddef>
#include <cstdint>
#include <ostream>
#include <vector>

#include "grpcpp/support/byte_buffer.h"
#include "tests/oracle/program.h"

namespace penstock::oracle {

// A digest that differs for messages with different bytes.
struct Digest {
  size_t size = 0;
  uint64_t sum = 0;
};

inline bool operator==(const Digest& a, const Digest& b) {
  return a.size == b.size && a.sum == b.sum;
}

grpc::ByteBuffer ToBuffer(const Message& message);
Digest DigestOf(const grpc::ByteBuffer& buffer);
// Returns the digest of the message's contents.
Digest DigestOf(const Message& message);

}  // namespace penstock::oracle

#endif  // PENSTOCK_TESTS_ORACLE_CONTENT_H_

#include "tests/adversary/metadata.h"

#include <cstdint>

#include "absl/strings/str_cat.h"
#include "tests/adversary/wire.h"

namespace penstock::adversary {
namespace {

// The size of huge metadata. Above gRPC's limit for all metadata, 8 KiB.
constexpr size_t kHuge = 64 * 1024;

std::vector<std::string> OddValues() {
  return {
      "",
      "0",
      "-1",
      "1",
      "16",
      "17",
      "200",
      "99999999999999999999",
      "x",
      "/",
      "no slash",
      "//",
      "gzip",
      "identity,deflate",
      "application/grpc+proto",
      "text/html",
      "trailers",
      "1000000000H",
      "-1S",
      "0n",
      "%",
      "%zz%00",
      std::string(1, '\0'),
      "\x1b[31m\nforged\r",
      "\xff\xfe\xc0\x80",
      std::string(8, '\0'),
      std::string(8, '\xff'),
      U64(1),
      U64(2),
      U64(6),
      U64(0x80000000),
      U64(uint64_t{1} << 63),
      U64(INT64_MAX),
      std::string(kHuge, 'v'),
  };
}

std::vector<std::string> LiteralKeys() {
  return {
      // gRPC's own keys, some of which are never on a wire.
      ":path", ":authority", ":method", ":status", ":scheme", "content-type",
      "te", "grpc-encoding", "grpc-accept-encoding",
      "grpc-internal-encoding-request", "grpc-status", "grpc-message",
      "grpc-timeout", "grpc-previous-rpc-attempts", "grpc-retry-pushback-ms",
      "user-agent", "host", "endpoint-load-metrics-bin",
      "grpc-server-stats-bin", "grpc-trace-bin", "grpc-tags-bin",
      "grpclb_client_stats", "lb-token", "lb-cost-bin", "x-envoy-peer-metadata",
      "grpc-internal-stream-network-state",
      // Unknown keys and malformed keys.
      "", ":", ":unknown", "UPPER-case", "-bin", "x-bin", "grpc-unknown",
      "with blank", "with\nnewline", std::string("with\0zero", 9), "\xff\xfe",
      "connection", "transfer-encoding", std::string(1000, 'k')};
}

}  // namespace

std::vector<std::string> OddEntries() {
  std::vector<std::string> blocks;
  const std::vector<std::string> values = OddValues();
  for (int key = 0; key <= key::kLast + 1; ++key) {
    for (const std::string& value : values) {
      const std::string entry = Known(key, value);
      blocks.push_back(entry);
    }
    // Adds the entry twice: with equal values, and with different values.
    blocks.push_back(absl::StrCat(Known(key, "0"), Known(key, "0")));
    blocks.push_back(absl::StrCat(Known(key, U64(1)), Known(key, U64(2))));
    // Adds a truncated entry.
    blocks.push_back(U8(key));
    blocks.push_back(absl::StrCat(U8(key), U32(UINT32_MAX), "v"));
  }
  for (const std::string& key : LiteralKeys()) {
    for (const std::string& value : values) {
      blocks.push_back(Literal(key, value));
    }
    blocks.push_back(absl::StrCat(Literal(key, "0"), Literal(key, "0")));
  }
  blocks.push_back(absl::StrCat(U8(0), U32(UINT32_MAX), U32(UINT32_MAX)));
  for (int first = kFirstPair; first < 256; ++first) {
    blocks.push_back(U8(first));
    blocks.push_back(absl::StrCat(U8(first), U8(first)));
  }
  return blocks;
}

std::vector<std::string> LackingRequests() {
  const std::vector<std::string> entries = {Known(key::kPath, "/victim/Echo"),
                                            Known(key::kAuthority, "victim"),
                                            U8(128),
                                            U8(129),
                                            U8(131),
                                            U8(132)};
  std::vector<std::string> blocks = {""};
  for (size_t left_out = 0; left_out < entries.size(); ++left_out) {
    std::string rest;
    for (size_t i = 0; i < entries.size(); ++i) {
      if (i != left_out) rest += entries[i];
    }
    blocks.push_back(rest);
    for (const std::string& odd : OddValues()) {
      // The keys of numbered entries. Pairs have the keys 3, 5, 6 and 7.
      constexpr int kKeys[] = {1, 2, 3, 5, 6, 7};
      blocks.push_back(rest + Known(kKeys[left_out], odd));
    }
  }
  return blocks;
}

}  // namespace penstock::adversary

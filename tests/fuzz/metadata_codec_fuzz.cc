// Tests core::DecodeMetadata and EncodeMetadata.

#include "tests/fuzz/input.h"
#include "tests/fuzz/target.h"
#include "transport/grpc/internal/grpc_abi.h"
#include "transport/grpc/metadata_codec.h"

namespace penstock {
namespace fuzz {
namespace {

// A batch and its memory.
class Batch {
 public:
  grpc_metadata_batch* get() { return &batch_; }

 private:
  static grpc_core::MemoryAllocator* Allocator() {
    static auto* quota = new std::shared_ptr<grpc_core::MemoryQuota>(
        new grpc_core::MemoryQuota("fuzz"));
    static auto* allocator =
        new grpc_core::MemoryAllocator((*quota)->CreateMemoryAllocator("fuzz"));
    return allocator;
  }

  grpc_core::ScopedArenaPtr arena_ =
      grpc_core::MakeScopedArena(1024, Allocator());
  grpc_metadata_batch batch_{arena_.get()};
};

// Returns true unless the metadata has gRPC's value for "invalid". The codec
// cannot encode this value, and received metadata is not forwarded unchanged.
bool CanBeEncoded(const grpc_metadata_batch& batch) {
  using namespace grpc_core;
  return batch.get(TeMetadata()) != TeMetadata::kInvalid &&
         batch.get(HttpSchemeMetadata()) != HttpSchemeMetadata::kInvalid &&
         batch.get(HttpMethodMetadata()) != HttpMethodMetadata::kInvalid;
}

std::string Pair(const std::string& key, const std::string& value) {
  return std::string(1, '\0') + Number<uint32_t>(key.size()) +
         Number<uint32_t>(value.size()) + key + value;
}

std::string Known(int number, const std::string& value) {
  return std::string(1, static_cast<char>(number)) +
         Number<uint32_t>(value.size()) + value;
}

// Encodes the batch.
std::string Encode(const grpc_metadata_batch& batch) {
  std::string out;
  core::EncodeMetadata(batch, nullptr, nullptr, &out);
  return out;
}

// Returns numbered entries: one of each kind, including entries that no peer
// should send.
const core::ReceivedEntries& Received() {
  static const auto* const received = [] {
    auto* entries = new core::ReceivedEntries;
    uint32_t number = core::kFirstEntry;
    for (const std::string& entry :
         {Pair("key", "value"), Known(1, "/package.Service/Method"),
          std::string("\x80"), Pair("cut", "short").substr(0, 10),
          Pair("two", "of") + Pair("them", "!"), std::string("\xc0"),
          std::string()}) {
      Require(entries->Add(number++, entry).ok(), "numbers are in order");
    }
    return entries;
  }();
  return *received;
}

bool Decode(const std::string& bytes, grpc_metadata_batch* batch) {
  size_t size = 0;
  return core::DecodeMetadata(bytes, Received(), 1000, batch, &size).ok();
}

}  // namespace

std::vector<std::string> Seeds() {
  const std::string request =
      Pair(":path", "/package.Service/Method") + Pair(":authority", "host:1") +
      Pair(":method", "POST") + Pair(":scheme", "http") +
      Pair("te", "trailers") + Pair("content-type", "application/grpc") +
      Pair("user-agent", "grpc-c++/1.51.1") +
      Pair("grpc-accept-encoding", "identity, deflate, gzip");
  const std::string custom = Pair("key", "value") + Pair("key", "again") +
                             Pair("key-bin", std::string("\0\xff", 2));
  const std::string trailers =
      Pair("grpc-status", "5") + Pair("grpc-message", "no%20such") + custom;
  return {request + custom,
          trailers,
          Pair("grpc-encoding", "gzip") + Pair(":status", "200") +
              Pair("grpc-retry-pushback-ms", "100") +
              Pair("grpc-previous-rpc-attempts", "2"),
          Pair("grpc-timeout", "10S") + Pair("", "") +
              Pair("grpc-internal-encoding-request", "deflate"),
          Pair("lb-token", "token") + Pair("grpclb_client_stats", "") +
              Pair("grpc-tags-bin", "tags") + Pair("host", "host"),
          "\x80\x81\x83\x84\x85\x86" + Known(1, "/package.Service/Method") +
              Known(2, "host:1") + Known(9, Number<uint64_t>(7)) +
              Known(11, Number<uint64_t>(1500)) + Known(14, "agent"),
          Known(3, "PUT") + Known(5, "ftp") + Known(10, "77") + "\xff",
          "\xc0\xc1\xc2" + Pair("key", "value") + "\xc0",
          core::EncodeStatus(absl::NotFoundError("100 % not there\n"))};
}

}  // namespace fuzz
}  // namespace penstock

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace penstock;
  fuzz::Batch first;
  const std::string bytes(fuzz::AsText({data, size}));
  if (!fuzz::Decode(bytes, first.get())) return 0;
  // Removes the deadline. The deadline is sent as the remaining time, and so
  // differs each time.
  first.get()->Remove(grpc_core::GrpcTimeoutMetadata());
  if (!fuzz::CanBeEncoded(*first.get())) return 0;
  const std::string encoded = fuzz::Encode(*first.get());
  fuzz::Batch second;
  fuzz::Require(fuzz::Decode(encoded, second.get()),
                "our own bytes are understood");
  fuzz::Require(fuzz::Encode(*second.get()) == encoded,
                "what is decoded, encoded and decoded again is the same");
  return 0;
}

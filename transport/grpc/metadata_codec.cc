#include "transport/grpc/metadata_codec.h"

#include "absl/strings/str_cat.h"
#include "src/core/lib/slice/percent_encoding.h"
#include "transport/base/byte_order.h"

namespace penstock {
namespace core {
namespace {

// Key length u32, value length u32, key, value.
constexpr size_t kPrefixBytes = 8;

// The visitor that grpc_metadata_batch::Encode() wants.
class Encoder {
 public:
  void Encode(const grpc_core::Slice& key, const grpc_core::Slice& value) {
    Put(key.as_string_view(), value.as_string_view());
  }
  template <typename Trait, typename Value>
  void Encode(Trait, const Value& value) {
    Put(Trait::key(), Trait::Encode(value).as_string_view());
  }
  // Travels in balancers' own trailers only; its Encode() aborts.
  void Encode(grpc_core::GrpcLbClientStatsMetadata,
              grpc_core::GrpcLbClientStats*) {}
  // For the filters of this process.
  void Encode(grpc_core::GrpcInternalEncodingRequest,
              grpc_compression_algorithm) {}

  void Put(absl::string_view key, absl::string_view value) {
    uint8_t prefix[kPrefixBytes];
    base::StoreLittle<uint32_t>(key.size(), prefix);
    base::StoreLittle<uint32_t>(value.size(), prefix + 4);
    out_.append(reinterpret_cast<const char*>(prefix), sizeof prefix);
    out_.append(key.data(), key.size());
    out_.append(value.data(), value.size());
  }

  std::string Take() { return std::move(out_); }

 private:
  std::string out_;
};

// Cuts `length` bytes off the front of `bytes`; false if there are fewer.
bool Cut(size_t length, absl::string_view* bytes, absl::string_view* out) {
  if (bytes->size() < length) return false;
  *out = bytes->substr(0, length);
  bytes->remove_prefix(length);
  return true;
}

}  // namespace

std::string EncodeMetadata(const grpc_metadata_batch& batch) {
  Encoder encoder;
  batch.Encode(&encoder);
  return encoder.Take();
}

std::string EncodeStatus(const absl::Status& status) {
  Encoder encoder;
  encoder.Put("grpc-status", absl::StrCat(static_cast<int>(status.code())));
  if (!status.message().empty()) {
    // The client's http filter decodes it.
    const grpc_core::Slice message = grpc_core::PercentEncodeSlice(
        grpc_core::Slice::FromCopiedString(std::string(status.message())),
        grpc_core::PercentEncodingType::Compatible);
    encoder.Put("grpc-message", message.as_string_view());
  }
  return encoder.Take();
}

absl::Status DecodeMetadata(absl::string_view bytes,
                            grpc_metadata_batch* batch) {
  absl::Status status;
  while (!bytes.empty() && status.ok()) {
    absl::string_view prefix, key, value;
    if (!Cut(kPrefixBytes, &bytes, &prefix)) {
      return absl::InvalidArgumentError("metadata is cut short");
    }
    const auto* lengths = reinterpret_cast<const uint8_t*>(prefix.data());
    if (!Cut(base::LoadLittle<uint32_t>(lengths), &bytes, &key) ||
        !Cut(base::LoadLittle<uint32_t>(lengths + 4), &bytes, &value)) {
      return absl::InvalidArgumentError("metadata is cut short");
    }
    batch->Append(key, grpc_core::Slice::FromCopiedString(std::string(value)),
                  [&](absl::string_view error, const grpc_core::Slice&) {
                    status = absl::InvalidArgumentError(
                        absl::StrCat("bad metadata ", key, ": ", error));
                  });
  }
  return status;
}

}  // namespace core
}  // namespace penstock

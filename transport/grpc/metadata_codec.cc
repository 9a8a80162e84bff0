#include "transport/grpc/metadata_codec.h"

#include <grpc/grpc.h>

#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "src/core/lib/slice/percent_encoding.h"
#include "transport/base/byte_order.h"
#include "transport/grpc/metadata_keys.h"

namespace penstock {
namespace core {
namespace {

using grpc_core::Slice;

// A visitor for grpc_metadata_batch::Encode(), which appends the encoded
// entries.
class Encoder {
 public:
  // Replaces entries by numbers unless `sent` is null.
  Encoder(SentEntries* sent, const TellOfEntry* tell, std::string* out)
      : sent_(sent), tell_(tell), out_(out) {
    out_->clear();
  }

  void Encode(const Slice& key, const Slice& value) {
    PutLiteral(key.as_string_view(), value.as_string_view());
  }
  template <typename Trait, typename Value>
  void Encode(Trait trait, const Value& value) {
    const uint8_t pair = NumberOfPair(trait, value, Pairs());
    if (pair != 0) {
      out_->push_back(static_cast<char>(pair));
    } else {
      Put(trait, Trait::Encode(value).as_string_view());
    }
  }
  // Sends the remaining time in milliseconds, because HTTP/2's text form would
  // round the time.
  void Encode(grpc_core::GrpcTimeoutMetadata trait,
              grpc_core::Timestamp deadline) {
    const grpc_core::Duration left = deadline - grpc_core::Timestamp::Now();
    // Encodes this entry without a number, because each deadline is different.
    SentEntries* const sent = std::exchange(sent_, nullptr);
    PutNumber(trait, static_cast<uint64_t>(left.millis()));
    sent_ = sent;
  }
  void Encode(grpc_core::GrpcAcceptEncodingMetadata trait,
              grpc_core::CompressionAlgorithmSet set) {
    PutNumber(trait, set.ToLegacyBitmask());
  }
  // Omits GrpcLbClientStatsMetadata: only load balancers send it, and its
  // Encode() aborts the process.
  void Encode(grpc_core::GrpcLbClientStatsMetadata,
              grpc_core::GrpcLbClientStats*) {}
  // Omits GrpcInternalEncodingRequest, which is for the filters of this
  // process.
  void Encode(grpc_core::GrpcInternalEncodingRequest,
              grpc_compression_algorithm) {}

  template <typename Trait>
  void Put(Trait, absl::string_view value) {
    constexpr uint8_t kKey = NumberOfKey<Trait>(Keys());
    if (kKey == kLiteral) return PutLiteral(Trait::key(), value);
    const uint8_t number =
        sent_ == nullptr ? 0 : sent_->FindRecent(kKey, value);
    if (number != 0) return out_->push_back(static_cast<char>(number));
    const size_t begin = out_->size();
    uint8_t prefix[kKnownPrefix] = {kKey};
    base::StoreLittle<uint32_t>(value.size(), prefix + 1);
    Append(prefix, sizeof prefix);
    out_->append(value.data(), value.size());
    PutByNumber(begin);
  }

 private:
  template <typename Trait>
  void PutNumber(Trait trait, uint64_t number) {
    uint8_t value[8];
    base::StoreLittle<uint64_t>(number, value);
    Put(trait, {reinterpret_cast<const char*>(value), sizeof value});
  }

  void PutLiteral(absl::string_view key, absl::string_view value) {
    const size_t begin = out_->size();
    uint8_t prefix[9] = {kLiteral};
    base::StoreLittle<uint32_t>(key.size(), prefix + 1);
    base::StoreLittle<uint32_t>(value.size(), prefix + 5);
    Append(prefix, sizeof prefix);
    out_->append(key.data(), key.size());
    out_->append(value.data(), value.size());
    PutByNumber(begin);
  }

  // Replaces the last entry of out_, which starts at `begin`, by the entry's
  // number. Does nothing if the entry has no number.
  void PutByNumber(size_t begin) {
    if (sent_ == nullptr) return;
    const auto entry = absl::string_view(*out_).substr(begin);
    const SentEntries::Number number = sent_->Find(entry);
    if (number.number == 0) return;
    if (number.is_new) (*tell_)(number.number, entry);
    out_->resize(begin);
    out_->push_back(static_cast<char>(number.number));
  }

  void Append(const uint8_t* data, size_t size) {
    out_->append(reinterpret_cast<const char*>(data), size);
  }

  SentEntries* sent_;
  const TellOfEntry* const tell_;
  std::string* const out_;
};

class Decoder {
 public:
  // Decodes `block` into `batch`. The values in `batch` share the block.
  Decoder(const Slice* block, grpc_metadata_batch* batch)
      : block_(block), batch_(batch) {}

  // Decodes the whole block. Adds the size of the entries that were encoded as
  // numbers to `*numbered`.
  absl::Status Decode(const ReceivedEntries& received, size_t max_bytes,
                      size_t* numbered) {
    while (position_ < block_->size() && status_.ok()) {
      const uint8_t first = (*block_)[position_];
      if (first < kFirstEntry) {
        DecodeEntry();
        continue;
      }
      ++position_;
      const Slice* const entry = received.Find(first);
      if (entry == nullptr) {
        Fail("metadata of an unknown number");
        break;
      }
      // HTTP/2 counts this many bytes for each entry in addition to its key and
      // value. Entries encoded as numbers are counted too, because one byte may
      // represent a long entry.
      constexpr size_t kEntryOverhead = 32;
      *numbered += entry->size() + kEntryOverhead;
      if (*numbered > max_bytes) {
        return absl::ResourceExhaustedError("metadata of too many numbers");
      }
      status_ = DecodeOne(entry, batch_);
    }
    return status_;
  }

 private:
  // Decodes the entry that a number represents. Fails unless `entry` contains
  // exactly one entry.
  static absl::Status DecodeOne(const Slice* entry,
                                grpc_metadata_batch* batch) {
    Decoder decoder(entry, batch);
    if (entry->size() > 0 && (*entry)[0] < kFirstEntry) decoder.DecodeEntry();
    if (decoder.status_.ok() &&
        (decoder.position_ == 0 || decoder.position_ < entry->size())) {
      decoder.Fail("a number of metadata that is not one entry");
    }
    return decoder.status_;
  }

  // Decodes the next entry, whose first byte is less than kFirstEntry.
  void DecodeEntry() {
    const uint8_t first = (*block_)[position_++];
    if (first >= kFirstPair) {
      DecodePair(first - kFirstPair, Pairs());
    } else if (first == kLiteral) {
      DecodeLiteral();
    } else {
      DecodeKnown(first - kFirstKey, Keys());
    }
  }

  void Fail(absl::string_view what) {
    status_ = absl::InvalidArgumentError(what);
  }

  bool TakeLength(uint32_t* length) {
    if (block_->size() - position_ < 4) {
      Fail("metadata is cut short");
      return false;
    }
    *length = base::LoadLittle<uint32_t>(block_->data() + position_);
    position_ += 4;
    return true;
  }

  bool Take(uint32_t length, Slice* out) {
    if (block_->size() - position_ < length) {
      Fail("metadata is cut short");
      return false;
    }
    *out = block_->RefSubSlice(position_, length);
    position_ += length;
    return true;
  }

  void DecodeLiteral() {
    uint32_t key_size, value_size;
    Slice key, value;
    if (!TakeLength(&key_size) || !TakeLength(&value_size) ||
        !Take(key_size, &key) || !Take(value_size, &value)) {
      return;
    }
    if (!IsLegal(key, value)) {
      return SayBad(absl::CHexEscape(key.as_string_view()), "not legal");
    }
    batch_->Append(key.as_string_view(), std::move(value),
                   [&](absl::string_view error, const Slice&) {
                     SayBad(key.as_string_view(), error);
                   });
  }

  // Returns true for keys and values that gRPC lets applications send, and for
  // HTTP/2's own keys. Returns false for keys that the encoder omits.
  static bool IsLegal(const Slice& key, const Slice& value) {
    if (key.size() > 0 && key[0] == ':') return true;
    const absl::string_view name = key.as_string_view();
    if (name == grpc_core::GrpcLbClientStatsMetadata::key() ||
        name == grpc_core::GrpcInternalEncodingRequest::key()) {
      return false;
    }
    return grpc_header_key_is_legal(key.c_slice()) != 0 &&
           (grpc_is_binary_header(key.c_slice()) != 0 ||
            grpc_header_nonbin_value_is_legal(value.c_slice()) != 0);
  }

  template <typename... Traits>
  void DecodeKnown(uint8_t number, List<Traits...>) {
    using Function = void (Decoder::*)(const Slice&);
    static constexpr Function kSet[] = {&Decoder::Set<Traits>...};
    if (number >= sizeof...(Traits)) return Fail("metadata of an unknown key");
    uint32_t size;
    Slice value;
    if (TakeLength(&size) && Take(size, &value)) (this->*kSet[number])(value);
  }

  template <typename... All>
  void DecodePair(uint8_t number, List<All...>) {
    using Function = void (Decoder::*)();
    static constexpr Function kSet[] = {&Decoder::SetPair<All>...};
    if (number >= sizeof...(All)) return Fail("metadata of an unknown pair");
    (this->*kSet[number])();
  }

  template <typename Pair>
  void SetPair() {
    const typename Pair::Trait::ValueType value = Pair::kValue;
    batch_->Set(typename Pair::Trait(), value);
  }

  template <typename Trait>
  void Set(const Slice& value) {
    SetParsed(Trait(), value);
  }

  template <typename Trait>
  void SetParsed(Trait trait, const Slice& value) {
    batch_->Set(trait,
                Trait::MementoToValue(Trait::ParseMemento(
                    value.Ref(), [this](absl::string_view error, const Slice&) {
                      SayBad(Trait::key(), error);
                    })));
  }
  void SetParsed(grpc_core::GrpcTimeoutMetadata trait, const Slice& value) {
    uint64_t left;
    if (!ParseNumber(trait.key(), value, &left)) return;
    batch_->Set(trait, trait.MementoToValue(grpc_core::Duration::Milliseconds(
                           static_cast<int64_t>(left))));
  }
  void SetParsed(grpc_core::GrpcAcceptEncodingMetadata trait,
                 const Slice& value) {
    uint64_t set;
    if (!ParseNumber(trait.key(), value, &set)) return;
    // Adds the identity encoding, which every peer accepts. gRPC asserts that
    // identity is in the set, and gRPC's parser for HTTP/2 also adds identity.
    set |= uint64_t{1} << GRPC_COMPRESS_NONE;
    batch_->Set(trait, grpc_core::CompressionAlgorithmSet::FromUint32(
                           static_cast<uint32_t>(set)));
  }

  bool ParseNumber(absl::string_view key, const Slice& value, uint64_t* out) {
    if (value.size() != 8) {
      SayBad(key, "not a number of 8 bytes");
      return false;
    }
    *out = base::LoadLittle<uint64_t>(value.data());
    return true;
  }

  void SayBad(absl::string_view key, absl::string_view error) {
    Fail(absl::StrCat("bad metadata ", key, ": ", error));
  }

  const Slice* const block_;
  grpc_metadata_batch* const batch_;
  size_t position_ = 0;
  absl::Status status_;
};

}  // namespace

void EncodeMetadata(const grpc_metadata_batch& batch, SentEntries* sent,
                    const TellOfEntry& tell, std::string* out) {
  Encoder encoder(sent, &tell, out);
  batch.Encode(&encoder);
}

std::string EncodeStatus(const absl::Status& status) {
  std::string out;
  Encoder encoder(nullptr, nullptr, &out);
  encoder.Encode(grpc_core::GrpcStatusMetadata(),
                 static_cast<grpc_status_code>(status.code()));
  if (!status.message().empty()) {
    // Escapes the message with percent signs, which the client's http filter
    // decodes.
    const Slice message = grpc_core::PercentEncodeSlice(
        Slice::FromCopiedString(std::string(status.message())),
        grpc_core::PercentEncodingType::Compatible);
    encoder.Put(grpc_core::GrpcMessageMetadata(), message.as_string_view());
  }
  return out;
}

absl::Status DecodeMetadata(absl::string_view bytes,
                            const ReceivedEntries& received, size_t max_bytes,
                            grpc_metadata_batch* batch, size_t* size) {
  const Slice block = Slice::FromCopiedBuffer(bytes.data(), bytes.size());
  size_t numbered = 0;
  absl::Status status =
      Decoder(&block, batch).Decode(received, max_bytes, &numbered);
  // Clears a partial batch, because gRPC may read the batch of a failed stream.
  if (!status.ok()) batch->Clear();
  *size = bytes.size() + numbered;
  return status;
}

}  // namespace core
}  // namespace penstock

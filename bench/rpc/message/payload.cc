#include "bench/rpc/message/payload.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/types/optional.h"
#include "bench/rpc/message/message.h"
#include "grpcpp/support/slice.h"

namespace penstock {
namespace bench {
namespace {

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
              "words are copied as they are in memory");

// The difference between consecutive words: 2^64 divided by the golden ratio.
// Odd, so that words repeat only after 2^64 words. Changes each byte of a word.
constexpr uint64_t kStep = 0x9e3779b97f4a7c15;

uint64_t Load(const uint8_t* from) {
  uint64_t word;
  std::memcpy(&word, from, sizeof(word));
  return word;
}

// Returns the sum of `words` words. Uses four independent sums, because one
// chain of additions would wait for each load.
uint64_t SumWords(const uint8_t* data, size_t words) {
  uint64_t sums[4] = {};
  size_t i = 0;
  for (; i + 4 <= words; i += 4) {
    for (size_t lane = 0; lane < 4; ++lane) {
      sums[lane] += Load(data + 8 * (i + lane));
    }
  }
  for (; i < words; ++i) sums[0] += Load(data + 8 * i);
  return sums[0] + sums[1] + sums[2] + sums[3];
}

int64_t NowNs() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

grpc::ByteBuffer MakeTimes(const HandoverTimes& times) {
  return MakeRawMessage(sizeof(times), [&times](uint8_t* data) {
    std::memcpy(data, &times, sizeof(times));
  });
}

// Returns the first word of a message, or nothing if the message is too short.
absl::optional<uint64_t> FirstWord(const grpc::ByteBuffer& message) {
  std::vector<grpc::Slice> slices;
  if (!message.Dump(&slices).ok() || slices.empty() ||
      slices[0].size() < kMinPayload) {
    return absl::nullopt;
  }
  return Load(slices[0].begin());
}

// Copies the message's bytes to a string. For short messages.
std::string ToString(const grpc::ByteBuffer& message) {
  std::string bytes;
  ReadRawMessage(message, [&bytes](absl::Span<const uint8_t> piece) {
    bytes.append(reinterpret_cast<const char*>(piece.data()), piece.size());
  });
  return bytes;
}

}  // namespace

void FillPayload(uint8_t* data, size_t bytes, uint64_t seed, size_t offset) {
  uint64_t word = seed + offset / 8 * kStep;
  // Handle a part that begins within a word.
  const size_t cut = offset % 8;
  if (cut != 0) {
    const size_t rest = std::min(8 - cut, bytes);
    std::memcpy(data, reinterpret_cast<const uint8_t*>(&word) + cut, rest);
    data += rest;
    bytes -= rest;
    word += kStep;
  }
  for (; bytes >= 8; bytes -= 8, data += 8, word += kStep) {
    std::memcpy(data, &word, sizeof(word));
  }
  std::memcpy(data, &word, bytes);
}

void WordSum::Add(const uint8_t* data, size_t size) {
  // Adds one byte with its weight in the word. Used for a word that begins in
  // one piece and ends in the next.
  const auto add_byte = [this, &data, &size] {
    sum_ += uint64_t{*data++} << (8 * (offset_++ % 8));
    --size;
  };
  while (size > 0 && offset_ % 8 != 0) add_byte();
  const size_t words = size / 8;
  sum_ += SumWords(data, words);
  offset_ += 8 * words;
  data += 8 * words;
  size -= 8 * words;
  while (size > 0) add_byte();
}

uint64_t ExpectedSum(size_t bytes, uint64_t seed) {
  const uint64_t words = bytes / 8;
  // The sum of an arithmetic series: n seed + k (0 + 1 + ... + n-1).
  uint64_t sum = words * seed;
  if (words > 0) sum += kStep * (words * (words - 1) / 2);
  const uint64_t tail_mask = (uint64_t{1} << (8 * (bytes % 8))) - 1;
  return sum + ((seed + words * kStep) & tail_mask);
}

grpc::ByteBuffer MakePayload(size_t bytes, uint64_t seed) {
  return MakeMessage(bytes, [seed](absl::Span<uint8_t> part, size_t offset) {
    FillPayload(part.data(), part.size(), seed, offset);
  });
}

absl::StatusOr<uint64_t> CheckPayload(const grpc::ByteBuffer& message,
                                      size_t* size) {
  WordSum sum;
  uint8_t first[kMinPayload];
  size_t bytes = 0;
  const absl::Status read =
      ReadMessage(message, [&](absl::Span<const uint8_t> piece) {
        if (bytes < kMinPayload) {
          std::memcpy(first + bytes, piece.data(),
                      std::min(piece.size(), kMinPayload - bytes));
        }
        bytes += piece.size();
        sum.Add(piece.data(), piece.size());
      });
  if (!read.ok()) return read;
  if (bytes < kMinPayload) {
    return absl::DataLossError(
        absl::StrCat("a message of ", bytes, " bytes holds no seed"));
  }
  const uint64_t seed = Load(first);
  if (sum.value() != ExpectedSum(bytes, seed)) {
    return absl::DataLossError(
        absl::StrCat("wrong sum of a message of ", bytes, " bytes"));
  }
  if (size != nullptr) *size = bytes;
  return seed;
}

absl::StatusOr<grpc::ByteBuffer> Answer(const grpc::ByteBuffer& request) {
  HandoverTimes times;
  times.got_ns = NowNs();
  size_t bytes = 0;
  const absl::StatusOr<uint64_t> seed = CheckPayload(request, &bytes);
  if (!seed.ok()) return seed.status();
  if ((*seed & kWantsTimes) != 0) {
    times.read_ns = NowNs();
    return MakeTimes(times);
  }
  if ((*seed & kWantsAck) != 0) bytes = kMinPayload;
  return MakePayload(bytes, ReplySeed(*seed));
}

absl::StatusOr<HandoverTimes> ReadTimes(const grpc::ByteBuffer& reply) {
  HandoverTimes times;
  const std::string bytes = ToString(reply);
  if (bytes.size() != sizeof(times)) {
    return absl::DataLossError("the reply has no times");
  }
  std::memcpy(&times, bytes.data(), sizeof(times));
  return times;
}

absl::Status CheckReply(const grpc::ByteBuffer& reply, size_t bytes,
                        uint64_t request_seed) {
  size_t size = 0;
  const absl::StatusOr<uint64_t> seed = CheckPayload(reply, &size);
  if (!seed.ok()) return seed.status();
  if (size != bytes) {
    return absl::DataLossError(
        absl::StrCat("a reply of ", size, " bytes to ", bytes, " bytes"));
  }
  if (*seed != ReplySeed(request_seed)) {
    return absl::DataLossError("the reply belongs to another request");
  }
  return absl::OkStatus();
}

void StreamTally::AddSeed(uint64_t seed) {
  ++messages_;
  seeds_ += seed;
}

absl::Status StreamTally::Add(const grpc::ByteBuffer& message) {
  const absl::optional<uint64_t> first = FirstWord(message);
  if (first.has_value() && (*first & kUnread) != 0) {
    AddSeed(*first);
    return absl::OkStatus();
  }
  const absl::StatusOr<uint64_t> seed = CheckPayload(message);
  if (!seed.ok()) return seed.status();
  AddSeed(*seed);
  return absl::OkStatus();
}

grpc::ByteBuffer StreamTally::Encode() const {
  return MakeRawMessage(2 * sizeof(uint64_t), [this](uint8_t* data) {
    std::memcpy(data, &messages_, sizeof(messages_));
    std::memcpy(data + sizeof(messages_), &seeds_, sizeof(seeds_));
  });
}

absl::Status StreamTally::Check(const grpc::ByteBuffer& reply) const {
  const std::string bytes = ToString(reply);
  if (bytes.size() != 2 * sizeof(uint64_t)) {
    return absl::DataLossError("the stream's reply is no tally");
  }
  const auto* data = reinterpret_cast<const uint8_t*>(bytes.data());
  if (Load(data) != messages_ || Load(data + 8) != seeds_) {
    return absl::DataLossError(absl::StrCat(
        "the stream's reader counted ", Load(data), " messages, its writer ",
        messages_, ", or their seeds differ"));
  }
  return absl::OkStatus();
}

}  // namespace bench
}  // namespace penstock

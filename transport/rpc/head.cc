#include "transport/rpc/head.h"

#include <cstdint>
#include <utility>

#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "transport/wire/reader.h"

namespace penstock {
namespace rpc {
namespace {

constexpr size_t kMaxMessageBytes = 4000;
// Caps the payloads of a status, because each insertion searches all other
// payloads.
constexpr int kMaxPayloads = 16;
constexpr uint32_t kLargestCode =
    static_cast<uint32_t>(absl::StatusCode::kUnauthenticated);

// Returns the timeout in microseconds, or 0 for no timeout. Rounds a positive
// timeout up to at least 1.
uint64_t ToMicroseconds(absl::Duration timeout) {
  if (timeout == absl::InfiniteDuration()) return 0;
  const int64_t micros = absl::ToInt64Microseconds(timeout);
  return micros < 1 ? 1 : static_cast<uint64_t>(micros);
}

absl::Duration FromMicroseconds(uint64_t micros) {
  if (micros == 0 || micros > INT64_MAX) return absl::InfiniteDuration();
  return absl::Microseconds(static_cast<int64_t>(micros));
}

absl::Span<const uint8_t> AsSpan(absl::string_view text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

// Returns at most kMaxMessageBytes of the text. Does not cut within a UTF-8
// character.
absl::string_view Shortened(absl::string_view text) {
  if (text.size() <= kMaxMessageBytes) return text;
  size_t size = kMaxMessageBytes;
  while (size > 0 && (static_cast<uint8_t>(text[size]) & 0xc0) == 0x80) --size;
  return text.substr(0, size);
}

void AppendText(absl::string_view text, std::string* out) {
  wire::AppendNumber<uint32_t>(static_cast<uint32_t>(text.size()), out);
  absl::StrAppend(out, text);
}

// Encodes the payloads and the metadata of an error. Omits payloads above the
// caps, because the code and the message are more important.
std::string EncodePayloads(const End& end) {
  std::string payloads;
  int count = 0;
  if (!end.metadata.empty() && end.metadata.size() <= kMaxTrailingBytes) {
    AppendText(kMetadataUrl, &payloads);
    AppendText(end.metadata, &payloads);
    ++count;
  }
  end.status.ForEachPayload(
      [&](absl::string_view url, const absl::Cord& value) {
        if (url == kMetadataUrl) return;
        const size_t bytes = 2 * sizeof(uint32_t) + url.size() + value.size();
        if (bytes > kMaxMetadataBytes - payloads.size()) return;
        if (++count > kMaxPayloads) return;
        AppendText(url, &payloads);
        AppendText(std::string(value), &payloads);
      });
  return payloads;
}

// Adds `payloads` to the error `*end`. Returns false for bytes that
// EncodePayloads() does not write.
bool SetPayloads(absl::string_view payloads, End* end) {
  wire::Reader reader(AsSpan(payloads));
  for (int count = 0; !reader.Finished(); ++count) {
    if (count == kMaxPayloads) return false;
    const std::string url = reader.String(reader.Number<uint32_t>());
    const std::string value = reader.String(reader.Number<uint32_t>());
    if (!reader.ok()) return false;
    if (url != kMetadataUrl) {
      end->status.SetPayload(url, absl::Cord(value));
    } else if (count == 0 && !value.empty() &&
               value.size() <= kMaxTrailingBytes) {
      end->metadata = value;
    } else {
      return false;
    }
  }
  return true;
}

}  // namespace

absl::StatusOr<std::string> EncodeRequest(const Request& request,
                                          bool is_stream) {
  if (request.method.empty() || request.method.size() > kMaxMethodBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("a method's name has 1 to ", kMaxMethodBytes, " bytes"));
  }
  if (request.metadata.size() > kMaxMetadataBytes) {
    return absl::InvalidArgumentError(absl::StrCat(
        "a request's metadata has ", request.metadata.size(), " bytes, and ",
        kMaxMetadataBytes, " at most are sent; use the payload"));
  }
  std::string head;
  wire::AppendNumber<uint64_t>(ToMicroseconds(request.timeout), &head);
  if (is_stream) wire::AppendNumber<uint8_t>(0, &head);
  wire::AppendNumber<uint8_t>(static_cast<uint8_t>(request.method.size()),
                              &head);
  absl::StrAppend(&head, request.method, request.metadata);
  return head;
}

absl::StatusOr<Request> ParseRequest(absl::string_view head, bool* is_stream) {
  wire::Reader reader(AsSpan(head));
  Request request;
  request.timeout = FromMicroseconds(reader.Number<uint64_t>());
  uint8_t length = reader.Number<uint8_t>();
  *is_stream = length == 0;
  if (*is_stream) length = reader.Number<uint8_t>();
  request.method = reader.String(length);
  const size_t before =
      sizeof(uint64_t) + (*is_stream ? 2 : 1) * sizeof(uint8_t) + length;
  // Rejects a head above the limit, at which the session would truncate it.
  if (!reader.ok() || length == 0 || head.size() - before > kMaxMetadataBytes) {
    return absl::InvalidArgumentError("the peer's request is malformed");
  }
  request.metadata = std::string(head.substr(before));
  return request;
}

std::string EncodeEnd(const End& end) {
  const absl::string_view message = Shortened(end.status.message());
  std::string head;
  wire::AppendNumber<uint32_t>(static_cast<uint32_t>(end.status.code()), &head);
  AppendText(message, &head);
  absl::StrAppend(&head, end.status.ok() ? end.metadata : EncodePayloads(end));
  return head;
}

absl::StatusOr<End> ParseEnd(absl::string_view head) {
  wire::Reader reader(AsSpan(head));
  const uint32_t code = reader.Number<uint32_t>();
  const uint32_t length = reader.Number<uint32_t>();
  const std::string message =
      reader.String(length <= kMaxMessageBytes ? length : SIZE_MAX);
  End end;
  end.status =
      absl::Status(code > kLargestCode ? absl::StatusCode::kUnknown
                                       : static_cast<absl::StatusCode>(code),
                   message);
  bool valid = reader.ok();
  if (valid) {
    head.remove_prefix(2 * sizeof(uint32_t) + message.size());
    valid = head.size() <= kMaxMetadataBytes;
  }
  if (valid && end.status.ok()) end.metadata = std::string(head);
  if (!valid || (!end.status.ok() && !SetPayloads(head, &end))) {
    return absl::InvalidArgumentError("the peer's answer is malformed");
  }
  return end;
}

}  // namespace rpc
}  // namespace penstock

#include "tests/adversary/wire.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace penstock::adversary {
namespace {

std::string Little(uint64_t number, int size) {
  std::string bytes;
  for (int i = 0; i < size; ++i) {
    bytes.push_back(static_cast<char>(number >> (8 * i)));
  }
  return bytes;
}

// Parses the remaining bytes. Fails permanently if they are too short.
class Parser {
 public:
  explicit Parser(absl::string_view bytes) : bytes_(bytes) {}

  std::string Text(size_t size) {
    if (size > bytes_.size()) {
      ok_ = false;
      return std::string();
    }
    std::string text(bytes_.substr(0, size));
    bytes_.remove_prefix(size);
    return text;
  }
  uint64_t Take(size_t size) { return Number(Text(size)); }
  bool ok() const { return ok_; }

 private:
  absl::string_view bytes_;
  bool ok_ = true;
};

}  // namespace

std::string U8(uint64_t number) { return Little(number, 1); }
std::string U16(uint64_t number) { return Little(number, 2); }
std::string U32(uint64_t number) { return Little(number, 4); }
std::string U64(uint64_t number) { return Little(number, 8); }

uint64_t Number(absl::string_view bytes) {
  uint64_t number = 0;
  for (size_t i = bytes.size(); i-- > 0;) {
    number = number << 8 | static_cast<uint8_t>(bytes[i]);
  }
  return number;
}

namespace {

std::string Settings(uint8_t oldest, uint8_t newest) {
  const char bytes[] = "\0\0\x06\x04\0\0\0\0\0\xfe\x10\x50\x45";
  return absl::StrCat(absl::string_view(bytes, sizeof bytes - 1), U8(oldest),
                      U8(newest));
}

}  // namespace

std::string ServerSettings(uint8_t chosen) { return Settings(chosen, chosen); }

std::string ClientPreface(uint8_t newest) {
  return "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + Settings(1, newest);
}

std::string UnitHeader(uint64_t length, uint8_t type, uint64_t cookie) {
  return absl::StrCat(U32(length), U8(type), std::string(3, '\0'), U64(cookie));
}

std::string Unit(uint8_t type, uint64_t cookie, absl::string_view body) {
  return absl::StrCat(UnitHeader(body.size(), type, cookie), body);
}

Frame FrameOf(uint8_t type, uint32_t stream, absl::string_view payload,
              uint32_t aux) {
  Frame frame;
  frame.type = type;
  frame.stream = stream;
  frame.aux = aux;
  frame.payload = std::string(payload);
  return frame;
}

bool IsSequenced(uint8_t type) {
  return type >= type::kHeaders && type <= type::kLastKnown;
}

std::string Encode(const Frame& frame) {
  const uint32_t size = static_cast<uint32_t>(frame.payload.size());
  return absl::StrCat(U32(frame.length.value_or(size)), U8(frame.type),
                      U8(frame.flags), U16(frame.zero), U32(frame.stream),
                      U32(frame.aux), U64(frame.sequence.value_or(0)),
                      U64(frame.ack.value_or(0)), frame.payload);
}

absl::optional<Frame> TakeFrame(absl::string_view* bytes) {
  Parser parser(*bytes);
  Frame frame;
  const size_t length = parser.Take(4);
  frame.type = parser.Take(1);
  frame.flags = parser.Take(1);
  frame.zero = parser.Take(2);
  frame.stream = parser.Take(4);
  frame.aux = parser.Take(4);
  frame.sequence = parser.Take(8);
  frame.ack = parser.Take(8);
  frame.payload = parser.Text(length);
  if (!parser.ok()) return absl::nullopt;
  bytes->remove_prefix(kFrameHeaderBytes + length);
  return frame;
}

std::string Encode(const Hello& hello) {
  std::string bytes =
      absl::StrCat(U16(hello.token.size()), hello.token, U32(hello.window),
                   U32(hello.max_streams), U8(hello.offers.size()));
  for (const Offer& offer : hello.offers) {
    absl::StrAppend(&bytes, U8(offer.usable), U8(offer.name.size()), offer.name,
                    U16(offer.data.size()), offer.data);
  }
  return bytes;
}

absl::optional<Hello> ParseHello(absl::string_view bytes) {
  Parser parser(bytes);
  Hello hello;
  hello.token = parser.Text(parser.Take(2));
  hello.window = parser.Take(4);
  hello.max_streams = parser.Take(4);
  for (size_t left = parser.Take(1); left > 0 && parser.ok(); --left) {
    Offer offer;
    offer.usable = parser.Take(1) != 0;
    offer.name = parser.Text(parser.Take(1));
    offer.data = parser.Text(parser.Take(2));
    hello.offers.push_back(offer);
  }
  if (!parser.ok()) return absl::nullopt;
  return hello;
}

std::string Announcement(uint64_t id, uint64_t length, uint64_t key) {
  return AnnouncementOf(id, length, {Region(0, {Part(key, 0, length)})});
}

std::string AnnouncementV1(uint64_t id, uint64_t length, uint64_t key) {
  return absl::StrCat(U64(id), U64(length), U8(1), U32(0), U64(key), U64(0));
}

std::string Part(uint64_t key, uint64_t offset, uint64_t length) {
  return absl::StrCat(U64(key), U64(offset), U64(length));
}

std::string Region(uint32_t path, const std::vector<std::string>& parts) {
  return absl::StrCat(U32(path), U16(parts.size()), absl::StrJoin(parts, ""));
}

std::string AnnouncementOf(uint64_t id, uint64_t length,
                           const std::vector<std::string>& regions) {
  return absl::StrCat(U64(id), U64(length), U8(regions.size()),
                      absl::StrJoin(regions, ""));
}

std::string Known(uint8_t key, absl::string_view value) {
  return absl::StrCat(U8(key), U32(value.size()), value);
}

std::string Literal(absl::string_view key, absl::string_view value) {
  return absl::StrCat(U8(0), U32(key.size()), U32(value.size()), key, value);
}

std::string RequestMetadata(absl::string_view path) {
  // Appends ":method POST", ":scheme http", "content-type application/grpc" and
  // "te trailers".
  return absl::StrCat(Known(key::kPath, path), Known(key::kAuthority, "victim"),
                      U8(128), U8(129), U8(131), U8(132));
}

std::string ResponseMetadata() {
  return absl::StrCat(Known(key::kStatus, "200"), U8(131));
}

}  // namespace penstock::adversary

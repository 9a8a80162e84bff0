#include "tests/oracle/generate_metadata.h"

#include <algorithm>
#include <string>
#include <utility>

namespace penstock::oracle {
namespace {

constexpr size_t kKi = 1024;

// Draws entries with 16 keys, a third of them binary.
Metadata AnyMetadata(Random* random) {
  Metadata metadata;
  if (random->Percent(40)) return metadata;
  const size_t count = random->Between(1, 4);
  for (size_t i = 0; i < count; ++i) {
    std::string key = "x-" + std::to_string(random->Below(12));
    std::string value(
        random->Percent(80) ? random->Below(40) : random->Below(900), 'v');
    const bool is_binary = random->Percent(33);
    for (char& each : value) {
      each = is_binary ? static_cast<char>(random->Bits())
                       : static_cast<char>(random->Between(0x21, 0x7e));
    }
    if (is_binary) key += "-bin";
    metadata.emplace_back(std::move(key), std::move(value));
  }
  return metadata;
}

// Returns a size below or above a limit. The distance exceeds the size of
// gRPC's own keys.
std::pair<std::string, std::string> LargeMetadata(Random* random, int limit,
                                                  bool above) {
  const size_t size = limit == kDefault ? 8 * kKi : limit;
  const size_t length = above ? size + random->OneOf<size_t>({0, 100, 9000})
                              : size - random->Between(900, 1000);
  return {"x-large", std::string(length, 'l')};
}

std::string AnyText(Random* random) {
  switch (random->Below(6)) {
    case 0:
      return "";
    case 1:
      return "100 % of \"it\": %20 %zz %";
    case 2:
      return "\xc3\xa4\xe2\x82\xac \xf0\x9f\x98\x80";
    case 3: {
      std::string all;
      for (int i = 1; i < 256; ++i) all.push_back(static_cast<char>(i));
      return all;
    }
    case 4:
      return std::string(random->Below(3000), 'm');
    default:
      return "in plain words";
  }
}

size_t SizeOf(const Metadata& metadata) {
  constexpr size_t kOverhead = 32;  // HTTP/2's overhead of an entry
  size_t size = 0;
  for (const auto& each : metadata) {
    size += each.first.size() + each.second.size() + kOverhead;
  }
  return size;
}

// Returns true if the size is above a limit, or so close to a limit that gRPC's
// own keys decide.
bool MayExceed(size_t size, int limit) {
  constexpr size_t kOwnKeys = 800;
  return size + kOwnKeys > (limit == kDefault ? 8 * kKi : limit);
}

// Returns the size of a text on the wire, where non-plain bytes are sent as
// %xx.
size_t SizeOnTheWire(const std::string& text) {
  const size_t odd = std::count_if(text.begin(), text.end(), [](char each) {
    return each < ' ' || each > '~' || each == '%';
  });
  return text.size() + 2 * odd;
}

// Returns true if the metadata may be large in total. The status is a part of
// the trailers.
bool HasMuchMetadata(const Settings& settings, const Plan& plan) {
  const size_t status = SizeOnTheWire(plan.status.error_message()) +
                        2 * plan.status.error_details().size();
  return MayExceed(SizeOf(plan.client_metadata), settings.server_metadata) ||
         MayExceed(SizeOf(plan.initial), settings.client_metadata) ||
         MayExceed(SizeOf(plan.trailing) + status, settings.client_metadata);
}

void DrawAnyMetadata(Random* random, const Settings& settings, Plan* plan) {
  plan->client_metadata = AnyMetadata(random);
  plan->initial = AnyMetadata(random);
  plan->trailing = AnyMetadata(random);
  plan->initial_early = random->Percent(30);
  if (!random->Percent(6)) return;
  const bool above = random->Percent(60);
  if (above) plan->channel = kRoughChannel;
  switch (random->Below(3)) {
    case 0:
      plan->client_metadata = {
          LargeMetadata(random, settings.server_metadata, above)};
      return;
    case 1:
      plan->initial = {LargeMetadata(random, settings.client_metadata, above)};
      return;
    default:
      plan->status = grpc::Status(plan->status.error_code(), "large");
      plan->trailing = {LargeMetadata(random, settings.client_metadata, above)};
  }
}

}  // namespace

grpc::Status AnyStatus(Random* random) {
  if (random->Percent(60)) return grpc::Status::OK;
  const int code = random->Percent(95) ? random->Between(1, 16)
                                       : random->OneOf<int>({0, 17, 42, 999});
  std::string details;
  if (random->Percent(30)) {
    details.resize(random->Below(500));
    for (char& each : details) each = static_cast<char>(random->Bits());
  }
  return grpc::Status(static_cast<grpc::StatusCode>(code), AnyText(random),
                      details);
}

void DrawMetadata(Random* random, const Settings& settings, Plan* plan) {
  DrawAnyMetadata(random, settings, plan);
  if (HasMuchMetadata(settings, *plan)) plan->channel = kRoughChannel;
}

}  // namespace penstock::oracle

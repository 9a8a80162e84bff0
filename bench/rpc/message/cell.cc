#include "bench/rpc/message/cell.h"

#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "bench/rpc/message/payload.h"

namespace penstock {
namespace bench {
namespace {

template <typename T>
absl::StatusOr<T> ParseName(absl::string_view what, absl::string_view name,
                            const std::vector<T>& values) {
  for (T value : values) {
    if (Name(value) == name) return value;
  }
  return absl::InvalidArgumentError(
      absl::StrCat("\"", name, "\" is no ", what, "; there are ",
                   absl::StrJoin(values, ", ", [](std::string* out, T value) {
                     absl::StrAppend(out, Name(value));
                   })));
}

// Returns the number of bytes that a suffix like "KiB" stands for, or 0 for an
// unknown suffix.
size_t Multiplier(absl::string_view suffix) {
  if (suffix.empty() || suffix == "B") return 1;
  if (suffix == "KiB") return size_t{1} << 10;
  if (suffix == "MiB") return size_t{1} << 20;
  if (suffix == "GiB") return size_t{1} << 30;
  if (suffix == "kB") return 1000;
  if (suffix == "MB") return 1000 * 1000;
  if (suffix == "GB") return 1000 * 1000 * 1000;
  return 0;
}

}  // namespace

bool HasTls(Transport transport) {
  return transport == Transport::kTls || transport == Transport::kPenstockTls ||
         transport == Transport::kShmTls;
}

const std::vector<Transport>& DefaultTransports() {
  static const auto& all = *new std::vector<Transport>{
      Transport::kTcp,         Transport::kUds, Transport::kInproc,
      Transport::kPenstockTcp, Transport::kShm, Transport::kVerbs};
  return all;
}

const std::vector<Benchmark>& AllBenchmarks() {
  static const auto& all = *new std::vector<Benchmark>{
      Benchmark::kLatency, Benchmark::kBandwidth, Benchmark::kPush,
      Benchmark::kStream,  Benchmark::kResend,    Benchmark::kHandover,
      Benchmark::kServers, Benchmark::kReplay,    Benchmark::kBeside,
      Benchmark::kIdle};
  return all;
}

const std::vector<Api>& AllApis() {
  static const auto& all =
      *new std::vector<Api>{Api::kSync, Api::kAsync, Api::kCallback};
  return all;
}

const std::vector<Transport>& AllTransports() {
  static const auto& all = *new std::vector<Transport>{
      Transport::kTcp,           Transport::kUds,
      Transport::kInproc,        Transport::kPenstockTcp,
      Transport::kShm,           Transport::kVerbs,
      Transport::kTls,           Transport::kPenstockTls,
      Transport::kShmTls,        Transport::kPenstockClient,
      Transport::kPenstockServer};
  return all;
}

const std::vector<MessageForm>& AllMessageForms() {
  static const auto& all = *new std::vector<MessageForm>{
      MessageForm::kRaw, MessageForm::kProtobuf, MessageForm::kTensor};
  return all;
}

absl::string_view Name(Benchmark benchmark) {
  switch (benchmark) {
    case Benchmark::kLatency:
      return "latency";
    case Benchmark::kBandwidth:
      return "bandwidth";
    case Benchmark::kPush:
      return "push";
    case Benchmark::kStream:
      return "stream";
    case Benchmark::kResend:
      return "resend";
    case Benchmark::kHandover:
      return "handover";
    case Benchmark::kServers:
      return "ps-throughput";
    case Benchmark::kReplay:
      return "replay";
    case Benchmark::kBeside:
      return "beside";
    case Benchmark::kIdle:
      return "idle";
  }
  return "";
}

absl::string_view Name(Api api) {
  switch (api) {
    case Api::kSync:
      return "sync";
    case Api::kAsync:
      return "async";
    case Api::kCallback:
      return "callback";
  }
  return "";
}

absl::string_view Name(Transport transport) {
  switch (transport) {
    case Transport::kTcp:
      return "tcp";
    case Transport::kUds:
      return "uds";
    case Transport::kInproc:
      return "inproc";
    case Transport::kPenstockTcp:
      return "penstock-tcp";
    case Transport::kShm:
      return "shm";
    case Transport::kVerbs:
      return "verbs";
    case Transport::kTls:
      return "tls";
    case Transport::kPenstockTls:
      return "penstock-tls";
    case Transport::kShmTls:
      return "shm-tls";
    case Transport::kPenstockClient:
      return "penstock-client";
    case Transport::kPenstockServer:
      return "penstock-server";
  }
  return "";
}

absl::string_view Name(MessageForm form) {
  switch (form) {
    case MessageForm::kRaw:
      return "raw";
    case MessageForm::kProtobuf:
      return "protobuf";
    case MessageForm::kTensor:
      return "tensor";
  }
  return "?";
}

absl::StatusOr<Benchmark> ParseBenchmark(absl::string_view name) {
  if (name == "p2p-latency") return Benchmark::kLatency;
  if (name == "p2p-bandwidth") return Benchmark::kPush;
  return ParseName("benchmark", name, AllBenchmarks());
}

absl::StatusOr<Api> ParseApi(absl::string_view name) {
  return ParseName("API", name, AllApis());
}

absl::StatusOr<Transport> ParseTransport(absl::string_view name) {
  return ParseName("transport", name, AllTransports());
}

absl::StatusOr<MessageForm> ParseMessageForm(absl::string_view name) {
  return ParseName("form of messages", name, AllMessageForms());
}

absl::StatusOr<size_t> ParseSize(absl::string_view text) {
  const absl::string_view digits =
      text.substr(0, text.find_first_not_of("0123456789"));
  const size_t multiplier = Multiplier(text.substr(digits.size()));
  uint64_t count = 0;
  if (multiplier == 0 || !absl::SimpleAtoi(digits, &count)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "\"", text, "\" is no size; write for example 8, 64KiB or 1MiB"));
  }
  if (count > kMaxPayload / multiplier || count * multiplier < kMinPayload) {
    return absl::InvalidArgumentError(absl::StrCat(
        "a size must be between ", kMinPayload, " bytes and 1GiB, not ", text));
  }
  return count * multiplier;
}

std::string FormatSize(size_t bytes) {
  if (bytes == 0) return "0";
  if (bytes % (size_t{1} << 30) == 0) return absl::StrCat(bytes >> 30, "GiB");
  if (bytes % (size_t{1} << 20) == 0) return absl::StrCat(bytes >> 20, "MiB");
  if (bytes % (size_t{1} << 10) == 0) return absl::StrCat(bytes >> 10, "KiB");
  return absl::StrCat(bytes);
}

std::string FormatClients(int clients) {
  if (clients == 0) return "";
  return absl::StrCat(", ", clients, clients == 1 ? " client" : " clients");
}

std::string ToString(const Cell& cell) {
  return absl::StrCat(Name(cell.benchmark), ", ", Name(cell.transport), ", ",
                      Name(cell.api), ", ", FormatSize(cell.bytes),
                      FormatClients(cell.clients));
}

}  // namespace bench
}  // namespace penstock

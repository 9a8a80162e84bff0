// A random program of calls, with the actions of each side of each call. The
// program depends only on its seed, so it can run over stock gRPC and over
// Penstock.

#ifndef PENSTOCK_TESTS_ORACLE_PROGRAM_H_
#define PENSTOCK_TESTS_ORACLE_PROGRAM_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "grpc/compression.h"
#include "grpcpp/support/status.h"

namespace penstock::oracle {

enum class Kind { kUnary, kUpload, kDownload, kChat };
// The API of a client. A generic client has no stub, and supports only unary
// calls and chats.
enum class ClientApi {
  kSync,
  kAsync,
  kCallback,
  kGenericAsync,
  kGenericCallback
};
// The API of a server. A generic server serves every method that no other
// server serves.
enum class ServerApi { kSync, kAsync, kCallback, kGeneric };

// The way in which a call ends after its phases. Except where noted, both sides
// see deterministic results.
enum class Ending {
  kFinish,  // the server reads the end of the requests and returns its status
  kEarly,   // the server returns its status before reading all requests
  kClientCancels,   // the server waits for the cancellation
  kServerCancels,   // the server then returns its status, which nobody receives
  kDeadline,        // a short one, which both sides wait for
  kPastDeadline,    // expired before the call begins
  kCancelBehind,    // the client cancels when the end has arrived, unread
  kDeadlineBehind,  // the deadline expires when the end has arrived, unread
  kRandomCancel,    // by the client at any time: a race
  kRandomDeadline,  // at any time: a race
};

struct Message {
  size_t size = 0;
  uint64_t seed = 0;   // of the bytes; 0: zeros, which compress well
  int slices = 1;      // number of slices
  bool plain = false;  // must not be compressed
  bool hint = false;   // more messages follow soon
};

// One phase of a call. The client sends `up` while the server sends `down`.
// Both receive all messages before the next phase begins.
struct Phase {
  std::vector<Message> up;
  std::vector<Message> down;
  // True if the receiver starts reading only after as much as possible has
  // arrived.
  bool late = false;
};

using Metadata = std::vector<std::pair<std::string, std::string>>;

struct Plan {
  int number = 0;  // within its program
  Kind kind = Kind::kUnary;
  ClientApi client = ClientApi::kSync;
  ServerApi server = ServerApi::kSync;
  int channel = 0;

  // The phases in order. The first phase of a unary call or a download has one
  // message up.
  std::vector<Phase> phases;
  // The number of phases after which the client half-closes.
  size_t half_close_after = 0;
  bool coalesced = false;  // each side's end is sent with its last message
  // True if the beginning of the call is sent with the first message.
  bool corked = false;
  // True if the client waits for initial metadata before it reads messages.
  bool waits_for_initial = false;

  Ending ending = Ending::kFinish;
  std::vector<Message> unread;  // for kEarly: requests that nobody reads
  // The messages that the server sends before its status. A unary call or an
  // upload has one, unless the status is an error.
  std::vector<Message> last;
  // For k*Behind: the number of messages read before the end.
  size_t last_reads = 0;
  int wait_us = 0;  // for kRandom*, kDeadline*

  Metadata client_metadata;
  Metadata initial;
  Metadata trailing;
  bool initial_early = false;  // sent before the first phase
  grpc::Status status;
  bool may_not_run = false;  // an event may keep the call from the server

  grpc_compression_algorithm up_compression = GRPC_COMPRESS_NONE;
  grpc_compression_algorithm down_compression = GRPC_COMPRESS_NONE;
};

constexpr int kDefault = -2;    // gRPC's default
constexpr int kUnlimited = -1;  // no limit on messages

// The settings of all calls of a program.
struct Settings {
  int server_receives = kDefault;
  int client_receives = kDefault;
  int server_metadata = kDefault;
  int client_metadata = kDefault;
  int streams_at_once = kDefault;
  bool generic_is_callback = true;
};

// An event during a program. Calls notice only the shutdown.
enum class Event { kNone, kPathLoss, kChannelGone, kShutdown };

// The size of most messages of a program.
enum class Style {
  kMixed,
  kSmall,  // with many more calls
  kLarge,  // 20 KB to 300 KB: many are read or pushed simultaneously
};

struct Program {
  uint64_t seed = 0;
  Settings settings;
  Style style = Style::kMixed;
  Event event = Event::kNone;
  int event_us = 0;  // after the start
  int threads = 1;
  std::vector<Plan> calls;
};

constexpr int kChannels = 2;
// The channel for calls with more metadata than the limit. Stock gRPC may end
// the connection because of them, so these calls are sequential.
constexpr int kRoughChannel = 1;

// Returns true if a message of the plan exceeds a limit.
bool ExceedsLimit(const Settings& settings, const Plan& plan);

// Makes the program of a seed, identically on each machine.
Program MakeProgram(uint64_t seed);

std::string ToText(Kind kind);
std::string ToText(ClientApi api);
std::string ToText(ServerApi api);
std::string ToText(Ending ending);
std::string ToText(const Message& message);
std::string ToText(const Plan& plan);
std::string ToText(const Program& program);

}  // namespace penstock::oracle

#endif  // PENSTOCK_TESTS_ORACLE_PROGRAM_H_

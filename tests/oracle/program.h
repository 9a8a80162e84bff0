// A random program of calls, which says what each side of each call does. It
// depends on its seed alone, so it can run over stock gRPC and over Penstock.

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
// A generic client has no stub, and knows only unary calls and chats.
enum class ClientApi {
  kSync,
  kAsync,
  kCallback,
  kGenericAsync,
  kGenericCallback
};
// A generic server serves every method that no other server serves.
enum class ServerApi { kSync, kAsync, kCallback, kGeneric };

// How a call ends after its phases. Unless it says otherwise, what both sides
// see is determined.
enum class Ending {
  kFinish,  // the server reads the end of the requests and gives its status
  kEarly,   // it gives it while requests come, which it does not read
  kClientCancels,   // the server waits for that
  kServerCancels,   // and then gives its status, which nobody gets
  kDeadline,        // a short one, for which both sides wait
  kPastDeadline,    // passed before the call begins
  kCancelBehind,    // the client cancels when the end has come, still unread
  kDeadlineBehind,  // the deadline passes then
  kRandomCancel,    // by the client at any time: a race
  kRandomDeadline,  // likewise
};

struct Message {
  size_t size = 0;
  uint64_t seed = 0;   // of the bytes; 0: zeros, which can be compressed well
  int slices = 1;      // in which it is sent
  bool plain = false;  // not to be compressed
  bool hint = false;   // more will follow soon
};

// The client sends `up` while the server sends `down`, and both receive all of
// it before the next phase begins.
struct Phase {
  std::vector<Message> up;
  std::vector<Message> down;
  // The receiver begins only when as much has come as can.
  bool late = false;
};

using Metadata = std::vector<std::pair<std::string, std::string>>;

struct Plan {
  int number = 0;  // in its program
  Kind kind = Kind::kUnary;
  ClientApi client = ClientApi::kSync;
  ServerApi server = ServerApi::kSync;
  int channel = 0;

  // The phases of a unary call and of a download begin with one message up.
  std::vector<Phase> phases;
  // After how many phases the client says that it sends no more.
  size_t half_close_after = 0;
  bool coalesced = false;  // each side's end goes with its last message
  bool corked = false;     // the call's beginning goes with the first message
  bool waits_for_initial = false;  // the client asks for it before messages

  Ending ending = Ending::kFinish;
  std::vector<Message> unread;  // of kEarly: requests that nobody reads
  // What the server sends before its status: one message of a unary call or an
  // upload, unless the status is an error.
  std::vector<Message> last;
  size_t last_reads = 0;  // of k*Behind: how many are read before the end
  int wait_us = 0;        // of kRandom*, kDeadline*

  Metadata client_metadata;
  Metadata initial;
  Metadata trailing;
  bool initial_early = false;  // sent before the first phase
  grpc::Status status;
  bool may_not_run = false;  // something may keep it from the server

  grpc_compression_algorithm up_compression = GRPC_COMPRESS_NONE;
  grpc_compression_algorithm down_compression = GRPC_COMPRESS_NONE;
};

constexpr int kDefault = -2;    // what gRPC takes if nothing is set
constexpr int kUnlimited = -1;  // of messages

// What is set for all calls of a program.
struct Settings {
  int server_receives = kDefault;
  int client_receives = kDefault;
  int server_metadata = kDefault;
  int client_metadata = kDefault;
  int streams_at_once = kDefault;
  bool generic_is_callback = true;
};

// What happens during a program. Calls notice only the shutdown.
enum class Event { kNone, kPathLoss, kChannelGone, kShutdown };

// The size of most messages of a program.
enum class Style {
  kMixed,
  kSmall,  // many more calls
  kLarge,  // 20 KB to 300 KB: many are read or pushed at once
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
// the connection for it, so these calls are made one by one.
constexpr int kRoughChannel = 1;

// Returns whether a message of the plan is larger than a limit.
bool ExceedsLimit(const Settings& settings, const Plan& plan);

// Makes a program, which is the same for the same seed on each machine.
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

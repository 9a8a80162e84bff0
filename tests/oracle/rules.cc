#include "tests/oracle/rules.h"

#include <algorithm>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace penstock::oracle {
namespace {

std::vector<Digest> DigestsOf(const std::vector<Message>& messages) {
  std::vector<Digest> digests;
  for (const Message& each : messages) digests.push_back(DigestOf(each));
  return digests;
}

// Returns all messages that the client sends if nothing prevents it.
std::vector<Digest> SentUp(const Plan& plan) {
  std::vector<Message> messages;
  for (const Phase& phase : plan.phases) {
    messages.insert(messages.end(), phase.up.begin(), phase.up.end());
  }
  messages.insert(messages.end(), plan.unread.begin(), plan.unread.end());
  return DigestsOf(messages);
}
std::vector<Digest> SentDown(const Plan& plan) {
  std::vector<Message> messages;
  for (const Phase& phase : plan.phases) {
    messages.insert(messages.end(), phase.down.begin(), phase.down.end());
  }
  messages.insert(messages.end(), plan.last.begin(), plan.last.end());
  return DigestsOf(messages);
}

bool IsBeginning(const std::vector<Digest>& part,
                 const std::vector<Digest>& whole) {
  return part.size() <= whole.size() &&
         std::equal(part.begin(), part.end(), whole.begin());
}

bool Has(const Metadata& metadata, const Metadata& wanted) {
  return std::all_of(wanted.begin(), wanted.end(), [&](const auto& each) {
    return std::find(metadata.begin(), metadata.end(), each) != metadata.end();
  });
}

// Returns true if the server returns the plan's status.
bool ServerFinishes(const Plan& plan) {
  return plan.ending != Ending::kClientCancels &&
         plan.ending != Ending::kServerCancels &&
         plan.ending != Ending::kDeadline;
}

// Returns true if the call may be cancelled, by a side or by its deadline,
// while its end is in flight.
bool MayEndTwice(Ending ending) {
  switch (ending) {
    case Ending::kFinish:
    case Ending::kEarly:
    case Ending::kClientCancels:
    case Ending::kServerCancels:
      return false;
    case Ending::kCancelBehind:
    case Ending::kRandomCancel:
    case Ending::kDeadline:
    case Ending::kPastDeadline:
    case Ending::kDeadlineBehind:
    case Ending::kRandomDeadline:
      return true;
  }
  return false;
}

// Returns true if gRPC's filters may have dropped the initial metadata. A
// cancellation makes gRPC 1.51.1's filters drop initial metadata, and pass the
// status that comes with it: ClientCallData::RecvInitialMetadataReady() in
// promise_based_filter.cc.
bool IsInitialKeptByFilters(const Plan& plan, const Outcome& outcome) {
  return MayEndTwice(plan.ending) && outcome.initial.empty();
}

// Returns true if the status came from the server. gRPC's own texts differ from
// all texts of the server.
bool IsOfServer(const Plan& plan, const Outcome& outcome) {
  if (outcome.status.ok() || plan.status.ok()) {
    return outcome.status.ok() && plan.status.ok();
  }
  return ServerFinishes(plan) && !plan.status.error_message().empty() &&
         outcome.status.error_code() == plan.status.error_code() &&
         outcome.status.error_message() == plan.status.error_message();
}

// Returns true if the handler may have seen an empty request. If a call with
// one request is cancelled before the request has come, stock gRPC runs the
// handler with an empty request.
bool IsEmptyInsteadOfRequest(const Plan& plan, const Outcome& outcome) {
  const bool has_one =
      plan.kind == Kind::kUnary || plan.kind == Kind::kDownload;
  return has_one && !outcome.status.ok() && plan.may_not_run &&
         outcome.server_received == std::vector<Digest>{DigestOf(Message())};
}

std::set<int> CodesOf(const Program& program, const Plan& plan) {
  std::set<int> codes;
  if (ServerFinishes(plan)) codes.insert(plan.status.error_code());
  switch (plan.ending) {
    case Ending::kFinish:
    case Ending::kEarly:
      break;
    case Ending::kClientCancels:
    case Ending::kServerCancels:
    case Ending::kCancelBehind:
    case Ending::kRandomCancel:
      codes.insert(grpc::StatusCode::CANCELLED);
      break;
    case Ending::kDeadline:
    case Ending::kPastDeadline:
    case Ending::kDeadlineBehind:
    case Ending::kRandomDeadline:
      codes.insert(grpc::StatusCode::DEADLINE_EXCEEDED);
      break;
  }
  if (ExceedsLimit(program.settings, plan) || plan.channel == kRoughChannel) {
    codes.insert(grpc::StatusCode::RESOURCE_EXHAUSTED);
  }
  if (program.event == Event::kShutdown) {
    codes.insert(grpc::StatusCode::UNAVAILABLE);
    codes.insert(grpc::StatusCode::CANCELLED);
  }
  return codes;
}

// Returns a text of gRPC without the additions of gRPC 1.83: "Stream removed
// (Deadline Exceeded)" becomes "Deadline Exceeded".
std::string PlainText(absl::string_view text) {
  absl::string_view inner = text;
  if (absl::ConsumePrefix(&inner, "Stream removed (") &&
      absl::ConsumeSuffix(&inner, ")")) {
    text = inner;
  }
  return std::string(text);
}

Outcome Certain(const Certainty& certain, const Outcome& outcome) {
  Outcome part;
  if (certain.status) {
    // Compares the status details only together with the metadata that carry
    // them.
    part.status = grpc::Status(
        outcome.status.error_code(), PlainText(outcome.status.error_message()),
        certain.metadata ? outcome.status.error_details() : "");
  }
  if (certain.metadata) {
    part.initial = outcome.initial;
    part.trailing = outcome.trailing;
  }
  if (certain.messages) {
    part.received = outcome.received;
    part.runs = outcome.runs;
    part.client_metadata = outcome.client_metadata;
    part.server_received = outcome.server_received;
  }
  return part;
}

}  // namespace

Certainty CertaintyOf(const Program& program, const Plan& plan) {
  Certainty certainty;
  if (program.event == Event::kShutdown) return certainty;
  switch (plan.ending) {
    // Expects nothing. The event that ends the call may come before or after
    // the server's status.
    case Ending::kCancelBehind:
    case Ending::kDeadlineBehind:
    case Ending::kRandomCancel:
    case Ending::kRandomDeadline:
    // Expects nothing. Stock gRPC sends such a call anyway, and may receive the
    // answer before it checks its timer.
    case Ending::kPastDeadline:
      return certainty;
    // Expects only the status, because the deadline may come at any point of
    // the call.
    case Ending::kDeadline:
      certainty.status = plan.channel != kRoughChannel &&
                         !ExceedsLimit(program.settings, plan);
      return certainty;
    case Ending::kClientCancels:
    case Ending::kServerCancels:
      // Expects nothing on the rough channel. A refusal may come before or
      // after the cancellation.
      if (plan.channel == kRoughChannel) return certainty;
      certainty.status = certainty.messages = true;
      break;
    case Ending::kFinish:
    case Ending::kEarly:
      certainty.status = certainty.messages = certainty.metadata = true;
      break;
  }
  const bool refused = plan.channel == kRoughChannel;
  if (!ExceedsLimit(program.settings, plan) && !refused) return certainty;
  // Expects less if both sides send. A refusal by one side ends the call while
  // the other side may still be sending.
  const bool both_send = std::any_of(
      plan.phases.begin(), plan.phases.end(), [](const Phase& phase) {
        return !phase.up.empty() && !phase.down.empty();
      });
  certainty.metadata = false;
  if (refused) certainty.messages = false;
  if (both_send || (refused && ExceedsLimit(program.settings, plan))) {
    certainty.status = certainty.messages = false;
  }
  return certainty;
}

std::string BrokenRule(const Program& program, const Plan& plan,
                       const Outcome& outcome) {
  const std::vector<Digest> down = SentDown(plan);
  if (!IsBeginning(outcome.received, down)) {
    return "the client received what was not sent so";
  }
  if (!IsBeginning(outcome.server_received, SentUp(plan)) &&
      !IsEmptyInsteadOfRequest(plan, outcome)) {
    return "the server received what was not sent so";
  }
  if (outcome.status.ok() && !(plan.status.ok() && ServerFinishes(plan))) {
    return "OK, which the server never said";
  }
  if (IsOfServer(plan, outcome)) {
    if (outcome.received.size() < down.size()) {
      return absl::StrCat("the server's status, and ", outcome.received.size(),
                          " of ", down.size(), " messages");
    }
    if (!Has(outcome.initial, plan.initial) &&
        !IsInitialKeptByFilters(plan, outcome)) {
      return "the server's status without its initial metadata";
    }
    if (!Has(outcome.trailing, plan.trailing)) {
      return "the server's status without its trailing metadata";
    }
  }
  return "";
}

std::string Judge(const Program& program, const Plan& plan,
                  const Outcome& stock, const Outcome& outcome) {
  const std::string broken = BrokenRule(program, plan, outcome);
  if (!broken.empty()) {
    return absl::StrCat("  ", broken, "\n",
                        DifferenceOf("stock", stock, "here", outcome));
  }
  Certainty certain = CertaintyOf(program, plan);
  // Allows the loss of the connection. Stock gRPC may end a connection after
  // too much metadata.
  const bool lost = plan.channel == kRoughChannel &&
                    stock.status.error_code() == grpc::StatusCode::UNAVAILABLE;
  if (lost) certain = Certainty();
  const std::string difference = DifferenceOf(
      "stock", Certain(certain, stock), "here", Certain(certain, outcome));
  if (!difference.empty() || certain.status) return difference;
  const std::set<int> codes = CodesOf(program, plan);
  if (codes.count(outcome.status.error_code()) == 0 &&
      outcome.status.error_code() != stock.status.error_code()) {
    return absl::StrCat("  a status that nothing explains\n",
                        DifferenceOf("stock", stock, "here", outcome));
  }
  return "";
}

bool TellsOfMisreadConnect(const std::string& message) {
  return absl::StrContains(message, "last error: UNKNOWN: ipv4:127.0.0.1:") &&
         absl::EndsWith(message, ": Invalid argument");
}

}  // namespace penstock::oracle

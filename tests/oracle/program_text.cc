// Formats programs for the report of a failure.

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "tests/oracle/program.h"

namespace penstock::oracle {
namespace {

std::string ToText(const std::vector<Message>& messages) {
  std::string text = "[";
  for (const Message& each : messages) {
    absl::StrAppend(&text, text.size() > 1 ? " " : "", ToText(each));
  }
  return text + "]";
}

std::string ToText(const Metadata& metadata) {
  std::string text = "{";
  for (const auto& each : metadata) {
    absl::StrAppend(&text, text.size() > 1 ? " " : "", each.first, "(",
                    each.second.size(), ")");
  }
  return text + "}";
}

std::string ToText(const Phase& phase) {
  std::string text;
  if (!phase.up.empty()) absl::StrAppend(&text, " up ", ToText(phase.up));
  if (!phase.down.empty()) absl::StrAppend(&text, " down ", ToText(phase.down));
  if (phase.late) absl::StrAppend(&text, " read late");
  return text + ";";
}

std::string ToText(Event event) {
  switch (event) {
    case Event::kNone:
      return "nothing";
    case Event::kPathLoss:
      return "path lost";
    case Event::kChannelGone:
      return "channel gone";
    case Event::kShutdown:
      return "server shut down";
  }
  return "";
}

}  // namespace

std::string ToText(Kind kind) {
  switch (kind) {
    case Kind::kUnary:
      return "Unary";
    case Kind::kUpload:
      return "Upload";
    case Kind::kDownload:
      return "Download";
    case Kind::kChat:
      return "Chat";
  }
  return "";
}

std::string ToText(ClientApi api) {
  switch (api) {
    case ClientApi::kSync:
      return "Sync";
    case ClientApi::kAsync:
      return "Async";
    case ClientApi::kCallback:
      return "Callback";
    case ClientApi::kGenericAsync:
      return "GenericAsync";
    case ClientApi::kGenericCallback:
      return "GenericCallback";
  }
  return "";
}

std::string ToText(ServerApi api) {
  switch (api) {
    case ServerApi::kSync:
      return "Sync";
    case ServerApi::kAsync:
      return "Async";
    case ServerApi::kCallback:
      return "Callback";
    case ServerApi::kGeneric:
      return "Generic";
  }
  return "";
}

std::string ToText(Ending ending) {
  switch (ending) {
    case Ending::kFinish:
      return "the server finishes";
    case Ending::kEarly:
      return "the server finishes early";
    case Ending::kClientCancels:
      return "the client cancels";
    case Ending::kServerCancels:
      return "the server cancels";
    case Ending::kDeadline:
      return "the deadline passes";
    case Ending::kPastDeadline:
      return "the deadline has passed before";
    case Ending::kCancelBehind:
      return "the client cancels behind the end";
    case Ending::kDeadlineBehind:
      return "the deadline passes behind the end";
    case Ending::kRandomCancel:
      return "the client cancels at any time";
    case Ending::kRandomDeadline:
      return "the deadline passes at any time";
  }
  return "";
}

std::string ToText(const Message& message) {
  std::string text = absl::StrCat(message.size);
  if (message.seed == 0) text += "z";
  if (message.slices > 1) absl::StrAppend(&text, "/", message.slices);
  if (message.plain) text += "p";
  if (message.hint) text += "h";
  return text;
}

std::string ToText(const Plan& plan) {
  std::string text =
      absl::StrCat("call ", plan.number, ", ", ToText(plan.client), " to ",
                   ToText(plan.server), "/", ToText(plan.kind), ", channel ",
                   plan.channel, ":");
  for (const Phase& phase : plan.phases) absl::StrAppend(&text, ToText(phase));
  absl::StrAppend(&text, " half-close after ", plan.half_close_after, "; ",
                  ToText(plan.ending), " (", plan.wait_us, " us)");
  if (!plan.unread.empty()) {
    absl::StrAppend(&text, ", unread ", ToText(plan.unread));
  }
  if (!plan.last.empty()) {
    absl::StrAppend(&text, ", last ", ToText(plan.last), ", reads ",
                    plan.last_reads);
  }
  absl::StrAppend(&text, "; status ", plan.status.error_code(), " \"",
                  absl::CHexEscape(plan.status.error_message().substr(0, 60)),
                  "\"; metadata ", ToText(plan.client_metadata), ", initial ",
                  ToText(plan.initial), plan.initial_early ? " early" : "",
                  ", trailing ", ToText(plan.trailing), "; compression ",
                  plan.up_compression, " up, ", plan.down_compression, " down");
  if (plan.coalesced) text += ", coalesced";
  if (plan.corked) text += ", corked";
  if (plan.waits_for_initial) text += ", waits for initial metadata";
  return text;
}

std::string ToText(const Program& program) {
  const Settings& settings = program.settings;
  return absl::StrCat(
      "seed ", program.seed, ": ", program.calls.size(), " calls by ",
      program.threads, " threads; ", ToText(program.event), " after ",
      program.event_us, " us; limits: messages up ", settings.server_receives,
      ", down ", settings.client_receives, ", metadata of the server ",
      settings.server_metadata, ", of the client ", settings.client_metadata,
      ", streams at once ", settings.streams_at_once, " (", kDefault,
      " is gRPC's own, ", kUnlimited, " none); generic server ",
      settings.generic_is_callback ? "callback" : "async");
}

}  // namespace penstock::oracle

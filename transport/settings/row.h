// One setting: its variable in the environment, its values, its fields and its
// description. table.h lists all settings.

#ifndef PENSTOCK_TRANSPORT_SETTINGS_ROW_H_
#define PENSTOCK_TRANSPORT_SETTINGS_ROW_H_

#include <stdlib.h>  // secure_getenv

#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "transport/base/join_words.h"
#include "transport/base/log.h"
#include "transport/settings/description.h"
#include "transport/settings/form.h"
#include "transport/settings/settings.h"

namespace penstock {

// Describes a setting, as docs/settings.md does.
struct About {
  const char* topic;   // the heading of its paragraph
  const char* effect;  // the decision that the setting makes
  // A remark about the default, or about a further limit. May be empty.
  const char* default_note = "";

  Description Describe(std::string variable, std::string field,
                       std::string values, std::string default_value) const {
    return {std::move(variable),
            std::move(field),
            std::move(values),
            std::move(default_value),
            default_note,
            effect,
            topic};
  }
};

// Returns INVALID_ARGUMENT for a bad value. The message names the value and the
// allowed values.
template <typename Form>
absl::Status BadValue(const char* variable, absl::string_view value,
                      const Form& form) {
  return absl::InvalidArgumentError(absl::StrCat(
      variable, "=", value, " is not a setting: use ", form.Allowed()));
}

// Returns INVALID_ARGUMENT if `text` is neither empty nor a value of the
// variable.
template <typename Form>
absl::Status CheckValue(const char* variable, absl::string_view text,
                        const Form& form) {
  if (text.empty() || form.Parse(text).has_value()) return absl::OkStatus();
  return BadValue(variable, text, form);
}

// Sets `*out` to the variable's value, if it has one. An empty value counts as
// unset. For a bad value, returns INVALID_ARGUMENT and leaves `*out` unchanged.
template <typename Form>
absl::Status ReadVariable(const char* variable, const Form& form,
                          typename Form::Value* out) {
  const char* text = secure_getenv(variable);
  if (text == nullptr || *text == '\0') return absl::OkStatus();
  absl::optional<typename Form::Value> value = form.Parse(text);
  if (!value.has_value()) return BadValue(variable, text, form);
  *out = *std::move(value);
  return absl::OkStatus();
}

// A setting of one channel or server: a field of Options, and a field of
// Settings. The initial value of the Settings field is the default.
template <typename Form>
class Row {
 public:
  using Value = typename Form::Value;

  constexpr Row(const char* variable, const char* name,
                absl::optional<Value> Options::*option, Value Settings::*field,
                Form form, About about)
      : variable_(variable),
        name_(name),
        option_(option),
        field_(field),
        form_(form),
        about_(about) {}

  // Sets the field of `settings` from `options`, or else from the environment.
  // If neither sets the field, leaves it unchanged. Returns INVALID_ARGUMENT
  // for a bad value.
  absl::Status Resolve(const Options& options, Settings* settings) const {
    const absl::optional<Value>& option = options.*option_;
    if (!option.has_value()) {
      return ReadVariable(variable_, form_, &(settings->*field_));
    }
    if (!form_.Accepts(*option)) {
      return BadValue(variable_, form_.ToText(*option), form_);
    }
    settings->*field_ = *option;
    return absl::OkStatus();
  }

  // Checks a value of the variable, as CheckValue() does.
  absl::Status CheckText(absl::string_view text) const {
    return CheckValue(variable_, text, form_);
  }

  const char* name() const { return name_; }
  const char* variable() const { return variable_; }
  std::string ToText(const Settings& settings) const {
    return form_.ToText(settings.*field_);
  }
  Description Describe() const {
    return about_.Describe(variable_, name_, form_.Allowed(), ToText({}));
  }

 private:
  const char* variable_;
  const char* name_;  // of both fields
  absl::optional<Value> Options::*option_;
  Value Settings::*field_;
  Form form_;
  About about_;
};

// A setting of the whole process, which only the environment sets. The default
// is stored as a `Default` and converted to a Value, because a constant cannot
// be a std::string.
template <typename Form, typename Default = typename Form::Value>
class ProcessRow {
 public:
  using Value = typename Form::Value;

  constexpr ProcessRow(const char* variable, Default default_value, Form form,
                       About about)
      : variable_(variable),
        default_value_(default_value),
        form_(form),
        about_(about) {}

  // Returns the variable's value or the default, or INVALID_ARGUMENT for a bad
  // value.
  absl::StatusOr<Value> Resolve() const {
    Value value(default_value_);
    absl::Status status = ReadVariable(variable_, form_, &value);
    if (!status.ok()) return status;
    return value;
  }
  // Checks a text, as Row::CheckText() does.
  absl::Status CheckText(absl::string_view text) const {
    return CheckValue(variable_, text, form_);
  }
  const char* variable() const { return variable_; }
  Description Describe() const {
    return about_.Describe(variable_, "", form_.Allowed(),
                           form_.ToText(Value(default_value_)));
  }

 private:
  const char* variable_;
  Default default_value_;
  Form form_;
  About about_;
};

// Describes PENSTOCK_LOG. The log reads that variable itself, because the
// folder base cannot depend on the folder settings.
class LogRow {
 public:
  constexpr explicit LogRow(About about) : about_(about) {}

  // Checks a text, as Row::CheckText() does.
  absl::Status CheckText(absl::string_view text) const {
    if (text.empty()) return absl::OkStatus();
    for (absl::string_view level : base::kLogLevels) {
      if (text == level) return absl::OkStatus();
    }
    return absl::InvalidArgumentError(
        absl::StrCat(variable(), "=", text, " is not a setting: use ",
                     base::JoinWords(base::kLogLevels, "or")));
  }
  const char* variable() const { return base::kLogVariable; }

  Description Describe() const {
    return about_.Describe(base::kLogVariable, "",
                           base::JoinWords(base::kLogLevels, "or"),
                           base::kDefaultLogLevel);
  }

 private:
  About about_;
};

}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_SETTINGS_ROW_H_

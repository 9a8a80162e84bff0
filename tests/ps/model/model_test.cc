// Tests the conversion of models to messages and back, without loss, and the
// refusal of invalid models by name.

#include "ps/model/model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "google/protobuf/text_format.h"
#include "google/protobuf/util/message_differencer.h"
#include "ps/model/wire.h"

namespace penstock::ps {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::util::MessageDifferencer;
using ::testing::HasSubstr;

v1::Model Parse(const std::string& text) {
  v1::Model model;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &model));
  return model;
}

// A message in which each field that a rule uses differs from its default.
constexpr char kFull[] = R"(
  tables {
    name: "layer/kernel"
    dense { dtype: DTYPE_BF16 shape: 30 shape: 20 }
    optimizer {
      rule: "adamw"
      schedule { kind: "step" learning_rate: 0.25 warm_up_steps: 7 every: 100
                 factor: 0.5 }
      weight_decay: 0.125 clip_value: 3 beta1: 0.75 beta2: 0.5 epsilon: 0.25
    }
    backup_workers: 2
  }
  tables {
    name: "words"
    sparse {
      dim: 16 initial { uniform { low: -0.5 high: 0.5 } } seed: 99
      min_count: 3 time_to_live_seconds: 3600 max_rows: 100000
      budget_bytes: 1000000000 above_budget: EVICT
    }
    optimizer {
      rule: "ftrl" schedule { kind: "constant" learning_rate: 0.5 }
      ftrl_beta: 2 lambda1: 0.25 lambda2: 0.5 initial_accumulator: 0.125
    }
    staleness: -1
  }
  tables {
    name: "users"
    sparse { dim: 8 initial { normal { mean: 0.5 stddev: 2 } } }
    optimizer {
      rule: "momentum" momentum: 0.25
      schedule { kind: "cosine" learning_rate: 0.5 every: 10 final_rate: 0.125 }
    }
    staleness: 4
  }
  tables {
    name: "bias" dense { dtype: DTYPE_F64 }
    optimizer { rule: "rmsprop" decay: 0.5
                schedule { kind: "constant" learning_rate: 0.5 } }
  })";

TEST(ModelTest, WhatIsSentComesBack) {
  const auto model = FromMessage(Parse(kFull));
  ASSERT_TRUE(model.ok()) << model.status();
  const v1::Model sent = ToMessage(*model);
  const auto received = FromMessage(sent);
  ASSERT_TRUE(received.ok()) << received.status();
  EXPECT_EQ(Difference(*model, *received), "");
  EXPECT_TRUE(MessageDifferencer::Equals(sent, ToMessage(*received)));
}

TEST(ModelTest, WhatIsNotSetHasItsDefault) {
  const auto model = FromMessage(Parse(
      R"(tables { name: "a" dense { dtype: DTYPE_F32 shape: 3 }
                  optimizer { rule: "adam" schedule {
                    kind: "constant" learning_rate: 0.5 } } })"));
  ASSERT_TRUE(model.ok()) << model.status();
  const TableSpec& table = *model->Find("a");
  optim::OptimizerConfig config;
  EXPECT_EQ(table.optimizer.beta1, config.beta1);
  EXPECT_EQ(table.optimizer.beta2, config.beta2);
  EXPECT_EQ(table.optimizer.epsilon, config.epsilon);
  EXPECT_EQ(table.staleness, 0);
  EXPECT_EQ(model->Find("b"), nullptr);
}

// Clears the set scalar field number `*left` in `message` and its submessages.
// Returns the field's name. Returns "" if fewer fields are set.
std::string ClearField(Message* message, int* left) {
  const auto* const reflection = message->GetReflection();
  std::vector<const FieldDescriptor*> fields;
  reflection->ListFields(*message, &fields);
  for (const FieldDescriptor* field : fields) {
    std::vector<Message*> within;
    if (field->cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE) {
      if ((*left)-- > 0) continue;
      reflection->ClearField(message, field);
      return field->full_name();
    }
    if (!field->is_repeated()) {
      within.push_back(reflection->MutableMessage(message, field));
    } else {
      for (int i = 0; i < reflection->FieldSize(*message, field); ++i) {
        within.push_back(reflection->MutableRepeatedMessage(message, field, i));
      }
    }
    for (Message* each : within) {
      const std::string name = ClearField(each, left);
      if (!name.empty()) return name;
    }
  }
  return "";
}

// Tests that the conversion and the comparison handle each field: clearing a
// field must make a difference.
TEST(ModelTest, EachFieldTells) {
  const auto whole = FromMessage(Parse(kFull));
  ASSERT_TRUE(whole.ok()) << whole.status();
  std::set<std::string> names;
  for (int number = 0;; ++number) {
    v1::Model message = Parse(kFull);
    int left = number;
    const std::string name = ClearField(&message, &left);
    if (name.empty()) break;
    names.insert(name);
    const auto changed = FromMessage(message);
    if (changed.ok()) {
      EXPECT_NE(Difference(*whole, *changed), "") << name;
    } else {
      EXPECT_THAT(std::string(changed.status().message()), HasSubstr("table "))
          << name;
    }
  }
  EXPECT_EQ(names.size(), 34u);  // all scalar fields of a model
}

struct Refused {
  std::string table;
  std::string said;
};

TEST(ModelTest, WhatCannotBeServedIsRefusedByName) {
  const std::string sgd =
      R"(optimizer { rule: "sgd"
           schedule { kind: "constant" learning_rate: 0.5 } })";
  const std::string dense = "dense { dtype: DTYPE_F32 shape: 3 } ";
  const std::vector<Refused> all = {
      {dense + sgd, "it has no name"},
      {absl::StrCat("name: '", std::string(2000, 'n'), "' ", dense, sgd),
       "2000 bytes"},
      {"name: 'a' " + sgd, "neither dense nor sparse"},
      {"name: 'a' dense { shape: 3 } " + sgd, "no element type"},
      {"name: 'a' dense { dtype: DTYPE_INT32 } " + sgd, "int32"},
      {"name: 'a' dense { dtype: DTYPE_F32 shape: -3 } " + sgd, "-3"},
      {"name: 'a' dense { dtype: DTYPE_F32 shape: 4611686018427387904 "
       "shape: 4611686018427387904 } " +
           sgd,
       "table a"},
      {"name: 'a' " + dense, "no optimizer is called ''"},
      {"name: 'a' " + dense + "optimizer { rule: 'sgd' }",
       "no schedule is called ''"},
      {"name: 'a' " + dense +
           R"(optimizer { rule: "sgd" schedule { kind: "constant" } })",
       "learning_rate"},
      {"name: 'a' staleness: -2 " + dense + sgd, "staleness is -2"},
      {"name: 'a' staleness: 1 backup_workers: 1 " + dense + sgd,
       "backup_workers"},
      {"name: 'a' sparse { } " + sgd, "table a: dim"},
      {"name: 'a' sparse { dim: 4 initial { uniform { low: 2 high: 1 } } } " +
           sgd,
       "low < high"},
      {"name: 'a' sparse { dim: 4 budget_bytes: 1 } " + sgd,
       "table a: budget_bytes"},
      {"name: 'a' sparse { dim: 4 above_budget: SPILL } " + sgd,
       "budget_bytes"},
      {"name: 'a' sparse { dim: 4 above_budget: SPILL budget_bytes: 99999999 "
       "max_rows: 9999 } " +
           sgd,
       "max_rows"},
  };
  for (const Refused& each : all) {
    SCOPED_TRACE(each.said);
    const auto model =
        FromMessage(Parse(absl::StrCat("tables { ", each.table, " }")));
    EXPECT_EQ(model.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(model.status().message()), HasSubstr(each.said));
    EXPECT_THAT(std::string(model.status().message()), HasSubstr("table "));
  }
  const std::string twice =
      absl::StrCat("tables { name: 'a' ", dense, sgd, " }");
  EXPECT_THAT(std::string(FromMessage(Parse(twice + twice)).status().message()),
              HasSubstr("another one has its name"));
}

// Tests that the number of policies is limited, whatever a chief defines,
// because a push asks each policy.
TEST(ModelTest, PoliciesAreNotAsManyAsTables) {
  v1::Model model = Parse(kFull);  // has four policies
  const v1::Table table = model.tables(2);
  for (size_t i = 4; i <= kMaxPolicies; ++i) {
    ASSERT_TRUE(FromMessage(model).ok()) << i;
    v1::Table* const added = model.add_tables();
    *added = table;
    added->set_name(absl::StrCat("t", i));
    added->set_staleness(1000 + static_cast<int64_t>(i));
  }
  model.add_tables()->CopyFrom(table);
  model.mutable_tables()->rbegin()->set_name("one more of the same");
  const auto refused = FromMessage(model);
  EXPECT_THAT(std::string(refused.status().message()),
              HasSubstr("table t64: with it, there are more than 64"));
}

TEST(ModelTest, NamesDoNotSpeakToTerminals) {
  const auto model = FromMessage(Parse("tables { name: '\\033[2J' }"));
  EXPECT_EQ(std::string(model.status().message()).find('\033'),
            std::string::npos);
}

TEST(ModelTest, DifferencesAreNamed) {
  const auto full = *FromMessage(Parse(kFull));
  const auto differ = [&full](const std::function<void(Model*)>& change) {
    Model changed = full;
    change(&changed);
    return Difference(full, changed);
  };
  EXPECT_EQ(differ([](Model* model) {
              std::swap(model->tables[0], model->tables[2]);
            }),
            "");
  EXPECT_EQ(differ([](Model* model) { model->tables.pop_back(); }),
            "table bias: it is missing");
  EXPECT_EQ(differ([](Model* model) {
              model->tables.push_back(model->tables[0]);
              model->tables.back().name = "new";
            }),
            "table new: it is new");
  EXPECT_EQ(
      differ([](Model* model) { model->tables[1].optimizer.lambda1 = 0.5; }),
      "table words: modified: optimizer.lambda1: 0.25 -> 0.5");
}

TEST(ModelTest, TellsItsPartsWhatTheyNeed) {
  const auto model = *FromMessage(Parse(kFull));
  const sparse::Options words = OptionsOf(*model.Find("words"));
  EXPECT_EQ(words.name, "words");
  EXPECT_EQ(words.dim, 16u);
  EXPECT_EQ(words.slots(), 2u);  // FTRL has two slots
  EXPECT_EQ(LayoutOf(*model.Find("words"))->row_bytes, 64u);
  EXPECT_EQ(LayoutOf(*model.Find("layer/kernel"))->rows, 30u);
  EXPECT_EQ(LayoutOf(*model.Find("layer/kernel"))->row_bytes, 40u);
  EXPECT_EQ(PolicyOf(*model.Find("users")).staleness, 4);
  EXPECT_EQ(PolicyOf(*model.Find("words")).staleness,
            ConsistencyPolicy::kUnlimited);
  EXPECT_EQ(PolicyOf(*model.Find("layer/kernel")).backup_workers, 2u);
}

}  // namespace
}  // namespace penstock::ps

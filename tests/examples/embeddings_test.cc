// Tests the embeddings example: its parts, and its result on six novels.

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "examples/common/sparse_training.h"
#include "examples/embeddings/corpus.h"
#include "examples/embeddings/sampler.h"
#include "examples/embeddings/skip_gram.h"
#include "examples/embeddings/training.h"

namespace penstock::embeddings {
namespace {

using Strings = std::vector<std::string>;

TEST(CorpusTest, WordsAreRunsOfLettersThatOccurOftenEnough) {
  const Corpus corpus = ReadCorpus("Ab, b!C ab;B's once-AB b\nc", 2);
  EXPECT_EQ(corpus.vocabulary.words, (Strings{"ab", "b", "c"}));
  EXPECT_EQ(corpus.vocabulary.counts, (std::vector<uint64_t>{3, 3, 2}));
  EXPECT_EQ(corpus.words, (std::vector<uint32_t>{0, 1, 2, 0, 1, 0, 1, 2}));
  EXPECT_EQ(corpus.vocabulary.ids[0], examples::IdOf("ab"));
}

// Returns a corpus in which each word occurs once, so a word equals its
// position.
Corpus Distinct(uint32_t words) {
  Corpus corpus;
  for (uint32_t i = 0; i < words; ++i) {
    corpus.vocabulary.words.push_back(std::to_string(i));
    corpus.vocabulary.counts.push_back(1);
    corpus.vocabulary.ids.push_back(i);
    corpus.words.push_back(i);
  }
  return corpus;
}

SamplerOptions SmallBatches(unsigned seed) {
  SamplerOptions options;
  options.centers = 10;
  options.window = 3;
  options.negatives = 2;
  options.subsample = 1e6;  // no word is skipped
  options.seed = seed;
  return options;
}

TEST(SamplerTest, PairsAreOfNeighboursAndOfWordsDrawn) {
  constexpr uint32_t kWords = 100;
  const Corpus corpus = Distinct(kWords);
  Sampler sampler(&corpus, 0, kWords, SmallBatches(1));
  uint32_t expected = 3;  // the first word with neighbours on both sides
  for (int step = 0; step < 50; ++step) {
    const Batch batch = sampler.Next();
    ASSERT_EQ(batch.centers.size(), 10);
    for (uint32_t center : batch.centers) {
      EXPECT_EQ(center, std::exchange(expected, (expected + 1) % kWords));
    }
    size_t near = 0;
    for (const Batch::Pair& pair : batch.pairs) {
      if (pair.label == 0) continue;
      ++near;
      const uint32_t distance =
          (batch.others[pair.other] + kWords - batch.centers[pair.center]) %
          kWords;
      EXPECT_TRUE(distance >= 1 && (distance <= 3 || distance >= kWords - 3))
          << distance;
    }
    EXPECT_GE(near, 10 * 2 * 1);
    EXPECT_LE(near, 10 * 2 * 3);
    // Expects two negatives for each neighbour, except for the few that equal
    // it.
    EXPECT_LE(batch.pairs.size(), 3 * near);
    EXPECT_GE(batch.pairs.size(), 3 * near - 8);
  }
}

TEST(SamplerTest, StaysInItsPartAndRepeatsItself) {
  const Corpus corpus = Distinct(100);
  Sampler one(&corpus, 20, 40, SmallBatches(7));
  Sampler two(&corpus, 20, 40, SmallBatches(7));
  for (int step = 0; step < 10; ++step) {
    const Batch batch = one.Next();
    const Batch same = two.Next();
    EXPECT_EQ(batch.others, same.others);
    for (uint32_t center : batch.centers) {
      EXPECT_TRUE(center >= 20 && center < 40) << center;
    }
  }
}

TEST(SamplerTest, FrequentWordsArePassedOverByTheirFrequency) {
  // Makes word 0 half of the text, and each other word a thousandth.
  Corpus corpus = Distinct(501);
  corpus.words.clear();
  for (uint32_t i = 1; i <= 500; ++i) {
    corpus.words.push_back(0);
    corpus.words.push_back(i);
  }
  corpus.vocabulary.counts[0] = 500;
  SamplerOptions options = SmallBatches(3);
  options.subsample = 0.02;
  options.centers = 1000;
  Sampler sampler(&corpus, 0, corpus.words.size(), options);
  double frequent = 0;
  double words = 0;
  for (int step = 0; step < 20; ++step) {
    const Batch batch = sampler.Next();
    for (const Batch::Pair& pair : batch.pairs) {
      if (pair.label == 0) continue;
      ++words;
      frequent += batch.others[pair.other] == 0 ? 1 : 0;
    }
  }
  const double kept = std::sqrt(0.02 / 0.5);
  EXPECT_NEAR(frequent / words, kept / (1 + kept), 0.01);
}

TEST(SamplerTest, NegativesAreDrawnByTheirCountsToThePowerOfThreeQuarters) {
  Corpus corpus = Distinct(2);
  corpus.vocabulary.counts = {16, 1};
  corpus.words.assign(1000, 1);
  SamplerOptions options = SmallBatches(5);
  options.centers = 5000;
  Sampler sampler(&corpus, 0, corpus.words.size(), options);
  const Batch batch = sampler.Next();
  // Computes the ratio of negatives. Negatives that equal word 1 are omitted,
  // because word 1 is the neighbour.
  double near = 0;
  for (const Batch::Pair& pair : batch.pairs) near += pair.label;
  const double drawn = static_cast<double>(batch.pairs.size()) - near;
  EXPECT_NEAR(drawn / (2 * near), 8.0 / 9, 0.01);
}

// Returns the mean loss, by its definition.
double LossOf(const Batch& batch, const Eigen::MatrixXd& centers,
              const Eigen::MatrixXd& others) {
  double loss = 0;
  for (const Batch::Pair& pair : batch.pairs) {
    const double score = centers.row(pair.center).dot(others.row(pair.other));
    loss -= std::log(1 / (1 + std::exp(pair.label > 0 ? -score : score)));
  }
  return loss / static_cast<double>(batch.pairs.size());
}

TEST(SkipGramTest, GradientsAreTheSlopesOfTheLoss) {
  constexpr Eigen::Index kRows = 6;
  constexpr Eigen::Index kDim = 4;
  constexpr double kStep = 1e-5;
  for (unsigned seed = 1; seed <= 20; ++seed) {
    std::mt19937 random(seed);
    std::normal_distribution<float> normal;
    Matrix centers(kRows, kDim);
    Matrix others(kRows, kDim);
    for (float& value : centers.reshaped()) value = normal(random);
    for (float& value : others.reshaped()) value = normal(random);
    Batch batch;
    for (int i = 0; i < 30; ++i) {
      batch.pairs.push_back({static_cast<uint32_t>(random() % kRows),
                             static_cast<uint32_t>(random() % kRows),
                             static_cast<float>(random() % 2)});
    }
    Matrix by_center = Matrix::Zero(kRows, kDim);
    Matrix by_other = Matrix::Zero(kRows, kDim);
    const double loss =
        AddGradients(batch, ConstRows(centers.data(), kRows, kDim),
                     ConstRows(others.data(), kRows, kDim),
                     Rows(by_center.data(), kRows, kDim),
                     Rows(by_other.data(), kRows, kDim));
    const Eigen::MatrixXd c = centers.cast<double>();
    const Eigen::MatrixXd o = others.cast<double>();
    EXPECT_NEAR(loss, LossOf(batch, c, o), 1e-5) << "seed " << seed;
    for (Eigen::Index i = 0; i < kRows * kDim; ++i) {
      Eigen::MatrixXd step = Eigen::MatrixXd::Zero(kRows, kDim);
      step(i / kDim, i % kDim) = kStep;
      const double scale = 30 / (2 * kStep);  // for the sum, not the mean
      EXPECT_NEAR(
          by_center(i / kDim, i % kDim),
          scale * (LossOf(batch, c + step, o) - LossOf(batch, c - step, o)),
          1e-4)
          << "seed " << seed;
      EXPECT_NEAR(
          by_other(i / kDim, i % kDim),
          scale * (LossOf(batch, c, o + step) - LossOf(batch, c, o - step)),
          1e-4)
          << "seed " << seed;
    }
  }
}

TEST(SkipGramTest, TheNearestHaveTheSmallestAngles) {
  const Corpus corpus = Distinct(4);
  const std::vector<float> values = {1, 0, /*1*/ 0, 9, /*2*/ 5, 5, /*3*/ 3, 1};
  const ConstRows vectors(values.data(), 4, 2);
  const auto nearest = Nearest(corpus.vocabulary, vectors, "0", 2);
  ASSERT_EQ(nearest.size(), 2);
  EXPECT_EQ(nearest[0].word, "3");
  EXPECT_NEAR(nearest[0].cosine, 3 / std::sqrt(10), 1e-6);
  EXPECT_EQ(nearest[1].word, "2");
  EXPECT_TRUE(Nearest(corpus.vocabulary, vectors, "none", 2).empty());
}

const Corpus& Novels() {
  static const Corpus* corpus =
      new Corpus(ReadCorpus(EmbeddedText(), kMinCount));
  return *corpus;
}

// Returns how many of `expected` are among the eight nearest words of `word`.
size_t Found(const tensor::Tensor& trained, const std::string& word,
             const Strings& expected) {
  const ConstRows vectors(trained.flat<float>()->data(), trained.shape()[0],
                          trained.shape()[1]);
  std::string seen;
  size_t found = 0;
  for (const auto& near : Nearest(Novels().vocabulary, vectors, word, 8)) {
    seen += " " + near.word;
    for (const std::string& name : expected) found += name == near.word ? 1 : 0;
  }
  printf("%s:%s\n", word.c_str(), seen.c_str());
  return found;
}

void ExpectToLearn(const TrainingOptions& options) {
  std::vector<double> losses;
  const auto trained =
      Train(options, Novels().vocabulary,
            [&losses](unsigned, double loss) { losses.push_back(loss); });
  ASSERT_TRUE(trained.ok()) << trained.status();
  ASSERT_EQ(trained->shape(),
            (tensor::Shape{static_cast<int64_t>(Novels().vocabulary.ids.size()),
                           options.dim}));
  ASSERT_EQ(losses.size(), options.steps / 25);
  printf("loss %.4f, then %.4f\n", losses.front(), losses.back());
  EXPECT_LT(losses.back(), 0.95 * losses.front());
  EXPECT_GE(Found(*trained, "three",
                  {"two", "four", "five", "six", "seven", "eight", "ten",
                   "twenty", "several"}),
            3);
  EXPECT_GE(Found(*trained, "father",
                  {"mother", "brother", "sister", "aunt", "uncle", "cousin",
                   "son", "daughter", "husband"}),
            3);
  EXPECT_GE(Found(*trained, "morning",
                  {"day", "evening", "week", "night", "breakfast", "afternoon",
                   "monday", "tuesday", "saturday", "sunday"}),
            2);
}

TEST(TrainingTest, OneWorkerLearnsWhichWordsAreAlike) {
  TrainingOptions options;
  options.workers = 1;
  options.steps = 800;
  options.staleness = "0";
  ExpectToLearn(options);
}

TEST(TrainingTest, AsynchronousWorkersLearnWhichWordsAreAlike) {
  TrainingOptions options;
  options.steps = 500;
  ExpectToLearn(options);
}

// A training by one worker, in doubles. Shares only the sampler with the
// product.
class Reference {
 public:
  // `in` has the initial vectors of centers. The vectors of others start as
  // zeros.
  Reference(Eigen::MatrixXd in, double rate)
      : rate_(rate),
        in_(std::move(in)),
        out_(Eigen::MatrixXd::Zero(in_.rows(), in_.cols())),
        in_squares_(out_),
        out_squares_(out_) {}

  void Step(const Batch& batch) {
    Eigen::MatrixXd by_in = Eigen::MatrixXd::Zero(in_.rows(), in_.cols());
    Eigen::MatrixXd by_out = by_in;
    for (const Batch::Pair& pair : batch.pairs) {
      const uint32_t center = batch.centers[pair.center];
      const uint32_t other = batch.others[pair.other];
      const double score = in_.row(center).dot(out_.row(other));
      const double slope = 1 / (1 + std::exp(-score)) - pair.label;
      by_in.row(center) += slope * out_.row(other);
      by_out.row(other) += slope * in_.row(center);
    }
    Adagrad(by_in, &in_squares_, &in_);
    Adagrad(by_out, &out_squares_, &out_);
  }

  const Eigen::MatrixXd& in() const { return in_; }

 private:
  void Adagrad(const Eigen::MatrixXd& gradient, Eigen::MatrixXd* squares,
               Eigen::MatrixXd* values) const {
    constexpr double kEpsilon = 1e-8;
    squares->array() += gradient.array().square();
    values->array() -=
        rate_ * gradient.array() / (squares->array().sqrt() + kEpsilon);
  }

  const double rate_;
  Eigen::MatrixXd in_;
  Eigen::MatrixXd out_;
  Eigen::MatrixXd in_squares_;
  Eigen::MatrixXd out_squares_;
};

TEST(TrainingTest, OneWorkerGivesWhatTheFormulasGive) {
  TrainingOptions options;
  options.workers = 1;
  options.staleness = "0";
  options.dim = 16;
  options.sampler.centers = 64;
  const auto train = [&options](unsigned steps) {
    options.steps = steps;
    const auto trained =
        Train(options, Novels().vocabulary, [](unsigned, double) {});
    EXPECT_TRUE(trained.ok()) << trained.status();
    if (!trained.ok()) return Eigen::MatrixXd();
    const ConstRows rows(trained->flat<float>()->data(), trained->shape()[0],
                         trained->shape()[1]);
    return Eigen::MatrixXd(rows.cast<double>());
  };
  // Trains one step. The step does not change `in`, because each gradient is a
  // multiple of a vector of `out`, which is still zero.
  const Eigen::MatrixXd first = train(1);
  ASSERT_GT(first.size(), 0);
  EXPECT_NEAR(first.maxCoeff(), 0.5 / 16, 1e-4);
  EXPECT_NEAR(first.minCoeff(), -0.5 / 16, 1e-4);
  Reference reference(first, options.learning_rate);
  Sampler sampler(&Novels(), 0, Novels().words.size(), options.sampler);
  constexpr unsigned kSteps = 40;
  for (unsigned i = 0; i < kSteps; ++i) reference.Step(sampler.Next());
  const Eigen::MatrixXd trained = train(kSteps);
  ASSERT_EQ(trained.size(), first.size());
  EXPECT_GT((trained - first).cwiseAbs().maxCoeff(), 0.3);
  const double error = (trained - reference.in()).cwiseAbs().maxCoeff();
  printf("greatest difference: %.3g\n", error);
  EXPECT_LT(error, 5e-5);
}

TEST(TrainingTest, OneWorkerGivesTheSameBitsAgain) {
  TrainingOptions options;
  options.workers = 1;
  options.steps = 50;
  options.staleness = "0";
  const auto one = Train(options, Novels().vocabulary, [](unsigned, double) {});
  ASSERT_TRUE(one.ok()) << one.status();
  const auto two = Train(options, Novels().vocabulary, [](unsigned, double) {});
  ASSERT_TRUE(two.ok()) << two.status();
  EXPECT_EQ(one->bytes(), two->bytes());
}

}  // namespace
}  // namespace penstock::embeddings

// How values are judged and operators blamed: what find_difference() is made of.
#pragma once

#include "diff/difference.h"

namespace cairn::diff {

/// By how much rounding can move each value and output: measured.
struct Measured {
  std::vector<double> values, outputs;
};

bool off(const std::vector<Row>& outputs);
double badness(const std::vector<Row>& outputs);

class Judge {
 public:
  Judge(const Subject& subject, const Golden& golden, const std::vector<Tensor>& inputs, const Options& options);

  Trace run(const Model& model, const Meddling& meddling);
  Measured measure(const Model& model, const Trace& plain);
  Row compare(const Tensor& mine, const Tensor& golden, double noise) const;
  std::vector<Row> outputs(const Trace& trace, const Measured& measured) const;
  /// Golden's counterpart of each value of the trace, or null.
  std::vector<const Tensor*> pair(const Trace& trace) const;
  void find_suspects(const Trace& trace, const std::vector<const Tensor*>& paired, std::vector<Row*>& rows) const;
  std::vector<Culprit> blame(const Model& model, const Trace& plain, const std::vector<const Tensor*>& paired,
                             const std::vector<Row*>& rows, const Measured& measured, const std::vector<Row>& outputs);

  size_t runs = 0;

 private:
  std::optional<Culprit> confirm(const Model& model, const Trace& plain, const std::vector<const Tensor*>& paired,
                                 const std::vector<Row*>& rows, const Measured& measured, double before);
  bool mends_users(const Trace& mended, size_t place, const std::vector<const Tensor*>& paired,
                   const std::vector<Row*>& rows, const Measured& measured) const;
  void look_into(Culprit& culprit, const Model& model, const Trace& plain, size_t place,
                 const std::vector<const Tensor*>& paired, const Measured& measured);
  void attribute(Culprit& culprit, const Measured& measured);
  void narrow(Culprit& culprit, const std::vector<std::string>& without);
  bool is_wrong(const std::vector<std::string>& without, const Measured& measured);

  const Subject& subject_;
  const Golden& golden_;
  const std::vector<Tensor>& inputs_;
  const Options& options_;
  std::map<size_t, Tensor> mended_;  // right values of culprits that are known already
};

}  // namespace cairn::diff

// Judgement at the C interface.
#include "cairn/judge.h"

#include "capi/handles.h"
#include "judge/verdict.h"

using namespace cairn;
using namespace cairn::capi;

namespace {

Tensor view_of(const TensorRef& ref) {
  return Tensor::view(ref.dtype, {ref.dims.begin(), ref.dims.end()}, ref.data, nullptr);
}

judge::Distance from_c(const CairnDistance* given, const char* name) {
  require(given, name);
  const CairnDistance known = checked(given, name);
  return {known.most, known.rms, known.size, known.largest, known.unlike, known.finite};
}

judge::Verdict verdict_of(int32_t verdict) {
  switch (verdict) {
    case CAIRN_NOT_JUDGED: return judge::Verdict::none;
    case CAIRN_PASS: return judge::Verdict::pass;
    case CAIRN_FAIL: return judge::Verdict::fail;
    default: fail(ErrorKind::invalid_argument, "verdict", "{} is none", verdict);
  }
}

}  // namespace

CairnStatus cairn_distance(const CairnTensor* x, const CairnTensor* y, CairnDistance* distance) {
  return guarded([&] {
    require(x, "x"), require(y, "y");
    const CairnTensor both[] = {*x, *y};
    const Inputs inputs(both, 2);
    const Tensor mine = view_of(inputs.refs()[0]), golden = view_of(inputs.refs()[1]);
    for (const Tensor* each : {&mine, &golden})
      if (each->dtype() != kString && each->dtype() != kC64 && !judge::is_measured(each->dtype()))
        fail(ErrorKind::unsupported, "", "{} elements cannot be compared as numbers", to_string(each->dtype()));
    if (mine.dims() != golden.dims() || (mine.dtype() == kString) != (golden.dtype() == kString))
      fail(ErrorKind::invalid_argument, "", "{} against {}", to_string(mine.type()), to_string(golden.type()));
    const judge::Distance found = judge::distance(mine, golden);
    hand_out({sizeof(CairnDistance), found.most, found.rms, found.size, found.largest, found.unlike, found.finite},
             distance, "distance");
  });
}

CairnStatus cairn_compare_errors(const CairnDistance* mine, const CairnDistance* theirs, double* ratio,
                                 int32_t* larger) {
  return guarded([&] {
    require(ratio, "ratio"), require(larger, "larger");
    const judge::Errors errors = judge::compare_errors(from_c(mine, "mine"), from_c(theirs, "theirs"));
    *ratio = errors.ratio, *larger = static_cast<int32_t>(errors.larger);
  });
}

CairnStatus cairn_first_faults(const CairnJudged* values, size_t count, uint8_t* first) {
  return guarded([&] {
    if (count > 0) require(values, "values"), require(first, "first");
    std::vector<judge::Judged> judged(count);
    for (size_t i = 0; i < count; ++i) {
      judged[i].verdict = verdict_of(values[i].verdict);
      if (values[i].input_count > 0) require(values[i].inputs, "inputs");
      judged[i].inputs.assign(values[i].inputs, values[i].inputs + values[i].input_count);
      for (size_t input : judged[i].inputs)
        if (input >= count) fail(ErrorKind::invalid_argument, "inputs", "{} is no place of {} values", input, count);
    }
    const std::vector<bool> found = judge::first_faults(judged);
    std::copy(found.begin(), found.end(), first);
  });
}

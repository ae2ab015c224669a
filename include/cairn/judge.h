/* Judging of results, as in `cairn diff`: the distance of a tensor from a reference, which of two errors is larger, and
 * which operators of a graph are the first at fault. */
#ifndef CAIRN_JUDGE_H_
#define CAIRN_JUDGE_H_

#include "cairn/cairn.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Only elements that are finite in both tensors count, except for `unlike`. */
typedef struct CairnDistance {
  uint32_t struct_size;
  double most;     /* largest |x - y| */
  double rms;      /* root mean square of x - y */
  double size;     /* root mean square of y */
  double largest;  /* |y| */
  uint64_t unlike; /* elements finite on one side only, infinities of other sign, texts that differ */
  uint64_t finite; /* elements whose difference counts; 0: not known */
} CairnDistance;

/* The distance of two tensors of the same shape: numbers of any types, or texts. */
CAIRN_API CairnStatus cairn_distance(const CairnTensor* x, const CairnTensor* y, CairnDistance* distance);

typedef enum CairnLarger {
  CAIRN_ALIKE = 0, /* neither error is more than 1.5 times the other, or of few elements more than chance explains */
  CAIRN_MINE_LARGER = 1,
  CAIRN_THEIRS_LARGER = 2
} CairnLarger;

/* Compares two distances from the exact result. `ratio`: the root mean square of mine over that of theirs, where
 * neither counts as less than one rounding of the exact result. `larger`: a CairnLarger. */
CAIRN_API CairnStatus cairn_compare_errors(const CairnDistance* mine, const CairnDistance* theirs, double* ratio,
                                           int32_t* larger);

typedef enum CairnVerdict { CAIRN_NOT_JUDGED = 0, CAIRN_PASS = 1, CAIRN_FAIL = 2 } CairnVerdict;

typedef struct CairnJudged {
  int32_t verdict; /* a CairnVerdict */
  size_t input_count;
  const size_t* inputs; /* places of the values that it was made from */
} CairnJudged;

/* Sets first[i] to 1 for each value that fails although none of its inputs does, else to 0. For an input that was not
 * judged, the inputs of that input count. The graph may have cycles. */
CAIRN_API CairnStatus cairn_first_faults(const CairnJudged* values, size_t count, uint8_t* first);

#ifdef __cplusplus
}
#endif

#endif /* CAIRN_JUDGE_H_ */

// Vectors of floats from and to elements of any form, included behind vector_types.h. Conversions of f16 are the processor's, which
// keep denormals also where these are flushed elsewhere.

typedef uint16_t Shorts __attribute__((vector_size(2 * CAIRN_FLOATS), aligned(2), may_alias));

template <Form kForm>
using ElementOf = std::conditional_t<kForm == Form::floats, float, uint16_t>;

template <Form kForm>
CAIRN_INLINE Floats widened(Shorts elements) {
  if constexpr (kForm == Form::halves) {
#if CAIRN_FLOATS == 16
    return reinterpret_cast<Floats>(_mm512_maskz_cvtph_ps(0xffff, reinterpret_cast<__m256i>(elements)));
#else
    return reinterpret_cast<Floats>(_mm256_cvtph_ps(reinterpret_cast<__m128i>(elements)));
#endif
  } else {
    return reinterpret_cast<Floats>(__builtin_convertvector(elements, Words) << 16);
  }
}
template <Form kForm>
CAIRN_INLINE Shorts narrowed(Floats value) {
  if constexpr (kForm == Form::halves) {
#if CAIRN_FLOATS == 16
    return reinterpret_cast<Shorts>(
        _mm512_maskz_cvtps_ph(0xffff, reinterpret_cast<__m512>(value), _MM_FROUND_TO_NEAREST_INT));
#else
    return reinterpret_cast<Shorts>(_mm256_cvtps_ph(reinterpret_cast<__m256>(value), _MM_FROUND_TO_NEAREST_INT));
#endif
  } else {
    const Words bits = reinterpret_cast<Words>(value), usual = bits + 0x7fff + (bits >> 16 & 1);
    return __builtin_convertvector((value != value ? bits | 0x400000 : usual) >> 16, Shorts);
  }
}
template <Form kForm>
CAIRN_INLINE Floats load_elements(const ElementOf<kForm>* from) {
  if constexpr (kForm == Form::floats)
    return load(from);
  else
    return widened<kForm>(*reinterpret_cast<const Shorts*>(from));
}
/// The first `count` elements, up to a whole vector; the other lanes are 0.
template <Form kForm>
CAIRN_INLINE Floats load_elements(const ElementOf<kForm>* from, int64_t count) {
  if (count == kFloats) return load_elements<kForm>(from);
  if constexpr (kForm == Form::floats) {
    return load_first(from, count);
  } else {
    uint16_t elements[kFloats] = {};
    std::copy_n(from, count, elements);
    return load_elements<kForm>(elements);
  }
}
template <Form kForm>
CAIRN_INLINE void store_elements(ElementOf<kForm>* to, int64_t count, Floats value) {
  if constexpr (kForm == Form::floats) {
    count == kFloats ? store(to, value) : store_first(to, count, value);
  } else {
    const Shorts elements = narrowed<kForm>(value);
    if (count == kFloats)
      *reinterpret_cast<Shorts*>(to) = elements;
    else
      for (int64_t lane = 0; lane < count; ++lane) to[lane] = elements[lane];
  }
}
/// Rounded to the form's elements.
template <Form kForm>
CAIRN_INLINE Floats rounded_to(Floats value) {
  if constexpr (kForm == Form::floats)
    return value;
  else
    return widened<kForm>(narrowed<kForm>(value));
}
/// Calls `function` with the form as a constant.
template <class Function>
CAIRN_INLINE void with_form(Form form, Function&& function) {
  if (form == Form::halves) return function.template operator()<Form::halves>();
  if (form == Form::brains) return function.template operator()<Form::brains>();
  function.template operator()<Form::floats>();
}

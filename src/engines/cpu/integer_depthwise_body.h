// The inner loop of integer_depthwise.cpp, included once for each width of vectors: CAIRN_MM and CAIRN_SI name the intrinsics of
// the width, Ints, Floats and Mask its types.

/// A block of the channels of `count` pixels, whose taps are `step` bytes apart; `channels` has a bit for each. kWhole: all are
/// there. kClips: the low bound is another than 0 of u8, to which packing cuts anyway.
template <bool kWhole, bool kClips>
CAIRN_DOTS void run_block(const DotKernel& kernel, int64_t block, const uint8_t* const* taps, int64_t step,
                          int64_t count, uint64_t channels, uint8_t* to) {
  const auto mask = static_cast<Mask>(channels);
  const DotBlock& b = kernel.blocks[static_cast<size_t>(block)];
  const Floats low = CAIRN_MM(set1_ps)(kernel.e.low), high = CAIRN_MM(set1_ps)(kernel.e.high);
  const Ints zero = CAIRN_MM(set1_epi32)(kernel.e.zero_point), byte = CAIRN_MM(set1_epi16)(0xff);
  for (int64_t pixel = 0, at = 0; pixel < count; ++pixel, at += step, to += kernel.s.channels) {
    const int8_t* weights = kernel.weights.data() + block * kernel.groups * 4 * kBlock;
    Ints sums[4];
    for (int k = 0; k < 4; ++k) sums[k] = CAIRN_SI(load)(reinterpret_cast<const Ints*>(b.starts + 16 * k));
    for (int64_t tap = 0; tap < kernel.groups * 4; tap += 4, weights += 4 * kBlock) {
      const auto load = [&](int64_t i) CAIRN_DOTS {
        const uint8_t* from = taps[tap + i] + at;
        if constexpr (kWhole) return CAIRN_SI(loadu)(reinterpret_cast<const Ints*>(from));
        return CAIRN_MM(maskz_loadu_epi8)(mask, from);
      };
      const Ints x0 = load(0), x1 = load(1), x2 = load(2), x3 = load(3);
      const Ints low01 = CAIRN_MM(unpacklo_epi8)(x0, x1), high01 = CAIRN_MM(unpackhi_epi8)(x0, x1);
      const Ints low23 = CAIRN_MM(unpacklo_epi8)(x2, x3), high23 = CAIRN_MM(unpackhi_epi8)(x2, x3);
      const auto add = [&](int k, Ints x) CAIRN_DOTS {
        sums[k] = CAIRN_MM(dpbusd_epi32)(sums[k], x, CAIRN_SI(loadu)(reinterpret_cast<const Ints*>(weights + 64 * k)));
      };
      add(0, CAIRN_MM(unpacklo_epi16)(low01, low23));
      add(1, CAIRN_MM(unpackhi_epi16)(low01, low23));
      add(2, CAIRN_MM(unpacklo_epi16)(high01, high23));
      add(3, CAIRN_MM(unpackhi_epi16)(high01, high23));
    }
    for (int k = 0; k < 4; ++k) {
      Floats y = CAIRN_MM(fmadd_ps)(CAIRN_MM(cvtepi32_ps)(sums[k]), CAIRN_MM(load_ps)(b.scale + 16 * k),
                                    CAIRN_MM(load_ps)(b.bias + 16 * k));
      if constexpr (kClips) y = CAIRN_MM(max_ps)(y, low);
      y = CAIRN_MM(min_ps)(y, high);
      sums[k] = CAIRN_MM(add_epi32)(CAIRN_MM(cvtps_epi32)(y), zero);
    }
    // Bytes of either sign: where the bounds keep them in range, the lowest 8 bits of words are what is wanted.
    Ints first = CAIRN_MM(packs_epi32)(sums[0], sums[1]), second = CAIRN_MM(packs_epi32)(sums[2], sums[3]);
    if constexpr (kClips) first = CAIRN_SI(and)(first, byte), second = CAIRN_SI(and)(second, byte);
    CAIRN_MM(mask_storeu_epi8)(to, mask, CAIRN_MM(packus_epi16)(first, second));
  }
}

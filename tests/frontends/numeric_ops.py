"""Cases of make_ops.py for linear algebra, Fourier transforms, special functions, decoders, diagonals, windows, blocks of
recurrent layers and simulated quantisation."""
import operator

import numpy as np
import tensorflow as tf

raw = tf.raw_ops
R = np.random.default_rng(13)


def f(*shape):
    return R.normal(size=shape).astype(np.float32)


def f64(*shape):
    return R.normal(size=shape)


def flat(*results):
    """Several results as one."""
    return tf.concat([tf.reshape(tf.cast(each, tf.float32), [-1]) for each in results], 0)


def pairs(z):
    return tf.stack([tf.math.real(z), tf.math.imag(z)], -1)


def positive_definite(*batch, n=4):
    a = f(*batch, n, n)
    return a @ np.swapaxes(a, -1, -2) + np.eye(n, dtype=np.float32)


def regular(*batch, n=4, make=f):
    return make(*batch, n, n) + 3 * np.eye(n, dtype=make().dtype)


def gradient(function):
    """What training by a function computes: the gradient of a weighted sum."""

    def by_x(x, *others):
        y = function(x, *others)
        weights = tf.reshape(tf.range(1.0, tf.cast(tf.size(y), y.dtype) + 1), tf.shape(y))
        return tf.gradients(y * weights, x)[0]

    return by_x


def singular(x, full=False):
    s, u, v = tf.linalg.svd(x, full_matrices=full)
    k = tf.shape(s)[-1]
    return flat(s, tf.matmul(u[..., :k] * s[..., tf.newaxis, :], v[..., :k], adjoint_b=True), tf.abs(tf.matmul(u, u, adjoint_a=True)))


def eigen(x):
    values, vectors = tf.linalg.eigh(x)
    return flat(values, tf.matmul(vectors * values[..., tf.newaxis, :], vectors, adjoint_b=True))


S, A, B = positive_definite(3), regular(3), f(3, 4, 2)
LINEAR = {
    "MatrixInverse": (tf.linalg.inv, [A]), "MatrixInverseAdjoint": (lambda x: tf.linalg.inv(x, adjoint=True), [A]),
    "MatrixInverseDouble": (tf.linalg.inv, [regular(2, 2, make=f64)]), "MatrixInverseEmpty": (tf.linalg.inv, [f(2, 0, 0)]),
    "MatrixInverseGradient": (gradient(tf.linalg.inv), [A]),
    "MatrixSolve": (tf.linalg.solve, [A, B]), "MatrixSolveAdjoint": (lambda a, b: tf.linalg.solve(a, b, adjoint=True), [A, B]),
    "MatrixSolveGradient": (gradient(tf.linalg.solve), [A, B]),
    **{f"MatrixTriangularSolve{lower}{adjoint}": (lambda a, b, lo=lower, ad=adjoint: tf.linalg.triangular_solve(a, b, lower=lo, adjoint=ad), [A, B])
       for lower in (False, True) for adjoint in (False, True)},
    "MatrixTriangularSolveBroadcast": (lambda a, b: tf.linalg.triangular_solve(a, b), [A, f(2, 1, 4, 3)]),
    "Cholesky": (tf.linalg.cholesky, [S]), "CholeskyGradient": (gradient(tf.linalg.cholesky), [S]),
    "CholeskyGrad": (lambda x, d: raw.CholeskyGrad(l=tf.linalg.cholesky(x), grad=d), [S, f(3, 4, 4)]),
    "CholeskySolve": (lambda a, b: tf.linalg.cholesky_solve(tf.linalg.cholesky(a), b), [S, B]),
    "MatrixDeterminant": (tf.linalg.det, [A]), "MatrixDeterminantSingular": (tf.linalg.det, [np.float32([[[1, 2], [2, 4]]])]),
    "LogMatrixDeterminant": (lambda x: flat(*tf.linalg.slogdet(x)), [np.concatenate([A, -A[:1] * np.float32([[1], [-1], [1], [1]])])]),
    "MatrixDeterminantGradient": (gradient(tf.linalg.det), [A]),
    "Qr": (lambda x: flat(*tf.linalg.qr(x)), [f(2, 5, 3)]), "QrFull": (lambda x: flat(*tf.linalg.qr(x, full_matrices=True)), [f(2, 5, 3)]),
    "QrWide": (lambda x: flat(*tf.linalg.qr(x)), [f(2, 3, 5)]),
    "Svd": (singular, [f(2, 5, 3)]), "SvdFull": (lambda x: singular(x, True), [f(2, 3, 5)]), "SvdGradient": (gradient(lambda x: tf.linalg.svd(x, compute_uv=False)), [f(2, 4, 3)]),
    "Pinv": (tf.linalg.pinv, [f(2, 5, 3)]), "Lstsq": (lambda a, b: tf.linalg.lstsq(a, b, 0.1), [f(2, 6, 3), f(2, 6, 2)]),
    "SelfAdjointEigV2": (eigen, [S]), "SelfAdjointEigValues": (tf.linalg.eigvalsh, [S]), "Expm": (tf.linalg.expm, [0.1 * A]),
}

BAND, SQUARE, WIDE = f(2, 3, 4), f(2, 4, 4), f(2, 3, 5)
DIAGONALS = {
    **{f"MatrixDiagV3{align}": (lambda x, a=align: tf.linalg.diag(x, k=(-1, 1), align=a), [BAND])
       for align in ("RIGHT_LEFT", "LEFT_RIGHT", "LEFT_LEFT", "RIGHT_RIGHT")},
    "MatrixDiagUpper": (lambda x: tf.linalg.diag(x, k=2), [f(2, 3)]), "MatrixDiagLower": (lambda x: tf.linalg.diag(x, k=-1, padding_value=7), [f(2, 3)]),
    "MatrixDiagSized": (lambda x: tf.linalg.diag(x, k=(-2, -1), num_rows=5, num_cols=4, padding_value=-1.0), [f(2, 2, 4)]),
    "MatrixDiagOneSize": (lambda x: tf.linalg.diag(x, k=1, num_rows=6), [f(2, 3)]),
    "MatrixDiagV2": (lambda x: raw.MatrixDiagV2(diagonal=x, k=[-1, 1], num_rows=-1, num_cols=-1, padding_value=0.0), [BAND]),
    **{f"MatrixDiagPart{k}": (lambda x, k=k: tf.linalg.diag_part(x, k=k, padding_value=9.0), [WIDE]) for k in (0, 2, -1, (-1, 2), (1, 3))},
    **{f"MatrixDiagPart{align}": (lambda x, a=align: tf.linalg.diag_part(x, k=(-2, 3), align=a), [WIDE])
       for align in ("LEFT_RIGHT", "LEFT_LEFT", "RIGHT_RIGHT")},
    "MatrixDiagPartV2": (lambda x: raw.MatrixDiagPartV2(input=x, k=[-1, 1], padding_value=0.5), [SQUARE]),
    "MatrixSetDiagBand": (lambda x, d: tf.linalg.set_diag(x, d, k=(-1, 1)), [SQUARE, BAND]), "MatrixSetDiagWide": (lambda x, d: tf.linalg.set_diag(x, d, k=1), [WIDE, f(2, 3)]),
    "MatrixDiagGradient": (gradient(lambda x: tf.linalg.diag(x, k=(-1, 1))), [BAND]), "MatrixSetDiagGradient": (gradient(lambda x, d: tf.linalg.set_diag(x, d, k=(-1, 1))), [SQUARE, BAND]),
    "Trace": (tf.linalg.trace, [SQUARE]),
    **{f"EinsumRepeated{n}": (lambda *a, e=equation: tf.einsum(e, *a), arrays) for n, (equation, arrays) in enumerate([
        ("bii->b", [SQUARE]), ("bii->bi", [SQUARE]), ("...ii", [SQUARE]), ("bii,bij->bj", [SQUARE, f(2, 4, 3)]), ("biji->jb", [f(2, 3, 4, 3)])])},
    "EinsumSpread": (lambda x: raw.Einsum(inputs=[x], equation="bi->bii"), [f(2, 3)]),
    "EinsumDiagonalGradient": (gradient(lambda x: tf.einsum("bii->bi", x)), [SQUARE]),
    "SplitVComputed": (lambda x, n: tf.split(x, n, 1)[1], [f(2, 6, 3), np.int32([1, 3, 2])]),
    "SplitVComputedRest": (lambda x, n: tf.concat(raw.SplitV(value=x, size_splits=tf.stack([n, -1, 2]), axis=-1, num_split=3)[:2], 1), [f(2, 6), np.int32(1)]),
    "SplitVOpen": (lambda x: tf.split(x, [1, -1], 0)[1], [f(3, 2)]),
    "TensorStridedSliceUpdate": (lambda x, v: raw.TensorStridedSliceUpdate(input=x, begin=[0, 1], end=[2, 4], strides=[1, 2], value=v), [f(3, 5), f(2, 2)]),
    "TensorStridedSliceUpdateMasks": (lambda x, v: raw.TensorStridedSliceUpdate(input=x, begin=[1, 0], end=[0, 0], strides=[1, -1], value=v, end_mask=2, begin_mask=2, shrink_axis_mask=1), [f(3, 5), f(5)]),
    "InplaceAdd": (lambda x, v: raw.InplaceAdd(x=x + 0, i=[2, 0], v=v), [f(3, 5), f(2, 5)]), "InplaceUpdate": (lambda x, v: raw.InplaceUpdate(x=x + 0, i=[2, 0], v=v), [f(3, 5), f(2, 5)]),
    "InplaceSub": (lambda x, v: raw.InplaceSub(x=x + 0, i=[1], v=v), [f(3, 5), f(1, 5)]),
    "UnravelIndex": (lambda n: tf.unravel_index(n, [3, 4, 5]), [np.int32([0, 59, 17])]),
}

GAMMA = np.float32([0.1, 0.5, 1, 2, 2.5, 10, 50, 1000])
NO_NUMBERS = np.float32([[1, 2, np.nan, 3, 4, 5], [np.nan, np.nan, 1, 2, np.nan, -np.inf], [1, np.inf, -np.inf, 2, np.nan, 1],
                         [np.inf, 1, 1, np.inf, 2, 3], [-np.inf, -np.inf, np.nan, 1, 1, 1], [np.nan, np.inf, 2, 0, 1, 2]])
BITS, MORE_BITS = R.integers(-100, 100, 12).astype(np.int32), R.integers(0, 9, 12).astype(np.int32)
SPECIAL = {
    "Lgamma": (tf.math.lgamma, [np.append(GAMMA, np.float32([-0.5, -2.3, 0, -1, np.nan, np.inf]))]), "LgammaDouble": (tf.math.lgamma, [GAMMA.astype(np.float64)]),
    "LgammaGradient": (gradient(tf.math.lgamma), [GAMMA]), "Digamma": (tf.math.digamma, [np.append(GAMMA, np.float32([-0.5, -2.3]))]),
    "Erfinv": (tf.math.erfinv, [np.float32([-1, -0.9, 0, 0.3, 0.99, 1])]), "Ndtri": (tf.math.ndtri, [np.float32([0, 0.01, 0.3, 0.5, 0.99, 1])]),
    "BesselI0": (tf.math.bessel_i0, [3 * f(9)]), "BesselI1": (tf.math.bessel_i1, [3 * f(9)]), "BesselI0e": (tf.math.bessel_i0e, [3 * f(9)]), "BesselI1e": (tf.math.bessel_i1e, [3 * f(9)]),
    "Igamma": (tf.math.igamma, [GAMMA, GAMMA[::-1].copy()]), "Igammac": (tf.math.igammac, [GAMMA, GAMMA[::-1].copy()]),
    "Betainc": (tf.math.betainc, [GAMMA[:6], GAMMA[:6][::-1].copy(), np.float32([0, 0.1, 0.5, 0.7, 0.99, 1])]),
    "Zeta": (tf.math.zeta, [np.float32([1.5, 2, 3, 8]), np.float32([1, 0.5, 4, 2])]), "Polygamma": (tf.math.polygamma, [np.float32([0, 1, 2, 3]), np.float32([1, 0.5, 4, 2])]),
    "BitwiseAnd": (tf.bitwise.bitwise_and, [BITS, MORE_BITS]), "BitwiseOr": (tf.bitwise.bitwise_or, [BITS, MORE_BITS]), "BitwiseXor": (tf.bitwise.bitwise_xor, [BITS, MORE_BITS]),
    "Invert": (tf.bitwise.invert, [BITS]), "LeftShift": (tf.bitwise.left_shift, [BITS, MORE_BITS]), "RightShift": (tf.bitwise.right_shift, [BITS, MORE_BITS]),
    "PopulationCount": (lambda x: raw.PopulationCount(x=x), [BITS]), "Bitcast": (lambda x: tf.bitcast(x, tf.int32), [f(2, 3)]),
    "CumulativeLogsumexp": (lambda x: tf.math.cumulative_logsumexp(x, 1), [9 * f(2, 7)]), "CumulativeLogsumexpReversed": (lambda x: tf.math.cumulative_logsumexp(x, -1, exclusive=True, reverse=True), [f(2, 5)]),
    "CumulativeLogsumexpOfNoNumbers": (lambda x: tf.math.cumulative_logsumexp(x, 1), [NO_NUMBERS]), "CumulativeLogsumexpOfNoNumbersReversed": (lambda x: tf.math.cumulative_logsumexp(x, 1, exclusive=True, reverse=True), [NO_NUMBERS]),
    "HistogramFixedWidth": (lambda x: tf.histogram_fixed_width(x, [-1.0, 1.5], 7), [f(40)]),
    "NthElement": (lambda x: raw.NthElement(input=x, n=2), [f(3, 7)]), "NthElementReverse": (lambda x: raw.NthElement(input=x, n=0, reverse=True), [f(3, 7)]),
    "AccumulateNV2": (lambda x, y: raw.AccumulateNV2(inputs=[x, y], shape=[2, 3]), [f(2, 3), f(2, 3)]),
}

SIGNAL = f(2, 3, 12)
IMAGES = f(2, 6, 10)


def complex_of(x, y):
    return tf.complex(x, y)


def complex_op(op):
    return lambda a, b, c, d: pairs(op(complex_of(a, b), complex_of(c, d)))


def complex_function(op):
    return lambda a, b: pairs(op(complex_of(a, b)))


QUAD = [f(2, 3), f(2, 3), f(2, 3), f(2, 3)]
FOURIER = {
    **{name: ((lambda op: lambda a, b: pairs(op(input=complex_of(a, b))))(getattr(raw, name)), [f(2, 3, 4, 5), f(2, 3, 4, 5)])
       for name in ("FFT", "IFFT", "FFT2D", "IFFT2D", "FFT3D", "IFFT3D")},
    "FFTDouble": (lambda a, b: pairs(tf.signal.fft(complex_of(a, b))), [f64(2, 7), f64(2, 7)]),
    "FFTPrime": (lambda a, b: pairs(tf.signal.fft(complex_of(a, b))), [f(2, 97), f(2, 97)]),
    "RFFT": (lambda x: pairs(tf.signal.rfft(x)), [SIGNAL]), "RFFTLonger": (lambda x: pairs(tf.signal.rfft(x, [16])), [SIGNAL]), "RFFTShorter": (lambda x: pairs(tf.signal.rfft(x, [7])), [SIGNAL]),
    "RFFT2D": (lambda x: pairs(tf.signal.rfft2d(x, [8, 8])), [IMAGES]), "RFFT3D": (lambda x: pairs(tf.signal.rfft3d(x)), [f(2, 3, 4, 6)]),
    "IRFFT": (lambda a, b: tf.signal.irfft(complex_of(a, b)), [f(2, 5), f(2, 5)]), "IRFFTOdd": (lambda a, b: tf.signal.irfft(complex_of(a, b), [9]), [f(2, 5), f(2, 5)]),
    "IRFFT2D": (lambda x: tf.signal.irfft2d(tf.signal.rfft2d(x) * 2), [IMAGES]), "RFFTGradient": (gradient(lambda x: tf.abs(tf.signal.rfft(x, [12]))), [SIGNAL]),
    "ComplexAbs": (lambda a, b: tf.abs(complex_of(a, b)), QUAD[:2]), "Angle": (lambda a, b: tf.math.angle(complex_of(a, b)), QUAD[:2]),
    **{"Complex" + name: (complex_op(op), QUAD) for name, op in (
        ("Add", tf.add), ("Sub", tf.subtract), ("Mul", tf.multiply), ("Div", tf.divide), ("SquaredDifference", tf.math.squared_difference))},
    **{"Complex" + name: (complex_function(op), QUAD[:2]) for name, op in (
        ("Conj", tf.math.conj), ("Neg", tf.negative), ("Exp", tf.exp), ("Log", tf.math.log), ("Sqrt", tf.sqrt), ("Square", tf.square), ("Reciprocal", tf.math.reciprocal),
        ("Sum", lambda z: tf.reduce_sum(z, -1)), ("Mean", lambda z: tf.reduce_mean(z, [0, 1])), ("Cumsum", lambda z: tf.cumsum(z, 1)), ("ZerosLike", tf.zeros_like), ("OnesLike", tf.ones_like),
        ("Pad", lambda z: tf.pad(z, [[0, 1], [2, 0]])), ("Moves", lambda z: tf.reverse(tf.transpose(tf.concat([z, z[:, 1:]], 1)), [0])), ("Where", lambda z: tf.where(tf.abs(z) > 1, z, -z)),
        ("Gather", lambda z: tf.gather(z, [1, 0, 2], axis=1)), ("Reshape", lambda z: tf.reshape(z, [-1, 1])), ("Adjoint", tf.linalg.adjoint), ("Constant", lambda z: z * (2 - 1j)))},
    "ComplexMatMul": (lambda a, b, c, d: pairs(tf.matmul(complex_of(a, b), complex_of(c, d), adjoint_b=True)), [f(2, 3, 4), f(2, 3, 4), f(2, 5, 4), f(2, 5, 4)]),
    "ComplexEinsum": (lambda a, b, c, d: pairs(tf.einsum("bij,bkj->bik", complex_of(a, b), complex_of(c, d))), [f(2, 3, 4), f(2, 3, 4), f(2, 5, 4), f(2, 5, 4)]),
    "ComplexEqual": (lambda a, b: tf.equal(complex_of(a, b), complex_of(a, tf.abs(b))), QUAD[:2]),
    "ComplexMulGradient": (gradient(lambda a, b: tf.abs(complex_of(a, b) * complex_of(b, a))), QUAD[:2]),
    "ComplexDouble": (lambda a, b: pairs(tf.transpose(complex_of(a, b) * complex_of(b, a))), [f64(2, 3), f64(2, 3)]),
    "ComplexCast": (lambda a, b: pairs(tf.cast(tf.cast(complex_of(a, b), tf.complex128), tf.complex64)) + pairs(tf.cast(a, tf.complex64)), QUAD[:2]),
    "Stft": (lambda x: tf.abs(tf.signal.stft(x, 16, 6)), [f(2, 50)]), "StftPadded": (lambda x: pairs(tf.signal.stft(x, 12, 5, 20, pad_end=True)), [f(2, 41)]),
    "InverseStft": (lambda x: tf.signal.inverse_stft(tf.signal.stft(x, 16, 8), 16, 8), [f(2, 64)]), "StftGradient": (gradient(lambda x: tf.abs(tf.signal.stft(x, 16, 6))), [f(2, 50)]),
    **{f"Dct{n}": (lambda x, n=n: tf.signal.dct(x, n, norm="ortho" if n < 4 and n > 1 else None), [SIGNAL]) for n in (1, 2, 3, 4)},
    "Idct": (lambda x: tf.signal.idct(x, 2), [SIGNAL]),
    "Mfccs": (lambda x: tf.signal.mfccs_from_log_mel_spectrograms(tf.math.log(tf.tensordot(tf.abs(tf.signal.stft(x, 32, 16)), tf.signal.linear_to_mel_weight_matrix(8, 17, 8000, 100.0, 3500.0), 1) + 1e-3)), [f(2, 100)]),
    "AudioSpectrogram": (lambda x: raw.AudioSpectrogram(input=x, window_size=20, stride=7), [f(90, 2)]), "AudioSpectrogramSquared": (lambda x: raw.AudioSpectrogram(input=x, window_size=16, stride=16, magnitude_squared=True), [f(90, 1)]),
    "Mfcc": (lambda x: raw.Mfcc(spectrogram=raw.AudioSpectrogram(input=x, window_size=400, stride=160, magnitude_squared=True), sample_rate=16000), [f(1500, 1)]),
    "MfccMore": (lambda x: raw.Mfcc(spectrogram=x, sample_rate=8000, upper_frequency_limit=3000, lower_frequency_limit=100, filterbank_channel_count=12, dct_coefficient_count=12), [np.abs(f(1, 4, 65))]),
}

LOGITS, LENGTHS = 3 * f(9, 3, 5), np.int32([9, 4, 7])
CTC = {
    **{f"CTCGreedyDecoder{which}": (lambda x, n, more=more: flat(*raw.CTCGreedyDecoder(inputs=x, sequence_length=n, **more)), [LOGITS, LENGTHS])
       for which, more in (("", {}), ("Merged", {"merge_repeated": True}), ("Blank", {"merge_repeated": True, "blank_index": 0}))},
    **{f"CTCBeamSearchDecoder{width}{merge}{paths}": (
        lambda x, n, w=width, m=merge, p=paths: flat(*sum(([*part] for part in raw.CTCBeamSearchDecoder(inputs=x, sequence_length=n, beam_width=w, top_paths=p, merge_repeated=m)[:3]), []),
                                                     raw.CTCBeamSearchDecoder(inputs=x, sequence_length=n, beam_width=w, top_paths=p, merge_repeated=m)[3]),
        [LOGITS, LENGTHS]) for width, merge, paths in ((1, False, 1), (4, True, 1), (100, False, 3), (7, False, 2))},
    "CTCDense": (lambda x, n: tf.sparse.to_dense(tf.nn.ctc_beam_search_decoder(x, n, 10)[0][0], -1), [LOGITS, LENGTHS]),
}

IMAGE, STRUCTURE = f(2, 9, 8, 4), f(3, 2, 4)
POOL = dict(ksize=[1, 3, 3, 1], strides=[1, 2, 2, 1])
DILATION = dict(strides=[1, 2, 1, 1], rates=[1, 1, 2, 1], padding="SAME")
DILATED = raw.Dilation2D(input=IMAGE, filter=STRUCTURE, **DILATION).numpy()
WINDOWS = {
    **{f"MaxPoolWithArgmax{padding}{batch}": (lambda x, p=padding, b=batch: flat(*raw.MaxPoolWithArgmax(input=x, padding=p, include_batch_in_index=b, **POOL)), [IMAGE])
       for padding in ("SAME", "VALID") for batch in (False, True)},
    "MaxPoolWithArgmaxTies": (lambda x: raw.MaxPoolWithArgmax(input=x, padding="SAME", **POOL)[1], [np.round(np.maximum(IMAGE, 0))]),
    "MaxPoolV2": (lambda x: raw.MaxPoolV2(input=x, ksize=[1, 3, 2, 1], strides=[1, 2, 1, 1], padding="SAME"), [IMAGE]),
    **{f"MaxPoolGradWithArgmax{batch}": (lambda x, d, b=batch: raw.MaxPoolGradWithArgmax(
        input=x, grad=d, argmax=raw.MaxPoolWithArgmax(input=x, padding="SAME", include_batch_in_index=b, **POOL)[1], padding="SAME", include_batch_in_index=b, **POOL), [IMAGE, f(2, 5, 4, 4)])
       for batch in (False, True)},
    "Dilation2D": (lambda x, k: raw.Dilation2D(input=x, filter=k, **DILATION), [IMAGE, STRUCTURE]),
    "Dilation2DValid": (lambda x: tf.nn.erosion2d(x, STRUCTURE, [1, 1, 1, 1], "VALID", "NHWC", [1, 1, 1, 1]), [IMAGE]),
    "Dilation2DBackpropInput": (lambda x, k, d: raw.Dilation2DBackpropInput(input=x, filter=k, out_backprop=d, **DILATION), [IMAGE, STRUCTURE, f(*DILATED.shape)]),
    "Dilation2DBackpropFilter": (lambda x, k, d: raw.Dilation2DBackpropFilter(input=x, filter=k, out_backprop=d, **DILATION), [IMAGE, STRUCTURE, f(*DILATED.shape)]),
}

CELL = dict(w=f(3 + 4, 16), wci=f(4), wcf=f(4), wco=f(4), b=f(16))
FORWARD = dict(forget_bias=0.7, cell_clip=0.4)
SEQUENCE, CELLS, STATES = f(6, 2, 3), f(2, 4), f(2, 4)
SEVEN = "i cs f o ci co h".split()


def block(steps, peephole, op=raw.BlockLSTM, **more):
    return lambda x, c, h: flat(*op(seq_len_max=np.int64(steps), x=x, cs_prev=c, h_prev=h, use_peephole=peephole, **CELL, **more))


def block_gradient(steps, peephole, second, **more):
    def gradients(x, c, h, dc, dh):
        sizes = dict(seq_len_max=np.int64(steps), x=x, cs_prev=c, h_prev=h, use_peephole=peephole, **CELL)
        made = (raw.BlockLSTMV2 if second else raw.BlockLSTM)(**sizes, **more)
        op = raw.BlockLSTMGradV2 if second else raw.BlockLSTMGrad
        return flat(*op(**sizes, **dict(zip(SEVEN, made)), cs_grad=dc, h_grad=dh))

    return gradients


def cell_gradient(x, c, h, dc, dh):
    made = raw.LSTMBlockCell(x=x, cs_prev=c, h_prev=h, use_peephole=True, **CELL)
    return flat(*raw.LSTMBlockCellGrad(x=x, cs_prev=c, h_prev=h, **CELL, **dict(zip(SEVEN[:6], made)), cs_grad=dc, h_grad=dh, use_peephole=True))


GRU = dict(w_ru=f(7, 8), w_c=f(7, 4), b_ru=f(8), b_c=f(4))


def gru_gradient(x, h, d):
    r, u, c, _ = raw.GRUBlockCell(x=x, h_prev=h, **GRU)
    return flat(*raw.GRUBlockCellGrad(x=x, h_prev=h, r=r, u=u, c=c, d_h=d, **GRU))


LAYER, GRADIENTS = [SEQUENCE, CELLS, STATES], [SEQUENCE, CELLS, STATES, f(6, 2, 4), f(6, 2, 4)]
BLOCKS = {
    "BlockLSTM": (block(6, False, **FORWARD), LAYER), "BlockLSTMPeephole": (block(6, True, cell_clip=0, forget_bias=1), LAYER), "BlockLSTMShorter": (lambda x, c, h: flat(*operator.itemgetter(1, 6)(raw.BlockLSTM(seq_len_max=np.int64(4), x=x, cs_prev=c, h_prev=h, use_peephole=True, **CELL, **FORWARD))), LAYER),
    "BlockLSTMV2": (block(6, True, raw.BlockLSTMV2), LAYER), "BlockLSTMAlone": (lambda x, c, h: raw.BlockLSTM(seq_len_max=tf.cast(tf.shape(x)[0], tf.int64), x=x, cs_prev=c, h_prev=h, **CELL)[6], LAYER),
    "BlockLSTMGrad": (block_gradient(6, False, False), GRADIENTS), "BlockLSTMGradPeephole": (block_gradient(6, True, False), GRADIENTS),
    "BlockLSTMGradShorter": (block_gradient(3, True, False), GRADIENTS), "BlockLSTMGradV2": (block_gradient(6, True, True), GRADIENTS),
    "LSTMBlockCell": (lambda x, c, h: flat(*raw.LSTMBlockCell(x=x, cs_prev=c, h_prev=h, use_peephole=True, **CELL, **FORWARD)), [f(2, 3), CELLS, STATES]),
    "LSTMBlockCellGrad": (cell_gradient, [f(2, 3), CELLS, STATES, f(2, 4), f(2, 4)]),
    "GRUBlockCell": (lambda x, h: flat(*raw.GRUBlockCell(x=x, h_prev=h, **GRU)), [f(2, 3), STATES]), "GRUBlockCellGrad": (gru_gradient, [f(2, 3), STATES, f(2, 4)]),
}

BOUNDS = np.float32([-1, -2, 0, -3]), np.float32([1, 2, 3, 0.5])
QUANTISED = {
    "FakeQuantArgsGradient": (lambda d, x: raw.FakeQuantWithMinMaxArgsGradient(gradients=d, inputs=x, min=-0.7, max=0.9, num_bits=4), [f(2, 3, 4), f(2, 3, 4)]),
    "FakeQuantVarsGradient": (lambda d, x: flat(*raw.FakeQuantWithMinMaxVarsGradient(gradients=d, inputs=x, min=-0.7, max=0.9)), [f(2, 3, 4), f(2, 3, 4)]),
    "FakeQuantVarsGradientEmpty": (lambda d, x: flat(*raw.FakeQuantWithMinMaxVarsGradient(gradients=d, inputs=x, min=0.0, max=0.0)), [f(2, 3, 4), f(2, 3, 4)]),
    "FakeQuantPerChannelGradient": (lambda d, x: flat(*raw.FakeQuantWithMinMaxVarsPerChannelGradient(gradients=d, inputs=x, min=BOUNDS[0], max=BOUNDS[1], narrow_range=True)), [f(2, 3, 4), f(2, 3, 4)]),
}

PICTURE = f(3, 7, 6, 2)
TRANSFORMS = np.float32([[1, 0.2, -1, -0.3, 0.9, 2, 0, 0], [0.5, 0, -9, 0, 1.7, 8, 0.02, -0.03], [-1, 0, 5, 0, -1, 6, 0, -0.25]])


def warped(way, fill, op=raw.ImageProjectiveTransformV3, **more):
    return lambda x, t: op(images=x, **more, transforms=t, output_shape=[9, 5], interpolation=way, fill_mode=fill)


def batch_norm_of_old(x, scaled):
    """As graphs of 2015 have it: newer ones may not."""
    old = tf.compat.v1.GraphDef()
    old.versions.producer = 8
    old.node.add(name="x", op="Placeholder").attr["dtype"].type = 1
    for name, values in (("m", [0, 1, -1, 2]), ("v", [1, 0.2, 3, 2]), ("beta", [0, 1, 2, 3]), ("gamma", [1, 2, 0.3, -1])):
        const = old.node.add(name=name, op="Const")
        const.attr["dtype"].type = 1
        const.attr["value"].tensor.CopyFrom(tf.make_tensor_proto(np.float32(values)))
    norm = old.node.add(name="y", op="BatchNormWithGlobalNormalization", input=["x", "m", "v", "beta", "gamma"])
    norm.attr["T"].type, norm.attr["variance_epsilon"].f, norm.attr["scale_after_normalization"].b = 1, 0.01, scaled
    return tf.import_graph_def(old, {"x": x}, ["y:0"])[0]


WARPS = {
    **{f"ImageProjectiveTransform{way}{fill}": (warped(way, fill, fill_value=-0.5), [PICTURE, TRANSFORMS])
       for way in ("NEAREST", "BILINEAR") for fill in ("CONSTANT", "REFLECT", "WRAP", "NEAREST")},
    "ImageProjectiveTransformV2": (warped("BILINEAR", "CONSTANT", raw.ImageProjectiveTransformV2), [PICTURE, TRANSFORMS[:1]]),
    "ImageProjectiveTransformOfOne": (warped("BILINEAR", "REFLECT", fill_value=0.0), [f(2, 1, 1, 3), TRANSFORMS[:1]]),
    "ImageProjectiveTransformOfBytes": (warped("NEAREST", "WRAP", fill_value=3.0), [np.uint8(100 + 20 * PICTURE), TRANSFORMS]),
    "ImageProjectiveTransformGradient": (gradient(lambda x: warped("BILINEAR", "CONSTANT", fill_value=0.0)(x, TRANSFORMS)), [PICTURE]),
    "ResizeBicubicGrad": (gradient(lambda x: tf.compat.v1.image.resize_bicubic(x, [11, 5])), [PICTURE]),
    "ResizeBicubicGradHalfPixels": (gradient(lambda x: tf.image.resize(x, [4, 13], "bicubic")), [PICTURE]),
    "ResizeBicubicGradCorners": (gradient(lambda x: tf.compat.v1.image.resize_bicubic(x, [9, 9], align_corners=True)), [PICTURE]),
    **{f"StatelessRandomUniformFullInt{kind.name}": (lambda x, k=kind: tf.bitcast(tf.random.stateless_uniform([3, 5], [1, 2], None, None, k), tf.int32), [f(1)]) for kind in (tf.int32, tf.int64, tf.uint32, tf.uint64)},
    "ComplexChain": (lambda a, b: pairs(tf.exp(tf.complex(a, b)) * tf.complex(b, a) + tf.complex(a, a) / tf.complex(tf.abs(b) + 1, a) - tf.sqrt(tf.complex(a, b))), [f(3, 4), f(3, 4)]),
    "ExtractVolumePatches": (lambda x: tf.extract_volume_patches(x, [1, 2, 3, 1, 1], [1, 1, 2, 3, 1], "SAME"), [f(2, 3, 5, 4, 2)]),
    "ExtractVolumePatchesValid": (lambda x: tf.extract_volume_patches(x, [1, 2, 2, 3, 1], [1, 2, 1, 1, 1], "VALID"), [f(2, 5, 4, 3, 2)]),
    **{f"MaxPoolGradGrad{padding}": (lambda x, d, p=padding: raw.MaxPoolGradGrad(
        orig_input=x, orig_output=tf.nn.max_pool2d(x, POOL["ksize"], POOL["strides"], p), grad=d, padding=p, **POOL), [np.round(IMAGE * 2), f(*IMAGE.shape)]) for padding in ("SAME", "VALID")},
    "MaxPoolGradGradV2": (lambda x, d: raw.MaxPoolGradGradV2(
        orig_input=x, orig_output=tf.nn.max_pool2d(x, 2, 2, "VALID"), grad=d, ksize=[1, 2, 2, 1], strides=[1, 2, 2, 1], padding="VALID"), [IMAGE, f(*IMAGE.shape)]),
    **{f"BatchNormOfOld{scaled}": (lambda x, s=scaled: batch_norm_of_old(x, s), [IMAGE]) for scaled in (True, False)},
    # Of several images TensorFlow's kernel gives the first alone what padding and convolving give.
    **{f"FusedPadConv2D{mode}": (lambda x, m=mode: raw.FusedPadConv2D(
        input=x, paddings=[[0, 0], [2, 1], [1, 2], [0, 0]], filter=f(3, 3, 4, 5), mode=m, strides=[1, 2, 1, 1], padding="VALID"), [IMAGE[:1]]) for mode in ("REFLECT", "SYMMETRIC")},
    "Reverse": (lambda x: raw.Reverse(tensor=x, dims=[False, True, False, True]), [IMAGE]),
    **{f"MatrixSolveLs{which}": (lambda a, b, r=ridge: tf.linalg.lstsq(a, b, l2_regularizer=r), [left, right])
       for which, left, right, ridge in (("Tall", f(2, 6, 3), f(2, 6, 2), 0.0), ("Ridge", f(2, 6, 3), f(2, 6, 2), 0.3), ("Wide", f(2, 3, 5), f(2, 3, 1), 0.1))},
    "TridiagonalMatMul": (lambda a, d, s, x: raw.TridiagonalMatMul(superdiag=a, maindiag=d, subdiag=s, rhs=x), [f(2, 1, 5), f(2, 1, 5), f(2, 1, 5), f(2, 5, 3)]),
}

CASES = {**WARPS, **BLOCKS, **QUANTISED, **LINEAR, **DIAGONALS, **SPECIAL, **FOURIER, **CTC, **WINDOWS}

# Inputs whose first dim is no batch.
FIXED = {
    **{name: (0, 1) for name in CASES if name.startswith("CTC")}, **{name: (1,) for name in CASES if name.startswith("Dilation2D")},
    "ImageProjectiveTransformV2": (1,), "ImageProjectiveTransformOfOne": (1,),
    "SplitVComputed": (1,), "TensorStridedSliceUpdate": (1,), "TensorStridedSliceUpdateMasks": (1,), "InplaceAdd": (1,), "InplaceUpdate": (1,), "InplaceSub": (1,), "MatrixTriangularSolveBroadcast": (1,), "MatrixSetDiagBand": (0, 1), "MatrixSetDiagGradient": (0, 1),
}

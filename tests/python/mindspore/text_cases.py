"""Text transforms and what they are given.

    python text_cases.py OUT.json     what real MindSpore answers
"""

import json
import sys

import numpy as np

TEXTS = ["Welcome  to 北京! don\u2019t Stop\u3000[UNK] caf\u00e9 cafe\u0301 \u0130stanbul a_b-c $5 <x> \tX\n", "plain words here", "", "   ", "Ünïcödé ΑΒΓ абв 123",
         "welcome welcomexx [CLS]a[SEP] [MASK]b [unused3] [PAD", "日本語 テキスト 한국어", "line\r\nnext\u0000\ufffd\u00ad end", "ﬁne ß ſ Ⅷ ½"]  # fmt: skip
WORDS = ["wel", "##come", "to", "北", "京", "[UNK]", "caf", "##e", "stop", "!", "##é", "don", "a", "b", "[CLS]", "[SEP]", "##xx", "x", "5", "$", "plain",
         "word", "##s", "here", "[MASK]"]  # fmt: skip
FORMS = ("NONE", "NFC", "NFKC", "NFD", "NFKD")


def cases(text, types):
    """{name: (transform, inputs)}; text is mindspore.dataset.text, types mindspore.dtype, real or ours."""
    vocab = text.Vocab.from_list(WORDS)
    forms = [getattr(text.NormalizeForm, name) for name in FORMS]
    made = {}
    for offsets in (False, True):
        made[f"whitespace {offsets}"] = text.WhitespaceTokenizer(offsets)
        made[f"characters {offsets}"] = text.UnicodeCharTokenizer(offsets)
        for keep in (False, True):
            made[f"script {keep} {offsets}"] = text.UnicodeScriptTokenizer(keep, offsets)
            made[f"basic keeps {keep} {offsets}"] = text.BasicTokenizer(False, keep, with_offsets=offsets)
            made[f"basic unused {keep} {offsets}"] = text.BasicTokenizer(False, preserve_unused_token=keep, with_offsets=offsets)
        made[f"basic lower {offsets}"] = text.BasicTokenizer(True, with_offsets=offsets)
        made[f"bert lower {offsets}"] = text.BertTokenizer(vocab, lower_case=True, with_offsets=offsets)
        made[f"bert {offsets}"] = text.BertTokenizer(vocab, unknown_token="", with_offsets=offsets)
        made[f"bert short {offsets}"] = text.BertTokenizer(vocab, max_bytes_per_token=5, keep_whitespace=True, with_offsets=offsets)
        for pattern, kept in (("\\s+", ""), ("\\s+", "\\s+"), ("[\\p{P}|\\p{S}]", "[\\p{P}]"), ("o", "o")):
            made[f"regex {pattern} {kept} {offsets}"] = text.RegexTokenizer(pattern, kept, offsets)
    for form, name in zip(forms, FORMS):
        made[f"form {name}"] = text.NormalizeUTF8(form)
        made[f"basic {name}"] = text.BasicTokenizer(False, normalization_form=form)
    made["fold"] = text.CaseFold()
    made["replace"] = text.RegexReplace("[aeo]", "<$0>")
    made["replace one"] = text.RegexReplace("(\\w)(\\w)", "$2$1", False)
    told = {name: (transform, TEXTS) for name, transform in made.items()}
    words = [["welcome", "to", "xx", "cafe", "caf\u00e9", "a" * 120, ""], ["here"]]
    for offsets in (False, True):
        told[f"pieces {offsets}"] = (text.WordpieceTokenizer(vocab, with_offsets=offsets), words)
        told[f"pieces no unknown {offsets}"] = (text.WordpieceTokenizer(vocab, unknown_token="", max_bytes_per_token=4, with_offsets=offsets), words)
    lists = [["a", "b", "c", "d"], ["x"], ["u", "v"]]
    told["ngrams"] = (text.Ngram([2, 3], ("<", 2), (">", 1), " "), lists)
    told["ngram"] = (text.Ngram(3, separator="-"), lists)
    told["ngram padded"] = (text.Ngram(2, ("_", 4), ("_", 1)), lists)
    told["window"] = (text.SlidingWindow(2), lists)
    told["window of numbers"] = (text.SlidingWindow(3, 0), [[1, 2, 3, 4], [1], [5, 6, 7]])
    told["lookup"] = (text.Lookup(vocab, "[UNK]"), [["to", "nothing", "a"], "stop"])
    told["lookup alone"] = (text.Lookup(vocab), [["to", "a"], ["nothing"]])
    told["truncated"] = (text.Truncate(3), lists)
    told["begun"] = (text.AddToken("[CLS]"), lists)
    told["ended"] = (text.AddToken("[SEP]", False), lists)
    for kind in ("int8", "int64", "float32", "uint16"):
        told[f"number {kind}"] = (text.ToNumber(getattr(types, kind)), [["1", "-7", "300"], ["3.25"], ["12"], ["x1"], ["1e3"], [" 5"]])
    return told


def answer(transform, value):
    """What a transform gives as JSON, or None where it refuses."""
    try:
        made = transform(np.array(value))
    except (RuntimeError, ValueError, TypeError, OverflowError):
        return None
    made = made if isinstance(made, tuple) else (made,)
    return [[each.dtype.kind, np.asarray(each).tolist()] for each in map(np.asarray, made)]


def answers(text, types):
    """{name: [answer to each input]}."""
    return {name: [answer(transform, value) for value in inputs] for name, (transform, inputs) in cases(text, types).items()}


if __name__ == "__main__":
    from mindspore import dtype
    from mindspore.dataset import text

    with open(sys.argv[1], "w", encoding="utf-8") as file:
        json.dump(answers(text, dtype), file)

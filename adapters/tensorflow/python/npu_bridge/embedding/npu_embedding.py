"""The platform's embedding service over several devices, which is not part of Cairn."""


def __getattr__(name):
    if name.startswith("__"):
        raise AttributeError(name)
    raise NotImplementedError(f"npu_embedding.{name}: the embedding service is not supported; use tf.nn.embedding_lookup")

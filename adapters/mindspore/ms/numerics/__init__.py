"""What operators, layers, losses and optimisers compute, each once: compositions over `cairn.ms.core` that know no MindSpore names.

Arguments are tensors that already have one dtype; shapes and attributes are Python's. All works in eager and in graph mode.
"""

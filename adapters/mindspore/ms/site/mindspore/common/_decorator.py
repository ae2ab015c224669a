"""deprecated: marks functions that have successors."""

import functools

from mindspore import log


def deprecated(version, substitute, use_substitute_name=False):
    """Decorates a function or class: its first use warns of the release since which the substitute is there."""

    def mark(function):
        name, warned = function.__name__, []

        @functools.wraps(function)
        def call(*arguments, **keywords):
            if not warned:
                warned.append(True)
                log.warning(f"'{name}' is deprecated from version {version} and will be removed in a future version, use '{substitute}' instead.")
            return function(*arguments, **keywords)

        if use_substitute_name:
            call.__name__ = substitute
        return call

    return mark

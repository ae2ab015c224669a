"""What scripts import of the parser."""

from mindspore._extends.parse import standard_method  # noqa: F401

"""tf.contrib.summary: TensorFlow 2's summary writers with the recording scopes that contrib had."""

from tensorflow.python.ops.summary_ops_v2 import (  # noqa: F401
    all_v2_summary_ops as all_summary_ops,
)
from tensorflow.python.ops.summary_ops_v2 import (  # noqa: F401
    audio,
    create_file_writer,
    eval_dir,
    flush,
    generic,
    graph,
    histogram,
    image,
    import_event,
    initialize,
    never_record_summaries,
    record_if,
    record_summaries_every_n_global_steps,
    scalar,
    should_record_summaries,
    summary_writer_initializer_op,
)
from tensorflow.python.ops import summary_ops_v2 as _ops


def always_record_summaries():
    return record_if(True)


create_summary_file_writer = create_file_writer
SummaryWriter = _ops.SummaryWriter

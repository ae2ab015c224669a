"""How the commands in Python end: standard output that is lost is an error with a sentence (without one where its reader went
away), lost notes are none, and what the system refuses is told in a sentence."""

import argparse
import errno
import os
import sys

NO_ROOM = {errno.EFBIG, errno.ENOSPC, errno.EDQUOT, errno.EROFS}


class Parser(argparse.ArgumentParser):
    """Its help is output; argparse would not tell that it could not be written."""

    def _print_message(self, message, file=None):
        if message and file is not None and file is sys.stdout:
            file.write(message)
        else:
            super()._print_message(message, file)


def tell(sentence):
    """A line on standard error, where that can be written."""
    try:
        print(sentence, file=sys.stderr, flush=True)
    except (OSError, ValueError):
        pass


def write_text(path, text):
    """Replaces a file as a whole."""
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        part.write_text(text)
        os.replace(part, path)
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from None
    finally:
        part.unlink(missing_ok=True)


def end_with(name, main, failure):
    """Ends the process with the status of main(), or with `failure`."""
    try:
        try:
            status = main()
        except SystemExit as asked:  # wrong use, help
            status = asked.code
        if sys.stdout is None:
            raise OSError("standard output is closed")
        sys.stdout.flush()
    except BrokenPipeError:
        status = failure
    except (OSError, MemoryError) as error:
        tell(f"{name}: {sentence_of(error)}")
        status = failure
    leave(status)


def parsed(name, parser, failure=2):
    """The command line's options; help and wrong use end the process as end_with() does."""

    def raise_again():
        raise fault

    try:
        return parser.parse_args()
    except (OSError, SystemExit) as error:
        fault = error
        end_with(name, raise_again, failure)


def sentence_of(error):
    if isinstance(error, MemoryError):
        return "memory ran out"
    what = error.strerror or str(error)
    if error.errno in NO_ROOM:
        what = f"cannot be written: {what}"
    place = error.filename2 or error.filename  # of a copy the copy
    return f"{place}: {what}" if place else what


def leave(status):
    """Ends without the complaints of streams that cannot be flushed."""
    for stream in (sys.stdout, sys.stderr):
        try:
            if stream is not None:
                stream.flush()
        except (OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
    sys.exit(status)

"""How the commands in Python end: standard output that is lost is an error with a sentence (without one where its reader went
away), lost notes are none, what the system refuses is told in a sentence, and a signal is, behind which nothing half written is
left. Sentences begin as those of the commands in C++: "error: VERB: "."""

import argparse
import errno
import os
import resource
import signal
import sys

from cairn import _whole

WORK_MARK = ".cairn_work"  # in a work folder: what lies there is ours to replace, and no part of a project (src/migrate/tree.cpp)
NO_ROOM = {errno.EFBIG, errno.ENOSPC, errno.EDQUOT, errno.EROFS}


class Ended(BaseException):
    """A signal asks for the end."""


class Parser(argparse.ArgumentParser):
    """Its help is output; argparse would not tell that it could not be written."""

    def error(self, message):
        self.exit(2, f"error: {self.prog.split()[1]}: {message}\nRun with --help for more information.\n")

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


def refuse(verb, sentence, status):
    """Tells a fault; the status to end with."""
    tell(f"error: {verb}: {sentence}")
    return status


def write_text(path, text):
    """Replaces a file as a whole."""
    _whole.write(path, [text.encode()])


def _raise_ended(number, _frame):
    raise Ended(number)


def _catch_signals():
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM):
        if signal.getsignal(number) in (signal.SIG_DFL, signal.default_int_handler):  # not what the parent ignores
            signal.signal(number, _raise_ended)


def _end_by(verb, number):
    if number != signal.SIGINT:
        refuse(verb, f"ended by {signal.Signals(number).name}", 1)
    signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)


def end_with(verb, main, failure):
    """Ends the process with the status of main(), with `failure`, or by the signal that asked for it."""
    try:
        _catch_signals()
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
        status = refuse(verb, sentence_of(error), failure)
    except Ended as asked:
        _end_by(verb, asked.args[0])
    leave(status)


def parsed(verb, parser, failure=2):
    """The command line's options; help and wrong use end the process as end_with() does."""

    def raise_again():
        raise fault

    try:
        return parser.parse_args()
    except (OSError, SystemExit) as error:
        fault = error
        end_with(verb, raise_again, failure)


def sentence_of(error):
    if isinstance(error, MemoryError):
        return "memory ran out"
    what = error.strerror or str(error)
    if error.errno == errno.EAGAIN and not error.filename:
        return f"no process can be started: {what}; {resource.getrlimit(resource.RLIMIT_NPROC)[0]} may run (ulimit -u)"
    if error.errno in NO_ROOM and "cannot be written" not in what:
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

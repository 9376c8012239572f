"""A command's progress on a terminal, and in a log or a pipe."""

from io import StringIO

from django.core.management.base import OutputWrapper

from memoryhub.management import Progress
from tests.fakes.terminal import Terminal


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def test_a_terminal_shows_each_text_over_the_last_one() -> None:
    screen = Terminal()
    progress = Progress(OutputWrapper(screen))
    for number in range(3):
        progress.show(f"{number} of 3")
    progress.end()
    progress.end()
    assert screen.getvalue() == "\r\033[K0 of 3\r\033[K1 of 3\r\033[K2 of 3\n"


def test_a_file_gets_a_line_every_ten_seconds_and_one_at_the_end() -> None:
    file, clock = StringIO(), Clock()
    progress = Progress(OutputWrapper(file), clock)
    for second in range(26):
        clock.now = 100.0 + second
        progress.show(f"{second} of 25")
    progress.end()
    progress.end()
    assert file.getvalue() == "10 of 25\n20 of 25\n25 of 25\n"

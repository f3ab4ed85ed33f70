"""Graded exercises: write the backward of each operation, and find planted bugs by their symptoms."""

from pathlib import Path

from .answer import Answer, AnswerError
from .exercise import Exercise, Grade, require_exercise
from .graded import ORDER, exercise

BUG_NAMES = tuple(f"bug-{number:02}" for number in range(1, 13))      # the bugs are imported only when needed
NAMES = (*ORDER, *BUG_NAMES)


def check_file(name: str, path: Path, seed: int = 0) -> Grade:
    """Grade a file as the answer to an exercise."""
    try:
        answer = Answer.read(path)
    except AnswerError as error:          # the file cannot be loaded
        return Grade(name, [], [], str(error))
    try:
        return exercise(name).grade(answer, seed)
    finally:
        answer.close()


__all__ = ["BUG_NAMES", "NAMES", "ORDER", "Answer", "AnswerError", "Exercise", "Grade", "check_file", "exercise",
           "require_exercise"]

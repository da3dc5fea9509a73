"""What an answer says against its source, and its form against what was asked for. Pure functions of text.

check_fidelity(answer, source).ok
check_format(answer, FormatSpec(sentences=3, max_chars_per_sentence=30)).problems
parse_output(answer, Model)
"""

from .fidelity import Fact, FidelityReport, check_fidelity
from .format import FormatProblem, FormatReport, FormatSpec, check_format
from .index import SourceIndex
from .output import OutputError, OutputProblem, parse_output

__all__ = [
    "Fact",
    "FidelityReport",
    "FormatProblem",
    "FormatReport",
    "FormatSpec",
    "OutputError",
    "OutputProblem",
    "SourceIndex",
    "check_fidelity",
    "check_format",
    "parse_output",
]

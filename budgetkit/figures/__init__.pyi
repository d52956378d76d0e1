from budgetkit.accuracy.figures.accuracy import buffers as buffers
from budgetkit.accuracy.figures.accuracy import errors_by_class as errors_by_class
from budgetkit.accuracy.figures.accuracy import errors_by_length as errors_by_length
from budgetkit.accuracy.figures.accuracy import language_tax as language_tax
from budgetkit.accuracy.figures.documents import agreement as agreement
from budgetkit.accuracy.figures.documents import document_errors as document_errors
from budgetkit.accuracy.figures.documents import error_by_length as error_by_length
from budgetkit.accuracy.figures.headroom import rooms as rooms
from budgetkit.accuracy.figures.speeds import speeds as speeds
from budgetkit.budget.colours import colour as colour
from budgetkit.figures.conversations import conversations as conversations
from budgetkit.figures.errors import counter_error as counter_error
from budgetkit.figures.ledger import ledger as ledger
from budgetkit.figures.question import Question as Question
from budgetkit.figures.sections import sections as sections
from budgetkit.figures.sweeps import sweep_line as sweep_line
from budgetkit.figures.sweeps import sweep_map as sweep_map
from budgetkit.figures.turns import turns as turns
from budgetkit.figures.window import waterfall as waterfall
from budgetkit.figures.window import window as window
from budgetkit.replay.figures.outlook import fan as fan
from budgetkit.replay.figures.replays import caching as caching
from budgetkit.replay.figures.replays import dropping as dropping
from budgetkit.replay.figures.replays import ranking as ranking
from budgetkit.replay.figures.replays import spending as spending
from budgetkit.replay.figures.replays import timeline as timeline

__all__: list[str]

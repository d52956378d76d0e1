from budgetkit.budget.colours import colour as colour
from budgetkit.lab.accuracy.figures.accuracy import buffers as buffers
from budgetkit.lab.accuracy.figures.accuracy import errors_by_class as errors_by_class
from budgetkit.lab.accuracy.figures.accuracy import errors_by_length as errors_by_length
from budgetkit.lab.accuracy.figures.accuracy import language_tax as language_tax
from budgetkit.lab.accuracy.figures.documents import agreement as agreement
from budgetkit.lab.accuracy.figures.documents import document_errors as document_errors
from budgetkit.lab.accuracy.figures.documents import error_by_length as error_by_length
from budgetkit.lab.accuracy.figures.headroom import rooms as rooms
from budgetkit.lab.accuracy.figures.speeds import speeds as speeds
from budgetkit.lab.figures.conversations import conversations as conversations
from budgetkit.lab.figures.errors import counter_error as counter_error
from budgetkit.lab.figures.ledger import ledger as ledger
from budgetkit.lab.figures.question import Question as Question
from budgetkit.lab.figures.sections import sections as sections
from budgetkit.lab.figures.sweeps import sweep_line as sweep_line
from budgetkit.lab.figures.sweeps import sweep_map as sweep_map
from budgetkit.lab.figures.turns import turns as turns
from budgetkit.lab.figures.window import waterfall as waterfall
from budgetkit.lab.figures.window import window as window
from budgetkit.lab.replay.figures.outlook import fan as fan
from budgetkit.lab.replay.figures.replays import caching as caching
from budgetkit.lab.replay.figures.replays import dropping as dropping
from budgetkit.lab.replay.figures.replays import ranking as ranking
from budgetkit.lab.replay.figures.replays import spending as spending
from budgetkit.lab.replay.figures.replays import timeline as timeline

__all__: list[str]

# The names of pandas, for type checkers.
from pandas import *  # noqa: F403

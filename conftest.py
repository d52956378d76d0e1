"""The day of all tests, notebooks and doctests: models end every month, and what is stored stays right."""

import os

os.environ["BUDGETKIT_TODAY"] = "2026-11-26"  # on which the table of models was read
os.environ["BUDGETKIT_CACHE"] = ""  # no bills are kept in the home of whoever runs the tests

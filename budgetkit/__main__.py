"""``python -m budgetkit``: the command line, for when its script is not on the path."""

from importlib import import_module

if __name__ == "__main__":
    import_module("budgetkit.extras.shell").main()

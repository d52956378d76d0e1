"""Run the command line as ``python -m budgetkit``."""

from importlib import import_module

if __name__ == "__main__":
    import_module("budgetkit.extras.shell").main()

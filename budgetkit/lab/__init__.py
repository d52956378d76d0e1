"""The laboratory: what a notebook adds to the kit: explorers, figures, accuracy, replay, deciding, the app."""

"""The laboratory for notebooks: explorers, figures, accuracy, replay, deciding and the app."""

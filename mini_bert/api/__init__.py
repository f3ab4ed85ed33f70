"""What most scripts need, in a few lines: a ready-to-use model, fine-tuning, and classes for scikit-learn's pipelines.

Each part opens a model and calls the functions of the other folders, which do the work; nothing is computed here.
"""

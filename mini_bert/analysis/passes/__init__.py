"""One pass of a model, step by step: values, gradients, formulas, and what a prediction rests on."""

"""HTML pages about runs, fits, experiments and evaluations, and figures of what `analysis` computes."""

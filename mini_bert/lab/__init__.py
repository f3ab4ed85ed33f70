"""The laboratory: experiments under one budget, and the ruler that measures their results. How a run is trained is
in mini_bert/training, how a figure is measured in mini_bert/evaluation."""

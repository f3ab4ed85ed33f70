"""The laboratory: experiments under one budget, and the ruler that measures what came of them. How a run is trained is
in mini_bert/training, how a figure is measured in mini_bert/evaluation."""

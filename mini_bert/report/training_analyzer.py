"""TrainingAnalyzer with its figures: what `mini_bert.analysis` computes, drawn by `mini_bert.plots`."""

from typing import TYPE_CHECKING

from ..analysis.batches import DataBatch
from ..analysis.dynamics import training_analyzer
from ..errors import InputError

if TYPE_CHECKING:
    from ..plots import Picture


class TrainingAnalyzer(training_analyzer.TrainingAnalyzer):
    """The dynamics of the run in a directory; `corpus` says where its text is now, if it was moved."""

    def plot_loss_components(self, data_batch: DataBatch | None = None) -> "Picture":
        """A figure of `loss_components`: what the loss asks of each component, checkpoint by checkpoint."""
        try:
            from ..plots import plot_loss_components
        except ModuleNotFoundError as error:          # matplotlib is an extra
            raise InputError(str(error)) from None
        found = self.loss_components(data_batch)
        return plot_loss_components(found.steps, found.shares)

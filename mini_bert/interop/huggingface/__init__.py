"""Models as transformers saves them: one file an architecture, on the tables and the base class of layout.py.

`mini_bert.load` opens every directory that one of these layouts claims, and `save` writes a model in the layout that
can hold it. What an architecture computes is in core; here is only how its files spell it.
"""

from ...core.storage.model_files import Layout, register_layout
from .albert import AlbertLayout
from .bert import BertLayout
from .deberta import DebertaLayout
from .deberta_v2 import DebertaV2Layout
from .distilbert import DistilBertLayout
from .electra import ElectraLayout
from .gpt2 import GPT2Layout
from .modernbert import ModernBertLayout
from .roberta import CamembertLayout, RobertaLayout, XLMRobertaLayout
from .xlnet import XLNetLayout

__all__ = ["LAYOUTS", "BertLayout", "DebertaLayout", "DebertaV2Layout"]

# the first that fits a model is the one that it is saved in, unless it was read from another
LAYOUTS: tuple[Layout, ...] = (
    BertLayout(), RobertaLayout(), XLMRobertaLayout(), CamembertLayout(), AlbertLayout(), DistilBertLayout(),
    ElectraLayout(), DebertaLayout(), DebertaV2Layout(), GPT2Layout(), ModernBertLayout(), XLNetLayout(),
)


for known in reversed(LAYOUTS):                   # the one registered last is asked first
    register_layout(known)

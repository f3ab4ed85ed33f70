"""The options of mini-bert finetune for a teacher."""

from typing import Annotated

import typer

Teacher = Annotated[str | None, typer.Option("--teacher", metavar="DIR", help="For tasks with one class per text: also "
                    "learn from the scores of this model, one that `mini-bert finetune` saved or a transformers "
                    "classifier.", show_default=False)]
TeacherWeight = Annotated[float | None, typer.Option("--teacher-weight", help="Weight of the teacher's scores; the "
                          "labels get the rest. Default: 0.9.", show_default=False)]
TeacherLoss = Annotated[str | None, typer.Option("--teacher-loss", metavar="kl|squared", help="Whether to compare "
                        "softened probabilities or the scores themselves. Default: kl.", show_default=False)]
Temperature = Annotated[float | None, typer.Option("--temperature", help="Softens the probabilities of kl. Default: 2.",
                                                   show_default=False)]
Augment = Annotated[int | None, typer.Option("--augment", metavar="N", help="Texts to make from each training text, by "
                    "hiding words and taking parts, for the teacher to label. Default: 0.", show_default=False)]
Unlabelled = Annotated[str | None, typer.Option("--unlabelled", metavar="FILE", help="More texts for the teacher to "
                       "label, in the format of --train; labels are ignored.", show_default=False)]
LabelsAlone = Annotated[bool, typer.Option("--labels-alone/--no-labels-alone", help="With --teacher, also train "
                        "without it.")]

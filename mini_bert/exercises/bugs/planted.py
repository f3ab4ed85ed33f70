"""The planted bugs: which terms are changed, which diagnostics show them, and which cause is the right answer.

This file contains the answers.
"""

from .bug import Bug
from .planting import Edit

_ATTEND = "core.ops.attention"
_EMBEDDINGS = "core.modules.embeddings.embeddings:Embeddings"
_POSITIONS = "core.modules.embeddings.positions:LearnedPositions"

BUGS = {bug.name: bug for bug in (
    Bug(name="bug-01",
        question="The run learns more slowly than the healthy one, and the gradient check fails for some of the "
                 "model's parameters and not for others.",
        cause="residual",
        edits=(Edit("core.modules.blocks.post_ln:PostLNLayer.backward", "return", "return dx"),),
        caught_by=("gradcheck", "curve"), silent=("padding",),
        hints=("All operations agree with finite differences: each part is right, but not the way they are combined.",
               "Order the parameters of the model as the gradient reaches them, from the head down to the embeddings. "
               "Between which two does the error begin?",
               "The last layer's own parameters are right, and everything below it is wrong. By which paths does the "
               "gradient leave a layer?")),
    Bug(name="bug-02",
        question="With the same settings the run differs from its first steps. In this short run the loss even falls "
                 "faster, and yet something is wrong.",
        cause="bias-correction",
        edits=(Edit("training.optimisers.adamw:AdamW.direction", "m_factor, root =",
                    "m_factor, root = 1 - b1, sqrt(1 - b2)"),),
        caught_by=("first-steps", "curve"), silent=("gradcheck", "again"),
        hints=("The gradients are right, and the same each time; look at what is done with them.",
               "Under a constant gradient each of Adam's steps should be one learning rate long. Here the first is "
               "about three, and it takes many steps to come down.",
               "m and v start at zero, and it takes time until that no longer matters: about 10 steps for m, 1,000 for "
               "v. What compensates for it?")),
    Bug(name="bug-03",
        question="The training loss falls below that of the healthy run, while the held-out loss climbs.",
        cause="shifted",
        edits=(Edit("core.gradients:mlm_gradients", "targets =",
                    "targets = np.roll(target_ids, 1, axis=1)"),),
        caught_by=("curve", "doctor"), silent=("gradcheck",),
        hints=("The gradient check passes: the gradients belong to the loss. Is it the right loss?",
               "The model learns something easier than the task, and the held-out loss, which measures the task, "
               "keeps rising.",
               "What is visible in the input at most positions, and could be the target by mistake?")),
    Bug(name="bug-04",
        question="The loss curve is nearly that of the healthy run. A user reports that the gradient check fails.",
        cause="scatter",
        edits=(Edit("core.ops.embedding:summed_rows", "return",
                    "return ordered[starts], dy[order][starts]"),),
        caught_by=("gradcheck", "parts"), silent=("curve",),
        hints=("One operation disagrees with finite differences, and causes the model's error.",
               "That operation has two checks. What does the failing one have that the passing one does not?",
               "Several positions may look up the same row. What happens to their gradients?")),
    Bug(name="bug-05",
        question="In a small model there is hardly a difference. With wider heads each query attends to a single token "
                 "before the model has learned anything.",
        cause="scale",
        edits=(Edit(f"{_ATTEND}:_scores", "scores *=", "pass"),
               Edit(f"{_ATTEND}:attention_backward", "dscores *=", "pass")),
        caught_by=("scores",), silent=("gradcheck", "curve"),
        hints=("The gradient check passes, so forward and backward match: both may have the same error.",
               "A sum of d_k products of independent numbers with variance 1 has variance d_k.",
               "How large are the scores for d_k = 64, and how large should they be for every d_k?")),
    Bug(name="bug-06",
        question="A sentence gets different vectors when it is in a batch with a longer one.",
        cause="mask-embeddings",
        edits=(Edit(f"{_ATTEND}:_scores", "if key_mask", "False"),
               Edit(f"{_EMBEDDINGS}.forward", "x =", "x = ctx.hook('embeddings', x); "
                    "x = x if ctx.key_mask is None else x * ctx.key_mask.reshape(-1, 1)", number=1),
               Edit(f"{_EMBEDDINGS}.backward", "dx =", "dx = ctx.hook('embeddings', dx); "
                    "dx = dx if ctx.key_mask is None else dx * ctx.key_mask.reshape(-1, 1)")),
        caught_by=("padding",), silent=("gradcheck", "curve"),
        hints=("Padding has an effect, which it should not have: it is masked somehow, but not completely.",
               "It makes no difference which tokens are in the padding, but how many there are.",
               "A vector of zeros still has a score, namely zero, and the softmax gives it a weight.")),
    Bug(name="bug-07",
        question="The run starts well, then learns more slowly, and the norm of the gradient keeps growing.",
        cause="not-zeroed",
        edits=(Edit("training.gradient_sum:MicroBatchGradients._keep", "pieces =",
                    "pieces = self._pieces[owner]; pieces += [] if pieces or self._number else [piece]"),),
        caught_by=("again", "curve"), silent=("gradcheck",),
        hints=("A single backward pass is right, as the gradient check shows.",
               "The same batch with the same parameters must give the same gradient each time.",
               "The norm doubles the second time and triples the third. What is left over from the time before?")),
    Bug(name="bug-08",
        question="Both losses start far above the healthy run's; at the end the held-out loss is within 0.2 nats of "
                 "it.",
        cause="specials",
        edits=(Edit("text.masking:Masking.__call__", "ordinary =",
                    "ordinary = ids != vocabulary.pad"),),
        caught_by=("doctor",), silent=("gradcheck", "curve"),
        hints=("The mathematics is correct: look at the targets.",
               "At first the model gives some targets almost no probability; they are soon memorised, and teach "
               "nothing.",
               "Every sequence begins and ends with the same two tokens.")),
    Bug(name="bug-09",
        question="The run learns more slowly than the healthy one, and the gradient check fails for nearly everything.",
        cause="layernorm",
        edits=(Edit("core.ops.layernorm:layernorm_backward", "dx -=", "pass", number=1),),
        caught_by=("gradcheck", "curve"), silent=("parts",),
        hints=("One operation disagrees with finite differences, and so does everything in the model below it.",
               "Two of its three gradients are right. How many terms does the third have, and where do they come from?",
               "Try it on a cotangent along xhat: scaling a row should change nothing.")),
    Bug(name="bug-10",
        question="The loss of a batch depends on how many sequences are computed at a time.",
        cause="mean-of-means",
        edits=(Edit("core.gradients:mlm_gradients", "dlogits =",
                    "dlogits = [cross_entropy_backward(factor / len(found), loss_cache, overwrite=True)]; "
                    "loss = loss / len(found)"),
               Edit("objectives.masked:MaskedLM.counts", "return", "return {self.main: 1}")),
        caught_by=("parts",), silent=("gradcheck", "curve"),
        hints=("Each micro-batch is right, as the gradient check shows; the way they are combined is not.",
               "The micro-batches have different numbers of masked tokens.",
               "Take the mean over two tokens, the mean over eight, and then the mean of both: how much does a token "
               "of the first count?")),
    Bug(name="bug-11",
        question="The run learns far less than the healthy one, as if it could not read.",
        cause="positions",
        edits=(Edit(f"{_POSITIONS}.forward", "x +=", "pass"),
               Edit(f"{_POSITIONS}.backward", "drows =", "drows = np.zeros(dx.shape[1:], dx.dtype)")),
        caught_by=("order", "curve"), silent=("gradcheck",),
        hints=("The gradient check passes: nothing depends on what is missing, so zero is the right gradient.",
               "Swap two words of a sentence: attention alone treats its keys as a set.",
               "What tells the model the position of a token?")),
    Bug(name="bug-12",
        question="The loss curve is that of the healthy run, and yet a sentence gets different vectors when it is "
                 "padded.",
        cause="softmax-axis",
        edits=(Edit(f"{_ATTEND}:attention_forward", "weights, _ =",
                    "weights = softmax_forward(np.maximum(scores, -1e9).swapaxes(2, 3).copy())[0].swapaxes(2, 3) "
                    "* np.isfinite(scores)"),
               Edit(f"{_ATTEND}:attention_backward", "dscores =",
                    'dscores = hook("scores", softmax_backward(dweights.swapaxes(2, 3), weights.swapaxes(2, 3))'
                    ".swapaxes(2, 3).copy())")),
        caught_by=("weights", "padding"), silent=("gradcheck", "curve"),
        hints=("The gradient check passes: forward and backward match, but what they compute is not attention.",
               "The weights of each query should sum to one over the keys. Over what do they sum to one here?",
               "The scores are (B, A, queries, keys), and the wrong one of the last two axes is normalised.")),
)}

"""The planted bugs: which terms are changed, by what they can be seen, and which cause is the right answer.

Reading this file is reading the answers.
"""

from .bug import Bug
from .planting import Edit

_ATTEND = "core.ops.attention"
_EMBEDDINGS = "core.modules.embeddings.embeddings:Embeddings"
_POSITIONS = "core.modules.embeddings.positions:LearnedPositions"

BUGS = {bug.name: bug for bug in (
    Bug(name="bug-01",
        question="The run stays behind the healthy one, and the gradient check complains about some of the model's "
                 "parameters and not about others.",
        cause="residual",
        edits=(Edit("core.modules.blocks.post_ln:PostLNLayer.backward", "return", "return dx"),),
        caught_by=("gradcheck", "curve"), silent=("padding",),
        hints=("All operations agree with finite differences: each part is right, and what puts them together is not.",
               "Order the parameters of the model as the gradient meets them, from the head down to the embeddings. "
               "Between which two does the error begin?",
               "The last layer's own parameters are right, and everything below it is wrong. What leaves a layer on "
               "its way down, and by which ways?")),
    Bug(name="bug-02",
        question="With the same settings the run goes another way from its first steps on. In this short one the loss "
                 "even falls faster; all the same, something is wrong.",
        cause="bias-correction",
        edits=(Edit("training.optimisers.adamw:AdamW.direction", "m_factor, root =",
                    "m_factor, root = 1 - b1, sqrt(1 - b2)"),),
        caught_by=("first-steps", "curve"), silent=("gradcheck", "again"),
        hints=("The gradients are right, in the check and from one time to the next; look at what is done with them.",
               "Under a constant gradient Adam's step is one learning rate, from the first step on. Here the first is "
               "about three, and only after many does it come down.",
               "m and v begin at zero and need a while to forget it: m about 10 steps, v about 1,000. What makes up "
               "for that?")),
    Bug(name="bug-03",
        question="The training loss falls below that of the healthy run, while the held-out loss climbs.",
        cause="shifted",
        edits=(Edit("core.gradients:add_mlm_gradients", "targets =",
                    "targets = np.roll(target_ids, 1, axis=1)"),),
        caught_by=("curve", "doctor"), silent=("gradcheck",),
        hints=("The gradient check agrees: the gradients belong to the loss. Is it the loss that was wanted?",
               "Something is learned that is easier than the task, and the held-out loss, which asks for the task, "
               "gets worse and worse.",
               "What stands in the sentence in plain sight, at most positions, and could be asked for by mistake?")),
    Bug(name="bug-04",
        question="The loss curve is nearly that of the healthy run. A user reports that the gradient check fails.",
        cause="scatter",
        edits=(Edit("core.ops.embedding:summed_rows", "return",
                    "return ordered[starts], dy[order][starts]"),),
        caught_by=("gradcheck", "parts"), silent=("curve",),
        hints=("One operation disagrees with finite differences; the model's error follows from it.",
               "That operation has two checks. What is in the one that fails and not in the one that passes?",
               "Several places may fetch the same row. What happens to their gradients?")),
    Bug(name="bug-05",
        question="In a small model hardly anything is to be seen. With wider heads the attention looks at single "
                 "tokens before it has learned anything.",
        cause="scale",
        edits=(Edit(f"{_ATTEND}:_scores", "scores *=", "pass"),
               Edit(f"{_ATTEND}:attention_backward", "dscores *=", "pass")),
        caught_by=("scores",), silent=("gradcheck", "curve"),
        hints=("The gradient check agrees, so forward and backward fit together: both may be wrong alike.",
               "The sum of d_k products of independent numbers has the variance d_k.",
               "How large are the scores at d_k = 64, and how large should they be for every d_k?")),
    Bug(name="bug-06",
        question="A sentence gets other vectors when it is in a batch with a longer one.",
        cause="mask-embeddings",
        edits=(Edit(f"{_ATTEND}:_scores", "if key_mask", "False"),
               Edit(f"{_EMBEDDINGS}.forward", "x, drop =",
                    "x, drop = dropout_forward(x, self.rate, ctx.dropout('embeddings', self.rate)); "
                    "x = x if ctx.key_mask is None else x * ctx.key_mask.reshape(-1, 1)"),
               Edit(f"{_EMBEDDINGS}.backward", "shape, tokens, type_lookup, ln, drop =",
                    "shape, tokens, type_lookup, ln, drop = cache['_ops']; "
                    "dx = dx if ctx.key_mask is None else dx * ctx.key_mask.reshape(-1, 1)")),
        caught_by=("padding",), silent=("gradcheck", "curve"),
        hints=("Padding has an effect that it should not have; so something is done to it, but not enough.",
               "Which tokens stand in the padding makes no difference. How many there are does.",
               "A vector of zeros still has a score: zero, which the softmax does not take for nothing.")),
    Bug(name="bug-07",
        question="The run begins well, then it stays behind, and the norm of the gradient grows and grows.",
        cause="not-zeroed",
        edits=(Edit("training.gradient_sum:MicroBatchGradients._keep", "pieces =",
                    "pieces = self._pieces[owner]; pieces += [] if pieces else [piece]"),),
        caught_by=("again", "curve"), silent=("gradcheck",),
        hints=("One backward by itself is right, as the gradient check shows.",
               "The same batch with the same parameters must give the same gradient, however often it is asked for.",
               "The norm doubles the second time and trebles the third. What is still there from the time before?")),
    Bug(name="bug-08",
        question="Both losses begin far above the healthy run's; at the end the held-out one is within 0.2 nats of it.",
        cause="specials",
        edits=(Edit("text.masking:Masking.__call__", "ordinary =",
                    "ordinary = ids != vocabulary.pad"),),
        caught_by=("doctor",), silent=("gradcheck", "curve"),
        hints=("The mathematics is in order: look at what the model is asked.",
               "To some questions the model gives the right answer no chance at first; they are soon learned by heart, "
               "and teach nothing.",
               "Every sequence begins and ends with the same two tokens.")),
    Bug(name="bug-09",
        question="The run stays behind the healthy one, and the gradient check complains about nearly everything.",
        cause="layernorm",
        edits=(Edit("core.ops.layernorm:layernorm_backward", "dx -=", "pass", number=1),),
        caught_by=("gradcheck", "curve"), silent=("parts",),
        hints=("One operation disagrees; all of the model that lies below one of its kind disagrees as well.",
               "Of its three gradients two are right. How many terms has the third, and where do they come from?",
               "Try what is left of it on a cotangent along xhat: a change of a row's scale should change nothing.")),
    Bug(name="bug-10",
        question="The loss of a batch depends on how many sequences are computed at a time.",
        cause="mean-of-means",
        edits=(Edit("core.gradients:add_mlm_gradients", "dlogits =",
                    "dlogits = [cross_entropy_backward(1.0 / count, loss_cache, overwrite=True)]; "
                    "loss, count = loss / count, 1"),),
        caught_by=("parts",), silent=("gradcheck", "curve"),
        hints=("Each part by itself is right, as the gradient check shows; the way in which parts are put together is "
               "not.",
               "The parts have different numbers of masked tokens.",
               "Of two and of eight tokens the mean is taken, and then the mean of both: how much does a token of the "
               "first part count?")),
    Bug(name="bug-11",
        question="The run stays far behind the healthy one, as if it could not read.",
        cause="positions",
        edits=(Edit(f"{_POSITIONS}.forward", "x +=", "pass"),
               Edit(f"{_POSITIONS}.backward", "drows =", "drows = np.zeros(dx.shape[1:], dx.dtype)")),
        caught_by=("order", "curve"), silent=("gradcheck",),
        hints=("The gradient check agrees, since nothing depends on what is missing, and zero is the right slope of "
               "that.",
               "Exchange two words of a sentence: attention by itself treats its keys as a set.",
               "What tells the model where a token stands?")),
    Bug(name="bug-12",
        question="The loss curve is that of the healthy run, and yet a sentence gets other vectors when it is padded.",
        cause="softmax-axis",
        edits=(Edit(f"{_ATTEND}:attention_forward", "weights, _ =",
                    "weights = softmax_forward(np.maximum(scores, -1e9).swapaxes(2, 3).copy())[0].swapaxes(2, 3) "
                    "* np.isfinite(scores)"),
               Edit(f"{_ATTEND}:attention_backward", "dscores =",
                    'dscores = hook("scores", softmax_backward(dweights.swapaxes(2, 3), weights.swapaxes(2, 3))'
                    ".swapaxes(2, 3).copy())")),
        caught_by=("weights", "padding"), silent=("gradcheck", "curve"),
        hints=("The gradient check agrees: forward and backward do the same thing, and it is not attention.",
               "Each query shares out a weight of one. Over what does it sum to one here?",
               "The scores are (B, A, queries, keys): one of the last two axes is to be normalised, and it is not the "
               "one that is.")),
)}

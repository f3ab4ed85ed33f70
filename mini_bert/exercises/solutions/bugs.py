"""Why each planted bug has its symptoms. The changed lines are taken from the code itself."""

WHY = {
    "bug-01": """
        A post-LN layer computes LN1(x + MHA(x)). The sum passes its gradient to both terms, the attention and the
        residual path around it; here only the first arrives. The last layer's own parameters are above the missing
        path and agree; the layers below it and the embeddings get too little and disagree. That boundary shows the
        place. Training still works, because part of a gradient also points downhill, but it is slower.""",
    "bug-02": """
        m and v start at zero. After t steps they have the shares 1 - b1^t and 1 - b2^t of their proper size, and the
        bias correction divides by these. Without it m is too small for about 10 steps and v for about 1,000, and since
        the step divides by sqrt(v), it is too long: (1 - b1) / sqrt(1 - b2) = 0.1 / sqrt(0.001) = 3.2 learning rates
        at first. No gradient is wrong, so no gradient check can detect it. A warm-up hides it; in a short run at a low
        learning rate the longer steps may even help by luck.""",
    "bug-03": """
        The targets are shifted by one position, so the target is the token before the masked one. That token is
        usually visible, and copying it is easy: the training loss falls. The held-out loss, whose target is the masked
        token itself, rises. The gradient check compares a gradient with its own loss, and they agree: it cannot know
        that a different loss was intended. The doctor finds a training loss far below the held-out loss, and names
        what usually looks like that, which is not the cause here.""",
    "bug-04": """
        A row of the table that several positions look up affects all of them, so their gradients add up. Here equal
        ids are grouped by sorting, and then only the first of each group is kept. The check without repeated ids
        passes, the one with repeated ids fails; in the model only token_embeddings is wrong, because nothing is below
        it. Computing the batch one sequence at a time changes the gradient too, since fewer ids repeat within a
        sequence. The curve hardly changes: part of the gradient has the right direction, and Adam corrects its
        size.""",
    "bug-05": """
        A score is a sum of d_k products. For independent numbers of variance 1 its standard deviation is sqrt(d_k), and
        dividing by sqrt(d_k) makes it 1. Without the division the scores of wide heads are large from the start, the
        softmax puts nearly all weight on one key, and where it is saturated its gradient is nearly zero. The factor is
        missing from both forward and backward, so they agree. With d_k = 16 the weights can still compensate, which is
        why the small run shows nothing.""",
    "bug-06": """
        The embeddings of padding are set to zero and the scores are not masked. A key of zeros has the score zero, and
        exp(0) is 1, not 0: each padded position gets a share of the weights, so the result depends on the number of
        padded positions. It does not depend on the tokens there, since all are zero; that distinguishes this cause
        from a missing mask. Only a score of minus infinity before the softmax gives a weight of zero. Forward and
        backward agree, and a run on text with little padding learns normally.""",
    "bug-07": """
        The first micro-batch of a step should overwrite the gradients of the previous step; here it is added to them.
        The gradient of a step is then the sum of all gradients so far, so its norm grows, and the newest one counts for
        less and less. Clipping hides the size but not the direction, which belongs to old parameters. A single backward
        pass is right, so the gradient check passes. Computing the same batch twice shows the bug at once.""",
    "bug-08": """
        Masked positions are chosen among all tokens that are not padding, including [CLS] and [SEP]. These are the same
        in every sequence. At first the model, whose output bias is initialised with word frequencies, gives them almost
        no probability, and the loss is high; soon it has memorised them, and part of each batch teaches nothing. The
        gradients are right, and the held-out loss ends within 0.2 nats of the healthy one, the criterion of the curve.
        The doctor masks [CLS] and [SEP]: a model that never had them as targets gives them almost no probability, this
        one does not.""",
    "bug-09": """
        x reaches y directly, through the mean and through the variance; the line that subtracts the part through the
        variance is missing. dgamma and dbeta do not need it and agree. In the model everything below a LayerNorm
        disagrees, that is, all but the head and the last LayerNorm's own parameters. Without the term the gradient has
        a component along xhat, which would change a row's scale. LayerNorm removes every such change, so that part of
        each step is wasted.""",
    "bug-10": """
        Each micro-batch divides by its own number of masked tokens, and the results are averaged. A token in a
        micro-batch with two masked tokens then counts four times as much as one in a micro-batch with eight. With one
        micro-batch, or with equal counts, the result is the mean over all tokens, so the gradient check passes; with
        nearly equal counts, as in this run, the curve does not change either. The rule: a loss returns a sum and a
        count, and the division comes once, at the very end.""",
    "bug-11": """
        Without positions attention treats the sentence as a set: if two words are swapped, the vectors of all words are
        the same as before, only swapped. In a language where the previous word says most about the next, the loss stays
        near that of frequencies and a bag of words. The gradient of the position embeddings is zero, and since nothing
        depends on them, zero is right: the gradient check passes.""",
    "bug-12": """
        The scores are (B, A, queries, keys), and the weights of each query should sum to one over the keys, the last
        axis. Here the weights of each key sum to one over the queries. Queries now compete with each other, including
        padded ones, so a sentence's vectors depend on its padding. Forward and backward agree, and the layers learn to
        use it: neither the gradient check nor the curve shows the bug.""",
}

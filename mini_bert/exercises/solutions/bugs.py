"""Why each planted bug shows as it does. The lines concerned are taken from the code itself."""

WHY = {
    "bug-01": """
        A post-LN layer computes LN1(x + MHA(x)). The sum sends its gradient both ways, into the attention and around
        it; here only the first arrives. The last layer's own parameters are above the cut and agree; all of the
        layers below, and the embeddings, get too little and disagree. That border tells the place. Training goes on
        all the same, because part of a gradient still points downhill, only worse.""",
    "bug-02": """
        m and v begin at zero. After t steps they hold the shares 1 - b1^t and 1 - b2^t of what they should, and the
        bias correction divides by these. Without it m is too small for about 10 steps and v for about 1,000, and since
        the step divides by sqrt(v), it is too long: (1 - b1) / sqrt(1 - b2) = 0.1 / sqrt(0.001) = 3.2 learning rates
        at first. No gradient is wrong, so no gradient check can see it. A warm-up hides it; in a short run at a low
        rate the longer steps may even help, which is luck and not a reason.""",
    "bug-03": """
        The targets are rolled by one place, so the model is asked for the token before the masked one. That one
        usually stands there in plain sight, and copying it is easy: the training loss falls. The held-out loss, which
        asks for the masked token itself, rises. The gradient check compares a gradient with the loss that it belongs
        to, and they agree: it cannot know that another loss was wanted. The doctor sees a training loss far below
        the held-out one, and can only guess why: what it says is what it looks like, not yet what it is.""",
    "bug-04": """
        A row of the table that several places fetched has moved all of them, so their gradients add up. Here equal
        ids are brought together by sorting, and then only the first of each is kept. A check with one id passes, one
        with repeated ids fails; in the model, token_embeddings alone is wrong, because nothing lies below it. Computing
        the batch one sequence at a time changes the gradient too, since fewer ids repeat within a part. The curve
        hardly shows it: a share of the gradient has the right direction, and Adam makes up for its size.""",
    "bug-05": """
        A score is a sum of d_k products. Of independent numbers of deviation one it has the deviation sqrt(d_k), and
        the division by sqrt(d_k) takes that back to one. Without it the scores of wide heads are large from the start,
        the softmax puts nearly all weight on one key, and where it is saturated its gradient is nearly zero. Forward
        and backward lack the factor alike, so they agree with each other. With d_k = 16 the weights can still make up
        for it, which is why the small run shows nothing.""",
    "bug-06": """
        The embeddings of padding are set to zero and the scores are left alone. A key made of zeros has the score
        zero, and exp(0) is one, not nothing: each padded place takes its share of the weights, and so the result
        depends on their number. Which tokens stand there makes no difference, since all are zero; that tells this
        cause from a missing mask. Only minus infinity, put into the scores before the softmax, gives a weight of zero.
        Forward and backward agree, and a run on text with little padding learns as well as ever.""",
    "bug-07": """
        The first micro-batch of a step should overwrite what the last step left; here it is added. The gradient of a
        step is then the sum of all gradients so far, so its norm grows, and the newest one counts for less and less.
        Clipping hides the size but not the direction, which belongs to parameters that are long gone. One backward by
        itself is right, so the gradient check, which makes one, agrees. The same batch twice shows it at once.""",
    "bug-08": """
        Positions are chosen among all tokens that are not padding, [CLS] and [SEP] among them. They are the same in
        every sequence: at first the model, whose bias begins with the frequencies of words, gives them next to no
        probability, and the loss is high; soon it knows them by heart, and part of each batch teaches nothing. The
        gradients are right, and the held-out loss ends within 0.2 nats of the healthy one, by which the curve is
        judged. The doctor hides [CLS] and [SEP] and asks: a model that was never asked for them gives them no chance,
        this one does.""",
    "bug-09": """
        x reaches y directly, through the mean and through the variance; the line that takes away what flows through
        the variance is missing. dgamma and dbeta do not need it and agree. In the model everything below a LayerNorm
        disagrees, that is, all but the head and the last
        LayerNorm's own parameters. Without the term the gradient has a part along xhat, which would change a
        row's scale: the LayerNorm takes every such change back, so that part of each step is wasted.""",
    "bug-10": """
        Each micro-batch divides by its own number of masked tokens, and the results are averaged. A token of a part
        with two masked tokens then counts four times as much as one of a part with eight. With one part, or with
        equal counts, it is the same as the mean over all, so the gradient check sees nothing; with nearly equal
        counts, as in this run, the curve neither. Rule: a loss returns a sum and a count, and is divided once, at the
        very end.""",
    "bug-11": """
        Without positions attention treats the sentence as a set: exchange two words, and the vectors of all words are
        the same as before, exchanged. In a language where the word before tells most about the next the loss stays
        near what frequencies and a bag of words give. The gradient of the position embeddings is zero, and since
        nothing depends on them zero is right: the gradient check agrees.""",
    "bug-12": """
        The scores are (B, A, queries, keys), and each query shares out a weight of one among the keys, the last axis.
        Here each key shares out a weight of one among the queries. The sums over the keys are no longer one, those
        over the queries are. Queries now compete with each other, padded ones among them, so a sentence's vectors
        depend on its padding. Forward and backward agree, and the layers find a use for it: neither the gradient check
        nor the curve tells.""",
}

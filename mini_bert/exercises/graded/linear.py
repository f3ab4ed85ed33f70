"""Exercise: the backward of a linear map."""

from ...core.gradcheck import Check
from ..compared import BackwardExercise
from ..exercise import Clues, Wrong

EXERCISE = BackwardExercise(
    "linear", "the linear map of each row", 1, "math/linear.md",
    hints=("Write out one element, y_nj = sum_i x_ni W_ij + b_j. For an element of x, W and b: in which y_nj does it "
           "occur, and with what factor?",
           "x_ni occurs in y_n1, y_n2, ..., with the factors W_i1, W_i2, ...: so dx_ni = sum_j dy_nj W_ij. Do the "
           "same for W_ij, which occurs in every row n, and for b_j.",
           "As products: dx is dy times W transposed, dW is x transposed times dy, and db is dy summed over the rows. "
           "No other products have the right shapes."),
    checks=[
        Check("rows", lambda rng: [rng.standard_normal(s) for s in ((4, 3), (3, 5), (5,))]),
        Check("square", lambda rng: [rng.standard_normal(s) for s in ((3, 3), (3, 3), (3,))]),
        Check("one row", lambda rng: [rng.standard_normal(s) for s in ((1, 3), (3, 2), (2,))]),
    ],
    clues=Clues(
        sizes=lambda p: {"the number of rows N": len(p.x), "the number of outputs": p.W.shape[1]},
        wrong=[
            Wrong("dx", "dx uses W where its transpose belongs: dx = dy W^T.",
                  lambda p: p.dy @ p.W),
            Wrong("dW", "dW has its factors swapped, so it is (out, in): x^T dy has the shape of W, dy^T x of W^T.",
                  lambda p: p.dy.T @ p.x),
            Wrong("dW", "dW is averaged over the rows; the contributions of the rows add up, so it is a sum.",
                  lambda p: p.dW / len(p.x)),
            Wrong("dW", "dW uses x where its transpose belongs: x^T dy sums over the rows.",
                  lambda p: p.x @ p.dy),
            Wrong("db", "db lacks the sum over the rows: the same b is added to all of them.", lambda p: p.dy),
            Wrong("db", "db is summed over the features, not over the rows.", lambda p: p.dy.sum(axis=1)),
            Wrong("db", "db is averaged over the rows; the contributions of the rows add up, so it is a sum.",
                  lambda p: p.dy.mean(axis=0)),
            Wrong("db", "db is summed over everything; each output has its own bias.", lambda p: p.dy.sum()),
        ]))

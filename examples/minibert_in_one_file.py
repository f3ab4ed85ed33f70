"""A whole BERT in one file of NumPy: text in, forward, backward, AdamW, training, and words for [MASK].

    python examples/minibert_in_one_file.py                             # learns from the manual of Python, in minutes
    python examples/minibert_in_one_file.py letters.txt "Dear [MASK], how are you?"

Read it from top to bottom: each part uses only what stands above it. Every backward stands under its forward and sends
a gradient the same way back; dx is the gradient of the loss by x. The parameters have the names and shapes that they
have in the library, and a test holds loss, gradients and a step of AdamW equal to the library's.
"""

import re
import sys
from collections import Counter
from pathlib import Path
from time import perf_counter

import numpy as np

# ------------------------------------------------------------------------------------------------ 1. sizes

V = 4096                      # words in the vocabulary
T = 32                        # tokens in a sequence
H = 128                       # features of a token
A = 4                         # attention heads, each of H / A features
I = 512                       # features inside a feed-forward network
L = 2                         # layers
EPS = 1e-5                    # keeps LayerNorm from dividing by zero

# ------------------------------------------------------------------------------------------------ 2. text to ids

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
PAD, UNK, CLS, SEP, MASK = range(5)


def words_of(text):
    """Words and punctuation marks, in small letters. [MASK] stays whole."""
    return [word if word == "[MASK]" else word.lower() for word in re.findall(r"\[MASK\]|\w+|[^\w\s]", text)]


def learn_vocabulary(words):
    """At most V: the special tokens, then the most frequent words. The place of a word in this list is its id."""
    return SPECIAL + [word for word, _ in Counter(words).most_common(V - len(SPECIAL))]


def encode(words, vocabulary):
    """Words -> ids; a word that is not in the vocabulary is [UNK]."""
    ids = {word: i for i, word in enumerate(vocabulary)}
    return np.array([ids.get(word, UNK) for word in words])


def sequences_of(ids):
    """A long text (N,) -> rows [CLS] T - 2 words [SEP], each of T ids."""
    rows = len(ids) // (T - 2)
    body = ids[: rows * (T - 2)].reshape(rows, T - 2)
    return np.hstack([np.full((rows, 1), CLS), body, np.full((rows, 1), SEP)])


def mask(ids, rng, rate=0.15):
    """ids (B, T) -> what the model is shown, and where it must say which word was there.

    A share of the words is chosen. Of these 80 % become [MASK], 10 % another word, and 10 % stay as they are: so
    the model can never be sure that the word it sees is the right one, and has to represent all of them.
    """
    chosen = (rng.random(ids.shape) < rate) & (ids >= len(SPECIAL))
    chosen[0, 1] = True                                                  # never none at all
    lot = rng.random(ids.shape)
    shown = np.where(chosen & (lot < 0.8), MASK, ids)
    shown = np.where(chosen & (lot >= 0.9), rng.integers(len(SPECIAL), V, ids.shape), shown)
    return shown, chosen


# ------------------------------------------------------------------------------------------------ 3. parameters

def new_parameters(rng):
    """Matrices are drawn small and at random, so that no two features begin alike; the rest begins with 0 or 1."""
    def draw(*shape):
        return (0.05 * rng.standard_normal(shape)).astype(np.float32)

    def zeros(*shape):
        return np.zeros(shape, np.float32)

    p = {"token_embeddings": draw(V, H), "position_embeddings": draw(T, H)}
    for i in range(L):
        p |= {f"W_Q_{i}": draw(H, H), f"W_K_{i}": draw(H, H), f"W_V_{i}": draw(H, H), f"W_O_{i}": draw(H, H),
              f"ln1_gamma_{i}": 1 + zeros(H), f"ln1_beta_{i}": zeros(H),
              f"W1_{i}": draw(H, I), f"b1_{i}": zeros(I), f"W2_{i}": draw(I, H), f"b2_{i}": zeros(H),
              f"ln2_gamma_{i}": 1 + zeros(H), f"ln2_beta_{i}": zeros(H)}
    return p | {"final_ln_gamma": 1 + zeros(H), "final_ln_beta": zeros(H),
                "mlm_head_W": draw(H, V), "mlm_head_b": zeros(V)}


# ------------------------------------------------------------------------------------------------ 4. operations
# A forward returns its result and a cache: what its backward will need. A backward takes the gradient of the result
# and returns that of the input; those of parameters it leaves in `g` under their names.

def rows(x):
    """(..., n) -> (N, n): for the gradient of a matrix it does not matter in which sequence a token stands."""
    return x.reshape(-1, x.shape[-1])


def softmax(x):
    """Numbers of any size -> shares that add up to 1 along the last axis."""
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def layernorm(p, name, x):
    """Each token's features: mean 0 and variance 1, then a scale and a shift that are learned."""
    gamma, beta = (p[name.format(part)] for part in ("gamma", "beta"))
    centred = x - x.mean(axis=-1, keepdims=True)
    r = 1 / np.sqrt((centred ** 2).mean(axis=-1, keepdims=True) + EPS)
    xhat = centred * r
    return gamma * xhat + beta, (name, gamma, xhat, r)


def layernorm_backward(dy, cache, g):
    name, gamma, xhat, r = cache
    g[name.format("gamma")], g[name.format("beta")] = rows(dy * xhat).sum(axis=0), rows(dy).sum(axis=0)
    dxhat = gamma * dy
    common = dxhat.mean(axis=-1, keepdims=True)                          # the mean moves with every feature,
    along = (dxhat * xhat).mean(axis=-1, keepdims=True)                  # and so does the variance
    return r * (dxhat - common - xhat * along)


def split(x):
    """(B, T, H) -> (B, A, T, d): every head has its own part of the features."""
    return x.reshape(*x.shape[:2], A, -1).transpose(0, 2, 1, 3)


def join(x):
    """(B, A, T, d) -> (B, T, H): back again."""
    return x.transpose(0, 2, 1, 3).reshape(x.shape[0], x.shape[2], -1)


def attention(p, i, x):
    """Each token asks (Q) all tokens what they have (K), and takes a mixture of what they give (V)."""
    Q, K, V = (split(x @ p[f"W_{letter}_{i}"]) for letter in "QKV")
    weights = softmax(Q @ K.swapaxes(2, 3) / Q.shape[3] ** 0.5)             # (B, A, T, T): who looks at whom
    context = join(weights @ V)
    return context @ p[f"W_O_{i}"], (i, x, Q, K, V, weights, context)


def attention_backward(dy, cache, p, g):
    i, x, Q, K, V, weights, context = cache
    g[f"W_O_{i}"] = rows(context).T @ rows(dy)                           # y = context W_O
    dcontext = split(dy @ p[f"W_O_{i}"].T)
    dV = weights.swapaxes(2, 3) @ dcontext                               # context = weights V
    dweights = dcontext @ V.swapaxes(2, 3)
    dscores = weights * (dweights - (dweights * weights).sum(axis=-1, keepdims=True))      # weights = softmax(scores)
    dscores = dscores / Q.shape[3] ** 0.5                                # scores = Q K^T / sqrt(d)
    dQ, dK = dscores @ K, dscores.swapaxes(2, 3) @ Q
    dx = 0
    for letter, d in (("Q", dQ), ("K", dK), ("V", dV)):                  # Q = x W_Q, and so on: three ways back to x
        g[f"W_{letter}_{i}"] = rows(x).T @ rows(join(d))
        dx = dx + join(d) @ p[f"W_{letter}_{i}"].T
    return dx


def feedforward(p, i, x):
    """Each token by itself: into a wider space, what is negative set to zero, and back."""
    inner = np.maximum(x @ p[f"W1_{i}"] + p[f"b1_{i}"], 0)
    return inner @ p[f"W2_{i}"] + p[f"b2_{i}"], (i, x, inner)


def feedforward_backward(dy, cache, p, g):
    i, x, inner = cache
    g[f"W2_{i}"], g[f"b2_{i}"] = rows(inner).T @ rows(dy), rows(dy).sum(axis=0)
    dinner = (dy @ p[f"W2_{i}"].T) * (inner > 0)
    g[f"W1_{i}"], g[f"b1_{i}"] = rows(x).T @ rows(dinner), rows(dinner).sum(axis=0)
    return dinner @ p[f"W1_{i}"].T


# ------------------------------------------------------------------------------------------------ 5. the model

def forward(p, ids, chosen):
    """ids (B, T) -> a number for every word of the vocabulary at each of the M chosen places (M, V), and a cache."""
    x = p["token_embeddings"][ids] + p["position_embeddings"][: ids.shape[1]]
    caches = []
    for i in range(L):
        mixed, attended = attention(p, i, x)
        x, norm1 = layernorm(p, f"ln1_{{}}_{i}", x + mixed)              # what comes in is added to what is made of it
        changed, fed = feedforward(p, i, x)
        x, norm2 = layernorm(p, f"ln2_{{}}_{i}", x + changed)
        caches.append((attended, norm1, fed, norm2))
    x, final = layernorm(p, "final_ln_{}", x)
    hidden = x[chosen]                                                   # only these are asked for a word
    return hidden @ p["mlm_head_W"] + p["mlm_head_b"], (ids, chosen, caches, final, hidden)


def backward(dlogits, cache, p):
    """The forward in reverse order, line by line -> the gradient of every parameter, by name."""
    ids, chosen, caches, final, hidden = cache
    g = {"mlm_head_W": hidden.T @ dlogits, "mlm_head_b": dlogits.sum(axis=0)}
    dx = np.zeros((*ids.shape, hidden.shape[1]), hidden.dtype)
    dx[chosen] = dlogits @ p["mlm_head_W"].T
    dx = layernorm_backward(dx, final, g)
    for attended, norm1, fed, norm2 in reversed(caches):
        dx = layernorm_backward(dx, norm2, g)
        dx = dx + feedforward_backward(dx, fed, p, g)                    # a sum sends its gradient to both terms
        dx = layernorm_backward(dx, norm1, g)
        dx = dx + attention_backward(dx, attended, p, g)
    g["position_embeddings"] = np.zeros_like(p["position_embeddings"])
    g["position_embeddings"][: ids.shape[1]] = dx.sum(axis=0)
    g["token_embeddings"] = np.zeros_like(p["token_embeddings"])
    np.add.at(g["token_embeddings"], ids, dx)                            # a word that occurs twice gets both
    return g


def loss_and_gradients(p, shown, ids, chosen):
    """The mean of -ln p(the right word) over the chosen places, and its gradient by every parameter."""
    logits, cache = forward(p, shown, chosen)
    shares, right = softmax(logits), ids[chosen]
    place = np.arange(len(right))
    loss = -np.log(shares[place, right]).mean()
    dlogits = shares                                                     # d loss / d logits: what it says,
    dlogits[place, right] -= 1                                           # less what would have been right
    return loss, backward(dlogits / len(right), cache, p)


# ------------------------------------------------------------------------------------------------ 6. AdamW

def adamw(p, g, state, rate, beta1=0.9, beta2=0.999, eps=1e-8, decay=0.01, longest=1.0):
    """Move every parameter against its gradient, by about `rate`, however large the gradient is.

    m averages the gradients of the last steps, v their squares; m / sqrt(v) is near 1 where they agree and near 0 where
    they contradict each other. Matrices also fade a little, so that nothing grows without need.
    """
    norm = np.sqrt(sum((d ** 2).sum() for d in g.values()))
    scale = min(1, longest / norm)                                       # one wild batch must not undo many good ones
    t = state["t"] = state.get("t", 0) + 1
    for name, w in p.items():
        d = g[name] * scale
        m, v = state.get(name, (0, 0))
        m, v = beta1 * m + (1 - beta1) * d, beta2 * v + (1 - beta2) * d ** 2
        state[name] = m, v
        mhat, vhat = m / (1 - beta1 ** t), v / (1 - beta2 ** t)          # m and v began at 0, which is too small
        if w.ndim == 2:
            w *= 1 - rate * decay
        w -= rate * mhat / (np.sqrt(vhat) + eps)


# ------------------------------------------------------------------------------------------------ 7. training

def train(text, seconds=120, batch=32, peak=2e-3, seed=0):
    """Learn a vocabulary and a model from a text, for this long."""
    rng, words = np.random.default_rng(seed), words_of(text)
    vocabulary = learn_vocabulary(words)
    ids = encode(words, vocabulary)
    sequences, p, state, begin = sequences_of(ids), new_parameters(rng), {}, perf_counter()
    counts = np.bincount(ids, minlength=V) + 1
    p["mlm_head_b"][:] = np.log(counts / counts.sum())                   # it begins by guessing frequent words
    print(f"{len(words):,} words of text, {sum(w.size for w in p.values()):,} parameters")
    done, step, mean = 0.0, 0, None
    while done < 1:
        some = sequences[rng.integers(len(sequences), size=batch)]
        shown, chosen = mask(some, rng)
        loss, g = loss_and_gradients(p, shown, some, chosen)
        adamw(p, g, state, peak * min((step + 1) / 200, 1) * (1 - done))         # warm up, then slow down to 0
        step, done = step + 1, (perf_counter() - begin) / seconds
        mean = loss if mean is None else 0.98 * mean + 0.02 * loss
        if step % 100 == 0:
            print(f"step {step:5}  loss {mean:.3f}")
    return p, vocabulary


# ------------------------------------------------------------------------------------------------ 8. at work

def fill_mask(p, vocabulary, text, top=5):
    """For each [MASK] of a sentence, the most probable words and their probabilities."""
    ids = np.hstack([CLS, encode(words_of(text), vocabulary)[: T - 2], SEP])[None]
    logits = forward(p, ids, ids == MASK)[0][:, : len(vocabulary)]       # a short text has fewer than V words
    logits[:, : len(SPECIAL)] = -np.inf                                  # and these are none
    return [[(vocabulary[i], float(shares[i])) for i in np.argsort(-shares)[:top]] for shares in softmax(logits)]


if __name__ == "__main__":
    from pydoc_data.topics import topics  # the manual of the language, which comes with Python

    file, *asked = sys.argv[1:] or [None]
    model, vocabulary = train(Path(file).read_text("utf-8") if file else "\n".join(topics.values()))
    for sentence in asked or ["The [MASK] of the function is an integer.", "Raises an [MASK] if the key is not found."]:
        for found in fill_mask(model, vocabulary, sentence):
            print(sentence, *(f"{share:.0%} {word}" for word, share in found), sep="\n  ")

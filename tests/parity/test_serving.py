"""The server with the openai client, and beside sentence-transformers; the example with usearch."""

import json
import subprocess
import sys
from base64 import b64decode
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.request import Request, urlopen

import numpy as np
import pytest

import mini_bert

for name in ("starlette", "uvicorn"):
    pytest.importorskip(name, reason=f"{name} is not installed; `make parity` installs it")
openai = pytest.importorskip("openai", reason="openai is not installed; `make parity` installs it")
st = pytest.importorskip("sentence_transformers", reason="not installed; `make parity` installs it")

TEXTS = ["The cat sleeps.", "A dog barks at the postman, who is used to it.", "Rain", "", "It is late; we go home.",
         "naïve café 東京 " * 12, "one " * 200]


@pytest.fixture(scope="module")
def theirs(minilm):
    return st.SentenceTransformer(str(minilm), device="cpu").encode(TEXTS, normalize_embeddings=True)


@pytest.fixture(scope="module")
def address(minilm):
    from mini_bert.serve.app import Keys
    from mini_bert.serve.run import serving

    with serving([mini_bert.pipeline(minilm)], keys=Keys(["a-long-key"])) as (found, _):
        yield found


@pytest.fixture(scope="module")
def client(address):
    with openai.OpenAI(base_url=f"{address}v1", api_key="a-long-key", max_retries=0) as made:
        yield made


@pytest.mark.parametrize("form", [{}, {"encoding_format": "float"}, {"encoding_format": "base64"}])
def test_the_openai_client_gets_the_vectors_of_sentence_transformers(client, theirs, form):
    name = client.models.list().data[0].id
    answer = client.embeddings.create(model=name, input=TEXTS, **form)
    found = [np.frombuffer(b64decode(item.embedding), "<f4")
             if isinstance(item.embedding, str) else item.embedding for item in answer.data]
    assert np.abs(np.array(found) - theirs).max() < 1e-5
    assert answer.usage.prompt_tokens == answer.usage.total_tokens > len(TEXTS)
    assert client.models.retrieve(name).id == name


def test_ids_of_tokens_are_taken_by_the_openai_client(client, minilm, theirs):
    ids = mini_bert.pipeline(minilm).tokenizer.ids(TEXTS[0])
    name = client.models.list().data[0].id
    for given in (ids, [ids]):
        assert np.abs(np.array(client.embeddings.create(model=name, input=given).data[0].embedding)
                      - theirs[0]).max() < 1e-5


def test_errors_are_those_that_the_openai_client_knows(client, address):
    with pytest.raises(openai.NotFoundError, match="no model 'other'"):
        client.embeddings.create(model="other", input="a")
    name = client.models.list().data[0].id
    with pytest.raises(openai.BadRequestError, match="384 dimensions"):
        client.embeddings.create(model=name, input="a", dimensions=10)
    with openai.OpenAI(base_url=f"{address}v1", api_key="wrong", max_retries=0) as stranger, \
            pytest.raises(openai.AuthenticationError):
        stranger.models.list()


def test_many_at_once_get_the_same_vectors(address, theirs):
    def ask(number):
        chosen = [number % len(TEXTS), (3 * number + 1) % len(TEXTS)]
        body = json.dumps({"inputs": [TEXTS[i] for i in chosen]}).encode()
        with urlopen(Request(f"{address}embed", body, {"Content-Type": "application/json",
                                                       "Authorization": "Bearer a-long-key"})) as answer:
            return float(np.abs(np.array(json.load(answer)) - theirs[chosen]).max())

    with ThreadPoolExecutor(16) as pool:
        assert max(pool.map(ask, range(100))) < 1e-5


def test_the_example_of_an_index_finds_what_exact_search_finds(tmp_path):
    pytest.importorskip("usearch", reason="usearch is not installed; `make parity` installs it")
    from mini_bert.inference.collection import Collection

    lines = [f"{who} {what} {where}." for who in ("A dog", "The cat", "My aunt", "Nobody", "The old king")
             for what in ("sleeps", "sings", "waits", "reads") for where in ("at home", "in Paris", "by the sea")]
    (tmp_path / "texts.txt").write_text("".join(f"{line}\n" for line in lines))
    model = mini_bert.pipeline("mini")
    np.save(tmp_path / "v.npy", model.embed(lines))
    example = Path(__file__).parents[2] / "examples" / "vector_index.py"

    def run(*arguments):
        return subprocess.run([sys.executable, str(example), *arguments], cwd=tmp_path, capture_output=True, text=True,
                              check=True).stdout

    run("build", "v.npy", "v.usearch", "--kind", "f32")
    shown = run("search", "v.usearch", "A dog sings in Paris.", "--top", "3", "--texts", "texts.txt").splitlines()
    hits, = Collection(tmp_path / "v.npy").search(model.embed("A dog sings in Paris."), 3)
    assert [line.split(None, 2)[2] for line in shown] == [lines[hit.number] for hit in hits]
    assert [float(line.split()[0]) for line in shown] == pytest.approx([hit.cosine for hit in hits], abs=2e-3)

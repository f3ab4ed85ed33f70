"""Forward in a real browser: every step with the numbers of the Python API, cells taken apart, words masked."""

import pytest
from browsing import MASK, TEXT, Keys

from mini_bert.analysis.passes.forward_steps import explain_cell, step_through_forward_pass
from mini_bert.analysis.passes.logit_lens import lens_of_text


def test_every_step_is_shown_and_the_sum_behind_a_cell(page, model, words):
    page.open("forward")
    passed = step_through_forward_pass(model, words, TEXT, mask=[MASK])
    assert [found.text for found in page.all("#forward-tokens .ids span")] == passed.tokens
    names, formulas, reasons = [], 0, 0
    for _ in page.blocks():
        names += page.script("return [...document.querySelectorAll('.card')].map(card => card.dataset.name)")
        formulas += len(page.all(".card math"))
        reasons += len(page.all(".card .why"))
    assert names == passed.names
    assert formulas == len(passed) - 1                    # the tokens have none
    assert reasons == len(passed)
    page.open("forward", step="scores_1")
    page.map("forward-scores_1", "figure:nth-child(2) canvas").click()
    page.walk_to(3, 2)
    assert "head 1, “for”, “met”" in page.find("#forward-scores_1 .readout").text
    page.press(Keys.ENTER)
    cell = explain_cell(passed["scores_1"], 3, 2, head=1)
    page.until(lambda: "scores_1[1,3,2]" in page.find("#forward-scores_1 .expression").text)
    assert page.number("#forward-scores_1 [data-value]") == cell.value
    assert float(page.find("#forward-scores_1 [data-total]").get_attribute("data-total")) == cell.total
    assert len(page.all("#forward-scores_1 .terms tr")) == 13          # twelve terms, and the rest together
    page.find("#forward-scores_1 .explanation button").click()
    assert len(page.all("#forward-scores_1 .terms tr")) == len(cell.terms)


def test_a_matrix_and_a_parameter_can_be_opened(page):
    page.open("forward", step="Q_0", open="Q_0")
    opened = page.find("#forward-Q_0")
    assert "wide" in opened.get_attribute("class")
    button = page.find("#forward-Q_0 button.source")
    button.click()
    page.until(lambda: button.get_attribute("aria-expanded") == "true" and page.all("#forward-Q_0 .sources canvas"))
    page.script("document.querySelector('#forward-Q_0 header button').click()")
    assert "wide" not in opened.get_attribute("class")
    assert "step=" not in page.driver.current_url
    assert "open=" not in page.driver.current_url


def test_words_are_masked_by_a_click_and_targets_chosen(page, model, words):
    page.open("forward", mask="")
    assert page.all(".prediction") == []
    page.find("#token-2").click()
    page.settle("forward")
    assert "mask=2" in page.driver.current_url
    assert page.find("#token-2").text.split() == ["[MASK]", "met"]
    assert page.find("#target-2").get_attribute("value") == "met"
    page.find(".prediction li button").click()
    page.settle("forward")
    assert "target=2" in page.driver.current_url
    best = lens_of_text(model, words, TEXT, mask=[2]).top(words)[-1][0][0]
    assert page.find("#target-2").get_attribute("value") == best.token
    assert page.number(".prediction li .number") == pytest.approx(best.probability, rel=1e-5)
    field = page.find("#target-2")
    field.clear()
    field.send_keys("went", Keys.ENTER)
    page.settle("forward")
    assert "2%3Awent" in page.driver.current_url


def test_negative_cells_can_be_told_without_colour(page):
    """In greyscale the ends of a signed scale are alike: a negative cell has a minus in it, a positive one has none."""
    page.open("step")
    colours = page.script("""
        return Promise.all([import("/heatmap.js"), import("/colours.js")]).then(([{ HeatMap }, { scale }]) => {
            const map = new HeatMap({ data: [-1, 1], rows: 1, columns: 2, colouring: scale(-1, 1, true), signed: true,
                                      rowHeight: 18, cellWidth: 10, name: "two cells" });
            document.body.append(map.element);
            map.draw();
            const { width, height } = map.canvas, colours = [new Set(), new Set()];
            const { data } = map.canvas.getContext("2d").getImageData(0, map.top, width, height - map.top);
            const pixels = new Uint32Array(data.buffer);
            pixels.forEach((pixel, i) => colours[Math.floor((2 * (i % width)) / width)].add(pixel));
            return colours.map((found) => found.size);
        });""")
    assert colours[0] > 1
    assert colours[1] == 1


@pytest.mark.parametrize(("rows", "columns"), [(128, 4096), (1, 40_000)])
def test_a_map_of_many_cells_is_not_larger_than_a_browser_can_draw(page, rows, columns):
    page.open("step")
    width, height, alpha, wide = page.script("""
        const [rows, columns] = arguments;
        return Promise.all([import("/heatmap.js"), import("/colours.js")]).then(([{ HeatMap }, { scale }]) => {
            const data = new Float32Array(rows * columns).fill(1);
            data[0] = -1;
            const map = new HeatMap({ data, rows, columns, colouring: scale(-1, 1, true), signed: true,
                                      rowHeight: 18, cellWidth: 7, name: "many cells" });
            document.body.append(map.element);
            map.draw();
            const { width, height } = map.canvas, right = map.canvas.getBoundingClientRect().width;
            const pixel = map.canvas.getContext("2d").getImageData(width - 2, height - 2, 1, 1).data;
            map.element.remove();
            return [width, height, pixel[3], right];
        });""", rows, columns)
    assert width * height <= 2**24
    assert max(width, height) < 2**15
    assert alpha == 255                                   # its last cell is there
    assert wide == pytest.approx(7 * columns, rel=0.01)   # as large as ever to the eye


@pytest.mark.parametrize("width", [1300, 360])
def test_a_map_has_no_scrollbar_that_it_does_not_need(page, width):
    """A closed map is as wide as its place."""
    page.width(width)
    page.open("forward", step="scores_0")
    page.map("forward-scores_0")
    page.map("forward-attention_output_0")
    page.until(lambda: len(page.all(".heatmap")) > 5)
    assert page.script("return [...document.querySelectorAll('.heatmap')]"
                       ".filter((map) => map.scrollWidth > map.clientWidth).length") == 0


def test_the_map_shows_where_one_is_and_leads_to_every_block(page):
    page.open("forward", step="ffn_hidden_1")
    assert page.find("#map [aria-current]").text == "Feed-forward"
    assert page.find(".group h2").text == "Layer 1: feed-forward"
    assert [button.text for button in page.all("#map .symbols button")] == ["n", "u", "a", "f"]
    assert len(page.all("#map .ways .tip")) == 6          # two residual paths in each layer
    page.find("#map-layer-0-attention").click()
    page.settle("forward")
    assert "part=layer-0-attention" in page.driver.current_url
    assert page.focused == "map-layer-0-attention"
    assert page.all("#forward-Q_0")
    page.driver.back()
    page.settle("forward")
    assert page.find("#map [aria-current]").text == "Feed-forward"


def test_the_map_stays_in_sight(page):
    page.open("forward", step="Q_0")
    page.script("scrollTo(0, document.body.scrollHeight)")
    page.script("return new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
    assert page.script("return scrollY") > 300
    assert 0 <= page.top_of("#map") < 200


def test_the_step_keys_go_on_into_the_next_block(page):
    page.open("forward")
    body = page.find("body")
    body.send_keys("j")
    for _ in range(3):
        page.press("j")
    assert page.focused == "forward-embeddings"
    page.press("j")
    page.settle("forward")
    assert page.find(".group h2").text == "Layer 0: attention"
    page.find("body").send_keys("j")
    assert page.focused == "forward-attention_input_0"


def test_a_card_links_to_its_derivation(page):
    page.open("forward", step="attention_weights_0")
    link = page.find("#forward-attention_weights_0 .why a").get_attribute("href")
    assert link.endswith("/derivation/softmax")
    page.driver.get(link)
    assert page.find("h1").text == "Softmax"
    assert len(page.all("math")) > 20
    fonts = "return document.fonts.ready.then(() => [...document.fonts].map((font) => font.family + font.status))"
    assert page.script(fonts) == ["STIX Two Mathloaded"]


def test_a_zero_is_explained(page):
    page.open("backward", grad="dlogits")
    page.map("backward-dlogits").click()
    page.walk_to(2, 3)
    page.press(Keys.ENTER)
    page.until(lambda: "reads only the logits of position 6" in page.find("#backward-dlogits .zero").text)
    page.walk_to(MASK, 0)
    page.press(Keys.ENTER)
    page.until(lambda: f"[{MASK}," in page.find("#backward-dlogits .expression").text)
    assert page.all("#backward-dlogits .zero") == []


def test_columns_are_labelled_in_every_map(page):
    """Words by their names, thinned out where they are narrow; dimensions by their numbers."""
    page.open("forward", step="Q_0")
    for name in ("Q_0", "scores_0", "attention_weights_0", "attention_output_0"):
        page.map(f"forward-{name}")
    page.open("step")
    tops = page.script("""
        return Promise.all([import("/heatmap.js"), import("/colours.js")]).then(([{ HeatMap }, { scale }]) =>
            [{ columns: 5, columnLabels: ["a", "b", "c", "d", "e"], cellWidth: 3 },
             { columns: 192, columnName: "dimension" }, { columns: 1, columnName: "dimension" }].map((given) => {
                const map = new HeatMap({ data: new Float32Array(400), rows: 2, colouring: scale(-1, 1, true),
                                          rowHeight: 16, name: "some", ...given });
                document.body.append(map.element);
                map.draw();
                const { data } = map.canvas.getContext("2d").getImageData(0, 0, map.canvas.width, Math.round(map.top));
                map.element.remove();
                return data.some((value, i) => i % 4 === 3 && value > 60);
            }));""")
    assert tops == [True, True, True]

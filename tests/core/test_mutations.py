"""Is the proof a proof? Every sign flipped in a backward, and every term left out, must be noticed.

Each backward in core is read as a syntax tree. One mutant a place: + becomes -, += becomes -=, a returned
gradient or what enters another backward is negated, or a statement that accumulates is left out. The
gradient checks must fail for all.

A check moves each parameter and compares what the loss does with the gradient of the backward. The first of the two
does not depend on the backward, so it is measured once for all mutants (`known_slope`).
"""

import ast
import copy
import importlib
import inspect
import pkgutil
import sys
from collections.abc import Callable, Iterator
from functools import cache, partial
from typing import Any, NamedTuple

import pytest

import mini_bert.checks.models as checks_of_models
from mini_bert.checks.check_all import HEADS_OF_MODELS, models_to_check
from mini_bert.checks.heads import check_task_head, check_task_loss
from mini_bert.checks.models import check_model, shrink
from mini_bert.core import gradients, modules
from mini_bert.core.gradcheck import check_operation
from mini_bert.core.ops import Operation, operations
from mini_bert.core.registry import words

EMPTY = ("Alibi", "NoHead", "NoPositions", "Term")                    # nothing to compute
COMPONENTS = [*(info.name.removeprefix("mini_bert.core.") for info in pkgutil.walk_packages(
    modules.__path__, "mini_bert.core.modules.") if not info.ispkg), "selection", "model", "gradients"]
ALSO = {"backward_from_logits", "backward_from_hidden", "compute_mlm_loss_and_gradients", "mlm_gradients"}


class Mutant(NamedTuple):
    """A function, and what is done to the node of this number in a copy of it."""

    what: str
    function: ast.FunctionDef
    change: Callable[[Any], object]
    number: int = 0

    @property
    def line(self) -> int:
        return int(self.what.split(":")[0].removeprefix("line "))

    def made(self) -> ast.FunctionDef:
        copied = copy.deepcopy(self.function)
        self.change(list(ast.walk(copied))[self.number])
        return copied


def mutants(function: ast.FunctionDef) -> Iterator[Mutant]:
    for number, node in enumerate(ast.walk(function)):
        line = getattr(node, "lineno", 0)
        if isinstance(node, ast.BinOp | ast.AugAssign) and isinstance(node.op, ast.Add | ast.Sub) \
                and not (isinstance(node, ast.BinOp) and isinstance(node.right, ast.Constant)
                         and isinstance(node.right.value, int) and isinstance(node.left, ast.Name)):
            yield Mutant(f"line {line}: sign flipped", function, flip_sign, number)
        # (`complete` is about memory and `hook` for readers, not about the numbers; what `require_finite` refuses is
        # tested with huge weights)
        if isinstance(node, ast.AugAssign) or (isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)
                                               and not ast.unparse(node.value.func).endswith(
                                                   (".complete", "require_finite", "ctx.hook"))):
            yield Mutant(f"line {line}: left out", function, partial(leave_out, line))
        if isinstance(node, ast.Call) and node.args and ast.unparse(node.func).endswith("backward"):
            yield Mutant(f"line {line}: argument negated", function, negate_argument, number)
        # (mlm_gradients returns a loss and what was found, which are no gradients)
        if isinstance(node, ast.Return) and node.value is not None and function.name != "mlm_gradients":
            values = node.value.elts if isinstance(node.value, ast.Tuple) else [node.value]
            for i, value in enumerate(values):
                if not isinstance(value, ast.Constant):
                    yield Mutant(f"line {line}: gradient {i} negated", function, partial(negate_result, i), number)


def flip_sign(node: ast.BinOp | ast.AugAssign) -> None:
    node.op = ast.Sub() if isinstance(node.op, ast.Add) else ast.Add()


def leave_out(line: int, function: ast.FunctionDef) -> None:
    """The statement that begins on this line of the function."""
    for parent in ast.walk(function):
        for field in ("body", "orelse"):
            block = getattr(parent, field, None)
            if isinstance(block, list):
                block[:] = [ast.Pass(lineno=line, col_offset=0)
                            if isinstance(item, ast.AugAssign | ast.Expr) and item.lineno == line else item
                            for item in block]


def negate_argument(node: ast.Call) -> None:
    node.args[0] = ast.UnaryOp(ast.USub(), node.args[0])


def negate_result(i: int, node: ast.Return) -> None:
    """The i-th value that is returned, unless it is None."""
    minus = ast.parse("(lambda g: None if g is None else -g)(0)", mode="eval").body
    if isinstance(node.value, ast.Tuple):
        minus.args, node.value.elts[i] = [node.value.elts[i]], minus
    else:
        minus.args, node.value = [node.value], minus


def backward_functions(tree: ast.Module) -> Iterator[tuple[str | None, ast.FunctionDef]]:
    """(class or None, function) of everything that computes gradients."""
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and (node.name.endswith("backward") or node.name in ALSO):
            yield None, node
        if isinstance(node, ast.ClassDef):
            for item in node.body:
                if isinstance(item, ast.FunctionDef) and not item.decorator_list \
                        and (item.name.endswith("backward") or item.name in ALSO) \
                        and ast.unparse(item.body[-1]) != "return None":        # a place for others to fill
                    yield node.name, item


def compiled(module, function: ast.FunctionDef):
    """The function, run in a copy of its module's namespace."""
    tree = ast.fix_missing_locations(ast.Module([function], []))
    namespace = dict(vars(module))
    exec(compile(tree, module.__file__, "exec"), namespace)
    return namespace[function.name]


def backwards_of_components() -> Iterator[tuple[str, Any, str | None, ast.FunctionDef]]:
    """(name, module, class or None, function) of every backward of a component."""
    for name in COMPONENTS:
        module = importlib.import_module(f"mini_bert.core.{name}")
        for owner, backward in backward_functions(ast.parse(inspect.getsource(module))):
            yield name, module, owner, backward


OPERATION_MUTANTS = [
    pytest.param(operation, mutant, id=f"{operation.name}, {mutant.what}")
    for operation in operations()
    for _, backward in backward_functions(ast.parse(inspect.getsource(inspect.getmodule(operation.forward))))
    for mutant in mutants(backward)
]
COMPONENT_MUTANTS = [
    pytest.param(module, owner, mutant, id=f"{name}.{owner}.{backward.name}, {mutant.what}")
    for name, module, owner, backward in backwards_of_components() if owner not in EMPTY
    for mutant in mutants(backward)
]
MODELS = models_to_check()
# most parts are in BERT's layout with a pooler; the rest is tried when that one notices nothing
RICH = {"rich": shrink(type(next(iter(MODELS.values()))).from_dict({
    **next(config for name, config in MODELS.items() if "bert-tiny" in name).to_dict(), "pooler": "tanh",
    "final_layernorm": True}), next(iter(MODELS.values())))}
SMOOTH = type(RICH["rich"]).from_dict({**RICH["rich"].to_dict(), "activation": "gelu"})
OF_MODELS = {name: partial(check_model, name, config) for name, config in {**RICH, **MODELS}.items()}
OF_HEADS = {f"task head: {word}": partial(check_task_head, word, SMOOTH)
            for word in (*HEADS_OF_MODELS, *words("task_head"))} | {
            f"task loss: {word}": partial(check_task_loss, word, SMOOTH) for word in words("task_loss")}


# -------------------------------------------------------------------- what mutants need not measure again

SLOPES: dict[bytes, float] = {}
MEASURED = checks_of_models._slope


def known_slope(parameter, direction, loss) -> float:
    drawn = direction.tobytes()                    # no other model, case or parameter has this direction
    if drawn not in SLOPES:
        SLOPES[drawn] = MEASURED(parameter, direction, loss)
    return SLOPES[drawn]


@pytest.fixture(autouse=True)
def slopes_are_measured_once(monkeypatch):
    monkeypatch.setattr(checks_of_models, "_slope", known_slope)


@cache
def lines_run(name: str) -> frozenset[tuple[str, int]]:
    """The lines of the components that a check runs."""
    files = {module.__file__ for _, module, _, _ in backwards_of_components()}
    seen: set[tuple[str, int]] = set()

    def trace(frame, event, argument):
        if frame.f_code.co_filename not in files:
            return None
        seen.add((frame.f_code.co_filename, frame.f_lineno))
        return trace

    def once(name, case, model, params, loss, rng):
        loss(params.zeros_like())
        return []

    with pytest.MonkeyPatch.context() as patch:
        for kind in ("models", "heads"):
            patch.setattr(f"mini_bert.checks.{kind}.check_directions", once)
        before = sys.gettrace()
        sys.settrace(trace)
        try:
            list((OF_MODELS | OF_HEADS)[name]())
        finally:
            sys.settrace(before)
    return frozenset(seen)


@pytest.fixture(scope="session")
def ran() -> dict[str, frozenset[tuple[str, int]]]:
    return {name: lines_run(name) for name in OF_MODELS | OF_HEADS}


# -------------------------------------------------------------------- the mutants


@pytest.mark.parametrize(("operation", "mutant"), OPERATION_MUTANTS)
def test_a_mutated_operation_is_noticed(operation: Operation, mutant: Mutant, monkeypatch):
    mutated = compiled(inspect.getmodule(operation.forward), mutant.made())
    try:
        results = check_operation(operation.name, operation.forward, mutated, operation.checks)
        if any(not result.passed for result in results):
            return
        # what a module alone passes to the operation, its models must notice
        components = [importlib.import_module(f"mini_bert.core.{name}") for name in COMPONENTS]
        for module in (*components, *(inspect.getmodule(other.forward) for other in operations())):
            for known in [known for known, value in vars(module).items() if value is operation.backward]:
                monkeypatch.setattr(module, known, mutated)
        variants = sorted(MODELS, key=lambda name: ": " not in name)       # those of one word first
        assert any(not result.passed for name in variants for result in OF_MODELS[name]())
    except AssertionError:
        raise
    except Exception:
        return                                     # it does not even run


@pytest.mark.parametrize(("module", "owner", "mutant"), COMPONENT_MUTANTS)
def test_a_mutated_component_is_noticed(module, owner, mutant: Mutant, ran, monkeypatch):
    monkeypatch.setattr(module if owner is None else getattr(module, owner), mutant.function.name,
                        compiled(module, mutant.made()))
    if module is gradients:                        # whose functions return losses, and slopes are those of losses
        monkeypatch.setattr(checks_of_models, "_slope", MEASURED)
    # a check that does not run the line cannot notice anything; a statement may begin some lines above
    likely = [name for name, lines in ran.items() if any((module.__file__, mutant.line - i) in lines for i in range(4))]
    for name in likely or ran:
        try:
            if any(not result.passed for result in (OF_MODELS | OF_HEADS)[name]()):
                return
        except Exception:
            return                                 # it does not even run
    pytest.fail("no gradient check noticed it")


def test_there_are_mutants_of_every_backward():
    mutated = {(param.values[0].name, param.values[1].function.name) for param in OPERATION_MUTANTS}
    assert mutated == {(operation.name, operation.backward.__name__) for operation in operations()}
    mutated = {(param.values[1], param.values[2].function.name) for param in COMPONENT_MUTANTS}
    assert mutated == {(owner, function.name) for _, _, owner, function in backwards_of_components()
                       if owner not in EMPTY}


@cache
def all_compiled() -> list[tuple[Any, str, Any]]:
    """(module or class, name, function) of every backward of a component, compiled as it is."""
    return [(module if owner is None else getattr(module, owner), backward.name, compiled(module, backward))
            for _, module, owner, backward in backwards_of_components()]


@pytest.mark.parametrize("name", OF_MODELS | OF_HEADS)
def test_what_is_compiled_without_a_mutation_passes(name: str, monkeypatch):
    """Otherwise a fault of this harness would look like a mutant that was noticed."""
    for place, known, function in all_compiled():
        monkeypatch.setattr(place, known, function)
    assert all(result.passed for result in (OF_MODELS | OF_HEADS)[name]())


def test_an_operation_that_is_compiled_without_a_mutation_passes():
    for operation in operations():
        module = inspect.getmodule(operation.forward)
        (_, backward), = backward_functions(ast.parse(inspect.getsource(module)))
        results = check_operation(operation.name, operation.forward, compiled(module, backward), operation.checks)
        assert all(result.passed for result in results)
